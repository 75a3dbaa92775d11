"""Counts that stand out from a smooth ground, as round numbers do where people estimate."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from isotone.tables.estimate.distinct import fit_on
from isotone.tables.estimate.views import Views

__all__ = ["stand_out"]

_AROUND = 7
_FAR = 3.5


def stand_out(views: Views) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """The counts that stand out, and the median around each.

    A count stands out if it differs from the median of the seven around it, the ground, by more than 3.5
    standard deviations.

    The deviation is that of least squares without any model, and of Poisson scatter about the median. A
    proposal only: whether a model with these spikes is better, its evidence tells
    (docs/theory/tables-whole.md, section 3).
    """
    from scipy.ndimage import median_filter

    n = len(views.direct) + 1
    histogram, spread, _ = fit_on(views, np.ones(n, np.bool_))
    ground = np.maximum(median_filter(histogram, _AROUND, mode="nearest"), 0.0)
    far = np.abs(histogram - ground) > _FAR * np.sqrt(spread**2 + ground + 1)
    return np.asarray(far), np.asarray(ground, np.float64)
