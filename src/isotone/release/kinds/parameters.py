"""Public parameters that all kinds share, as plain values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np

from isotone.errors import InputError
from isotone.privacy.checks import plain_text, require_list, shown
from isotone.reading.columns import label
from isotone.reading.contributions import UnitKey
from isotone.release.manifest import Stated

__all__ = [
    "column_name",
    "public_names",
    "require_type",
    "require_writable",
    "stated_texts",
    "unit_in_words",
    "unit_key",
]

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


def unit_key(value: Any) -> UnitKey:
    """What names the unit of a row, as plain text."""
    return None if value is None else column_name(value, "unit")


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
    names = tuple(label(value) for value in listed)
    for entry in names:
        require_writable(entry, name)
    return names


def stated_texts(stated: Stated, title: str) -> Stated:
    """What is stated as plain texts, with ``title`` where there is none."""
    texts = {name: _stated_text(text, name) for name, text in vars(stated).items() if text is not None}
    return Stated(**{**texts, "title": texts.get("title") or title})


def _stated_text(value: Any, name: str) -> str:
    text = plain_text(value, name, empty=True)
    if len(text) > _LONGEST_TEXT:
        raise InputError(f"{name} must have at most {_LONGEST_TEXT:,} characters, not {len(text):,}.")
    require_writable(text, name)
    return text


def unit_in_words(column: Any, words: Any) -> str:
    """The privacy unit in words, by default the name of its column, or "record"."""
    return unit_key(column) or "record" if words is None else plain_text(words, "unit_name")


def require_type(value: Any, name: str, kind: type) -> None:
    """Refuse what is given and of another type."""
    if value is not None and not isinstance(value, kind):
        raise InputError(f"{name} must be of the type {kind.__name__}, not {shown(value)}.")


def require_writable(text: str, name: str) -> None:
    """Refuse public text that cannot be written, or that would steer a terminal."""
    if _CONTROL.search(text):
        raise InputError(
            f"{name} holds {shown(text)}: control characters (tabs, new lines, escape codes) are refused in what is "
            "published. Rename it."
        )
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputError(f"{name} holds {text!r}, which cannot be written as UTF-8.") from None
