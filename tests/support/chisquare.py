"""A chi-square test for samplers that keeps its false-alarm rate far out in the tail."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import xlogy
from scipy.stats import chi2, kstest, kstwobign

__all__ = ["FALSE_ALARM", "assert_tells", "assert_tells_continuous", "chi_square_p", "margin", "observe"]

FALSE_ALARM = 1e-8
"""A statistical test fails a correct sampler with at most about this probability.

The wrong laws that a test must notice are so far off that they are missed with a probability below 1e-7:
:func:`assert_tells` and :func:`assert_tells_continuous` compute it."""

MARGIN = 6.0
"""Standard deviations that a statistic must lie beyond its limit for a wrong law: the normal law has 1e-9 below that."""

SMALLEST_EXPECTATION = 25.0
"""Cells that expect fewer are pooled: the chi-square law is then close even far out in its tail."""


def chi_square_p(observed: ArrayLike, expected: ArrayLike) -> float:
    """The probability that a sampler with the expected law deviates from it at least this much.

    ``expected`` holds probabilities or expected counts, in the order of ``observed``. They are rescaled to
    the number of observations unless they are probabilities that add up to less than one: then the rest is
    a cell of its own, of which nothing was observed. An observation in a cell of probability zero gives 0.

    The statistic is the smaller of Pearson's and the likelihood ratio's: an excess in a thin cell weighs too
    much in the first, a lack too much in the second, and at levels such as 1e-6 either would cry wolf.
    """
    seen: NDArray[np.float64] = np.asarray(observed, dtype=float).ravel()
    law: NDArray[np.float64] = np.asarray(expected, dtype=float).ravel()
    if seen.shape != law.shape:
        raise ValueError(f"{seen.size} observed cells against {law.size} expected ones")
    rest = 1.0 - law.sum()
    if rest > 1e-9:
        seen, law = np.append(seen, 0.0), np.append(law, rest)
    if np.any(seen[law == 0] > 0):
        return 0.0
    law = law * (seen.sum() / law.sum())
    seen, law = _pool(seen[law > 0], law[law > 0])
    if law.size < 2:
        return 1.0
    return float(chi2.sf(min(_pearson(seen, law), _likelihood_ratio(seen, law)), law.size - 1))


def _pearson(seen: NDArray[np.float64], law: NDArray[np.float64]) -> float:
    return float(np.sum((seen - law) ** 2 / law))


def _likelihood_ratio(seen: NDArray[np.float64], law: NDArray[np.float64]) -> float:
    return float(2 * np.sum(xlogy(seen, seen / law) - (seen - law)))


def _pool(
    seen: NDArray[np.float64], law: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Merge the cells of smallest expectation until every cell expects enough."""
    order = np.argsort(law, kind="stable")
    seen, law = seen[order], law[order]
    below = int(np.searchsorted(np.cumsum(law), SMALLEST_EXPECTATION)) + 1
    if law[0] < SMALLEST_EXPECTATION:
        small = max(below, int(np.searchsorted(law, SMALLEST_EXPECTATION)))
        seen = np.append(seen[small:], seen[:small].sum())
        law = np.append(law[small:], law[:small].sum())
    return seen, law


def observe(
    draws: Iterable[object], law: Mapping[object, float] | Sequence[object]
) -> tuple[list[int], list[float]]:
    """Observed counts and probabilities, cell by cell, for :func:`chi_square_p`.

    ``law`` maps each outcome to its probability, or lists equally likely outcomes. A draw outside the law
    adds a cell of probability zero, which makes the test fail.
    """
    table = Counter(draws)
    cells: dict[object, float] = (
        dict(law) if isinstance(law, Mapping) else {outcome: 1.0 / len(law) for outcome in law}
    )
    outside = sum(count for outcome, count in table.items() if outcome not in cells)
    observed, expected = [table[outcome] for outcome in cells], list(cells.values())
    return ([*observed, outside], [*expected, 0.0]) if outside else (observed, expected)


def assert_tells(observed: ArrayLike, right: ArrayLike, *wrong: ArrayLike) -> None:
    """The observations agree with the right law and not with the wrong ones, which so many draws tell apart."""
    size = int(np.sum(observed))
    assert chi_square_p(observed, right) > FALSE_ALARM
    for law in wrong:
        assert margin(right, law, size) > MARGIN, "too few draws to tell these laws apart"
        assert chi_square_p(observed, law) < FALSE_ALARM


def margin(right: ArrayLike, wrong: ArrayLike, size: int) -> float:
    """How many standard deviations the statistic of draws from one law lies beyond its limit under another.

    It is the smaller one of Pearson's and the likelihood ratio's, as the test takes the smaller statistic.
    """
    ours: NDArray[np.float64] = np.asarray(right, dtype=float).ravel()
    theirs: NDArray[np.float64] = np.asarray(wrong, dtype=float).ravel()
    if np.any(ours[theirs == 0] * size > MARGIN**2):
        return np.inf
    p, q = _pool(ours / ours.sum() * size, theirs / theirs.sum() * size)
    p, q = p / size, q / size
    degrees = max(p.size - 1, 1)
    limit = float(chi2.isf(FALSE_ALARM, degrees))
    far, ratio = (p - q) / q, np.log(np.maximum(p, 1e-300) / q)
    means = size * float(np.sum((p - q) ** 2 / q)), 2 * size * float(np.sum(p * ratio))
    spreads = [4 * size * float(np.sum(p * each**2) - np.sum(p * each) ** 2) for each in (far, ratio)]
    return min(
        (mean + degrees - limit) / np.sqrt(spread + 2 * degrees)
        for mean, spread in zip(means, spreads, strict=True)
    )


def assert_tells_continuous(values: ArrayLike, right: Any, *wrong: Any) -> None:
    """The same for distributions of SciPy, by the largest distance of distribution functions.

    Where the two functions are furthest apart, that of the sample is within ``1/(2·√n)``, a standard deviation, of its own.
    """
    sample: NDArray[np.float64] = np.asarray(values, dtype=float)
    assert kstest(sample, right.cdf).pvalue > FALSE_ALARM
    root, limit = np.sqrt(sample.size), float(kstwobign.isf(FALSE_ALARM))
    places = right.ppf(np.linspace(0.001, 0.999, 999))
    for law in wrong:
        apart = float(np.max(np.abs(right.cdf(places) - law.cdf(places))))
        assert (apart * root - limit) / 0.5 > MARGIN, "too few draws to tell these laws apart"
        assert kstest(sample, law.cdf).pvalue < FALSE_ALARM
