"""Pages that are written from the code, so that they cannot go stale.

Those of the spec and of the command line are kept in the repository, and a test compares them with the code. ``make docs``
writes them again, and the indexes of benchmarks and experiments.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent

_SECTION_NOTES = {
    "data": "Where the records are, and how one is read. Every rule looks at one unit at a time.",
    "privacy": "What is guaranteed, and the ledger that pays for it.",
    "order": "Counts over a partial order, given here or in a file: in exactly one of the three ways. Where there are questions, they are its elements, and `relations` may stand alone.",
    "series": "Counts over time of what `[order]` says, under one charge ([how to](../how-to/series.md)).",
    "questions": "One table for each question, such as `[questions.hypertension]`. Its name is the element of the order.",
    "table": "One count for each category of a public list.",
    "curve": "y as a monotone function of x, or of two columns.",
    "distribution": "How a number is distributed, in each of some public groups.",
    "survival": "How long it takes until an event, with censored times ([how to](../how-to/survival.md)).",
    "output": "Where the release goes.",
}


def write_pages() -> list[Path]:
    """Write every generated page that is kept in the repository; returns those that changed."""
    pages = {
        "reference/spec.md": spec_page(),
        "reference/types.md": types_page(),
        "reference/command-line.md": command_line_page(),
        "reference/manifest.md": manifest_page(),
        "reference/spec.schema.json": schema_text(),
    }
    changed: list[Path] = []
    for name, text in pages.items():
        path = DOCS / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            changed.append(path)
    return changed


def changelog_page() -> str:
    """The changelog of the repository, with links as the site has them."""
    text = (DOCS.parent / "CHANGELOG.md").read_text(encoding="utf-8")
    return text.replace("(docs/", "(")


# ---------------------------------------------------------------------------- the spec


def spec_page() -> str:
    """Every entry of a spec with its type, default and meaning."""
    from isotone.release import spec

    lines = [
        "# The spec",
        "",
        "One TOML file describes a release: `isotone plan`, `release`, `check` and `audit` read it. It has the sections",
        "`[data]`, `[privacy]` and `[output]`, and exactly one of `[order]`, `[table]`, `[curve]`, `[distribution]` and `[survival]`; `[series]` stands beside `[order]`. Relative",
        "paths start at the file's own folder. An entry that is unknown, missing or of the wrong type is refused with its name.",
        "",
        "!!! warning",
        "    Everything in a spec is public. Nothing in it may be chosen by looking at the data: not the bounds, not",
        "    `upper`, not the lists of categories and groups.",
        "",
        "An editor checks a spec while you write it, with [its JSON Schema](spec.schema.json): save that file, or the output of `isotone schema`,",
        "beside the spec, and begin the spec with the line `#:schema spec.schema.json` (Taplo, Even Better TOML).",
        "",
        "Whole examples: [counts](../start.md), [a table](../how-to/tables.md), [a curve](../how-to/curves.md).",
    ]
    for name, note in _SECTION_NOTES.items():
        section = spec.sections()[name]
        lines += ["", f"## [{name}]", "", note, "", *_entries(section, name)]
        if name == "privacy":
            lines += [
                "",
                "### budget",
                "",
                'A table in `[privacy]`, for example `budget = { epsilon = "2" }`.',
                "",
                *_entries(spec.Budget, "privacy.budget"),
            ]
    return "\n".join(lines) + "\n"


def types_page() -> str:
    """Which types of columns are read, in which role, and as what."""
    from isotone.reading.types import MEANINGS, ROLES

    lines = [
        "# Types of columns",
        "",
        "A column is read for a purpose, and value by value: what one row holds never changes how another is read. This list is closed. In a file with a",
        "schema (Parquet, Arrow), a database or Spark, a column of any other type (binary, lists, structs, intervals, times of day, JSON, bits, …) is refused from the schema",
        "alone, before anything is charged. The message names the column, its type and the cast that repairs it.",
        "",
        "A frame of pandas or polars takes the type of a column from its values, and one value can change it. So no frame is refused for a type: every value of a type that",
        "is not listed, or that nothing can read, is missing. [What a frame has lost](../limits.md#readers-that-guess) before isotone sees it stays lost.",
        "",
        "## What a value is",
        "",
        "| type | as text | as a number |",
        "|---|---|---|",
        *(f"| {kind} | {text} | {number} |" for kind, (text, number) in MEANINGS.items()),
        "",
        "Dictionaries, categories and enumerations are of the type of their values. CSV and JSON lines hold texts.",
        "",
        "## What a column is for",
        "",
        "| role | types | how it is read |",
        "|---|---|---|",
        *(
            f"| {role} | {'all' if len(kinds) == len(MEANINGS) else ', '.join(kinds)} | {how} |"
            for role, (kinds, how) in ROLES.items()
        ),
    ]
    return "\n".join(lines) + "\n"


def schema_text() -> str:
    """The JSON Schema of a spec."""
    import json

    from isotone.release import spec_schema

    return json.dumps(spec_schema(), indent=1, ensure_ascii=False) + "\n"


def _entries(section: Any, name: str) -> list[str]:
    rows = ["| entry | type | default | meaning |", "|---|---|---|---|"]
    schema = section.model_json_schema()
    inherited = {
        key
        for base in section.__mro__[1:]
        if base.__name__.endswith("Section")
        for key in getattr(base, "model_fields", {})
    }
    for key, field in section.model_fields.items():
        if key in inherited:
            continue
        if not field.description:
            raise ValueError(f"{name}.{key} has no description: write one under it.")
        default = "**required**" if field.is_required() else _default(field.default)
        meaning = _sentence(field.description)
        rows.append(f"| `{key}` | {_words(schema['properties'][key])} | {default} | {meaning} |")
    return rows


def _sentence(text: str) -> str:
    """A description as one line of Markdown."""
    return " ".join(text.split()).replace("|", "\\|").replace("*", "\\*")


def _default(value: Any) -> str:
    if value is None or value == {}:
        return "–"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f'`"{value}"`' if isinstance(value, str) else f"`{value}`"


_TYPES = {"string": "text", "integer": "whole number", "number": "number", "boolean": "`true` or `false`"}


def _words(entry: Any) -> str:
    """The type of an entry in words, from its JSON Schema."""
    if "anyOf" in entry:
        given = [part for part in entry["anyOf"] if part.get("type") != "null"]
        exact = any(part.get("type") == "number" for part in given)  # such numbers may be texts
        return " or ".join(dict.fromkeys(_words(part) for part in given if not (exact and "pattern" in part)))
    if "enum" in entry or "const" in entry:
        return " or ".join(f'`"{part}"`' for part in entry.get("enum", [entry.get("const")]))
    if entry.get("type") != "array":
        return _TYPES.get(entry.get("type", ""), "table")
    parts = [_words(part) for part in entry.get("prefixItems", [entry.get("items", {})])]
    what = "list" if len(parts) != 2 else "pair"
    if len(set(parts)) > 1:
        return f"{what} of {', '.join(parts[:-1])} and {parts[-1]}"
    many = {"text": "text", "whole number": "whole numbers", "number": "numbers"}
    return (
        f"{what} of {many[parts[0]]}"
        if parts[0] in many
        else f"{what} of {'pairs' if 'pair' in parts[0] else 'lists'}"
        if "of" in parts[0]
        else what
    )


# ---------------------------------------------------------------------------- the manifest


def manifest_page() -> str:
    """Every entry of a manifest with its type and meaning, for each kind of release."""
    from isotone.release.kinds.kind import all_kinds
    from isotone.release.manifest import FORMAT, Manifest, manifest_schema

    lines = [
        "# The manifest",
        "",
        "`manifest.json` says what a release is and what it guarantees. It holds public values and private outputs only: no",
        f"count of rows, no size, hash or time of the data. This is `{FORMAT}`; a reader of version n also reads version",
        "n - 1. `isotone.release.manifest.manifest_schema` gives the JSON Schema, made from the same types as this page.",
        "",
        "The content hash is the SHA-256 of one JSON value, written with sorted keys: `columns` (the columns of release.csv)",
        "and `manifest` (all entries but `content_hash` and `files`).",
    ]
    common = set(Manifest.meanings)
    for title, form, names in [
        ("Every release", Manifest, common),
        *(
            (f"kind = {kind.name}", kind.manifest, set(kind.manifest.meanings) - common)
            for kind in all_kinds()
        ),
    ]:
        schema = manifest_schema(form)
        lines += ["", f"## {title}", "", "| entry | JSON | meaning |", "|---|---|---|"]
        for name, entry in schema["properties"].items():
            if name in names:
                optional = "" if name in schema["required"] else ", optional"
                lines.append(
                    f"| `{name}` | {_json_type(entry)}{optional} | {_sentence(entry['description'])} |"
                )
    return "\n".join(lines) + "\n"


def _json_type(entry: Any) -> str:
    if "$ref" in entry:
        return "object"
    if "anyOf" in entry:
        return " or ".join(_json_type(part) for part in entry["anyOf"] if part.get("type") != "null")
    kind = entry.get("type", "any")
    return f"array of {_json_type(entry['items'])}" if kind == "array" else kind


# ---------------------------------------------------------------------------- the command line


def command_line_page() -> str:
    """Every command with its arguments and options."""
    import typer.main

    from isotone.cli import app

    lines = [
        "# Command line",
        "",
        "```text",
        "isotone COMMAND [OPTIONS] …",
        "```",
        "",
        "On a terminal there are tables and progress bars; in a pipe, plain text. `--json` prints one JSON value for programs.",
        "An error is one sentence on stderr that says what to do. Exit codes:",
        "",
        "| code | meaning |",
        "|---|---|",
        "| 0 | done |",
        "| 1 | refused or failed: the sentence says why. `verify` and `audit`: a check failed, a guarantee is broken |",
        "| 2 | a mistake in the call itself |",
        "| 130 | interrupted; a charge that was made stays spent |",
    ]
    for name, command in typer.main.get_command(app).commands.items():  # pyright: ignore[reportAttributeAccessIssue]
        for path, leaf in _leaves(f"isotone {name}", command):
            lines += ["", f"## {path}", "", *_command(path, leaf)]
    return "\n".join(lines) + "\n"


def _leaves(path: str, command: Any) -> list[tuple[str, Any]]:
    if not hasattr(command, "commands"):
        return [(path, command)]
    return [leaf for name, part in command.commands.items() for leaf in _leaves(f"{path} {name}", part)]


def _command(path: str, command: Any) -> list[str]:
    arguments = [part for part in command.params if part.param_type_name == "argument"]
    options = [part for part in command.params if part.param_type_name == "option" and part.name != "help"]
    usage = " ".join([path, *(_placeholder(part) for part in arguments), *(["[OPTIONS]"] if options else [])])
    lines = ["```text", usage, "```", "", " ".join((command.help or "").split())]
    rows = [(f"`{_placeholder(part).strip('[]')}`".replace("|", "\\|"), _help(part)) for part in arguments]
    rows += [(", ".join(f"`{name}`" for name in part.opts), _help(part)) for part in options]
    return [*lines, "", "| | |", "|---|---|", *(f"| {left} | {right} |" for left, right in rows)]


def _placeholder(argument: Any) -> str:
    name = argument.metavar or argument.name.upper()
    return name if argument.required else f"[{name}]"


def _help(part: Any) -> str:
    text = " ".join((part.help or "").split()).replace("|", "\\|")
    flag = getattr(part, "is_flag", False)
    default = part.default
    if default is None or default is ... or flag or part.required or "Default:" in text:
        return text
    return f"{text} Default: `{default}`."


# ---------------------------------------------------------------------------- benchmarks


def benchmarks_page() -> str:
    """An index of the benchmark reports, each with what its first paragraph says."""
    lines = [
        "# Benchmarks",
        "",
        "Ours and what one would pick instead, side by side: `make bench` runs them all and writes these pages. Every page is one",
        "run on one machine, which it names; read the ratios, not the seconds.",
        "",
        "Against the [strongest rivals](rivals.md), each used at its best, with isotone better on the right of the line and worse on the left:",
        "",
        "![Error of the best rival of each comparison, as a multiple of isotone's](rivals.png)",
        "",
    ]
    for path in sorted(
        (DOCS / "benchmarks").glob("*.md"), key=lambda path: (path.stem != "rivals", path.stem)
    ):
        if path.stem != "index":
            title = path.read_text(encoding="utf-8").splitlines()[0].lstrip("# ")
            lines.append(f"- [{title}]({path.name})")
    return "\n".join(lines) + "\n"


def accuracy_in_words(within: int = 50) -> str:
    """What ε the health survey of the README takes, with our noise and with the usual one."""
    from pictures import SURVEY

    from isotone import Poset
    from isotone.counts import LaplaceMechanism, PosetMechanism

    order = Poset.from_mapping(SURVEY)
    ours, usual = (
        kind(order, 1).unrounded_simultaneous_half_width(0.95) / within
        for kind in (PosetMechanism, LaplaceMechanism)
    )
    return f"all eleven counts within ± {within}, 95 % of the time: ε = {ours:.2f} instead of {usual:.1f}"


# ---------------------------------------------------------------------------- experiments


def gallery_page() -> str:
    """Every experiment with its pictures and its data."""
    from isotone.cli.reproduction import experiments, load_experiment

    lines = [
        "# All experiments",
        "",
        "Every experiment of the repository, with its pictures and its data: `isotone reproduce NAME` runs one again. What was",
        "published, and why we differ, is on the pages about [counts](counts.md), [tables](tables.md) and [curves](curves.md).",
    ]
    for name, path in experiments().items():
        folder = DOCS / "reproduction" / path.stem
        lines += ["", f"## {name}", "", (load_experiment(path).__doc__ or "").strip().split("\n\n")[0], ""]
        for picture in sorted(folder.glob("*.png")):
            lines += [f"![{name}: {picture.stem}]({path.stem}/{picture.name})", ""]
        tables = [f"[{table.name}]({path.stem}/{table.name})" for table in sorted(folder.glob("*.csv"))]
        lines += [f"Data: {', '.join(tables)}."] if tables else []
    return "\n".join(lines) + "\n"
