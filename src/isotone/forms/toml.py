"""A spec as TOML text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import date, datetime, time
from typing import Any

__all__ = ["toml_string", "toml_text", "toml_value"]

_BARE = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)


def toml_text(entries: Mapping[str, Any]) -> str:
    """The entries as a TOML file, tables after the plain entries of their table.

    >>> print(toml_text({"data": {"path": "a.csv", "columns": {"x y": "b"}}}))
    [data]
    path = "a.csv"
    <BLANKLINE>
    [data.columns]
    "x y" = "b"
    <BLANKLINE>
    """
    return "\n".join(_table(entries, ())).lstrip("\n") + "\n"


def _table(entries: Mapping[str, Any], place: tuple[str, ...]) -> Iterator[str]:
    plain = {key: value for key, value in entries.items() if not isinstance(value, Mapping)}
    tables = {key: value for key, value in entries.items() if isinstance(value, Mapping)}
    if place and (plain or not tables):
        yield f"\n[{'.'.join(map(_key, place))}]"
    for key, value in plain.items():
        yield f"{_key(key)} = {toml_value(value)}"
    for key, value in tables.items():
        yield from _table(value, (*place, key))


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else toml_string(name)


def toml_value(value: Any) -> str:
    """A value on one line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return toml_string(value)
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, (date, datetime, time)):
        return value.isoformat()
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(key)} = {toml_value(inner)}" for key, inner in value.items()) + " }"
    return "[" + ", ".join(map(toml_value, value)) + "]"


def toml_string(text: str) -> str:
    """A TOML string, with escapes for whatever cannot stand in one."""
    said = text.replace("\\", "\\\\").replace('"', '\\"')
    kept = "".join(
        x if x.isprintable() else f"\\U{ord(x):08x}" if ord(x) not in range(0xD800, 0xE000) else "?"
        for x in said
    )
    return f'"{kept}"'
