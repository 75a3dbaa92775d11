"""A fitted curve at any point, with its value and the band around it."""

from __future__ import annotations

from typing import Any

import numpy as np

from isotone.array_types import Bools, Floats
from isotone.curves.arrays import numbers_of, only_column, row_count
from isotone.curves.bands.band import Band
from isotone.curves.bands.measured_curve import MeasuredSums, no_band
from isotone.curves.curve import Curve
from isotone.curves.estimator import PrivateEstimator
from isotone.curves.grids import Grid
from isotone.errors import InputError
from isotone.privacy.checks import one_of

__all__ = ["SEVERAL", "EvaluatedCurve"]

SEVERAL = " Reshape your data; for several features, see PrivatePosetRegression.from_features."
"""A hint where X has several columns."""


class EvaluatedCurve(PrivateEstimator):
    """An estimator that tells about its released curve."""

    out_of_bounds: str
    curve_: Curve
    grid_: Grid
    method_: str
    measured_: MeasuredSums | None
    _predictions: tuple[float, float]
    _y_ends: tuple[float, float]

    def predict(self, T: Any) -> Floats:
        """The curve at ``T`` (one dimension or one column). Missing stays missing."""
        inside, missing = self._places(T)
        curve, grid = self.curve_, self.grid_
        if curve.interpolated:
            values = np.interp(inside, grid.positions(curve.knots), curve.values)
        else:
            values = curve.at(grid.snap(inside))
        low, high = self._predictions
        return np.where(missing, np.nan, low + (high - low) * values)

    def band(self, X: Any, confidence: float = 0.95, kind: str = "population") -> Band:
        """Lower and upper ends of a band around the curve at ``X``, as a pair of arrays.

        It is made of the released noisy sums alone, and costs nothing. ``X`` counts as the point of the public grid that is
        nearest. For squared and logistic loss with ``method="auto"``, whatever the loss or ``output``:

        - "population": with probability ``confidence`` at least, the mean of ``y`` in the population lies inside at all
          points at once, for any number of records. Needs records that are independent given ``x``, one for each unit, and a mean that
          rises (or falls) with ``x`` as declared. Proof: docs/theory/bands.md, section 2.
        - "records": the same for the isotonic fit to these very records in the same bins, where noise is all that is
          uncertain. Needs nothing (section 3).
        - "credible": the central part of the posterior, point by point. A belief of the model that holds on average over
          curves like its priors. It guarantees nothing (section 4).

        The released curve is usually inside, and may be outside.
        """
        inside, missing = self._places(X)
        if self.measured_ is None:
            raise no_band(self.method_)
        found = self.measured_.band(confidence, kind).at(self.grid_.snap(inside))
        low, high = self._y_ends
        ends = (np.where(missing, np.nan, low + (high - low) * end) for end in found)
        return Band(*ends)

    def _places(self, T: Any) -> tuple[Floats, Bools]:
        """Points as numbers, and which of them have no value."""
        self._require_fit()
        beyond_is = self._out_of_bounds()
        row_count(T, "X", SEVERAL)
        x = numbers_of(only_column(T, "X"), public=True)
        grid = self.grid_
        beyond = (x < float(grid.low)) | (x > float(grid.high))
        if beyond_is == "raise" and beyond.any():
            raise InputError(
                f"Some points lie outside bounds=({grid.low}, {grid.high}). Use out_of_bounds='clip' or 'nan'."
            )
        missing = np.isnan(x) | (beyond if beyond_is == "nan" else False)
        return np.where(np.isnan(x), float(grid.low), x), missing

    def _out_of_bounds(self) -> str:
        return one_of(self.out_of_bounds, "out_of_bounds", ("clip", "nan", "raise"))
