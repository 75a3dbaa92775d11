"""What a release says about itself: the manifest, columns and parameters as text, and recipes of mechanisms.

The manifest has typed values that can be hashed and checked. It holds public things and private outputs only. There is no
row count, no file size, no hash and no time of the data in it; the one time is that of the charge, which was made before the
data was read. Each kind of release adds its own entries in a subclass (``release/kinds``). The entries are described in
docs/reference/manifest.md.
"""

from __future__ import annotations

import csv
import hashlib
import inspect
import io
import json
import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import date
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NotRequired, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic_core import to_json
from typing_extensions import TypedDict

from isotone.errors import InputError
from isotone.order import Poset
from isotone.privacy.checks import plain_text, require_list, shown
from isotone.privacy.guarantee import ADDING, Guarantee, Unit, exact
from isotone.reading.columns import labels

if TYPE_CHECKING:
    from isotone.counts import PosetMechanism
    from isotone.tables.two_stage import TableMechanism

Columns = Mapping[str, Sequence[Any]]
Floats = NDArray[np.float64]

ROUNDING = 1e-4
"""Published errors are rounded to four decimal places; the last may differ."""

FORMAT = "isotone release 1"
_MOMENT = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00$"
LARGEST_ORDER, MOST_COVERS = 20_000, 1_000_000
"""The largest order of a release, and so the most that a stranger's manifest makes those who verify it compute."""


class GuaranteeEntry(TypedDict):
    """The guarantee. Its numbers are exact text."""

    kind: str
    epsilon: str
    delta: str
    rho: str
    neighbours: str
    unit: str


class ChoiceEntry(TypedDict):
    """Elements of which a record has at most one ("exclusive"), or one if it has their parent ("partition")."""

    kind: str
    options: list[str]


class OrderEntry(TypedDict):
    """A partial order by its elements, its covering pairs [lower, upper], and its choices if it has any."""

    elements: list[str]
    covers: list[list[str]]
    choices: NotRequired[list[ChoiceEntry]]


