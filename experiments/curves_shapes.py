"""Excess risk with shape constraints: the default, one draw from the whole class, and the published tree.

Writes ``shapes.csv`` and a picture, and ``ways.csv``, which compares ways to make a curve of a shape from the same noisy
sums; its runs are in ``distances.csv``, and a run that was interrupted goes on there. Excess is over the true curve, which has the shape. Simulated draws; the released ones
have the same distribution.
"""

from __future__ import annotations

import itertools
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from _shape_ways import cases_of, distances, table_of_ways
from common import save_figure, write_table
from isotone.curves.cuts import TREE_POINTS, ChainProblem, risk
from isotone.curves.losses import parse_loss
from isotone.curves.problem import FINE, CurveSetting, Grid, Records
from isotone.curves.regression import mechanism_for
from isotone.curves.shapes import parse_shape
from isotone.mechanism import Progress

UNIT = (Fraction(0), Fraction(1))

NAMES = {
    "constant": "constant ({} pieces)",
    "linear": "linear ({} pieces)",
    "lipschitz": "lipschitz (slope {})",
}
SHAPES: list[tuple[Any, str, Any]] = [
    (("constant", 4), "four steps", lambda u: 0.1 + 0.2 * (u > 0.2) + 0.3 * (u > 0.45) + 0.3 * (u > 0.7)),
    (("linear", 3), "two bends", lambda u: np.interp(u, [0, 0.3, 0.6, 1], [0.1, 0.2, 0.8, 0.9])),
    (("lipschitz", 1), "line", lambda u: 0.1 + 0.8 * u),
    ("convex", "cube", lambda u: u**3),
    ("concave", "root", np.sqrt),
]


def shape_name(spec: Any) -> str:
    """A shape in words."""
    return spec if isinstance(spec, str) else NAMES[spec[0]].format(spec[1])


METHODS = (("auto", "default"), ("baseline", "draw"), ("threshold", "tree"), ("auto", "no shape"))


def shapes(
    quick: bool, progress: Progress, methods: tuple[tuple[str, str], ...] = METHODS
) -> dict[str, list[Any]]:
    """The default, one draw from the whole class, the published tree, and no shape."""
    names = ["shape", "curve", "n", "epsilon", "method", "excess", "standard_error"]
    columns: dict[str, list[Any]] = {name: [] for name in names}
    loss = parse_loss("squared")
    sizes = (100,) if quick else (1_000, 10_000)
    for done, (spec, curve, truth) in enumerate(SHAPES):
        progress(done / len(SHAPES), f"shape {spec}")
        shape = parse_shape(spec)
        assert shape is not None
        for n, (method, name) in itertools.product(sizes, methods):
            kept = None if name == "no shape" else shape
            points = TREE_POINTS if kept is None else shape.points
            plan = ChainProblem(loss, UNIT, Grid(*UNIT, points), method=method, shape=kept)
            built = mechanism_for(plan.sized(n, CurveSetting(Fraction(1))))
            found = []
            for repetition in range(1 if quick else 8):
                rng = np.random.default_rng([repetition, n])
                u = rng.random(n)
                y = np.clip(truth(u) + rng.normal(0, 0.15, n), 0, 1)
                cells_of = Grid(*UNIT, points).snap(u)
                levels = Grid(*UNIT, FINE + 1).snap(y)
                records = Records(cells_of, levels, np.ones(n, np.int64)).sorted()
                released = built.simulate(records, rng)
                found.append(risk(released, records, loss) - float(np.mean((truth(u) - y) ** 2)))
            row = [shape_name(spec), curve, n, 1, name, round(float(np.mean(found)), 8)]
            for key, value in zip(
                names, [*row, round(float(np.std(found)) / len(found) ** 0.5, 8)], strict=True
            ):
                columns[key].append(value)
    return columns


def _picture_of_shapes(out: Path, columns: dict[str, list[Any]]) -> None:
    table = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    kinds = list(dict.fromkeys(row["shape"] for row in table))
    figure = Figure(figsize=(12, 2.8))
    axes = figure.subplots(1, len(kinds), sharey=True)
    for axis, kind in zip(axes, kinds, strict=True):
        for method, colour in (("default", "C2"), ("draw", "C0"), ("tree", "C3"), ("no shape", "C7")):
            chosen = [row for row in table if row["shape"] == kind and row["method"] == method]
            values = [float(row["excess"]) for row in chosen]
            axis.plot([int(row["n"]) for row in chosen], values, marker="o", ms=4, color=colour, label=method)
        axis.set_xscale("log")
        axis.set_yscale("symlog", linthresh=1e-4)
        axis.set_title(kind, fontsize=9)
        axis.set_xlabel("records")
    axes[0].set_ylabel("risk above the true curve's")
    axes[0].legend(fontsize=7)
    save_figure(figure, out, "shapes")


def few(out: Path) -> None:
    """Every sixth population of the ways, once."""
    distances(out / "distances.csv", cases_of(quick=True)[:18:6])


def run(out: Path, quick: bool, progress: Progress) -> None:
    columns = shapes(quick, progress)
    write_table(out, "shapes", columns)
    _picture_of_shapes(out, columns)
    names = ("shape", "way", "cells", "ratio", "standard_error", "cells_worse")
    rows = table_of_ways(out / "distances.csv", quick)
    write_table(out, "ways", dict(zip(names, zip(*rows, strict=True), strict=True)))
    progress(1.0, "done")
