"""Public CSV, JSON and TOML files that describe an order or a list of categories.

These files are public: their contents may be quoted in errors.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Hashable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isotone.counts.relaxation import Relaxation
from isotone.errors import InputError, OrderError, SpecError
from isotone.order import Poset
from isotone.order.closure import Children, read_children
from isotone.reading.public_csv import column_of, public_rows, text_of

if TYPE_CHECKING:
    from isotone.release.spec import Spec


def read_relaxation(path: str | Path) -> Relaxation:
    """What a search found for an order, in a file of its own, or in the manifest of a release."""
    try:
        plain: Any = json.loads(Path(path).read_text("utf-8"))
        if isinstance(plain, dict) and isinstance(plain.get("mechanism"), dict):
            plain = plain["mechanism"].get("relaxation")
        return Relaxation.from_plain(plain)
    except (OSError, ValueError, InputError) as problem:
        raise SpecError(
            f"{str(path)!r} has no relaxation of an order: {problem} A manifest has one where the order was out of reach."
        ) from None


def read_order(
    path: str | Path,
    lower: str = "child",
    upper: str = "parent",
    choice: str | None = None,
    children: Children | None = None,
) -> Poset:
    """The order in a file.

    CSV: one line per relation, with the columns ``lower`` and ``upper``, which may also be called just that (an empty upper entry
    only names an element). Separator and encoding are recognised, and capitals of the names do not matter. JSON or TOML: a table ``name = parent`` or ``name = [parents]``.

    What excludes each other stands in a column ``choice`` of a CSV file: on the line of a relation "exclusive" or
    "partition", with a name after it if there are several groups below the upper element ("exclusive diet"). In
    JSON or TOML it is a table ``children``; for any file it may be given here, as for ``Poset.from_mapping``.
    """
    path = Path(path)
    if choice is not None and (children is not None or path.suffix.lower() != ".csv"):
        raise SpecError("A column of choices is for CSV files, and children= stands in its place: give one.")
    if path.suffix.lower() == ".csv":
        if (lower, upper) == _USUAL:
            lower, upper = _usual_columns(path)
        columns = [lower, upper, *([choice] if choice else [])]
        rows = _rows(path, columns, _WHICH)
        elements = dict.fromkeys(row[key] for row in rows for key in (lower, upper) if row[key])
        relations = [(row[lower], row[upper]) for row in rows if row[lower] and row[upper]]
        if not elements:
            raise OrderError(f"The order file {str(path)!r} names no element.")
        if choice is not None:
            return Poset(elements, relations, _choices(rows, lower, upper, choice))
        return Poset(elements, relations, read_children(children or "any", elements, relations))
    mapping = _mapping(path)
    inside = mapping.pop("children") if isinstance(mapping.get("children"), dict) else None
    if inside is not None and children is not None:
        raise SpecError(f"{str(path)!r} says what its children are: leave out children=.")
    parents: dict[Hashable, Any] = {
        str(name): [str(x) for x in value] if isinstance(value, list) else (str(value) if value else None)
        for name, value in mapping.items()
    }
    return Poset.from_mapping(parents, inside or children or "any")


def _choices(rows: list[dict[str, str]], lower: str, upper: str, choice: str) -> list[tuple[str, list[str]]]:
    """The options of each upper element that have the same entry in the column of choices."""
    groups: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        if row[lower] and row[choice]:
            groups.setdefault((row[upper], row[choice]), []).append(row[lower])
    return [(kind.split()[0], options) for (_, kind), options in groups.items()]


def load_order(
    path: str | Path, lower: str = "child", upper: str = "parent", choice: str | None = None
) -> Poset:
    """The order of a spec or of an order file. A TOML file with an ``[order]`` section is a spec."""
    spec = _spec(Path(path))
    if spec is not None:
        return spec.poset
    return read_order(path, lower, upper, choice)


def order_labels(path: str | Path) -> dict[str, str]:
    """The labels of the questions of a spec, none for any other file."""
    spec = _spec(Path(path))
    return {} if spec is None else {name: question.shown for name, question in spec.book.items()}


def _spec(path: Path) -> Spec | None:
    """The spec in a TOML file with an ``[order]`` section, None for any other file."""
    from isotone.release.spec import load_spec

    is_spec = path.suffix.lower() == ".toml" and isinstance(_mapping(path).get("order"), dict)
    return load_spec(path) if is_spec else None


def read_categories(path: str | Path, column: str) -> tuple[str, ...]:
    """The distinct values of a CSV column, in the order of the file."""
    return tuple(dict.fromkeys(row[column] for row in _rows(Path(path), [column]) if row[column]))


def read_column(path: str | Path, key: str, column: str) -> tuple[str, ...]:
    """What a CSV file says in ``column`` about each of :func:`read_categories`."""
    result: dict[str, str] = {}
    for row in _rows(Path(path), [key, column]):
        if row[key] and result.setdefault(row[key], row[column]) != row[column]:
            raise SpecError(f"{str(path)!r} says two things in {column!r} about {row[key]!r}.")
    return tuple(result.values())


_WHICH = (
    "Say which column implies which: --lower NAME --upper NAME on the command line, lower and upper in [order] of a spec. "
    "A yes to lower implies a yes to upper. If these are names of elements, the file has no header line: write child,parent above them."
)
_USUAL = ("child", "parent")


def _usual_columns(path: Path) -> tuple[str, str]:
    """What the columns of relations are called where nobody says it: child and parent, or lower and upper."""
    try:
        names = {name.lower() for name in public_rows(path)[0]}
    except InputError as error:
        raise SpecError(str(error)) from None
    return ("lower", "upper") if {"lower", "upper"} <= names and not {*_USUAL} <= names else _USUAL


def _rows(path: Path, columns: list[str], repair: str = "") -> list[dict[str, str]]:
    """The cells of the named columns. ``repair`` says in an error what to do if one is missing."""
    try:
        names, rows = public_rows(path)
        result = {column: column_of(column, names, path, repair) for column in columns}
    except InputError as error:
        raise SpecError(str(error)) from None
    return [{column: row.get(name, "") for column, name in result.items()} for row in rows]


def _mapping(path: Path) -> dict[str, Any]:
    readers: dict[str, Any] = {".json": json.loads, ".toml": tomllib.loads}
    if path.suffix.lower() not in readers:
        sheet = " Save the sheet as CSV." if path.suffix.lower() in (".xlsx", ".xls", ".ods") else ""
        raise SpecError(f"An order file ends in .csv, .json or .toml, not {path.suffix!r}.{sheet}")
    try:
        content = readers[path.suffix.lower()](text_of(path.read_bytes()))
    except FileNotFoundError:
        raise SpecError(f"There is no file {str(path)!r}.") from None
    except (OSError, ValueError) as error:
        raise SpecError(f"{str(path)!r} cannot be read: {error}.") from None
    if not isinstance(content, dict) or not content:
        raise SpecError(f"{str(path)!r} must hold a table: name = parent, or name = [parents].")
    return content


def describe_order(P: Poset) -> dict[str, Any]:
    """The shape of an order in a few numbers."""
    kinds = [choice.kind for choice in P.choices]
    return {
        "elements": len(P),
        "covers": len(P.covers),
        "height": P.height,
        "width": P.width,
        "minimal": len(P.minimal),
        "maximal": len(P.maximal),
        "forest": "yes" if P.is_forest else "no",
        **{kind: kinds.count(kind) for kind in dict.fromkeys(kinds)},
        "decomposition": type(P.decomposition()).__name__.lower(),
    }
