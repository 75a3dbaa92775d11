"""Cutting orders exactly: time a level on a grid, a forest and small orders, against listing all ideals."""

from __future__ import annotations

import csv
import math
import time
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from isotone.curves.losses import Absolute
from isotone.curves.poset_regression import PosetTree
from isotone.curves.problem import FINE, CurveSetting, Records
from isotone.curves.surface import Arrangement, Order, ProductOrder, arrange, few_ideals, listed
from isotone.mechanism import Progress
from isotone.order import Poset

LEVELS = 3
NAICS = Path(__file__).resolve().parents[1] / "data" / "orders" / "naics.csv"


def industries() -> Poset:
    """The industries of the North American classification: each below the group it belongs to."""
    with NAICS.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return Poset(
        [row["code"] for row in rows], [(row["code"], row["parent"]) for row in rows if row["parent"]]
    )


def two_terminal(depth: int) -> Poset:
    """A series-parallel order: two copies side by side, between a bottom and a top, again and again."""
    order = Poset.chain([0])
    for _ in range(depth):
        sides = Poset.disjoint_union(*(order.rename(lambda name, side=side: (side, name)) for side in (0, 1)))
        order = Poset.series(Poset.chain(["bottom"]), sides, Poset.chain(["top"]))
    return order


def records(size: int, n: int, rising: Any) -> Records:
    """Public random records: values that rise along a linear extension, with noise."""
    rng = np.random.default_rng(2022)
    cells = rng.integers(0, size, n)
    y = np.clip(rising[cells] + rng.normal(0, 0.2, n), 0, 1)
    return Records(cells, np.rint(y * FINE).astype(np.int64), np.ones(n, np.int64)).sorted()


def seconds_a_level(arrangement: Arrangement, data: Records) -> float:
    """The time of an exact release with three levels, by three; the better of two."""
    mechanism = PosetTree(
        CurveSetting(Fraction(1)), arrangement, Absolute().slopes(FINE, Fraction(1)), LEVELS
    )
    times: list[float] = []
    for _ in range(2):
        start = time.perf_counter()
        mechanism.release(data)
        times.append((time.perf_counter() - start) / LEVELS)
    return min(times)


def measure(name: str, order: Order, n: int) -> str:
    """One row of the table."""
    arrangement = arrange(order)
    height = np.empty(arrangement.size)
    height[arrangement.bottom_up] = np.linspace(0, 1, arrangement.size)
    data = records(arrangement.size, n, height)
    digits = sum(region.log_ideals() for region in arrangement.regions) / math.log(10)
    ours = seconds_a_level(arrangement, data)
    other = ratio = "out of reach"
    if few_ideals(order) and arrangement.way != "listed":
        by_list = seconds_a_level(replace(arrangement, regions=(listed(order),)), data)
        other, ratio = f"{by_list:.3g} s", f"{by_list / ours:.1f}×"
    ideals = f"{round(10**digits):,}" if digits < 7 else f"10^{digits:,.0f}"
    return (
        f"| {name} | {arrangement.way} | {arrangement.size:,} | {ideals} | {ours:.3g} s | {other} | {ratio} |"
    )


def run(quick: bool, progress: Progress) -> str:
    """The table of all orders."""
    side, small, cube, n = (100, 8, 8, 2_000) if quick else (1000, 10, 20, 100_000)
    cases: list[tuple[str, Callable[[], Order]]] = [
        (f"grid {side} × {side}", lambda: ProductOrder((side, side))),
        ("industries (NAICS)", industries),
        ("series-parallel, nested", lambda: two_terminal(6 if quick else 9)),
        ("grid 7 × 7", lambda: ProductOrder((7, 7))),
        (f"grid {small} × {small}", lambda: ProductOrder((small, small))),
        (f"three chains, {cube} × {cube} × {cube}", lambda: ProductOrder((cube, cube, cube))),
    ]
    seconds_a_level(arrange(ProductOrder((2, 2))), records(4, 10, np.zeros(4)))  # load the compiled kernels
    measure("warm", ProductOrder((3, 3)), 10)
    rows: list[str] = []
    for k, (name, build) in enumerate(cases):
        progress(k / len(cases), name)
        rows.append(measure(name, build(), n))
    progress(1.0, "done")
    return (
        f"An exact release with the additive score, absolute loss, {n:,} records, {LEVELS} levels; time of one level. "
        "Listing is the same mechanism with all ideals written down, possible up to a million of them. An order that is "
        "relaxed has as many ideals as its relaxed form; its time includes the share of the final projection.\n\n"
        "| order | cut as | elements | ideals | ours, a level | by listing, a level | ratio |\n"
        "|---|---|---|---|---|---|---|\n" + "\n".join(rows) + "\n"
    )
