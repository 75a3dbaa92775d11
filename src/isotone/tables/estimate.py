"""The histogram of a table from both noisy measurements, by a mixture of models weighted by their evidence.

Empirical Bayes (docs/theory/tables-whole.md, sections 3 and 4): smooth intensities of either order and many
scales, with histograms that scatter about them a little or a lot, with or without spikes; and tables with few
distinct counts. The error of the view through the table depends on the histogram itself, so everything is
done twice. Only private outputs and public numbers enter: all of this is post-processing.
"""

from __future__ import annotations

from dataclasses import replace
from math import lgamma, log, pi
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from isotone.tables.smooth import (
    DISPERSIONS,
    DirectViews,
    Fit,
    FittedModel,
    GaussianViews,
    ModelSearch,
    Shapes,
    Views,
    factor,
)

__all__ = [
    "HistogramEstimate",
    "estimate_histogram",
    "few_distinct",
    "fit_on",
    "stand_out",
    "unsmoothed",
]


# The model of a table with few distinct counts.
#
# Which counts, how many categories each, and the evidence.
#
# The model (docs/theory/tables-whole.md, section 4): ``d`` of the ``n`` counts occur, any ``d`` equally likely,
# and the categories are spread over them uniformly. Counts that do not occur are empty exactly, which no smooth
# model can say. The support is found by backward elimination: fit, drop the counts with
# the least evidence, fit again. The most plausible support on the way is kept.

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
    system = factor(matrix)
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


# Counts that stand out from a smooth ground, as round numbers do where people estimate.

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


_FAINT = 0.5  # categories on a count, at least, when the error of a view is judged
_TELLING = (
    400.0  # categories times the cube of ε (at most 1), at least, before counts may be said to be absent
)
_ROUGH: Shapes = ((1, 5.0, False), (1, 1.0, False))
_BENDING: Shapes = tuple((2, scale, False) for scale in (2.0, 0.6, 0.2, 0.06, 0.02, 0.005))
_LONG: Shapes = tuple((2, scale, False) for scale in (0.0015, 0.0004, 0.0001))  # for more than 100 counts
_LEVEL: Shapes = tuple((1, scale, False) for scale in (0.2, 0.05, 0.01))
_FALLING: Shapes = tuple((2, scale, True) for scale in (2.0, 0.6, 0.2, 0.06))
_FREE = 1.0  # the scale of first differences from which on the intensity may jump anywhere
_SCATTERED = 30.0  # the dispersion from which on the histogram may jump anywhere
_BY_ITSELF = 2 / 3  # of the histogram of such a table, what is taken from a fit without any model
_BARE = 0.05  # at most this share of the categories outside the spikes: nearly all mass is in spikes


class HistogramEstimate(NamedTuple):
    """A histogram, and the model it comes from, in words."""

    histogram: NDArray[np.float64]
    model: str


def _shapes(n: int) -> Shapes:
    """All shapes for ``n`` counts, from rough to smooth.

    Neighbours in the list are alike, but for the last ones, which fall.
    """
    shapes = _ROUGH + _BENDING + (_LONG if n > 100 else ()) + _LEVEL + _FALLING
    return tuple(shape for shape in shapes if n > shape[0])


def estimate_histogram(views: Views | GaussianViews) -> HistogramEstimate:
    """The histogram of a table of at least two counts and at least one category.

    By all models whose features the noise of the views leaves to be seen. Gaussian noise blurs spikes and gaps beyond recognition.
    """
    shapes = _shapes(len(views.believed))
    smooth = ModelSearch(views, shapes).best(Fit.start(views.believed))
    distinct = _few_distinct(views)
    chosen = distinct if distinct and distinct.evidence > smooth.evidence else smooth.fit
    views = views.given(np.maximum(chosen.histogram, _FAINT))
    smooth = _blended(views, shapes, smooth)
    distinct = _few_distinct(views)
    spikes, spiked = _with_spikes(views, shapes, smooth.fit)
    if distinct and distinct.evidence > smooth.evidence and _bare(spikes, spiked):
        spiked = None  # if nearly all mass is in spikes, prefer the few-distinct-counts model
    words = _in_words(shapes, smooth)
    if spiked and spiked.evidence > smooth.evidence:
        smooth, words = spiked, f"{_in_words(shapes, spiked)}, spikes {int(np.sum(spikes))}"
    if distinct and distinct.evidence > smooth.evidence:
        number = int(np.sum(distinct.histogram > 0))
        return _told(distinct.histogram, views.size, f"{number} distinct count" + "s" * (number > 1))
    if smooth is not spiked and _rough(shapes, smooth) and type(views) is Views and views.complete:
        words += ", mixed with a fit without a model"
        by_itself = unsmoothed(views)
        return _told((1 - _BY_ITSELF) * smooth.fit.histogram + _BY_ITSELF * by_itself, views.size, words)
    return _told(smooth.fit.histogram, views.size, words)


def _rough(shapes: Shapes, chosen: FittedModel) -> bool:
    """Whether the best model is one that lets a histogram jump anywhere, as that of a comb does."""
    order, scale, _ = shapes[chosen.shape]
    return (order == 1 and scale >= _FREE) or DISPERSIONS[chosen.dispersion] >= _SCATTERED


def _few_distinct(views: Views | GaussianViews) -> Fit | None:
    """The model of few distinct counts, where there are categories enough to say that all others are absent."""
    if isinstance(views, GaussianViews):
        return None
    telling = views.size * min(float(np.max(views.rates)), 1.0) ** 3 >= _TELLING
    return few_distinct(views) if telling else None


def _with_spikes(
    views: Views | GaussianViews, shapes: Shapes, smooth: Fit
) -> tuple[NDArray[np.bool_], FittedModel | None]:
    """The counts that may be spikes, and the best model in which they are.

    The model is None if there are none.
    """
    if isinstance(views, (GaussianViews, DirectViews)):
        return np.zeros(len(views.believed), np.bool_), None
    spikes, ground = stand_out(views)
    if not 0 < np.sum(spikes) < len(spikes) / 2:
        return spikes, None
    logs = np.log(np.maximum(ground, _FAINT))
    start = replace(smooth, logs=logs)
    search = ModelSearch(views, shapes, spikes)
    return spikes, search.blended(search.best(start))


def _blended(views: Views | GaussianViews, shapes: Shapes, previous: FittedModel) -> FittedModel:
    """The smooth models under better errors, from the one that was best under the first idea of them."""
    search = ModelSearch(views, shapes)
    return search.blended(search.from_previous(previous))


def _bare(spikes: NDArray[np.bool_], spiked: FittedModel | None) -> bool:
    """Whether next to nothing is left between the spikes."""
    return spiked is not None and bool(
        np.sum(spiked.fit.histogram[~spikes]) < _BARE * np.sum(spiked.fit.histogram)
    )


def _in_words(shapes: Shapes, chosen: FittedModel) -> str:
    order, scale, falling = shapes[chosen.shape]
    scaled = f"{scale:g}" + " that falls" * falling
    return f"differences of order {order} and scale {scaled}, dispersion {DISPERSIONS[chosen.dispersion]:g}"


def _told(histogram: NDArray[np.float64], size: int, model: str) -> HistogramEstimate:
    return HistogramEstimate(histogram * (size / float(np.sum(histogram))), model)
