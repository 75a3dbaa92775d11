"""The kinds of release. Adding one is a new folder here and one entry in the list below."""

from __future__ import annotations

from isotone.errors import InputError
from isotone.privacy.checks import did_you_mean
from isotone.release.kinds.breakdown.kind import BreakdownKind
from isotone.release.kinds.counts.kind import CountsKind
from isotone.release.kinds.curve.kind import CurveKind
from isotone.release.kinds.kind import Kind, Query, Stamp
from isotone.release.kinds.page import Page
from isotone.release.kinds.surface.kind import SurfaceKind
from isotone.release.kinds.table.kind import TableKind

__all__ = ["KINDS", "Kind", "Page", "Query", "Stamp", "kind_named", "kind_of_mechanism"]

KINDS: tuple[Kind, ...] = (CountsKind(), BreakdownKind(), TableKind(), CurveKind(), SurfaceKind())


def kind_named(name: str) -> Kind:
    """The kind that a manifest calls ``name``."""
    for kind in KINDS:
        if kind.name == name:
            return kind
    raise InputError(f"There is no kind of release {name!r}; there are: {', '.join(k.name for k in KINDS)}.")


def kind_of_mechanism(name: str) -> Kind:
    """The kind whose mechanism has this class name."""
    known = {mechanism: kind for kind in KINDS for mechanism in kind.classes}
    if name not in known:
        near = did_you_mean(name, known) or f"; there are: {', '.join(known)}"
        raise InputError(f"There is no mechanism {name!r}{near}")
    return known[name]
