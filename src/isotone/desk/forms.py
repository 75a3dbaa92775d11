"""Forms that follow from the model of a release: an entry for each parameter of a section of a spec.

Name, type, default and sentence of a field come from the classes that describe releases, so that a new parameter is in the form
at once. What is typed is text, and becomes a value of the spec by the types that the section allows; the section itself refuses
what does not fit, in the words of the command line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any, get_args

from isotone.privacy.checks import did_you_mean
from isotone.reading.sources import uncut
from isotone.release.description import ColumnName
from isotone.release.spec import sections

_WORDS = {True: "yes", False: "no"}
_LABELS = {
    ("data", "separator"): "What stands between the fields of a CSV",
    ("data", "encoding"): "Encoding",
    ("data", "unit"): "The column that says whose row it is",
    ("data", "contributions"): "Records that one may give at most",
    ("data", "yes"): "Words or codes that mean yes",
    ("data", "no"): "Words or codes that mean no",
    ("data", "missing"): "A missing answer counts as",
    ("data", "element"): "Long data: the column that names the element",
    ("data", "columns"): "Columns that are not called like the question",
    ("data", "on_violation"): "A record that breaks the order",
    ("data", "on_conflict"): "A record with several options of a choice",
    ("privacy", "unit"): "Who is protected, in one word",
    ("privacy", "neighbours"): "What must stay hidden",
    ("table", "category"): "The column of the categories",
    ("table", "categories"): "The public list of the categories, one on each line",
    ("table", "upper"): "The largest count",
    ("distribution", "column"): "Column of the number",
    ("distribution", "bounds"): "Lowest and highest value",
    ("distribution", "by"): "For each group: a column, with the public list of its values",
    ("survival", "time"): "Column of the time",
    ("survival", "event"): "Column of the event",
    ("survival", "yes"): "Where that column holds words: those that mean the event",
    ("survival", "no"): "And those that mean that there was none",
    ("survival", "horizon"): "Where the curve ends",
    ("series", "periods"): "Every period that is planned, one on each line",
    ("series", "secrets"): "The folder for the secrets",
    ("series", "record"): "The column of a stable key of each history",
    ("series", "date"): "For a series of the past: the column of the day",
    ("survival", "by"): "For each group: a column, with the public list of its values",
    ("privacy", "epsilon"): "Budget ε",
    ("privacy", "budget"): "Total of the ledger",
    ("privacy", "rho"): "Budget ρ",
    ("curve", "yes"): "Where y holds words: those that mean the higher of its two values",
    ("curve", "no"): "And those that mean the lower one",
    ("curve", "x"): "Column of x",
    ("curve", "y"): "Column of y",
    ("curve", "bounds"): "Lowest and highest x",
    ("curve", "y_range"): "Lowest and highest y",
    ("curve", "y_values"): "Or the two values of y",
    ("curve", "increasing"): "Does y rise with x?",
    ("order", "by"): "Broken down by: a column on each line, with the public list of its values",
    ("order", "margins"): "Tables to release, one on each line",
    ("order", "waves"): "How many releases like this one are planned",
}
"""Plainer words for the names of some parameters."""
_HELP = {
    (
        "order",
        "by",
    ): "Rows with a value that is not listed are left out. One column gives counts for each group at the price of one; several give tables that "
    "add up. A finer level stands on a line below the coarser one.",
    ("order", "margins"): "By default the total, each column alone, and all together.",
    ("curve", "bounds"): "Public limits, not chosen by the data. Beyond them x counts as the nearer one.",
    (
        "curve",
        "y_range",
    ): "Public limits, not chosen by the data. The noise grows with their distance. Leave it empty if y has two values only.",
    (
        "curve",
        "y_values",
    ): "In place of limits: y is one of two numbers, such as 0 and 1. Rows with anything else are left out.",
    ("curve", "yes"): "They need the two values. Without words y is read as a number.",
    ("curve", "no"): "By default 0, false, f, no and n. Rows with other words are left out.",
}
"""What some parameters mean, where the words for a spec speak of its entries."""
_HOW = {
    (
        "order",
        "by",
    ): "Typed as sex: f, m, or for a finer level as county: n1 = north, s1 = south.",
    ("order", "margins"): "Typed as total, as sex, as sex, region, or as all.",
    ("distribution", "by"): "Typed as sex: f, m.",
    ("survival", "by"): "Typed as arm: old, new.",
    ("curve", "x"): "For a surface two names, with a comma between them.",
    ("distribution", "bounds"): "Typed as 0, 100000.",
    ("curve", "bounds"): "Typed as 18, 90. For a surface a line for each column.",
    ("curve", "y_range"): "Typed as 0, 1.",
    ("curve", "y_values"): "Typed as 0, 1.",
    ("series", "periods"): "Such as 2026-01-31 or week 1, in the sequence of time.",
    ("privacy", "budget"): "Typed as 2 or 0.5.",
    ("order", "root"): "Typed as records: 1000 and catch_all: other.",
}
"""How some parameters are typed, where it is not by their type alone."""


@dataclass(frozen=True)
class Entry:
    """One parameter of a section, as a form asks for it."""

    section: str
    name: str
    help: str
    required: bool
    default: Any
    kinds: tuple[Mapping[str, Any], ...]
    """The types that it may have, as JSON Schema says them, without null."""
    is_column: bool
    """Whether it names columns of the data."""

    @property
    def id(self) -> str:
        """Its name in a form, which no other section has."""
        return f"{self.section}.{self.name}"

    @property
    def label(self) -> str:
        """What it is called."""
        return _LABELS.get((self.section, self.name), self.name.replace("_", " ").capitalize())

    @property
    def options(self) -> list[tuple[str, str]]:
        """All values that it may have, each as text and in words; none if they cannot be listed."""
        result: list[str] = []
        for kind in self.kinds:
            listed = _listed(kind)
            if listed is None:
                return []
            result += listed
        usual = f"as usual ({self.usual})" if self.usual else "" if self.required else "as usual"
        return [("", usual), *((text, text) for text in result if text != self.write(self.default))]

    @property
    def lines(self) -> bool:
        """Whether it is typed on several lines."""
        return any(kind.get("type") == "object" or _rows(kind) for kind in self.kinds)

    @property
    def how(self) -> str:
        """How it is typed."""
        own = _HOW.get((self.section, self.name))
        if own or self.options:
            return own or ""
        types = {kind.get("type") for kind in self.kinds}
        sentence = (
            "One on each line, as name: value."
            if "object" in types
            else "One on each line."
            if self.lines
            else ""
        )
        pairs = not self.lines and "array" in types
        sentence = "Several with commas between them." if pairs else sentence
        return f"{sentence} By default: {self.usual}." if self.lines and self.usual else sentence

    @property
    def usual(self) -> str:
        """What holds if nothing is typed."""
        return self.write(self.default).replace("\n", ", ")

    def write(self, value: Any) -> str:
        """A value of the spec as it is typed."""
        if value is None:
            return ""
        if isinstance(value, Mapping):
            return "\n".join(f"{name}: {_inline(held)}" for name, held in value.items())
        flat = any(len(kind.get("prefixItems", ())) and not _rows(kind) for kind in self.kinds)
        nested = isinstance(value, (list, tuple)) and any(isinstance(part, (list, tuple)) for part in value)  # pyright: ignore[reportUnknownVariableType]
        if isinstance(value, (list, tuple)) and self.lines and (nested or not flat):
            return "\n".join(_line(part) for part in value)  # pyright: ignore[reportUnknownVariableType]
        return _inline(value)

    def read(self, text: str) -> Any:
        """What was typed as a value of the spec, or None if nothing was. What fits no type stays as it is, to be refused."""
        text = text.strip()
        if not text or text == self.write(self.default):
            return None
        if self.options:
            return _scalars([self._kind("boolean"), *self.kinds], text)
        rows = [row.strip() for row in text.splitlines() if row.strip()]
        named, listed = self._kind("object"), next(filter(_rows, self.kinds), None)
        if named is not None and all(":" in row for row in rows):
            return {name: _held(named, said) for name, said in map(_named, rows)}
        if listed is not None:
            return _read_rows(listed, rows, len(self.kinds) > 1)
        parts = [part.strip() for part in text.split(",")]
        pairs = [kind for kind in self.kinds if kind.get("type") == "array"]
        if pairs and len(parts) > 1:
            return _tuple(pairs, parts)
        if pairs and len(text.split()) in (2, 3) and not self.is_column:  # "quantile 0.9"
            return _tuple(pairs, text.split())
        return _scalar(self.kinds, text)

    def _kind(self, type: str) -> Mapping[str, Any] | None:
        return next((kind for kind in self.kinds if kind.get("type") == type), None)

    def columns(self, value: Any) -> list[str]:
        """The columns of the data that a value names."""
        if not self.is_column or value is None:
            return []
        if isinstance(value, Mapping):
            return [str(name) for name in value.values()]
        return [str(name) for name in value] if isinstance(value, (list, tuple)) else [str(value)]


@cache
def form_of(section: str) -> dict[str, Entry]:
    """The entries of a section, by name."""
    form = sections()[section]
    schema = form.model_json_schema()
    needed, known = schema.get("required", ()), schema.get("$defs", {})
    return {
        name: Entry(
            section,
            name,
            # marks of names are for pages that are typeset
            _HELP.get((section, name)) or entry_schema.get("description", "").replace("`", ""),
            name in needed,
            entry_schema.get("default"),
            tuple(_kinds(entry_schema, known)),
            _mentions((form.model_fields[name].annotation, form.model_fields[name].metadata)),
        )
        for name, entry_schema in schema["properties"].items()
    }


def in_words(problem: str) -> str:
    """A problem of an entry of a spec, in the words of its field and with how that is typed.

    >>> in_words("curve.y_range: a list stands in square brackets, such as [0, 1] (it is '3')")
    "Lowest and highest y: this is not complete (it is '3'). Typed as 0, 1."
    """
    match = re.fullmatch(r"(\w+)\.(\w+)[^ ]*: (.+)", problem)
    entry = form_of(match[1]).get(match[2]) if match is not None and match[1] in sections() else None
    if match is None or entry is None:
        return problem
    reason = re.sub(r"^.* stands? in .*?(?= \(it is |$)", "this is not complete", match[3])
    return f"{entry.label}: {reason.rstrip('.')}. {entry.how}".rstrip()


def require_columns(named: Iterable[str], known: Iterable[str] | None) -> list[str]:
    """A sentence for each name that is no column of the data, if the columns are known."""
    if known is None:
        return []
    columns = list(known)
    listed = ", ".join(columns[:30]) + (", …" if len(columns) > 30 else "")
    return [
        f"The data has no column {name!r}{did_you_mean(name, columns) or '.'} Its columns are: {listed}.{cut_in_words(columns)}"
        for name in dict.fromkeys(named)
        if name not in columns
    ]


def cut_in_words(columns: Sequence[str]) -> str:
    """What to do where the separator or the encoding of a CSV seems to be another one."""
    mark = {"\t": "a tabulator"}.get(uncut(columns), repr(uncut(columns)))
    words = (
        f" If {mark} stands between names, say so under 'How the file is written'." if uncut(columns) else ""
    )
    if any("\N{REPLACEMENT CHARACTER}" in name for name in columns):
        words += " Some letters could not be read: say under 'How the file is written' which encoding it has, such as latin-1."
    return words


def _kinds(schema: Mapping[str, Any], known: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    if "$ref" in schema:
        return _kinds(known[schema["$ref"].rpartition("/")[2]], known)
    if "anyOf" in schema:
        return [kind for part in schema["anyOf"] for kind in _kinds(part, known)]
    return [] if schema.get("type") == "null" else [schema]


def _mentions(types: Any) -> bool:
    """Whether a type, or a part of it, is that of names of columns."""
    mark: Any = ColumnName.__metadata__[-1]  # pyright: ignore[reportAttributeAccessIssue]
    if isinstance(types, (list, tuple)):
        return any(map(_mentions, types))  # pyright: ignore[reportUnknownArgumentType]
    return types is mark or any(map(_mentions, (*get_args(types), *getattr(types, "__metadata__", ()))))


def _listed(kind: Mapping[str, Any]) -> list[str] | None:
    """All values of a type as text, or None if there are too many."""
    if "const" in kind:
        return [_inline(kind["const"])]
    if "enum" in kind:
        return [_inline(value) for value in kind["enum"]]
    if kind.get("type") == "boolean":
        return ["yes", "no"]
    if kind.get("type") == "array" and "prefixItems" in kind:
        parts = [_listed(part) for part in kind["prefixItems"]]
        known = [part for part in parts if part is not None]
        return [", ".join(words) for words in product(*known)] if len(known) == len(parts) else None
    return None


def _rows(kind: Mapping[str, Any]) -> bool:
    """Whether a list is typed with a line for each part."""
    if kind.get("type") != "array":
        return False
    parts = kind.get("prefixItems") or [kind.get("items", {})]
    return "prefixItems" not in kind or any(part.get("type") == "array" for part in parts)


def _read_rows(kind: Mapping[str, Any], rows: list[str], others: bool) -> Any:
    """The parts of a list, one on each line; where the line could be another type, one line alone is that."""
    part = (kind.get("prefixItems") or [kind["items"]])[0]
    kinds = _kinds(part, {})
    if all("," in row or ":" in row for row in rows) and any(k.get("type") == "array" for k in kinds):
        if others and len(rows) == 1 and ":" not in rows[0]:
            return _tuple([k for k in kinds if k.get("type") == "array"], rows[0].split(","))
        return [[_scalars(kinds, cell) for cell in _cells(row)] for row in rows]
    if others and len(rows) == 1 and "," not in rows[0]:
        return _scalar(kinds, rows[0])
    if len(rows) == 1:
        rows = [part.strip() for part in rows[0].split(",")]
    return list(dict.fromkeys(_scalar(kinds, row) for row in rows))


def _cells(row: str) -> list[str]:
    name, colon, text = row.rpartition(":")
    return [name.strip(), text.strip()] if colon else [part.strip() for part in row.split(",")]


def _named(row: str) -> tuple[str, str]:
    name, _, text = row.partition(":")
    return name.strip(), text.strip()


def _held(kind: Mapping[str, Any], text: str) -> Any:
    """What stands behind a name: a text or number, a list, or pairs with ``=`` between them."""
    more = kind.get("additionalProperties")
    kinds = _kinds(more, {}) if isinstance(more, Mapping) else [{"type": "integer"}, {"type": "string"}]
    types = {one.get("type") for one in kinds}
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if "object" in types and parts and all("=" in part for part in parts):
        return {a.strip(): b.strip() for a, _, b in (part.partition("=") for part in parts)}
    return parts if "array" in types else _scalars(kinds, text)


def _tuple(kinds: list[Mapping[str, Any]], parts: list[str]) -> list[Any]:
    """The parts of a pair or triple, by the type of each place."""
    expected = next((kind for kind in kinds if len(kind.get("prefixItems", ())) == len(parts)), kinds[0])
    places = expected.get("prefixItems") or [expected.get("items", {})] * len(parts)
    places = [*places, *[places[-1]] * (len(parts) - len(places))]
    return [_scalars(_kinds(place, {}), part.strip()) for place, part in zip(places, parts, strict=False)]


def _scalars(kinds: Iterable[Mapping[str, Any] | None], text: str) -> Any:
    """A value, or several with commas between them where the type is a list."""
    scalars = [kind for kind in kinds if kind is not None]
    if any(kind.get("type") == "boolean" for kind in scalars) and "," not in text:
        return {"yes": True, "no": False}.get(text, text)
    pairs = [kind for kind in scalars if kind.get("type") == "array"]
    if pairs and "," in text:
        return _tuple(pairs, text.split(","))
    return _scalar(scalars, text)


def _scalar(kinds: Iterable[Mapping[str, Any]], text: str) -> Any:
    types = {kind.get("type") for kind in kinds}
    if "boolean" in types and text in ("yes", "no"):
        return text == "yes"
    if "integer" in types and text.isascii() and text.isdigit():
        return int(text)
    if types == {"number"}:  # elsewhere a number stays text, which is exact
        try:
            return float(text)
        except ValueError:
            return text
    return text


def _line(value: Any) -> str:
    if isinstance(value, (list, tuple)) and len(value) == 2 and isinstance(value[0], (list, tuple)):  # pyright: ignore[reportUnknownArgumentType]
        return f"{_inline(value[0])}: {_inline(value[1])}"
    return _inline(value)


def _inline(value: Any) -> str:
    if isinstance(value, bool):
        return _WORDS[value]
    if isinstance(value, Mapping):
        return ", ".join(f"{name} = {held}" for name, held in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_inline, value))  # pyright: ignore[reportUnknownArgumentType]
    return str(value)
