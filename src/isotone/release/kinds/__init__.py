"""The kinds of release, loaded when they are asked for. Adding one is a new folder here and one line in the table below."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from isotone.errors import InputError
from isotone.privacy.checks import did_you_mean

if TYPE_CHECKING:
    from isotone.release.kinds.kind import Kind

__all__ = ["SECTIONS", "all_kinds", "kind_named", "kind_of_mechanism", "kind_of_section"]

_HOMES = {
    "counts": "isotone.release.kinds.counts.kind",
    "table": "isotone.release.kinds.table.kind",
    "curve": "isotone.release.kinds.curve.kind",
}
"""Where each kind lives, by the name that manifests have for it."""
SECTIONS = {"order": "counts", "table": "table", "curve": "curve"}
"""The sections of a spec that ask for a release, each with the kind."""


def kind_named(name: str) -> Kind:
    """The kind that a manifest calls ``name``."""
    if name not in _HOMES:
        raise InputError(f"There is no kind of release {name!r}; there are: {', '.join(_HOMES)}.")
    return _loaded(name)


@cache
def _loaded(name: str) -> Kind:
    return import_module(_HOMES[name]).KIND


def kind_of_section(key: str) -> Kind:
    """The kind that a section of a spec asks for."""
    return kind_named(SECTIONS[key])


def all_kinds() -> tuple[Kind, ...]:
    """Every kind, for pages and schemas about all of them."""
    return tuple(map(kind_named, _HOMES))


def kind_of_mechanism(name: str) -> Kind:
    """The kind whose mechanism has this class name."""
    known = {mechanism: kind for kind in all_kinds() for mechanism in kind.classes}
    if name not in known:
        near = did_you_mean(name, known) or f"; there are: {', '.join(known)}"
        raise InputError(f"There is no mechanism {name!r}{near}")
    return known[name]
