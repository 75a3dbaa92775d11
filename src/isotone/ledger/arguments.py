"""Arguments of a ledger as plain values, refused before the store is touched."""

from __future__ import annotations

import os
from typing import Any

from isotone.errors import InputError
from isotone.privacy.guarantee import Guarantee

__all__ = ["plain_text", "require_guarantee", "store_path"]


def plain_text(value: Any, name: str, *, empty: bool = True) -> str:
    """``value`` as a plain str that both databases can store."""
    if not isinstance(value, str):
        raise InputError(f"{name} must be text, not a {type(value).__name__}.")
    text = str(value)
    if not empty and not text:
        raise InputError(f"{name} must not be empty.")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputError(f"{name} is not valid Unicode text: {text!r}.") from None
    if "\0" in text:
        raise InputError(f"{name} must not have a NUL character: {text!r}.")
    return text


def require_guarantee(value: Any) -> None:
    """Refuse what is not a guarantee."""
    if not isinstance(value, Guarantee):
        raise InputError(
            f"A charge needs a Guarantee, not a {type(value).__name__}: for example Guarantee.pure('0.5')."
        )
    plain_text(value.unit, "unit", empty=False)


def store_path(where: Any) -> str:
    """A path or URL as text."""
    try:
        return plain_text(os.fspath(where), "The ledger's path", empty=False)
    except TypeError:
        raise InputError(
            f"A ledger is at a path or a postgresql:// URL, not a {type(where).__name__}."
        ) from None
