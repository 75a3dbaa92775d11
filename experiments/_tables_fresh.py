"""Intervals at small ε, and distances at ε = 1, on shapes that were written down before what is looked at was set."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from _frontier_shapes import FRESH, SMOOTH, drawn
from _tables import Table
from common import write_table
from isotone.mechanism import Progress
from isotone.tables import TwoStageMechanism

GROUPS = {"fresh": FRESH, "smooth": SMOOTH, "prototype's": ("u-shaped", "triangle", "stairs")}
SCALE = ("0", "0.1", "0.25", "0.5", "1")
DRAWS = 8


def table(shape: str, size: int, upper: int, draw: int) -> Table:
    """A table of a shape, also of three that a prototype was judged on."""
    x = (np.arange(upper + 1) + 0.5) / (upper + 1)
    weights = {
        "u-shaped": x**-0.6 * (1 - x) ** -0.3,
        "triangle": np.where(x < 0.3, x / 0.3, (1 - x) / 0.7) + 0.02,
        "stairs": np.array([0.5, 0.28, 0.15, 0.07])[np.minimum((4 * x).astype(int), 3)],
    }
    if shape not in weights:
        return drawn(shape, size, upper, draw)
    rng = np.random.default_rng([draw, size, 77])
    return Table(shape, rng.choice(upper + 1, size, p=weights[shape] / weights[shape].sum()), upper)


def coverage(one: Table, emphasis: str, draw: int) -> float:
    """The share of categories whose interval of 95 % holds at ε = 0.1."""
    published = TwoStageMechanism(one.upper, "0.1", emphasis).simulate_in_full(
        one.counts, np.random.default_rng([draw, 4])
    )
    low, high = published.interval(0.95)
    return float(np.mean((low <= one.counts) & (one.counts <= high)))


def distances(one: Table, emphasis: str, draw: int) -> tuple[float, float]:
    """The distance of the distribution at ε = 1, and that of plain clamped noise."""
    rng, size = np.random.default_rng([draw, 5]), len(one.counts)
    published = TwoStageMechanism(one.upper, 1, emphasis).simulate_in_full(one.counts, rng)
    noise = rng.geometric(1 - np.exp(-1), (2, size))
    plain = np.clip(one.counts + noise[0] - noise[1], 0, one.upper)

    def apart(values: NDArray[np.int64]) -> float:
        return float(np.mean(np.abs(np.sort(values) - np.sort(one.counts))))

    return apart(np.asarray(published.values)), apart(plain)


def run(out: Path, quick: bool, progress: Progress) -> None:
    """Write the mean and the worst coverage, and distances as a multiple of those of plain noise."""
    draws, held, far = 1 if quick else DRAWS, list[tuple[object, ...]](), list[tuple[object, ...]]()
    for (group, shapes), upper in product(GROUPS.items(), (20, 60)):
        progress(0.3, f"intervals, {group}")
        found = [
            coverage(table(shape, 1000, upper, 200 + draw), emphasis, draw)
            for shape, emphasis, draw in product(shapes, SCALE, range(draws))
        ]
        held.append((group, upper, len(found), f"{np.mean(found):.4f}", f"{min(found):.4f}"))
    for (group, shapes), size, emphasis in product(GROUPS.items(), (1000, 10_000), ("0", "0.1", "1")):
        progress(0.7, f"distances, {group}")
        each = [
            np.mean([distances(table(shape, size, 60, 300 + d), emphasis, d) for d in range(draws)], axis=0)
            for shape in shapes
        ]
        ratio = float(np.exp(np.mean([np.log(ours / plain) for ours, plain in each])))
        far.append(
            (group, size, emphasis, f"{ratio:.3f}", *(f"{mean:.4f}" for mean in np.mean(each, axis=0)))
        )
    for name, rows, columns in (
        ("intervals", held, ("group", "upper", "releases", "mean", "worst")),
        ("distances", far, ("group", "size", "emphasis", "ratio", "distance", "plain")),
    ):
        write_table(out, name, {column: [row[at] for row in rows] for at, column in enumerate(columns)})
    progress(1.0, "done")