@dataclass(frozen=True, kw_only=True)
class Stated:
    """What a steward states about a release of any kind. It is sealed with the release, and no part of the request.

    Each field is an entry of ``[output]`` in a spec.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    title: str | None = None
    publisher: str | None = None
    intended_use: str | None = None
    region: str | None = None
    registry_author: str | None = None

    def plain(self) -> dict[str, str]:
        """What is stated, by name."""
        return {name: text for name, text in vars(self).items() if text is not None}


@dataclass(frozen=True, kw_only=True)
class Manifest(Mapping[str, Any]):
    """What every release says about itself. It is also a mapping of the entries as they are written.

    Optional entries, whose default is None, are not written at all where they are None.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")
    name: ClassVar[str] = ""
    texts: ClassVar[frozenset[str]] = frozenset()
    """The columns of the release that hold names and not numbers."""

    meanings: ClassVar[dict[str, str]] = {
        "format": "The version of this layout.",
        "kind": "What was released.",
        "stated": "What the steward states: the title of the report, and publisher, intended_use, region and registry_author if they are known.",
        "description": "Every public parameter of the release, as it was described (docs/reference/manifest.md).",
        "mechanism": "The name of the mechanism's class and the arguments that build it again.",
        "guarantee": "What is guaranteed: kind, exact numbers as text, neighbours, and the unit in words.",
        "versions": "The software that made the release.",
        "time": "The time of the charge, which is before the data was read.",
        "charge": "The number of the charge in the ledger.",
        "dataset": "The steward's name for the data in the ledger.",
        "request": "A digest of the public parameters and of the data's path or name; empty for data without one.",
        "consistent": "Whether the values were made to follow the order after their release.",
        "content_hash": "The SHA-256 of the values and of all entries but this one and files, as canonical JSON.",
        "files": "The SHA-256 of release.csv. The report is not listed: it can be drawn again from the rest.",
    }
    """What each entry means; subclasses add theirs."""

    kind: str
    stated: Stated
    mechanism: dict[str, Any]
    guarantee: GuaranteeEntry
    versions: dict[str, str]
    time: Annotated[str, Field(pattern=_MOMENT)]
    charge: Annotated[int, Field(ge=0)]
    dataset: str
    description: dict[str, Any]
    request: str = ""
    format: str = FORMAT
    consistent: bool | None = None
    content_hash: str | None = None
    files: dict[str, str] | None = None

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Manifest:
        """The manifest that was written as ``plain``."""
        if plain.get("format") != FORMAT:
            raise InputError(
                f"The manifest was not written by this version of isotone (expected {FORMAT!r})."
            )
        entries = dict(plain)
        from isotone.release.kinds.kind import described_by  # the kind that is asked for, and no other

        form = described_by(str(entries.get("kind"))).form
        try:
            return _adapter(form).validate_json(json.dumps(entries, allow_nan=False), strict=True)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"])) or "the manifest"
            raise InputError(f"The manifest cannot be read: {where}: {first['msg']}.") from None
        except (ValueError, TypeError, RecursionError) as error:
            raise InputError(f"The manifest cannot be read: {error}.") from None

    def plain(self) -> dict[str, Any]:
        """The entries as they are written."""
        entries = [(field, getattr(self, field.name)) for field in fields(self)]
        written = {
            field.name: value for field, value in entries if value is not None or field.default is not None
        }
        return {**written, "stated": self.stated.plain()}

    @property
    def text_columns(self) -> frozenset[str]:
        """The columns of this release that hold names and not numbers."""
        return self.texts

    @property
    def rows(self) -> Mapping[str, Any]:
        """Whose rows belong together, and how many of them count."""
        unit = self.description["unit"]
        return {"unit": unit["column"], "contributions": unit["contributions"] or 1}

    @property
    def stated_confidence(self) -> float | None:
        """The confidence of intervals and bands."""
        return self.description.get("confidence")

    def sealed(self, columns: Mapping[str, tuple[Any, ...]]) -> Self:
        """The same manifest with the hash of the values and of everything it says about them."""
        return replace(self, content_hash=self.hash_with(columns))

    def hash_with(self, columns: Mapping[str, tuple[Any, ...]]) -> str:
        """The hash of the values and of this manifest, without ``files`` and ``content_hash``."""
        return _digest_of(self._parts_with(columns))

    def bytes_with(self, columns: Mapping[str, tuple[Any, ...]]) -> bytes:
        """The values and this manifest as canonical bytes, which are sealed and signed."""
        return b"".join(self._parts_with(columns))

    def _parts_with(self, columns: Mapping[str, tuple[Any, ...]]) -> Iterator[bytes]:
        """The canonical JSON of both, part by part. Together they may take hundreds of megabytes."""
        kept = {key: value for key, value in self.plain().items() if key not in ("files", "content_hash")}
        yield b'{"columns": '
        yield from json_parts(columns)
        yield b', "manifest": '
        yield canonical_json(kept)
        yield b"}"

    def text(self) -> str:
        """The file ``manifest.json``."""
        return json.dumps(self.plain(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    def __getitem__(self, key: str) -> Any:
        return self.plain()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.plain())

    def __len__(self) -> int:
        return len(self.plain())


@cache
def _adapter(form: type[Manifest]) -> TypeAdapter[Any]:
    return TypeAdapter(form)


def manifest_schema(form: type[Manifest]) -> dict[str, Any]:
    """The JSON Schema of one kind's ``manifest.json``, made from the type."""
    schema = _adapter(form).json_schema()
    schema["properties"]["kind"] = {"const": form.name, "title": "Kind", "type": "string"}
    schema["properties"]["format"] = {"const": FORMAT, "title": "Format", "type": "string"}
    schema["required"] = sorted({*schema["required"], "format", "request", "content_hash"})
    for name, entry in schema["properties"].items():
        entry["description"] = form.meanings[name]
    return schema


def canonical_json(content: Mapping[str, Any]) -> bytes:
    """Plain values as bytes that do not depend on the order of keys."""
    return json.dumps(content, sort_keys=True, ensure_ascii=False, allow_nan=False).encode()


def content_hash(content: Mapping[str, Any]) -> str:
    """A digest of plain values that does not depend on the order of keys."""
    return digest(canonical_json(content))


def digest(content: bytes) -> str:
    """The SHA-256 of some bytes, which names them."""
    return _digest_of([content])


def _digest_of(parts: Iterable[bytes]) -> str:
    result = hashlib.sha256()
    for part in parts:
        result.update(part)
    return "sha256:" + result.hexdigest()


def order_to(P: Poset) -> OrderEntry:
    """An order as plain values. Names become text."""
    _require_size(len(P), len(P.covers))
    names = [str(x) for x in P.elements]
    if len(set(names)) < len(names):
        raise InputError("Two elements of the order have the same name as text. Rename one before releasing.")
    entry: OrderEntry = {"elements": names, "covers": [[str(a), str(b)] for a, b in P.covers]}
    choices: list[ChoiceEntry] = [
        {"kind": choice.kind, "options": [str(x) for x in choice.options]} for choice in P.choices
    ]
    return {**entry, "choices": choices} if choices else entry


def order_from(plain: Mapping[str, Any]) -> Poset:
    """The order that :func:`order_to` wrote."""
    _require_size(len(plain["elements"]), len(plain["covers"]))
    pairs: list[tuple[Hashable, Hashable]] = [(a, b) for a, b in plain["covers"]]
    choices = [(entry["kind"], entry["options"]) for entry in plain.get("choices", ())]
    return Poset(plain["elements"], pairs, choices)


def _require_size(elements: int, covers: int) -> None:
    if elements > LARGEST_ORDER or covers > MOST_COVERS:
        raise InputError(
            f"An order of {elements:,} elements and {covers:,} covers is too large for a release: others verify at most "
            f"{LARGEST_ORDER:,} elements and {MOST_COVERS:,} covers. Release parts of it."
        )


def guarantee_to(guarantee: Guarantee) -> GuaranteeEntry:
    """A guarantee as plain values, numbers as exact text."""
    return {
        "kind": guarantee.kind,
        "epsilon": str(guarantee.epsilon),
        "delta": str(guarantee.delta),
        "rho": str(guarantee.rho),
        "neighbours": guarantee.neighbours,
        "unit": guarantee.unit,
    }


def guarantee_from(plain: Mapping[str, Any]) -> Guarantee:
    """The guarantee that :func:`guarantee_to` wrote."""
    return Guarantee(
        plain["kind"],
        exact(plain["epsilon"], "epsilon"),
        exact(plain["delta"], "delta"),
        exact(plain["rho"], "rho"),
        plain["neighbours"],
        plain["unit"],
    )


# Public parameters that all kinds share, as plain values.

_LONGEST_TEXT = 1_000
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")
_NAMES = (str, int, float, Decimal, date, np.bool_, np.integer, np.floating, np.datetime64)
"""What a public list may hold: never a missing value, which would be taken for a name."""


def column_name(value: Any, name: str) -> str:
    """The name of a column as plain text."""
    try:
        return plain_text(value, name)
    except InputError:
        raise InputError(
            f"{name} must be the name of one column as text, not {shown(value)}. "
            "A column whose name is a number has to be renamed first."
        ) from None


def public_names(values: Any, name: str) -> tuple[str, ...]:
    """A public list of names (texts, numbers, booleans or dates) as a column of any type would show them."""
    require_list(values, name)
    if isinstance(values, Mapping):
        raise InputError(f"{name} must be a list of names, not {shown(values)}, which is a mapping.")
    listed: list[Any] = (
        values.to_pylist() if hasattr(values, "to_pylist") else list(values)
    )  # Arrow has scalars of its own
    for value in listed:
        if not isinstance(value, _NAMES) or value != value:
            raise InputError(f"{name} must hold texts, numbers, booleans or dates, not {shown(value)}.")
    names = labels(listed)
    require_writable(names, name)
    return names


def stated_texts(stated: Stated, title: str) -> Stated:
    """What is stated as plain texts, with ``title`` where there is none."""
    texts = {name: _stated_text(text, name) for name, text in vars(stated).items() if text is not None}
    return Stated(**{**texts, "title": texts.get("title") or title})


def _stated_text(value: Any, name: str) -> str:
    text = plain_text(value, name, empty=True)
    if len(text) > _LONGEST_TEXT:
        raise InputError(f"{name} must have at most {_LONGEST_TEXT:,} characters, not {len(text):,}.")
    require_writable([text], name)
    return text


def require_writable(texts: Iterable[str], name: str) -> None:
    """Refuse public texts that cannot be written, or that would steer a terminal."""
    for text in texts:
        if _CONTROL.search(text):
            raise InputError(
                f"{name} holds {shown(text)}: control characters (tabs, new lines, escape codes) are refused in what is "
                "published. Rename it."
            )
        try:
            text.encode()
        except UnicodeEncodeError:
            raise InputError(f"{name} holds {text!r}, which cannot be written as UTF-8.") from None


# A recipe is a mechanism as plain values, from which a stranger can rebuild what made a release.
#
# A recipe is the name of the mechanism's class and the arguments of its constructor. Every mechanism keeps its
# arguments as attributes of the same names, which is all that this needs.


def recipe_of(mechanism: Any) -> dict[str, Any]:
    """The name and the arguments that make this mechanism again (the order apart)."""
    plain: dict[str, Any] = {"name": type(mechanism).__name__}
    for name in _arguments(type(mechanism)):
        value = _argument(mechanism, name)
        if value is not None:
            plain[name] = value
    return plain


def rebuild_count_mechanism(P: Poset, recipe: Mapping[str, Any]) -> Any:
    """The mechanism that a recipe describes, over the order ``P``."""
    from isotone.counts.count_plan import count_mechanism
    from isotone.counts.relaxation import Relaxation
    from isotone.order.bipartitions.counting import within_reach

    kind = count_mechanism(str(recipe.get("name")))
    arguments = _from_recipe(kind, recipe)
    if "relaxation" in arguments:
        arguments["relaxation"] = Relaxation.from_plain(arguments["relaxation"])
    elif "relaxation" in _arguments(kind) and P.height > 2 and not within_reach(P.canonical.order):
        # A release of such an order names its relaxation; to search for another could take hours.
        raise InputError("The order is beyond exact reach, and the recipe names no relaxation of it.")
    return kind(P, **arguments)


def rebuild_table_mechanism(recipe: Mapping[str, Any]) -> TableMechanism:
    """The mechanism of a table that a recipe describes."""
    from isotone.tables.two_stage import GaussianTableMechanism, TwoStageMechanism

    if recipe.get("name") == GaussianTableMechanism.__name__:
        return GaussianTableMechanism(**_from_recipe(GaussianTableMechanism, recipe))
    _require_named(recipe, TwoStageMechanism, "tables")
    return TwoStageMechanism(**_from_recipe(TwoStageMechanism, recipe))


def rebuild_curve_mechanism(recipe: Mapping[str, Any]) -> Any:
    """The checked public parameters of a curve's estimator, with the guarantee they make."""
    from isotone.curves import FitMethod, PrivateIsotonicRegression  # here: it brings scikit-learn

    _require_named(recipe, PrivateIsotonicRegression, "curves")
    arguments: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in recipe.items()
    }
    unit = Unit(arguments.get("contributions", 1), arguments.pop("neighbours", "add-remove"))
    guarantee = unit.guarantee(arguments.pop("epsilon", None), rho=arguments.pop("rho", None))
    method = FitMethod(arguments.pop("method", "auto"), value_levels=arguments.pop("value_levels", None))
    return PrivateIsotonicRegression(
        guarantee, **_from_recipe(PrivateIsotonicRegression, arguments | {"method": method})
    ).check()


