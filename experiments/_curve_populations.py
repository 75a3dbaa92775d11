"""Populations on which curves are compared: those that constants were tuned on, and those that were held out.

A curve is a function of the rank of ``x``, so that it is the same for every design, and of a place that is drawn anew for
every data set, so that no number of bins fits it by chance. The seed of a data set is ``[SEED, population, n, repetition]``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotone.curves.problem import FINE, Grid, Records

__all__ = ["HELD_OUT", "POINTS", "SEED", "TUNED", "UNIT", "Population", "Sample"]

Floats = NDArray[np.floating[Any]]
Reals = NDArray[np.float64]
UNIT = (Fraction(0), Fraction(1))
POINTS = 4096
SEED = 20_261_116
PARTS = 1 << 16
"""The mean at every point of the grid is taken over so many ranks of the population."""


def _logistic(u: Floats, place: float) -> Floats:
    return 1 / (1 + np.exp(-12 * (u - place)))


def _stairs(u: Floats, place: float) -> Floats:
    return 0.1 + 0.2 * np.sum([u > at + place / 5 for at in (0.13, 0.27, 0.5, 0.72)], axis=0)


CURVES: dict[str, Callable[[Floats, float], Floats]] = {
    "logistic": _logistic,
    "linear": lambda u, place: u,
    "step": lambda u, place: 0.2 + 0.6 * (u > place),
    "stairs": _stairs,
    "constant": lambda u, place: 0.3 + 0 * u,
    "scarce": lambda u, place: 0.015 + 0.06 * u * (0.5 + place),
    "usual": lambda u, place: 0.97 - 0.08 * (1 - u) ** 1.5,
    "climb": lambda u, place: 0.2 + 0.5 / (1 + np.exp(-15 * (u - place))),
    # from here on held out
    "square": lambda u, place: u**2,
    "hinge": lambda u, place: np.clip(np.maximum(0.15, 1.7 * (u - place) + 0.15), 0, 1),
    "two steps": lambda u, place: 0.1 + 0.35 * (u > place - 0.2) + 0.45 * (u > place + 0.2),
    "root": lambda u, place: np.sqrt(u),
    "rare": lambda u, place: 0.01 + 0.09 * u**2,
    "dose": lambda u, place: 0.1 + 0.6 / (1 + np.exp(-20 * (u - place))),
    "late": lambda u, place: u**6,
    "plateaus": lambda u, place: 0.5 + 0.22 * np.tanh(30 * (u - place + 0.2)) + 0.22 * np.tanh(30 * (u - place - 0.2)),
    "flat": lambda u, place: 0.7 + 0 * u,
}  # fmt: skip

DESIGNS: dict[str, Callable[[Floats], Floats]] = {
    "uniform": lambda u: u,
    "crowded": lambda u: np.interp(u, [0, 0.05, 0.95, 1], [0, 0.6, 0.63, 1]),
    "exponential": lambda u: np.expm1(6 * u) / np.expm1(6.0),
    "ages": lambda u: np.round(70 * u**1.5) / 70,
    "middle": lambda u: 0.5 + 0.5 * (2 * u - 1) ** 7,
    "heaps": lambda u: np.interp(u, [0, 0.1, 0.35, 0.45, 0.75, 0.85, 1], [0, 0.2, 0.2, 0.5, 0.5, 0.9, 1]),
    "rounded": lambda u: np.round(11 * u**1.2) / 11,
    # from here on held out
    "crowded above": lambda u: 1 - (1 - u) ** 4,
    "two crowds": lambda u: np.where(u < 0.5, 0.1 + 0.2 * u, 0.6 + 0.6 * (u - 0.5)),
    "bell": lambda u: np.interp(u, *_bell()),
    "heaped": lambda u: np.round(14 * u) / 14,
    "both ends": lambda u: 1 / (1 + np.exp(-20 * (2 * u - 1))),
    "skewed": lambda u: u**5,
}


def _bell() -> tuple[Floats, Floats]:
    """Ranks and places of a sum of four uniforms, nearly a normal law."""
    x = np.linspace(0, 1, 513)
    density = np.exp(-0.5 * ((x - 0.5) / 0.12) ** 2)
    rank = np.cumsum(density) / density.sum()
    return np.r_[0.0, rank], np.r_[0.0, x]


@dataclass(frozen=True)
class Sample:
    """One data set: records on the grids, and the true curve at each of them (in the same order).

    The curve is the mean of ``y``, after it was moved into its range, over all people of the population who stand at the
    same point of the grid: what no function of ``x`` can tell is no part of it.
    """

    records: Records
    truth: Floats


@dataclass(frozen=True)
class Population:
    """A curve, a design of ``x``, and the law of ``y``: "labels", or real with "normal", "laplace" or "beta" noise."""

    curve: str
    design: str
    y: str = "labels"

    @property
    def labels(self) -> bool:
        """Whether ``y`` is 0 or 1."""
        return self.y == "labels"

    @property
    def name(self) -> str:
        """The three words of the population."""
        return f"{self.curve}, {self.design}, {self.y}"

    @property
    def number(self) -> int:
        """The number in its seeds."""
        return (FIRST_TUNED + HELD_OUT + LATER_TUNED).index(self)

    def sample(self, n: int, repetition: int) -> Sample:
        """``n`` records, by a seed of their own."""
        rng = np.random.default_rng([SEED, self.number, n, repetition])
        u = rng.random(n)
        truth = np.asarray(CURVES[self.curve](u, float(rng.uniform(0.3, 0.7))), np.float64)
        x = Grid(*UNIT, POINTS).snap(np.asarray(DESIGNS[self.design](u), np.float64))
        levels = Grid(*UNIT, FINE + 1).snap(self._y(truth, rng))
        order = np.lexsort((-levels, x))
        mean = self.means(n, repetition)[x]
        own = self.mean_of_y(truth)  # at the few points that none of the ranks of the means fell on
        mean = np.where(np.isnan(mean), own, mean)
        return Sample(Records(x[order], levels[order], np.ones(n, np.int64)), mean[order])

    def means(self, n: int, repetition: int) -> Reals:
        """The mean of ``y`` at every point of the grid, for the place of one data set; nan where nobody stands."""
        rng = np.random.default_rng([SEED, self.number, n, repetition])
        rng.random(n)  # as a sample does before it draws the place
        u = (np.arange(PARTS) + 0.5) / PARTS
        mean = self.mean_of_y(np.asarray(CURVES[self.curve](u, float(rng.uniform(0.3, 0.7))), np.float64))
        cells = _cells(self.design)
        count = np.bincount(cells, minlength=POINTS)
        with np.errstate(invalid="ignore"):
            return np.bincount(cells, weights=mean, minlength=POINTS) / count

    def mean_of_y(self, truth: Reals) -> Reals:
        """The mean of ``y`` after it was moved into [0, 1], where the curve is ``truth``."""
        return truth if self.y in ("labels", "beta") else np.interp(truth, *_means_in_range(self.y))

    def _y(self, truth: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
        n = truth.size
        if self.y == "labels":
            return (rng.random(n) < truth).astype(np.float64)
        if self.y == "normal":
            return np.asarray(np.clip(truth + rng.normal(0, 0.1, n), 0, 1), np.float64)
        if self.y == "laplace":
            wide = np.where(rng.random(n) < 0.9, 1.0, 6.0)
            return np.asarray(np.clip(truth + wide * rng.laplace(0, 0.05, n), 0, 1), np.float64)
        spread = 4.0  # a beta law of variance truth·(1 − truth)/5
        return rng.beta(np.maximum(spread * truth, 1e-3), np.maximum(spread * (1 - truth), 1e-3))


@cache
def _cells(design: str) -> NDArray[np.int64]:
    """The points of the grid where evenly spaced ranks of a population stand."""
    u = (np.arange(PARTS) + 0.5) / PARTS
    return Grid(*UNIT, POINTS).snap(np.asarray(DESIGNS[design](u), np.float64))


@cache
def _means_in_range(y: str) -> tuple[Reals, Reals]:
    """Values of a curve, and the means of "normal" or "laplace" ``y`` about them after they were moved into [0, 1]."""
    from scipy.special import ndtri

    ranks = (np.arange(4000) + 0.5) / 4000
    if y == "normal":
        noises = [(1.0, 0.1 * ndtri(ranks))]
    else:
        laplace = np.where(ranks < 0.5, np.log(2 * ranks), -np.log(2 * (1 - ranks)))
        noises = [(0.9, 0.05 * laplace), (0.1, 0.3 * laplace)]
    at = np.linspace(0, 1, 401)
    return at, np.asarray(
        sum(weight * np.clip(at[:, None] + noise, 0, 1).mean(axis=1) for weight, noise in noises)
    )


FIRST_TUNED = (
    Population("logistic", "uniform"),
    Population("linear", "uniform"),
    Population("step", "uniform"),
    Population("stairs", "uniform"),
    Population("constant", "uniform"),
    Population("linear", "crowded"),
    Population("step", "crowded"),
    Population("logistic", "uniform", "normal"),
    Population("step", "uniform", "normal"),
)
LATER_TUNED = (
    Population("logistic", "exponential"),
    Population("linear", "ages"),
    Population("stairs", "middle"),
    Population("step", "heaps"),
    Population("logistic", "middle", "beta"),
    Population("scarce", "uniform"),
    Population("usual", "ages"),
    Population("climb", "rounded"),
)
TUNED = FIRST_TUNED + LATER_TUNED
"""Populations that constants may be chosen with. The later ones have more kinds of crowded and heaped ``x``, and labels that
are rare on one side."""

HELD_OUT = (
    Population("square", "uniform"),
    Population("hinge", "crowded above"),
    Population("two steps", "two crowds"),
    Population("root", "bell"),
    Population("rare", "uniform"),
    Population("dose", "heaped"),
    Population("late", "both ends"),
    Population("plateaus", "skewed"),
    Population("flat", "two crowds"),
    Population("square", "bell", "laplace"),
    Population("hinge", "two crowds", "beta"),
    Population("two steps", "uniform", "normal"),
)
"""Populations that no constant was chosen with: they are reported, and nothing else."""
