"""What is public about one fit on a chain."""

from __future__ import annotations

from dataclasses import dataclass

from isotone.curves.case import Case
from isotone.curves.grids import Grid
from isotone.curves.shapes.shape import CurveShape

__all__ = ["MANY", "ChainCase"]

MANY = 5_000
"""From this product of epsilon and records on there is much to be found: sizes and shares follow it."""
MOST_BINS = 4096
"""A limit of memory for bins with many values each, which only an epsilon without meaning can reach."""


@dataclass(frozen=True)
class ChainCase(Case):
    """A fit of an increasing curve on the points of ``grid``, of a ``shape`` if that is given.

    ``labels`` declares that ``y`` is one of the two ends of its range; ``output`` is what means are to estimate.
    """

    grid: Grid
    shape: CurveShape | None = None
    labels: bool = False
    output: str = "population"

    @property
    def points(self) -> int:
        """The number of points of ``x``."""
        return self.grid.points

    def bins(self, wanted: float, most: int = MOST_BINS) -> int:
        """A number of bins near the one wanted. At least 2, and no more than there are points."""
        return min(self.points, most, max(2, round(wanted)))

    @property
    def evenness(self) -> float:
        """How evenly the loss treats both sides.

        One for losses that treat both sides alike. A quantile far from the median has few records on one
        side.
        """
        slopes = self.slopes
        return 2 * min(slopes.above, slopes.below) / (slopes.above + slopes.below)
