"""The model of a table with few distinct counts.

Which counts, how many categories each, and the evidence.

The model (docs/theory/tables-whole.md, section 4): ``d`` of the ``n`` counts occur, any ``d`` equally likely,
and the categories are spread over them uniformly. Counts that do not occur are empty exactly, which no smooth
model can say. The support is found by backward elimination: fit, drop the counts with
the least evidence, fit again. The most plausible support on the way is kept.
"""

from __future__ import annotations

from math import lgamma, log, pi

import numpy as np
from numpy.typing import NDArray

from isotone.tables.estimate import banded_matrices as bands
from isotone.tables.estimate.smooth import Fit
from isotone.tables.estimate.views import Views

__all__ = ["few_distinct", "fit_on", "unsmoothed"]

_EMPTY = 1e6  # the precision with which an absent count is held at 0


def few_distinct(views: Views) -> Fit:
    """The most plausible support on the way from all counts to one, and the histogram on it."""
    n = len(views.direct) + 1
    support = np.ones(n, dtype=bool)
    best: Fit | None = None
    while True:
        histogram, spread, fitted = fit_on(views, support)
        if np.all(histogram[support] > 0) and (best is None or fitted.evidence > best.evidence):
            best = fitted
        size = int(np.sum(support))
        if size == 1:
            break
        support = _without_weakest(support, histogram, spread)
    assert best is not None  # a single count always has all categories
    return best


def unsmoothed(views: Views) -> NDArray[np.float64]:
    """The histogram that both views tell by themselves: least squares without negative bins and without any model.

    Bins that come out negative are held at 0, and the others are fitted again, until none is negative.
    """
    support = np.ones(len(views.direct) + 1, np.bool_)
    while True:
        histogram, _, _ = fit_on(views, support)
        if np.all(histogram[support] > 0) or np.sum(support) == 1:
            return histogram
        support &= histogram > 0


def _without_weakest(
    support: NDArray[np.bool_], histogram: NDArray[np.float64], spread: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Drop the count with the least evidence for it.

    Of long supports, a few are dropped at once.
    """
    where = np.flatnonzero(support)
    strength = histogram[where] / spread[where]
    weak = int(np.sum(strength < 1.0))
    drop = where[np.argsort(strength, kind="stable")[: max(1, weak // 10, len(where) // 40)]]
    rest = support.copy()
    rest[drop] = False
    return rest


def fit_on(views: Views, support: NDArray[np.bool_]) -> tuple[NDArray[np.float64], NDArray[np.float64], Fit]:
    """Generalised least squares with all counts off the support empty.

    Returns the histogram, its spread and the fit.
    """
    from scipy.special import log_ndtr

    n, size = len(support), int(np.sum(support))
    hold = np.where(support, 0.0, _EMPTY)
    matrix = np.zeros((3, 2 * (n - 1)))
    dual, total = matrix[:, 0::2], matrix[:, 1::2]
    dual[0], dual[2], dual[1] = -views.covariance[0], -views.covariance[1], 1.0
    total[0] = views.precision + hold[:-1] + hold[1:]
    total[2, :-1] = -hold[1:-1]
    right = np.zeros(2 * (n - 1))
    right[0::2] = views.indirect
    right[1::2] = views.precision * views.direct
    right[-1] += hold[-1] * views.size
    system = bands.factor(matrix)
    cumulative = system.solve(right)[1::2]
    inverse = system.inverse()
    variance = np.maximum(inverse[0, 1::2], 0.0)
    between = np.zeros(n)
    between[1:-1] = -2 * inverse[2, 1:-2:2]
    spread = np.sqrt(np.maximum(np.append(variance, 0) + np.append(0, variance) + between, 1e-12))
    histogram = np.diff(cumulative, prepend=0.0, append=float(views.size))
    histogram[~support] = 0.0
    histogram *= views.size / max(float(np.sum(histogram)), 1e-300)
    misfit, _ = views.misfit(np.cumsum(histogram)[:-1])
    held = (n - size) * log(_EMPTY)
    evidence = (
        -misfit
        - 0.5 * (system.log_determinant - held)
        + 0.5 * (size - 1) * log(2 * pi)
        + float(np.sum(log_ndtr(histogram[support] / spread[support])))  # the part with no negative bin
        + lgamma(size)
        - size * log(max(views.size, 1))  # once for N itself, which the smooth models explain too
        - log(size * (size + 1))
        - (lgamma(n + 1) - lgamma(size + 1) - lgamma(n - size + 1))
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(histogram)
    return histogram, spread, Fit(logs, histogram, evidence)
