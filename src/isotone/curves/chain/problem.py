"""What is public about one fit on a chain."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from isotone.curves.grids import Grid
from isotone.curves.problem import RegressionProblem
from isotone.curves.shapes.monotone import Monotone
from isotone.curves.shapes.shape import CurveShape
from isotone.errors import InputError
from isotone.privacy.checks import one_of

__all__ = ["MANY", "METHODS", "TREE_POINTS", "ChainProblem", "usual_points"]

METHODS = ("auto", "additive", "threshold", "baseline", "bins")
OUTPUTS = ("population", "records")
MANY = 5_000
"""From this product of epsilon and records on there is much to be found: sizes and shares follow it."""
MOST_BINS = 4096
"""A limit of memory for bins with many values each, which only an epsilon without meaning can reach."""
TREE_POINTS = 4096
"""Points of ``x`` when the user gives no grid, but for the baseline and for shapes."""


def usual_points(method: str, shape: CurveShape | None = None) -> int:
    """The number of points of ``x`` when the user gives none."""
    if shape is not None:
        return shape.points
    return Monotone.points if method == "baseline" else TREE_POINTS


@dataclass(frozen=True)
class ChainProblem(RegressionProblem):
    """A monotone curve on the points of ``grid``, of a ``shape`` if that is given.

    ``output`` is what means are to estimate.
    """

    methods: ClassVar[tuple[str, ...]] = METHODS

    grid: Grid
    shape: CurveShape | None = field(default=None, kw_only=True)
    output: str = field(default="population", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of(self.output, "output", OUTPUTS)
        if self.shape is not None and self.method == "bins":
            raise InputError(
                "Bins have no shape but rising. Use method='auto', which knows the shape, or 'threshold' for the published tree."
            )
        if self.shape is not None and not self.grid.even:
            raise InputError("Shapes need evenly spaced points: give x_grid as a number, not as a list.")

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
