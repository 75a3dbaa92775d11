"""What the steward should know about the contents of the columns. Nothing here is private."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from isotone.release.checking.findings import numbers
from isotone.release.kinds.surface.section import SurfaceSection

if TYPE_CHECKING:
    from isotone.release.spec import Spec

__all__ = ["check_surface"]


def check_surface(spec: Spec, source: Any) -> list[str]:
    """Values that are no numbers or outside their public ranges."""
    surface = spec.said(SurfaceSection)
    ranges = [*zip(surface.x, surface.bounds, strict=True), (surface.y, surface.y_range)]
    lines: list[str] = []
    for column, (low, high) in ranges:
        lines += numbers(source, column, float(Fraction(low)), float(Fraction(high)), whole=False)
    return lines
