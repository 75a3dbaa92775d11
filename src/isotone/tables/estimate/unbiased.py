"""An unbiased estimate of each true count from its noisy count alone, and its standard deviation.

Where all steps of the noise have the same rate it is the noisy count itself. Otherwise noise is lopsided next to a step of
another rate, and the inverse of the noise matrix says what to add (docs/theory/tables-whole.md, section 2). The standard
deviation depends on the true count, which is private: :func:`largest_deviation` is its maximum over all counts, a
public number.
"""

from __future__ import annotations

from itertools import product
from math import ceil, sqrt

import numpy as np
from numpy.typing import NDArray

from isotone.noise import UnevenLine
from isotone.tables.estimate.views import SILENT
from isotone.tables.matrices.geometric import spread

__all__ = ["deviation_bound", "error_law", "largest_deviation", "unbiased", "variances"]

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