def _require_named(recipe: Mapping[str, Any], kind: type[Any], what: str) -> None:
    if recipe.get("name") != kind.__name__:
        raise InputError(f"There is no mechanism {recipe.get('name')!r} for {what}.")


def _from_recipe(kind: type[Any], recipe: Mapping[str, Any]) -> dict[str, Any]:
    arguments = {key: value for key, value in recipe.items() if key != "name"}
    unknown = sorted(set(arguments) - set(_arguments(kind)))
    if unknown:
        raise InputError(f"{kind.__name__} has no argument {unknown[0]!r}; the recipe is of another version.")
    if "guarantee" in inspect.signature(kind).parameters:
        unit = Unit(neighbours=arguments.pop("neighbours", ADDING))
        arguments["guarantee"] = unit.guarantee(
            *(arguments.pop(name, None) for name in ("epsilon", "delta", "rho"))
        )
    return arguments


def _arguments(kind: type[Any]) -> list[str]:
    """The entries of a recipe. A guarantee stands there as its numbers and its neighbours."""
    names = [name for name in inspect.signature(kind).parameters if name not in ("P", "progress", "ledger")]
    if "guarantee" in names:
        names.remove("guarantee")
        names += ["epsilon", "delta", "rho", "neighbours"]
    return names


def _argument(mechanism: Any, name: str) -> Any:
    """An argument as plain values. Epsilon, delta and rho are those of the guarantee, and exact."""
    if name in ("epsilon", "delta", "rho"):
        number: Fraction = getattr(mechanism.guarantee, name)
        return str(number) if number else None
    if name == "relaxation":
        return _relaxation(mechanism)
    holder = mechanism if hasattr(mechanism, name) else mechanism.unit
    value = getattr(holder, name)
    return str(value) if isinstance(value, Fraction) else value


