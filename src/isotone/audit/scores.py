"""Scores that distinguish the outputs of two neighbours, learned from draws.

A score is any function of the output; the larger, the more likely is the first side. The best one is the log
ratio of the two densities. It is approximated by counting, where outputs repeat; by counting in the cells in which
coordinates have one order and one sign, where densities shaped by an order jump; by a logistic regression on features
in which the log ratio of most mechanisms is linear; and by the binary places that floating point leaves behind.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from isotone.array_types import Floats, Ints
from isotone.audit.outputs import Sides

__all__ = ["OutputScore", "learn_scores"]

_FEW = 3  # so many coordinates can be counted jointly
_SHAPED = 4  # and so many sorted into cells by signs and order
_PAIRED = 8  # pairs of so many are features of the logistic score
_ENOUGH = 20_000  # draws for its few numbers
_HUGE = 1e100  # and numbers beyond are taken as this, so that squares stay finite


@dataclass(frozen=True)
class OutputScore:
    """A named function from outputs (one per row) to numbers."""

    name: str
    function: Callable[[Floats], Floats]

    def __call__(self, outputs: Floats) -> Floats:
        """The score of each output."""
        return self.function(outputs)


def learn_scores(sides: Sides) -> list[OutputScore]:
    """Scores learned from draws of both sides."""
    first, second = sides.first, sides.second
    if sides.labels:
        return [_counted("how often each output was seen", lambda rows: rows[:, 0].astype(np.int64), sides)]
    dimension = first.shape[1]
    scores = [_logistic(first, second), _one_by_one(sides)]
    if dimension <= _FEW:
        scores.append(_counted("the ratio of cell counts", _boxes(np.concatenate([first, second])), sides))
    if 1 < dimension <= _SHAPED:
        scores.append(_counted("signs and order of the coordinates", _arrangement(first, second), sides))
    scores.append(OutputScore("the lowest binary digit", _lowest_bits))
    scores.append(OutputScore("the finest binary place", _finest_place))
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        scores.append(
            OutputScore("numbers that are not finite", lambda rows: (~np.isfinite(rows)).sum(axis=1) * 1.0)
        )
    return scores


def _counted(name: str, keys: Callable[[Floats], Ints], sides: Sides) -> OutputScore:
    """Log ratio of how often each key was seen."""
    one, other = keys(sides.first), keys(sides.second)
    seen, where = np.unique(np.concatenate([one, other]), return_inverse=True)
    counts = [np.bincount(part, minlength=len(seen)) for part in (where[: len(one)], where[len(one) :])]
    ratio = np.log((counts[0] + 0.5) / (counts[1] + 0.5))

    def score(outputs: Floats) -> Floats:
        found = keys(outputs)
        place = np.minimum(np.searchsorted(seen, found), len(seen) - 1)
        return np.where(seen[place] == found, ratio[place], 0.0)

    return OutputScore(name, score)


def _boxes(both: Floats) -> Callable[[Floats], Ints]:
    """Keys of cells. Single outputs where they repeat, otherwise boxes between quantiles."""
    cells = max(4, int((len(both) / 40) ** (1 / both.shape[1])))
    edges: list[Floats] = []
    for column in both.T:
        values = np.unique(column)
        quantiles = np.quantile(column, np.linspace(0, 1, 2 * cells)[1:-1])
        edges.append(values if len(values) <= 4 * cells else quantiles)

    def keys(outputs: Floats) -> Ints:
        mixed = np.zeros(len(outputs), dtype=np.int64)
        for column, edge in zip(outputs.T, edges, strict=True):
            mixed = mixed * (len(edge) + 1) + np.searchsorted(edge, column, side="right")
        return mixed

    return keys


def _arrangement(first: Floats, second: Floats) -> Callable[[Floats], Ints]:
    """Keys of the cells that are cut out by signs, sums and differences of coordinates, seen from both centres."""
    centres = np.median(first, axis=0), np.median(second, axis=0)
    i, j = np.triu_indices(first.shape[1], 1)
    codes = 3 ** np.arange(2 * (first.shape[1] + 2 * len(i)), dtype=np.int64)

    def keys(outputs: Floats) -> Ints:
        parts: list[Floats] = []
        for centre in centres:
            y = outputs - centre
            parts += [y, y[:, i] - y[:, j], y[:, i] + y[:, j]]
        return (np.sign(np.concatenate(parts, axis=1)).astype(np.int64) + 1) @ codes

    return keys


def _one_by_one(sides: Sides) -> OutputScore:
    """The sum of the scores of single coordinates.

    It is the right score where the coordinates are independent.
    """
    parts: list[OutputScore] = []
    for k in range(sides.first.shape[1]):
        column = Sides(sides.first[:, k : k + 1], sides.second[:, k : k + 1])
        parts.append(_counted("", _boxes(np.concatenate([column.first, column.second])), column))

    def score(outputs: Floats) -> Floats:
        return np.sum([part(outputs[:, k : k + 1]) for k, part in enumerate(parts)], axis=0)

    return OutputScore("the ratio of counts, coordinate by coordinate", score)


def _logistic(first: Floats, second: Floats) -> OutputScore:
    from scipy.optimize import minimize

    first, second = first[:_ENOUGH], second[:_ENOUGH]
    centres = np.nan_to_num(np.median(first, axis=0)), np.nan_to_num(np.median(second, axis=0))
    raw = _features(np.concatenate([first, second]), *centres)
    mean, spread = raw.mean(axis=0), raw.std(axis=0) + 1e-12
    X = (raw - mean) / spread
    signs = np.concatenate([np.ones(len(first)), -np.ones(len(second))])

    def loss(weights: Floats) -> tuple[float, Floats]:
        margin = signs * (X @ weights[:-1] + weights[-1])
        slope = -signs / (1 + np.exp(np.clip(margin, -500, 500)))
        gradient = np.append(X.T @ slope, slope.sum()) / len(X) + 1e-4 * weights
        return float(np.logaddexp(0, -margin).mean() + 0.5e-4 * weights @ weights), gradient

    weights = np.asarray(minimize(loss, np.zeros(X.shape[1] + 1), jac=True, method="L-BFGS-B").x)
    return OutputScore(
        "a logistic score",
        lambda outputs: ((_features(outputs, *centres) - mean) / spread) @ weights[:-1] + weights[-1],
    )


def _features(outputs: Floats, a: Floats, b: Floats) -> Floats:
    outputs = np.clip(np.nan_to_num(outputs), -_HUGE, _HUGE)
    to_a, to_b = outputs - a, outputs - b
    parts = [outputs, np.abs(to_a), np.abs(to_b)]
    n = outputs.shape[1]
    if 1 < n <= _PAIRED:
        i, j = np.triu_indices(n, 1)
        parts += [np.abs(to_a[:, i] - to_a[:, j]), np.abs(to_b[:, i] - to_b[:, j])]
    for shifted in (to_a, to_b):
        size = np.abs(shifted)
        parts.append(np.stack([size.max(axis=1), size.sum(axis=1), (size**2).sum(axis=1)], axis=1))
    return np.concatenate(parts, axis=1)


def _lowest_bits(outputs: Floats) -> Floats:
    """The last bit of each number's significand. Floating point can reveal the input there (Mironov 2012)."""
    bits = (np.ascontiguousarray(outputs).view(np.uint64) & np.uint64(1)).astype(float)
    return bits.sum(axis=1)


def _finest_place(outputs: Floats) -> Floats:
    """The exponent of the lowest nonzero bit of the coordinates.

    Sums end where their terms do (Haney et al. 2022).
    """
    mantissa, exponent = np.frexp(np.nan_to_num(outputs))
    digits = np.abs(mantissa * 2.0**53).astype(np.int64)
    lowest = np.where(digits == 0, 1, digits & -digits)
    place = np.where(digits == 0, 0.0, np.log2(lowest.astype(float)) + exponent - 53)
    return place.min(axis=1)
