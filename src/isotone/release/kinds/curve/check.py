"""What the steward should know about the contents of the columns x and y. Nothing here is private."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from isotone.release.checking.findings import numbers
from isotone.release.kinds.curve.section import CurveSection

if TYPE_CHECKING:
    from isotone.release.spec import Spec

__all__ = ["check_curve"]


def check_curve(spec: Spec, source: Any) -> list[str]:
    """Values of x and y that are no numbers or outside their public ranges."""
    curve = spec.said(CurveSection)
    lines: list[str] = []
    for column, (low, high) in ((curve.x, curve.bounds), (curve.y, curve.y_ends)):
        lines += numbers(source, column, float(Fraction(low)), float(Fraction(high)), whole=False)
    return lines