def _relaxation(mechanism: PosetMechanism) -> dict[str, Any] | None:
    """What a search found for an order beyond exact reach, so that nobody has to search again."""
    result = mechanism.sampler.described(mechanism.law_draws)
    return None if result is None else result.plain()


# Columns of a release as text, for its CSV file and for its seal.
#
# A breakdown has millions of numbers. So floats are written in bulk, in the same characters as by ``repr``, and a word
# that stands in many rows is quoted once.

_QUOTED = re.compile('[",\r\n]')  # what some version of csv.writer puts between quotes
_TOGETHER = 50_000  # rows: the cells of all of them as texts take much more room than the file
_LEAST, _MOST = 1e-4, 1e15
"""Between these all writers of shortest decimals agree; beyond them some write an exponent."""


def csv_text(columns: Columns) -> str:
    """The columns as ``csv.writer`` writes them."""
    parts = [",".join(map(_cell, columns)) + "\n"]
    rows = {len(column) for column in columns.values()}
    if len(rows) > 1:
        raise ValueError("The columns of a release have different lengths.")
    for start in range(0, max(rows, default=0), _TOGETHER):
        cells = [_cells(column[start : start + _TOGETHER]) for column in columns.values()]
        parts += ["\n".join(map(",".join, zip(*cells, strict=True))), "\n"]
    return "".join(parts)


