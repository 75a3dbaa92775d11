"""From both noisy measurements of a table to its histogram, and to estimates and intervals of each true count.

The histogram of a table from both noisy measurements, by a mixture of models weighted by their evidence.

Empirical Bayes (docs/theory/tables-whole.md, sections 3 and 4): smooth intensities of either order and many
scales, with histograms that scatter about them a little or a lot, with or without spikes; and tables with few
distinct counts. The error of the view through the table depends on the histogram itself, so everything is
done twice. Only private outputs and public numbers enter: all of this is post-processing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from math import ceil, lgamma, log, pi, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isotone.noise import UnevenLine
from isotone.tables.matrices.geometric import Rates, spread, step_rates
from isotone.tables.smooth import (
    DISPERSIONS,
    SILENT,
    DirectViews,
    Fit,
    FittedModel,
    GaussianViews,
    ModelSearch,
    Shapes,
    Views,
    factor,
)

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


# What a noisy count says about the true count of its category: posteriors, intervals, and estimates without bias.

# Intervals of true counts from their posteriors.

_KEPT = 0.92  # the share of intervals of 95 % that a release is to keep
_SPREADS = 4.0  # standard deviations of chance that still leave so many
_TOLD = 20.0  # times the square of the ε of a step: the share of categories that tell what their prior is
_FEWEST = 200  # categories: with fewer, no content leaves room for chance


def content(level: float, size: int) -> float:
    """How much of its posterior an interval of this level has, where ``size`` categories share a prior.

    Chance alone leaves out more than one means to where categories are few. Intervals that miss less make up for it: those of
    95 % have the upper limit of Wilson for 92 %, so that four standard deviations of chance leave 92 % of them. This is a public number.

    >>> [round(content(0.95, size), 4) for size in (50, 200, 400, 1000)]
    [0.969, 0.969, 0.9594, 0.95]
    """
    size = max(size, _FEWEST)
    square = _SPREADS**2 / size
    chance = sqrt(square * (_KEPT * (1 - _KEPT) + square / 4))
    limit = (_KEPT + square / 2 + chance) / (1 + square)
    return 1 - (1 - level) * min(1.0, (1 - limit) / 0.05)


def shortest(law: NDArray[np.float64], level: float) -> tuple[int, int]:
    """The shortest interval of whole numbers that has ``level`` of a law, and of equally short ones the likeliest.

    >>> shortest(np.array([0.04, 0.5, 0.46]), 0.95)
    (1, 2)
    """
    below = np.concatenate([[0.0], np.cumsum(law)])
    low = np.arange(len(law))
    high = np.maximum(np.searchsorted(below, below[:-1] + level), low + 1)
    high[0] = min(high[0], len(law))  # all counts, if rounding leaves them less
    low, high = low[high <= len(law)], high[high <= len(law)]
    best = np.argmin(high - low - (below[high] - below[low]))
    return int(low[best]), int(high[best]) - 1


def is_shortest(law: NDArray[np.float64], low: int, high: int, level: float, loose: float) -> bool:
    """Whether an interval is the shortest of a law that is known up to ``loose``."""
    below = np.concatenate([[0.0], np.cumsum(law)])
    width, own = high + 1 - low, below[high + 1] - below[low]
    likeliest, shorter = (float(np.max(below[w:] - below[: len(below) - w])) for w in (width, width - 1))
    return own >= max(level, likeliest) - loose and (width == 1 or shorter < level + loose)


# What a noisy count says about the true count of its category, given the histogram of all of them.

_EVEN, _ONE_OFF = 30, 40
"""Categories that are added to those believed in, before intervals are read off: spread evenly over all counts, and one count off
those believed in. Without them a prior that is too sharp in one release leaves out too many. Large tables do not notice."""


@dataclass(frozen=True, eq=False)
class Beliefs(ABC):
    """The posteriors of true counts.

    The prior are the probabilities, with a few doubtful categories more: a few categories say little about others.
    """

    probabilities: NDArray[np.float64]
    size: int

    @abstractmethod
    def _log_noise(self, k: int) -> NDArray[np.float64]:
        """The log probability of reading ``k`` from each true count, up to a constant."""

    def prior(self) -> NDArray[np.float64]:
        """The probabilities with their doubt."""
        ends = np.pad(self.probabilities, 1, mode="edge")
        one_off = (ends[:-2] + ends[2:]) / 2
        doubtful = _EVEN / len(one_off) + _ONE_OFF * one_off
        return (self.size * self.probabilities + doubtful) / (self.size + _EVEN + _ONE_OFF)

    def posterior(self, k: int, prior: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """The probabilities of the true count of a category that reads ``k``."""
        with np.errstate(divide="ignore"):
            logs = np.log(self.prior() if prior is None else prior) + self._log_noise(k)
        weights = np.exp(logs - np.max(logs))
        return weights / np.sum(weights)

    def mean(self, k: int) -> float:
        """The posterior mean of a category that reads ``k``, without doubt in the probabilities.

        Doubt widens intervals, but would pull the means of small tables to the middle of the range.
        """
        return float(self.posterior(k, self.probabilities) @ np.arange(len(self.probabilities)))

    def means(self, noisy: NDArray[np.int64]) -> NDArray[np.float64]:
        """The posterior mean of each reading."""
        return self._each(noisy, lambda k: [self.mean(k)])[0]

    def intervals(self, noisy: NDArray[np.int64], level: float) -> NDArray[np.int64]:
        """For each reading, the ends of the shortest interval with what an interval of this level has of the posterior."""
        share = self.content(level)
        return self._each(noisy, lambda k: shortest(self.posterior(k), share)).astype(np.int64)

    def content(self, level: float) -> float:
        """How much of its posterior an interval of this level has: more where categories are few, or where noise lets few of them tell."""
        return content(level, self.telling)

    @property
    def telling(self) -> int:
        """How many categories tell what the prior is, a public number."""
        return self.size

    def _each(self, noisy: NDArray[np.int64], read: Callable[[int], Any]) -> NDArray[np.float64]:
        """What ``read`` says of each noisy count, computed once for equal ones."""
        seen, where = np.unique(noisy, return_inverse=True)
        result = np.array([read(int(k)) for k in seen])
        return result.T[:, where] if len(seen) else np.zeros((2, 0))


@dataclass(frozen=True, eq=False)
class GeometricBeliefs(Beliefs):
    """From clamped noisy counts with geometric noise, whose steps have ``rates``."""

    rates: Rates
    step: float

    @property
    def telling(self) -> int:
        """All categories, and fewer where the ε of a step is small: there their noisy counts leave much of the prior open."""
        return int(self.size * min(1.0, _TOLD * self.step**2))

    @cached_property
    def _place(self) -> NDArray[np.float64]:
        """The sum of the rates up to each count."""
        return np.concatenate([[0.0], np.cumsum(step_rates(len(self.probabilities), self.rates))])

    def _log_noise(self, k: int) -> NDArray[np.float64]:
        return -np.abs(self._place - self._place[k])


@dataclass(frozen=True, eq=False)
class GaussianBeliefs(Beliefs):
    """From noisy counts, any whole numbers, with discrete Gaussian noise of weight ``exp(−d²/(2·variance))``."""

    variance: float

    def _log_noise(self, k: int) -> NDArray[np.float64]:
        apart = np.asarray(k - np.arange(len(self.probabilities)), np.float64)
        return -(apart**2) / (2 * self.variance)


# An unbiased estimate of each true count from its noisy count alone, and its standard deviation.
#
# Where all steps of the noise have the same rate it is the noisy count itself. Otherwise noise is lopsided next to a step of
# another rate, and the inverse of the noise matrix says what to add (docs/theory/tables-whole.md, section 2). The standard
# deviation depends on the true count, which is private: :func:`largest_deviation` is its maximum over all counts, a
# public number.

_TAIL = 30.0  # a noisy count is further away, by this sum of rates, with a probability of e^-30


def unbiased(noisy: NDArray[np.int64], line: UnevenLine) -> NDArray[np.float64]:
    """For each noisy count, which may be any whole number, an estimate whose mean is the true count.

    >>> from fractions import Fraction
    >>> unbiased(np.array([-3, 0, 9]), UnevenLine(Fraction(1), (1, 1), 1))
    array([-3.,  0.,  9.])
    """
    shift = _shifts(line)
    inside = (noisy >= 0) & (noisy < len(shift))
    return np.asarray(noisy + np.where(inside, shift[np.clip(noisy, 0, len(shift) - 1)], 0.0), np.float64)


def largest_deviation(line: UnevenLine) -> float:
    """The largest standard deviation of :func:`unbiased` over all true counts."""
    rate = min(float(line.unit) * line.outside, SILENT)
    a = np.exp(-rate)
    plain = float(np.sqrt(2 * a) / -np.expm1(-rate))
    if set(line.weights) <= {line.outside}:
        return plain
    return max(plain, float(np.sqrt(np.max(variances(line)))))


def deviation_bound(line: UnevenLine, other: UnevenLine) -> float:
    """At least the standard deviation of :func:`unbiased` on every line each of whose steps is that of one of two lines.

    The variance for a true count is the mean, over its noisy counts, of a function of the two steps beside a noisy count (docs/theory/tables-whole.md,
    section 2). So it is at most the largest value of that function.
    """
    largest = 0.0
    for below, above in product((line, other), repeat=2):
        down, up = _corrections(_steps(below)[0], _steps(above)[1])
        largest = max(largest, float(np.max(down + up + (down - up) ** 2)))
    return sqrt(largest)


def error_law(line: UnevenLine, count: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """How far :func:`unbiased` is from a true count on the line, and with which probabilities.

    >>> from fractions import Fraction
    >>> errors, law = error_law(UnevenLine(Fraction(1), (1, 1), 1), 2)
    >>> bool(abs(law @ errors) < 1e-9), round(float(law.sum()), 9)
    (True, 1.0)
    """
    unit, top = float(line.unit), len(line.weights)
    room = ceil(_TAIL / (unit * min((line.outside, *line.weights))))
    x = np.arange(count - room, count + room + 1)
    inside = np.clip(x, 0, top)
    place = unit * (line.positions[inside] + line.outside * (x - inside).astype(np.float64))
    rate = min(unit * line.outside, SILENT)
    weights = np.where(x == inside, _steps(line)[2][inside], np.tanh(rate / 2))
    return unbiased(x, line) - count, weights * np.exp(-np.abs(place - place[room]))


def _steps(line: UnevenLine) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """The rates below and above each count, and the weights of the columns of the noise without clamping."""
    edge = [float(line.unit) * line.outside]
    below = np.minimum(np.concatenate([edge, line.rates]), SILENT)
    above = np.minimum(np.concatenate([line.rates, edge]), SILENT)
    return below, above, _weights(below, above)


def _weights(below: NDArray[np.float64], above: NDArray[np.float64]) -> NDArray[np.float64]:
    return -np.expm1(-below - above) / ((1 + np.exp(-below)) * (1 + np.exp(-above)))


def _corrections(
    below: NDArray[np.float64], above: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What the steps below and above each noisy count take from it, and add to it."""
    weights = _weights(below, above)
    down, up = (np.exp(-rate) / -np.expm1(-2 * rate) / weights for rate in (below, above))
    return down, up


