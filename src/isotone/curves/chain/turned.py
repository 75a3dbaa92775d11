"""Mechanisms for increasing curves, applied with an axis running the other way."""

from __future__ import annotations

from dataclasses import dataclass

from isotone.curves.circuits.selection import CurveDraws
from isotone.curves.curve import Curve, CurveMechanism, RiskBound
from isotone.curves.grids import FINE
from isotone.curves.records import Records

__all__ = ["TurnedMechanism"]


@dataclass(frozen=True)
class TurnedMechanism(CurveMechanism):
    """A mechanism for increasing curves, applied with ``x`` or ``y`` or both running the other way.

    Guarantee: that of the inner mechanism, as turning changes record by record.
    """

    inner: CurveMechanism
    mirror: bool
    upside_down: bool

    def draw(self, records: Records, draws: CurveDraws) -> Curve:
        """The inner curve, turned back."""
        if self.upside_down:
            records = records.upside_down(FINE)
        if self.mirror:
            records = records.mirrored(self.points)
        curve = self.inner.draw(records, draws)
        if self.upside_down:
            curve = curve.upside_down()
        return curve.mirrored() if self.mirror else curve

    def error(self) -> RiskBound:
        """That of the inner mechanism."""
        return self.inner.error()