def json_parts(columns: Columns) -> Iterator[bytes]:
    """The columns as ``json.dumps`` writes them with sorted keys, part by part."""
    comma = "{"
    for name in sorted(columns):
        yield f"{comma}{json.dumps(name, ensure_ascii=False)}: ".encode()
        yield _array(columns[name])
        comma = ", "
    yield b"}" if columns else b"{}"


def _array(column: Sequence[Any]) -> bytes:
    if _are_plain_floats(column):
        return to_json(column).replace(b",", b", ")
    return json.dumps(column, ensure_ascii=False, allow_nan=False).encode()


def _cells(column: Sequence[Any]) -> list[str]:
    """Each value as it stands in a CSV file."""
    if not column:
        return []
    if _are_plain_floats(column):
        return to_json(column)[1:-1].decode().split(",")
    kinds = set(map(type, column))
    if kinds == {str}:
        if not _QUOTED.search("".join(column)):
            return list(column)
        quoted = {word: _cell(word) for word in set(column)}
        return [quoted[word] for word in column]
    return list(map(str, column)) if kinds == {int} else [_cell(value) for value in column]


def _cell(value: Any) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow([value, ""])  # one empty cell alone would be quoted
    return out.getvalue()[:-2]


def _are_plain_floats(column: Sequence[Any]) -> bool:
    """Whether all are floats that every writer writes in the same way."""
    if not column or set(map(type, column)) != {float}:
        return False
    sizes = np.abs(np.array(column))
    return bool(np.all((sizes == 0) | ((sizes >= _LEAST) & (sizes < _MOST))))


def thinned(columns: Columns, step: int) -> dict[str, tuple[Any, ...]]:
    """Every ``step``-th row, and one row at least with each word."""
    kept = {*range(0, max(map(len, columns.values()), default=0), step)}
    for column in columns.values():
        if column and isinstance(column[0], str):
            kept.update(dict(zip(column, range(len(column)), strict=True)).values())
    rows = sorted(kept)
    return {name: tuple(column[row] for row in rows) for name, column in columns.items()}