def _shifts(line: UnevenLine) -> NDArray[np.float64]:
    below, above, _ = _steps(line)
    down, up = _corrections(below, above)
    return down - up


def variances(line: UnevenLine) -> NDArray[np.float64]:
    """The variance of :func:`unbiased` for every true count of the line, with the tails outside in closed form."""
    _, _, weights = _steps(line)
    rates = np.minimum(line.rates, SILENT)
    counts, u = np.arange(len(weights)), np.arange(len(weights)) + _shifts(line)
    a = np.exp(-min(float(line.unit) * line.outside, SILENT))
    w, first, second = (1 - a) / (1 + a), a / (1 - a) ** 2, a * (1 + a) / (1 - a) ** 3
    place = np.concatenate([[0.0], np.cumsum(rates)])
    from_low, from_high = np.exp(-place), np.exp(-(place[-1] - place))
    # sums of (u - c)² with u = -d below the line and u = top + d above it, d = 1, 2, …
    middle = counts.mean()
    moments = [spread(weights * (u - middle) ** power, rates) for power in (0, 1, 2)]
    off = counts - middle
    inside = moments[2] - 2 * off * moments[1] + off**2 * moments[0]
    gap = counts[-1] - counts
    zeroth = a / (1 - a)
    low = w * from_low * (second + 2 * counts * first + counts**2 * zeroth)
    high = w * from_high * (second + 2 * gap * first + gap**2 * zeroth)
    return inside + low + high
