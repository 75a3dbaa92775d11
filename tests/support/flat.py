"""Releases from one flat list of parameters, which tests share, vary and pass on."""

from __future__ import annotations

from typing import Any

import isotone as iso

__all__ = ["curve", "surface", "table"]

_DELIVERY = {"ledger", "epsilon", "delta", "rho", "folder", "request", "again", "title", "progress"}
_UNIT = {"unit": "column", "contributions": "contributions", "neighbours": "neighbours", "unit_name": "name"}


def split(given: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Parameters of a description, with its unit, and those of a delivery."""
    unit = {_UNIT[name]: value for name, value in given.items() if name in _UNIT}
    kept = {name: value for name, value in given.items() if name not in _UNIT and name not in _DELIVERY}
    if unit:
        whole = isinstance(given.get("unit"), iso.Unit)
        kept["unit"] = given["unit"] if whole else iso.Unit(unit.pop("column", None), **unit)
    return kept, {name: value for name, value in given.items() if name in _DELIVERY}


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
    return iso.Table(described.pop("category"), described.pop("categories"), **described).release(data, **delivered)
