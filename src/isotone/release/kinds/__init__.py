"""The kinds of release, loaded when they are asked for. Adding one is a new folder here and one line in the table below."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from isotone.errors import InputError
from isotone.privacy.checks import did_you_mean

if TYPE_CHECKING:
    from isotone.release.description import Description
    from isotone.release.kinds.kind import Kind

__all__ = [
    "BESIDE",
    "SECTIONS",
    "all_kinds",
    "described_by",
    "kind_named",
    "kind_of_mechanism",
    "kind_of_section",
]

_DESCRIPTIONS = {
    "counts": "Counts",
    "table": "Table",
    "curve": "Curve",
    "distribution": "Distribution",
    "survival": "Survival",
    "series": "Series",
}
"""The class that describes each kind, by the name that manifests have for it and that its folder here has."""
SECTIONS = {
    "series": "series",
    "order": "counts",
    "table": "table",
    "curve": "curve",
    "distribution": "distribution",
    "survival": "survival",
}
"""The sections of a spec that ask for a release, each with the kind. The first that is there decides."""
BESIDE = {"series": "order"}
"""Sections that another one stands beside."""


def described_by(name: str) -> type[Description]:
    """The class that describes the kind that a manifest calls ``name``. What reads and verifies it is not loaded."""
    _require_known(name)
    return getattr(import_module(f"isotone.release.kinds.{name}.description"), _DESCRIPTIONS[name])


def kind_named(name: str) -> Kind:
    """The kind that a manifest calls ``name``."""
    _require_known(name)
    return import_module(f"isotone.release.kinds.{name}.kind").KIND


def _require_known(name: str) -> None:
    if name not in _DESCRIPTIONS:
        raise InputError(f"There is no kind of release {name!r}; there are: {', '.join(_DESCRIPTIONS)}.")


def kind_of_section(key: str) -> Kind:
    """The kind that a section of a spec asks for."""
    return kind_named(SECTIONS[key])


def all_kinds() -> tuple[Kind, ...]:
    """Every kind, for pages and schemas about all of them."""
    return tuple(map(kind_named, _DESCRIPTIONS))


def kind_of_mechanism(name: str) -> Kind:
    """The kind whose mechanism has this class name."""
    known = {mechanism: kind for kind in all_kinds() for mechanism in kind.classes}
    if name not in known:
        near = did_you_mean(name, known) or f"; there are: {', '.join(known)}"
        raise InputError(f"There is no mechanism {name!r}{near}")
    return known[name]
