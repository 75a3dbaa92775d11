"""The manifest says what a release is and what it guarantees, in typed values that can be hashed and checked.

It holds public things and private outputs only. There is no row count, no file size, no hash and no time of
the data in it; the one time is that of the charge, which was made before the data was read. Each kind of release
adds its own entries in a subclass (``release/kinds``). The entries are described in docs/reference/manifest.md.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any, ClassVar, NotRequired, Self

from pydantic import ConfigDict, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from isotone.errors import InputError
from isotone.order import Poset
from isotone.privacy.guarantee import Guarantee, exact
from isotone.release.writing.column_texts import json_parts

__all__ = [
    "FORMAT",
    "GuaranteeEntry",
    "Manifest",
    "OrderEntry",
    "Stated",
    "canonical_json",
    "content_hash",
    "digest",
    "guarantee_from",
    "guarantee_to",
    "manifest_schema",
    "order_from",
    "order_to",
]

FORMAT = "isotone release 1"
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

    Each field is an entry of ``[output]`` in a spec and of the manifest.
    """

    title: str | None = None


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
        "title": "The title of the report; presentation, and sealed with the rest.",
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
    title: str
    mechanism: dict[str, Any]
    guarantee: GuaranteeEntry
    versions: dict[str, str]
    time: str
    charge: int
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
        from isotone.release.kinds import described_by  # the kind that is asked for, and no other

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
        return {field.name: said for field, said in entries if said is not None or field.default is not None}

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
    found = hashlib.sha256()
    for part in parts:
        found.update(part)
    return "sha256:" + found.hexdigest()


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
