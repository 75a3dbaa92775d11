"""Attributes and margins of a breakdown, as one types them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from isotone.desk.words import FormError

__all__ = ["default_margins", "read_attributes", "read_margins", "write_attributes", "write_margins"]

_TOTAL, _ALL = "total", "all"


def read_attributes(text: str) -> dict[str, Any]:
    """The names and lists of attributes, one on each line.

    >>> read_attributes("state: north, south\\ncounty: n1 = north, s1 = south")
    {'state': ['north', 'south'], 'county': {'n1': 'north', 's1': 'south'}}
    """
    groups: dict[str, Any] = {}
    for place, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        name, colon, listed = (part.strip() for part in line.partition(":"))
        values = [value.strip() for value in listed.split(",") if value.strip()]
        if not name or not colon or not values or name in groups:
            raise FormError(f"Line {place} of the attributes is not a new name, ':' and a list of values.")
        finer = [value.partition("=") for value in values]
        if any(sign for _, sign, _ in finer) and not all(a.strip() and b.strip() for a, _, b in finer):
            raise FormError(f"Line {place} of the attributes says of some values only where they belong.")
        groups[name] = {a.strip(): b.strip() for a, _, b in finer} if finer[0][1] else values
    if not groups:
        raise FormError("Name at least one attribute, with its public list of values.")
    return groups


def write_attributes(by: Mapping[str, Any]) -> str:
    """The lines of attributes."""
    lines: list[str] = []
    for name, held in by.items():
        pairs = isinstance(held, list) and bool(held) and isinstance(held[0], list)
        values: Any = dict(held) if pairs else held
        listed = (
            [f"{a} = {b}" for a, b in values.items()] if isinstance(values, Mapping) else map(str, values)
        )
        lines.append(f"{name}: {', '.join(listed)}")
    return "\n".join(lines)


def read_margins(text: str) -> list[Any] | None:
    """The tables to release, one on each line. Names with commas between them, ``total`` or ``all``."""
    found: list[Any] = []
    for line in text.splitlines():
        names = [name.strip() for name in line.split(",") if name.strip()]
        if names:
            found.append({_TOTAL: "", _ALL: "*"}.get(names[0], names[0]) if len(names) == 1 else names)
    return found or None


def default_margins(names: Sequence[str]) -> list[Any]:
    """The total, each attribute alone, and all together."""
    return ["", *names, *(["*"] if len(names) > 1 else [])]


def write_margins(margins: Sequence[Any]) -> str:
    """The lines of margins."""
    words = {"": _TOTAL, "*": _ALL}
    return "\n".join(words.get(m, m) if isinstance(m, str) else ", ".join(m) for m in margins)
