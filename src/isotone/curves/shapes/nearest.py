"""Means and probabilities with a required shape: the posterior of a rising curve, and the curve of the shape next to it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isotone.curves.chain.posterior_fit import PosteriorFit, curve_of
from isotone.curves.chain.problem import ChainProblem
from isotone.curves.circuits.circuit import cheapest
from isotone.curves.circuits.selection import CurveDraws
from isotone.curves.curve import Curve, CurveMechanism, RiskBound
from isotone.curves.records import Records
from isotone.curves.shapes.curve_draws import CurveDraw, PieceDraw

__all__ = ["NearestOfShape"]

PRECISION = 1 << 40
"""Squared distances are counted in whole numbers of this part."""
SOME = 1e-3
"""Points without records count as much as this share of the most crowded one."""


@dataclass(frozen=True)
class NearestOfShape(CurveMechanism):
    """The curve of a shape that is nearest to the posterior of a rising curve, in squares weighted by records.

    ``inner`` measures, on the points of the shape. All curves of the shape are those that ``shape`` could draw; the
    nearest of them is found exactly, so it has the shape exactly. It is post-processing.

    Guarantee: that of ``inner`` (docs/theory/curves.md, section 8.2).
    Error: ``error()`` is an estimate, not a bound.
    """

    inner: PosteriorFit
    shape: CurveDraw | PieceDraw

    @classmethod
    def of(cls, problem: ChainProblem) -> NearestOfShape:
        """The mechanism with sizes for a problem, whose loss is fitted by means."""
        assert problem.shape is not None
        return cls(problem.setting, problem.points, PosteriorFit.of(problem), problem.shape.drawn(problem))

    def draw(self, records: Records, draws: CurveDraws) -> Curve:
        """A curve of the shape."""
        sums = self.inner.measure(records, draws)
        found = self.inner.posterior(sums, self.inner.levels)
        wanted = curve_of(sums, found, self.inner.output, self.inner.ends, even=True).at(
            np.arange(self.points)
        )
        width = np.diff(np.r_[sums.starts, self.points])
        density = np.repeat((found.ones + found.zeros) / width, width)
        weight = density / max(float(density.max()), 1e-9) + SOME
        columns = np.linspace(0.0, 1.0, self.shape.table.shape[1])
        apart = weight[:, None] * (columns[None, :] - wanted[:, None]) ** 2
        return self.shape.chosen(np.rint(PRECISION * apart).astype(np.int64), cheapest)

    def error(self) -> RiskBound:
        """An estimate: that of the measurement, and half a step of values."""
        measured = self.inner.error()
        return RiskBound(measured.noise, measured.per_record + self.shape.step / 2, proved=False)
