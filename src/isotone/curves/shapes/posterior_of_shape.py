"""Means and probabilities that bend one way, or have a bounded slope: the posterior mean of such curves."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from isotone.curves.chain.posterior_fit import PosteriorFit, spread_of
from isotone.curves.chain.problem import ChainProblem
from isotone.curves.circuits.selection import CurveDraws
from isotone.curves.curve import Curve, CurveMechanism, RiskBound
from isotone.curves.measure import NoisySums
from isotone.curves.posterior.posterior import values_of_bins
from isotone.curves.posterior.shaped_chain import ShapedChain
from isotone.curves.records import Records
from isotone.curves.shapes.graphs import refuse_many_edges
from isotone.curves.shapes.lipschitz import Lipschitz
from isotone.errors import InputError

__all__ = ["PosteriorOfShape"]

STEPS = 128
"""The least number of steps of the grid of values, if none is given."""
ROUNDINGS = 16
"""More than the units in the last place that a distance of two released numbers may be off."""


@dataclass(frozen=True)
class PosteriorOfShape(CurveMechanism):
    """The posterior mean of all curves of a shape, given noisy sums. States of ``chain`` carry the shape.

    ``inner`` measures, on the points of the shape. All the rest is post-processing.

    Guarantee: that of ``inner`` (docs/theory/curves.md, section 8.2).
    Error: ``error()`` is an estimate, not a bound.
    """

    inner: PosteriorFit
    chain: ShapedChain

    @classmethod
    def of(cls, problem: ChainProblem) -> PosteriorOfShape:
        """The mechanism with sizes for a problem, whose loss is fitted by means and whose shape bends or bounds slopes."""
        shape = problem.shape
        assert shape is not None
        values = problem.value_levels or max(STEPS, shape.values)
        steepest, bounded = 1.0, isinstance(shape, Lipschitz)
        if isinstance(shape, Lipschitz):
            shape.rise(problem.grid, values, problem.height)  # refuses slopes too small for the grid
            steepest = _steepest(shape.slope, problem)
        refuse_many_edges(90 * problem.points * (values + 1), problem.points, values + 1)
        chain = ShapedChain(problem.points, values + 1, steepest, upward=not bounded)
        return cls(problem.setting, problem.points, PosteriorFit.of(problem), chain)

    def draw(self, records: Records, draws: CurveDraws) -> Curve:
        """A curve of the shape."""
        return self.curve(self.inner.measure(records, draws))

    def curve(self, sums: NoisySums) -> Curve:
        """The curve that is made of noisy sums."""
        low, high = (float(end) for end in self.inner.ends)
        values = np.linspace(low, high, self.chain.values)
        found = values_of_bins(sums, values, spread_of(self.inner.labels)).log_likelihood
        width = np.diff(np.r_[sums.starts, self.points])
        log_p = np.repeat((found - found.max(axis=1, keepdims=True)) / width[:, None], width, axis=0)
        return Curve(np.arange(self.points), self.chain.mean(log_p), self.points, interpolated=True)

    def error(self) -> RiskBound:
        """An estimate: that of the measurement."""
        return self.inner.error()


def _steepest(slope: Fraction, problem: ChainProblem) -> float:
    """The largest rise from a point to the next, so that the slope holds for the rounded floats that are released."""
    width = problem.grid.step - _rounding(problem.grid.low, problem.grid.high)
    height = slope * width - _rounding(*problem.loss.values(problem.y_range))
    if height <= 0:
        raise InputError(
            f"On {problem.points} points between {problem.grid.low} and {problem.grid.high} floating-point numbers are too "
            "coarse for a bounded slope: take fewer points (x_grid), or subtract a public number from x and from the bounds."
        )
    return float(min(1, height / problem.height))


def _rounding(low: Fraction, high: Fraction) -> Fraction:
    """More than rounding can change a distance of two numbers from this range, which are a mixture of its ends each."""
    return ROUNDINGS * Fraction(math.ulp(float(max(abs(low), abs(high)))))
