"""A chi-square test for samplers that keeps its false-alarm rate far out in the tail."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import xlogy
from scipy.stats import chi2

__all__ = ["FALSE_ALARM", "chi_square_p", "observe"]

FALSE_ALARM = 1e-8
"""A statistical test fails a correct sampler with at most about this probability.

The wrong laws that a test must notice are so far off that they are missed with a probability below 1e-7. A chi-square
statistic with a mean above 250 does that for up to 30 cells, a Kolmogorov distance six half standard deviations
``1/(2·√n)`` above its limit ``3.1/√n`` as well."""

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
