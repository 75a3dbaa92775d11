"""Ways to make a curve of a shape from the same noisy sums, against the curve of the shape nearest to the posterior.

Curves have the shape in ``x``. No constant of the chain was chosen with these populations. The distance is the root mean squared one to the true curve, over the population's ``x``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common import add_rows
from isotone.curves.bands import spread_of
from isotone.curves.circuits import SeededCurveDraws, cheapest
from isotone.curves.cuts import ChainProblem, Curve
from isotone.curves.losses import parse_loss
from isotone.curves.posterior import NoisySums, values_of_bins
from isotone.curves.problem import FINE, CurveSetting, Grid, Records
from isotone.curves.shape_posterior import NearestOfShape, PosteriorOfShape
from isotone.curves.shapes import parse_shape

__all__ = ["HELD_OUT", "ShapedPopulation", "cases_of", "compared", "distances", "table_of_ways"]

Floats = NDArray[np.float64]
UNIT = (Fraction(0), Fraction(1))
SEED = 20_261_117
NOISE = 0.15
REPETITIONS, OF_CONSTANTS = 2, 8
WAYS = ("nearest", "states", "likeliest")
COST = 1 << 20
"""Log likelihoods are counted in whole numbers of this part,"""
LEAST = 1e4
"""and none is below this."""
SPECS: dict[str, Any] = {
    "convex": "convex",
    "concave": "concave",
    "lipschitz": ("lipschitz", 1),
}
DESIGNS: dict[str, Callable[[Floats], Floats]] = {
    "uniform": lambda u: u,
    "below": lambda u: u**2,
    "above": lambda u: 1 - (1 - u) ** 2,
    "middle": lambda u: 0.5 + 0.5 * np.sign(2 * u - 1) * (1 - np.sqrt(1 - np.abs(2 * u - 1))),
}


def _line(low: float, rise: float) -> Callable[[Floats], Floats]:
    return lambda x: low + rise * x


@dataclass(frozen=True)
class ShapedPopulation:
    """A curve of a shape, a design of ``x``, and labels or real ``y`` with normal noise."""

    shape: str
    design: str
    y: str
    curve: Callable[[Floats], Floats]

    def records(self, n: int, rng: np.random.Generator) -> Records:
        """Records on the points of the shape."""
        x = DESIGNS[self.design](rng.random(n))
        mean = self.curve(x)
        real = np.clip(mean + rng.normal(0, NOISE, n), 0, 1)
        y = (rng.random(n) < mean).astype(np.float64) if self.y == "labels" else real
        return Records(self.grid.snap(x), Grid(*UNIT, FINE + 1).snap(y), np.ones(n, np.int64)).sorted()

    @property
    def grid(self) -> Grid:
        """The points of the shape."""
        shape = parse_shape(SPECS[self.shape])
        assert shape is not None
        return Grid(*UNIT, shape.points)

    def distance(self, curve: Curve) -> float:
        """How far a curve is from the true one."""
        x = DESIGNS[self.design]((np.arange(4096) + 0.5) / 4096)
        return float(np.sqrt(np.mean((curve.at(self.grid.snap(x)) - self.curve(x)) ** 2)))


P = ShapedPopulation
HELD_OUT = (
    P("convex", "uniform", "labels", lambda x: x**6),
    P("convex", "middle", "labels", lambda x: 0.1 + np.maximum(0, 2.8 * (x - 0.7))),
    P("convex", "middle", "normal", _line(0.7, 0)),
    P("convex", "uniform", "labels", lambda x: 0.01 + 0.09 * x**2),
    P("convex", "above", "normal", lambda x: 0.1 + 0.7 * x**1.5),
    P("convex", "above", "labels", _line(0.05, 0.9)),
    P("concave", "middle", "labels", lambda x: np.sqrt(x)),
    P("concave", "uniform", "normal", lambda x: 0.1 + 0.8 * np.minimum(1, x / 0.7)),
    P("concave", "uniform", "labels", _line(0.8, 0)),
    P("concave", "below", "labels", lambda x: 0.1 + 0.8 * x / (x + 0.1)),
    P("concave", "uniform", "normal", lambda x: 0.05 + 0.9 * x**0.7),
    P("concave", "below", "labels", lambda x: np.interp(x, [0, 0.2, 0.6, 1], [0.1, 0.5, 0.8, 0.9])),
    P("lipschitz", "uniform", "labels", lambda x: 0.1 + 0.6 / (1 + np.exp(-6 * (x - 0.6)))),
    P("lipschitz", "middle", "labels", _line(0.1, 0.8)),
    P("lipschitz", "uniform", "normal", _line(0.7, 0)),
    P("lipschitz", "uniform", "labels", lambda x: 0.2 + np.clip(x - 0.1, 0, 0.2) + np.clip(x - 0.6, 0, 0.2)),
    P("lipschitz", "above", "normal", lambda x: 0.5 * np.sqrt(x + 0.3)),
    P("lipschitz", "below", "labels", _line(0.1, 0.1)),
)
CONSTANTS = tuple(P("lipschitz", "uniform", "normal", _line(level, 0)) for level in (0.63, 0.37, 0.81))
"""Made after looking at the others: of those, states were worse for the constant 0.7 alone, which lies next to a value of
the nearest curve's grid."""


