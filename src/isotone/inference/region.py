"""All counts, differences and shares at once, by shortest paths.

One quantile of the largest noise, each in its own scale, bounds all counts and all differences along the covers.
These bounds, the order and the fact that counts are not negative are a system of difference constraints. Its closure
by shortest paths is the tightest interval of each count and difference; a pair of counts lies in a hexagon, and a
share is extreme at a corner of it. If all members of the family hold, nothing derived from them excludes the truth
(docs/theory/inference.md, section 4).
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from isotone.array_types import Floats, Ints
from isotone.errors import InputError
from isotone.linear.law import Law, scales

__all__ = ["FeasibleRegion"]

_CHUNK = 1 << 21
_LARGEST = 1_500
_ROUNDING = 1e-9


class FeasibleRegion:
    """The counts that are compatible with released values. The last may be the number of records.

    ``pairs`` are positions (lower, upper) of counts of which the first is never above the second. ``most`` is a public
    bound on every count. ``whole`` says that values and noise are whole numbers.
    """

    def __init__(
        self, values: Floats, law: Law, pairs: Ints, confidence: float, *, whole: bool, most: float | None
    ) -> None:
        self.values, self.pairs, self.most = values, pairs, most
        self.half_widths = _family(law, pairs, confidence, whole)
        if not whole:  # room for the rounding of values
            size = np.abs(values)
            self.half_widths += 1e-12 * np.concatenate((size, size[pairs].sum(axis=1)))

    @cached_property
    def _edges(self) -> tuple[Ints, Ints, Floats]:
        """Bounds ``θ_to - θ_from <= length``. Node 0 is the number zero, and count x is node x + 1."""
        n, values = len(self.values), self.values
        alone, along = self.half_widths[:n], self.half_widths[n:]
        lower, upper = self.pairs.T + 1
        counts, zero = np.arange(1, n + 1), np.zeros(n, np.int64)
        step = values[upper - 1] - values[lower - 1]
        parts = [
            (zero, counts, values + alone),
            (counts, zero, alone - values),
            (counts, zero, np.zeros(n)),
            (lower, upper, step + along),
            (upper, lower, along - step),
            (upper, lower, np.zeros(len(step))),
        ]
        if self.most is not None:
            parts.append((zero, counts, np.full(n, float(self.most))))
        start, stop, length = (np.concatenate(column) for column in zip(*parts, strict=True))
        return start, stop, length

    @cached_property
    def counts(self) -> tuple[Floats, Floats]:
        """The interval of each count, or that of its own noise where no counts are compatible with all."""
        start, stop, length = self._edges
        high, low = _distances(start, stop, length, len(self.values)), None
        if high is not None:
            low = _distances(stop, start, length, len(self.values))
        if high is None or low is None:
            alone = self.half_widths[: len(self.values)]
            return np.maximum(self.values - alone, 0), np.maximum(self.values + alone, 0)
        return -low[1:] + 0.0, high[1:]

    @cached_property
    def _closure(self) -> Floats | None:
        """The largest difference ``θ_j - θ_i`` for all nodes, or None if nothing is compatible."""
        size = len(self.values) + 1
        if size > _LARGEST + 1:
            raise InputError(f"Differences of all pairs are bounded together for up to {_LARGEST:,} counts.")
        start, stop, length = self._edges
        matrix = np.full((size, size), np.inf)
        np.fill_diagonal(matrix, 0.0)
        np.minimum.at(matrix, (start, stop), length)
        for k in range(size):
            np.minimum(matrix, matrix[:, k, None] + matrix[None, k, :], out=matrix)
        return None if np.min(np.diag(matrix)) < -_ROUNDING else matrix

    def difference(self, x: int, z: int) -> tuple[float, float] | None:
        """The interval of count z minus count x, or None if nothing is compatible."""
        closed = self._closure
        return None if closed is None else (-float(closed[z + 1, x + 1]), float(closed[x + 1, z + 1]))

    def share(self, x: int, z: int) -> tuple[float, float] | None:
        """The interval of count x over count z, where x implies z, or None if nothing is compatible."""
        between = self.difference(x, z)
        if between is None:
            return None
        closed = self._closure
        assert closed is not None
        a = -closed[x + 1, 0], closed[0, x + 1]
        b = -closed[z + 1, 0], closed[0, z + 1]
        d = max(between[0], 0.0), between[1]
        if b[0] <= 0:
            return 0.0, 1.0
        corners = [(p, q) for p in a for q in b] + [(p, p + step) for p in a for step in d]
        corners += [(q - step, q) for q in b for step in d]
        near = _ROUNDING * (1 + abs(b[1]))
        shares = [
            p / q
            for p, q in corners
            if q > 0
            and a[0] - near <= p <= a[1] + near
            and b[0] - near <= q <= b[1] + near
            and d[0] - near <= q - p <= d[1] + near
        ]
        return max(0.0, float(min(shares))), min(1.0, float(max(shares)))


def _family(law: Law, pairs: Ints, confidence: float, whole: bool) -> Floats:
    """Half-widths of all counts and of all differences along the pairs, all at once with the given probability."""
    scale = scales(np.concatenate((law.other, _steps(law.other, pairs)), axis=1))
    step = max(1, _CHUNK // max(scale.size, 1))
    largest = np.empty(law.size)
    for start in range(0, law.size, step):
        drawn = law.draws[start : start + step].astype(np.float64)
        family = np.abs(np.concatenate((drawn, _steps(drawn, pairs)), axis=1))
        largest[start : start + step] = np.max(family / scale, axis=1)
    half = float(law.upper(largest, confidence)) * scale
    return np.floor(half + _ROUNDING) if whole else half * (1 + _ROUNDING)


def _steps(draws: NDArray[np.number], pairs: Ints) -> NDArray[np.number]:
    return draws[:, pairs[:, 1]] - draws[:, pairs[:, 0]]


def _distances(start: Ints, stop: Ints, length: Floats, size: int) -> Floats | None:
    """Shortest distances from node 0 (Bellman 1958), or None if there is a cycle below zero."""
    found = np.full(size + 1, np.inf)
    found[0] = 0.0
    for _ in range(size + 2):
        before = found.copy()
        np.minimum.at(found, stop, before[start] + length)
        if found[0] < -_ROUNDING:
            return None
        if np.all(found >= before - _ROUNDING):
            return found
    return None
