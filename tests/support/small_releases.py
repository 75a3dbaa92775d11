"""Small releases of every kind, in as many sorts as manifests differ in, each saved without a report."""
# pyright: reportArgumentType=false

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import isotone as iso
from isotone.counts import Relaxation
from tests.support import flat

__all__ = ["SORTS", "saved"]

PLACES = [f"c{k}" for k in range(60)]
CHAIN, VEE = iso.Poset.chain(["b", "a"]), iso.Poset("abc", [("b", "a"), ("c", "a")])
TREE = iso.Poset.from_mapping({"1": None, "11": "1", "12": "1", "2": None}, children="exclusive")
PARTITION = iso.Poset.from_mapping({"b": "a", "c": "a"}, children="partition")
CODES = iso.Poset.from_mapping({"1": "all", "2": "all", "11": "1", "12": "1"}, children="partition")
FENCE = iso.Poset("abcd", [("a", "c"), ("b", "c"), ("b", "d")])
SIDES = {"sex": ["f", "m"]}


def _survey(size: int = 60) -> pa.Table:
    rng = np.random.default_rng(1)
    answers = {name: rng.integers(0, 2, size) for name in "abcde"}
    rest = {
        "sex": ["f", "m"] * (size // 2),
        "g": ["x", "y", "z"] * (size // 3),
        "code": ["1", "11", "12", "2"] * (size // 4),
    }
    points = {
        "x": np.arange(size) % 11,
        "v": np.arange(size) % 11 / 10,
        "label": (np.arange(size) % 11 > 4) * 1,
    }
    place = [PLACES[k * k % 60] for k in range(size)]
    return pa.table({"person": range(size), **answers, **rest, **points, "place": place})


def _rows() -> pa.Table:
    rng = np.random.default_rng(0)
    first = rng.poisson(2, 60)
    return pa.table({"place": PLACES, "theft": first, "arson": np.minimum(first, rng.poisson(2, 60))})


def _counts(P: iso.Poset, **given: Any) -> Callable[[Any], iso.Release]:
    given = {"epsilon": 1, "unit": "person", "mechanism": "LaplaceMechanism", **given}
    given = {key: value for key, value in given.items() if value is not None or key == "unit"}
    return lambda ledger: flat.counts(_survey(), P, ledger=ledger, **given)


def _table(data: Callable[[], pa.Table] = _survey, **given: Any) -> Callable[[Any], iso.Release]:
    usual = {"category": "place", "categories": PLACES, "upper": 8, "epsilon": 1}
    return lambda ledger: flat.table(data(), ledger=ledger, **{**usual, **given})


def _curve(**given: Any) -> Callable[[Any], iso.Release]:
    usual = {
        "x": "x",
        "y": "v",
        "bounds": (0, 10),
        "y_range": (0, 1),
        "epsilon": 2,
        "x_grid": 11,
        "unit": "person",
    }
    if "y_values" in given:
        del usual["y_range"]
    return lambda ledger: flat.curve(_survey(), ledger=ledger, **{**usual, **given})


def _series(**given: Any) -> Callable[[Any], iso.Release]:
    """A series of the past."""

    def made(ledger: Any) -> iso.Release:
        survey = iso.Counts(VEE, unit="person", **{"by": given["by"]} if "by" in given else {})
        budget = {name: x for name, x in given.items() if name != "by"} or {"epsilon": 1}
        days = pa.array(["2024-01-05", "2024-02-05"] * 30)
        past = iso.Series(survey, periods=["2024-01-31", "2024-02-29"], date="day")
        return past.release(_survey().append_column("day", days), ledger=ledger, **budget)

    return made


def _opened(ledger: Any) -> iso.Release:
    """A series of which two periods are shown."""
    series = iso.Series(iso.Counts(VEE, unit="person"), periods=["May", "June", "July"])
    with tempfile.TemporaryDirectory() as folder:
        place = {"ledger": ledger, "secrets": Path(folder) / "secrets"}
        series.open(epsilon=1, **place)
        series.close(_survey(), "May", **place)
        return series.close(_survey(), "June", **place)


def _distribution(**given: Any) -> Callable[[Any], iso.Release]:
    budget = {name: given.pop(name) for name in ("epsilon", "rho") if name in given} or {"epsilon": 2}
    described = iso.Distribution("x", **{"bounds": (0, 10), "unit": "person", "cells": 64, **given})
    return lambda ledger: described.release(_survey(), ledger=ledger, **budget)


RHO: dict[str, Any] = {"epsilon": None, "rho": "1/2", "mechanism": None}


def _moved(make: Callable[[Any], iso.Release], ledger: Any, **how: Any) -> iso.Release:
    """A release made consistent, where another way gives other values: noise decides, so it is drawn until it does."""
    for _ in range(100):
        drawn = make(ledger)
        found = drawn.consistent(**how)
        others: list[dict[str, Any]] = [{**how, "integers": not how.get("integers", True)}]
        if "measured" not in drawn.manifest:
            others.append({**how, "weights": "variance" if "weights" in how else "covariance"})
        if all(drawn.consistent(**other).columns["value"] != found.columns["value"] for other in others):
            return found
    raise AssertionError("no noise tells these ways apart")


PERSON: dict[str, Any] = {"unit": "person"}
AGGREGATED: dict[str, Any] = {"data": _rows, "unit_name": "person", "contributions": 1}

SORTS: dict[str, Callable[[Any], iso.Release]] = {
    "counts": _counts(VEE),
    "counts with their number": _counts(VEE, mechanism="PosetMechanism", total=True, contributions=2),
    "counts of short records": _counts(VEE, max_size=2, title="Short", neighbours="add-remove"),
    "counts in rho": _counts(VEE, **RHO),
    "counts of groups": _counts(CHAIN, by="g", groups=["x", "y"], total=True, mechanism="PosetMechanism"),
    "counts of waves": _counts(CHAIN, waves=3),
    "consistent counts": lambda ledger: _moved(_counts(VEE, epsilon="1/40", mechanism="PosetMechanism"), ledger),
    "consistent groups": lambda ledger: _moved(
        _counts(VEE, epsilon="1/40", by="g", groups=["x", "y"], mechanism="PosetMechanism"),
        ledger,
        integers=False,
        weights="covariance",
    ),
    "counts given their number": lambda ledger: _counts(VEE, mechanism="PosetMechanism", total=True)(ledger).given(
        records=60, after_rules=True
    ),
    "combined counts": lambda ledger: iso.combine([_counts(VEE)(ledger), _counts(VEE, epsilon=2)(ledger)]),
    "hierarchy": _counts(TREE, element="code", on_conflict="drop", mechanism=None),
    "partition": _counts(PARTITION, mechanism=None),
    "fixed root": _counts(CODES, element="code", neighbours="replace", records=60, catch_all="2", mechanism=None, unit=None),
    "breakdown": _counts(CHAIN, epsilon=9, by=["sex", "g"], groups={**SIDES, "g": ["x", "y"]}, margins=["", "sex", "g"]),
    "breakdown in rho": _counts(CHAIN, **RHO, by="sex", groups=SIDES, margins=["", "sex"], unlisted="drop"),
    "consistent breakdown": lambda ledger: _moved(
        _counts(CHAIN, epsilon="1/9", by="sex", groups=SIDES, margins=["", "sex"]), ledger
    ),
    "small table": _table(categories=["c0", "c1", "c4"], **PERSON),
    "table": _table(**PERSON),
    "table of rates": _table(population=list(range(1000, 1060)), **PERSON),
    "table of classes": _table(strata={"even": PLACES[::2], "odd": PLACES[1::2]}, emphasis="both", **PERSON),
    "table with Gaussian noise": _table(contributions=20, delta="1e-6", **PERSON),
    "table of counts": _table(**AGGREGATED, count="theft", emphasis="1/3"),
    "pairs": _table(**AGGREGATED, counts=["theft", "arson"], upper=5, epsilon=2),
    "curve": _curve(),
    "falling curve": _curve(increasing=False, contributions=2, band="records", confidence=0.9),
    "curve of labels": _curve(y="label", y_values=(0, 1), band="credible"),
    "curve in a direction that was found": _curve(increasing="auto", epsilon=4),
    "curve in rho": _curve(epsilon=None, rho=2),
    "curve without a band": _curve(band="none", loss="absolute"),
    "curve with a shape": _curve(shape="convex"),
    "surface": lambda ledger: flat.surface(
        _survey(), x=["x", "a"], y="v", bounds=[(0, 10), (0, 1)], y_range=(0, 1), bins=[3, 2], epsilon=2, unit="person",
        ledger=ledger,
    ),
    "series of the past": _series(),
    "series of groups": _series(by={"sex": ["f", "m"]}),
    "series in rho": _series(rho="1/2"),
    "series that is open": _opened,
    "distribution": _distribution(),
    "distribution of groups in rho": _distribution(rho=2, by={"sex": ["f", "m"]}, cells=None, grid="integers"),
    "distribution of a population": _distribution(public_n=60, band="population", grid=[0, 2, 5, 10], cells=None),
    "survival": lambda ledger: iso.Survival("x", event="label", horizon=8, unit="person", cells=64).release(
        _survey(), epsilon=2, ledger=ledger
    ),
    "counts that were relaxed": _counts(
        FENCE, mechanism="PosetMechanism", relaxation=Relaxation.of([("a", "c"), ("b", "d")])
    ),
}  # fmt: skip
"""How each sort is made, at a ledger that can pay for it."""


def saved(name: str, folder: Path) -> Path:
    """One release of a sort, in a folder below."""
    unit = "person" if "place" in name else None
    given: dict[str, Any] = {"rho": 999} if "rho" in name else {"epsilon": 999, "delta": "1e-3"}
    if name == "fixed root":
        given["neighbours"] = "replace"
    if unit:
        given["unit"] = unit
    with iso.Ledger(folder / f"{name}.ledger", **given) as ledger:
        SORTS[name](ledger).save(folder / name, report=False)
    return folder / name