def likeliest(near: NearestOfShape, sums: NoisySums) -> Curve:
    """The curve of the shape that makes the noisy sums likeliest."""
    width = np.diff(np.r_[sums.starts, near.points])
    columns = np.linspace(0.0, 1.0, near.shape.table.shape[1])
    log_p = values_of_bins(sums, columns, spread_of(near.inner.labels)).log_likelihood
    cost = np.repeat((log_p.max(axis=1, keepdims=True) - log_p) / width[:, None], width, axis=0)
    return near.shape.chosen(np.rint(COST * np.minimum(cost, LEAST)).astype(np.int64), cheapest)


def compared(population: ShapedPopulation, n: int, epsilon: str, repetition: int) -> dict[str, float]:
    """The distance of every way, with the same records and the same noise."""
    number = (*HELD_OUT, *CONSTANTS).index(population)
    seed = [SEED, number, n, repetition, int(10 * Fraction(epsilon))]
    records = population.records(n, np.random.default_rng(seed))
    labels, turned = population.y == "labels", population.shape == "concave"
    shape = parse_shape(SPECS[population.shape])
    blank = ChainProblem(
        parse_loss("squared"), UNIT, population.grid, method="auto", shape=shape, labels=labels
    )
    problem = blank.sized(n, CurveSetting(Fraction(epsilon)))
    seen = records.upside_down(FINE).mirrored(problem.points) if turned else records
    near = NearestOfShape.of(problem)

    def noise() -> SeededCurveDraws:
        return SeededCurveDraws(np.random.default_rng([*seed, 1]))

    found = {
        "nearest": near.draw(seen, noise()),
        "states": PosteriorOfShape.of(problem).draw(seen, noise()),
        "likeliest": likeliest(near, near.inner.measure(seen, noise())),
    }
    back = {name: curve.upside_down().mirrored() if turned else curve for name, curve in found.items()}
    return {name: population.distance(curve) for name, curve in back.items()}


def cases_of(quick: bool) -> list[tuple[str, ...]]:
    """Shape, number of the population, records, epsilon and repetition."""
    return [
        (population.shape, str(number), str(n), epsilon, str(repetition))
        for repetition in range(REPETITIONS if quick else OF_CONSTANTS)
        for n in ((300,) if quick else (300, 1_000, 5_000))
        for epsilon in (("1",) if quick else ("0.3", "1", "3"))
        for number, population in enumerate((*HELD_OUT, *CONSTANTS))
        if repetition < REPETITIONS or population in CONSTANTS
    ]


def distances(path: Path, cases: list[tuple[str, ...]]) -> list[dict[str, str]]:
    """The distance of every way in each case, with those that the file has already."""

    def measured(_: str, number: str, n: str, epsilon: str, repetition: str) -> list[object]:
        found = compared((*HELD_OUT, *CONSTANTS)[int(number)], int(n), epsilon, int(repetition))
        return [round(found[way], 6) for way in WAYS]

    return add_rows(path, ("shape", "number", "n", "epsilon", "repetition"), WAYS, cases, measured)


def table_of_ways(path: Path, quick: bool) -> list[list[Any]]:
    """Measure what the file has not, and give the rows of the comparison: of a shape and a way, over all cells.

    The standard error of a geometric mean is over repetitions; a cell is a population with a size and an epsilon.
    """
    logs: dict[tuple[str, str], dict[Any, list[float]]] = {}
    for row in distances(path, cases_of(quick)):
        for way in WAYS[1:]:
            constant = int(row["number"]) >= len(HELD_OUT)
            cells = logs.setdefault((row["shape"] + " constants" * constant, way), {})
            cell = cells.setdefault((row["number"], row["n"], row["epsilon"]), [])
            cell.append(float(np.log(float(row[way]) / float(row[WAYS[0]]))))
    return [[*case, *_summary(np.array(list(cells.values())))] for case, cells in logs.items()]


def _summary(cells: Floats) -> list[Any]:
    """Cells, geometric mean ratio, its standard error, and the cells that are worse by 5 % beyond three standard errors.

    The spread between repetitions is taken as the same in all cells of a shape.
    """
    error = float(np.sqrt(cells.var(axis=1, ddof=1).mean() / cells.shape[1]))
    ratio = float(np.exp(cells.mean()))
    worse = int((cells.mean(axis=1) - 3 * error > np.log(1.05)).sum())
    return [len(cells), round(ratio, 4), round(ratio * error / len(cells) ** 0.5, 4), worse]
