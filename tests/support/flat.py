"""Releases from one flat list of parameters, which tests share, vary and pass on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import isotone as iso
from isotone.release.spec import deliver

__all__ = ["counts", "counts_of", "curve", "split", "surface", "table", "with_spec"]

_DELIVERY = {"ledger", "epsilon", "delta", "rho", "folder", "request", "again", "title", "progress"}
_UNIT = {"unit": "column", "contributions": "contributions", "neighbours": "neighbours", "unit_name": "name"}
_ANSWERS = ("element", "columns", "on_violation", "on_conflict", "questions")


def split(given: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Parameters of a description, with its unit, and those of a delivery."""
    unit = {_UNIT[name]: value for name, value in given.items() if name in _UNIT}
    kept = {name: value for name, value in given.items() if name not in _UNIT and name not in _DELIVERY}
    if isinstance(given.get("unit"), iso.Unit):
        kept["unit"] = given["unit"]
    elif unit:
        kept["unit"] = iso.Unit(unit.pop("column", None), **unit)
    return kept, {name: value for name, value in given.items() if name in _DELIVERY}


def counts_of(P: Any, **given: Any) -> iso.Counts:
    """Counts as described by flat parameters: those of answers stand beside the others, and so do the lists of groups."""
    answers = {name: given.pop(name) for name in _ANSWERS if given.get(name) is not None}
    said = given.pop("answers", None)
    if isinstance(said, iso.Answers):
        answers = {"yes": said.yes, "no": said.no, "missing": said.missing, **answers}
    elif said is not None:
        given["answers"] = said
    if answers and "answers" not in given:
        given["answers"] = iso.Answers(**answers)  # pyright: ignore
    if "records" in given or "catch_all" in given:
        root = {name: given.pop(name) for name in ("records", "catch_all") if given.get(name) is not None}
        given["root"] = root or None
    by, groups = given.pop("by", None), given.pop("groups", None)
    if by is not None:
        given["by"] = _lists(by, groups) if isinstance(by, (str, list, tuple)) else by
    elif groups is not None:
        given["by"] = groups
    return iso.Counts(P, **{name: value for name, value in given.items() if value is not None})


def _lists(by: Any, groups: Any) -> Any:
    named = [by] if isinstance(by, str) else list(by)
    return {name: groups.get(name) if isinstance(groups, dict) else groups for name in named}


def counts(data: Any, P: Any, **given: Any) -> iso.Release:
    """A release of counts."""
    described, delivered = split({name: value for name, value in given.items() if value is not None})
    return counts_of(P, **described).release(data, **delivered)


def curve(data: Any, **given: Any) -> iso.Release:
    """A release of a curve."""
    described, delivered = split(given)
    return iso.Curve(described.pop("x"), **described).release(data, **delivered)


def surface(data: Any, **given: Any) -> iso.Release:
    """A release of a surface, whose numbers of bins are its grid."""
    if "bins" in given:
        given["x_grid"] = given.pop("bins")
    return curve(data, **given)


def table(data: Any, **given: Any) -> iso.Release:
    """A release of a table."""
    described, delivered = split(given)
    names = described.pop("category"), described.pop("categories")
    return iso.Table(*names, **described).release(data, **delivered)


def with_spec(spec: iso.Spec, **options: Any) -> tuple[iso.Release, Path, bool]:
    """The release of a spec, its folder, and whether it is new."""
    done = deliver(spec, **options)
    return done.release, spec.target, done.fresh
