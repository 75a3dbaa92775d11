"""Quantiles, shares, the Lorenz curve and the Gini coefficient of a distribution, each with an interval from one band.

All intervals hold at once, as often as the band does (docs/theory/distribution.md, section 6). They are about values as they were
put on the line: clipped to its limits, and known as exactly as a cell is wide.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isotone.array_types import Floats, Ints
from isotone.distribution.band import ShareBand

Interval = tuple[float, float, float]
"""An estimate, and the ends of its interval."""
_LEVELS = 2_000


@dataclass(frozen=True, eq=False)
class LineFigures:
    """Shares below each cell: estimated, and between two bounds. The ends of cells are ``start`` and ``stop``."""

    start: Floats
    stop: Floats
    below: Floats
    low: Floats
    high: Floats

    @classmethod
    def of(cls, ends: tuple[Floats, Floats], edges: Ints, below: Floats, band: ShareBand) -> LineFigures:
        """From a band at the edges of bins. Between two of them a share is at least the lower and at most the upper one's."""
        places = np.arange(ends[0].size + 1)
        before = np.searchsorted(edges, places, side="right") - 1
        after = np.searchsorted(edges, places, side="left")
        low, high = band.low[before], band.high[after]
        return cls(*ends, np.clip(below, low, high), low, high)

    def share_up_to(self, x: float) -> Interval:
        """The share of records at ``x`` or below."""
        if x >= self.stop[-1]:
            return 1.0, 1.0, 1.0
        if x < self.start[0]:
            return 0.0, 0.0, 0.0
        whole, touched, _ = self.around(x)
        return self.between(self.below, x), float(self.low[whole]), float(self.high[touched])

    def between(self, values: Floats, x: float) -> float:
        """What is known before each cell, at a value inside one: on the line between both ends."""
        whole, touched, part = self.around(x)
        return float(values[whole] * (1 - part) + values[touched] * part)

    def around(self, x: float) -> tuple[int, int, float]:
        """How many cells end at ``x`` or before, how many begin before it, and which part of the last of them it has passed."""
        whole = int(np.searchsorted(self.stop, x, side="right"))
        touched = max(int(np.searchsorted(self.start, x, side="left")), whole, 1)
        part = 0.0
        if touched > whole and self.stop[whole] > self.start[whole]:
            part = (x - self.start[whole]) / (self.stop[whole] - self.start[whole])
        return whole, touched, part

    def share_between(self, low: float, high: float) -> Interval:
        """The share of records above ``low`` and up to ``high``."""
        (first, first_low, first_high), (last, last_low, last_high) = map(self.share_up_to, (low, high))
        return max(last - first, 0.0), max(last_low - first_high, 0.0), max(last_high - first_low, 0.0)

    def quantile(self, level: float) -> Interval:
        """The least value with at least this share of records at it or below, as exactly as cells are wide."""
        low, high = self.quantile_bounds(np.array([level]))[0].tolist()
        return self._reached(self.below, level, self.stop), low, high

    def quantile_bounds(self, levels: Floats) -> Floats:
        """Both ends of the intervals of quantiles, a row each."""
        # the value lies in the first cell whose upper edge has the share, which is this one or later, and that one or earlier
        first = np.minimum(np.searchsorted(self.high[1:], levels, side="left"), self.stop.size - 1)
        last = np.minimum(np.searchsorted(self.low[1:], levels, side="left"), self.stop.size - 1)
        return np.stack([self.start[first], self.stop[last]], axis=-1)

    def _reached(self, shares: Floats, level: float, ends: Floats) -> float:
        at = min(int(np.searchsorted(shares[1:], level - 1e-12, side="left")), ends.size - 1)
        return float(ends[at])

    def lorenz(self, levels: Floats) -> Floats:
        """The share of the sum of all values that the lowest records have, for each share of records: a row of three each.

        The sum of the lowest is least and the rest most if all quantiles below are as low, and all above as high, as can be.
        """
        grid = (np.arange(_LEVELS) + 0.5) / _LEVELS
        values = (self.start + self.stop) / 2
        middle = values[np.minimum(np.searchsorted(self.below[1:], grid, side="left"), values.size - 1)]
        edges = np.arange(_LEVELS + 1) / _LEVELS
        # in each step of levels a quantile is at least that of its beginning and at most that of its end
        least, most = self.quantile_bounds(edges[:-1])[:, 0], self.quantile_bounds(edges[1:])[:, 1]
        rows = [_cumulated(part) for part in (middle, least, most)]
        result: list[list[float]] = []
        for level in levels:
            own, few, many = (float(np.interp(level, edges, row)) for row in rows)
            rest_few, rest_many = rows[1][-1] - few, rows[2][-1] - many
            estimate = own / rows[0][-1] if rows[0][-1] > 0 else level
            low = few / (few + rest_many) if few + rest_many > 0 else 0.0
            high = many / (many + rest_few) if many + rest_few > 0 else 1.0
            result.append([min(max(estimate, low), high), low, min(high, float(level))])
        return np.array(result)

    def gini(self) -> Interval:
        """The Gini coefficient: twice the area between the Lorenz curve and that of equal values."""
        levels = np.arange(_LEVELS // 10 + 1) / (_LEVELS // 10)
        curve = self.lorenz(levels)
        estimate = 1 - 2 * float(np.mean((curve[1:, 0] + curve[:-1, 0]) / 2))
        low, high = 1 - 2 * float(np.mean(curve[1:, 2])), 1 - 2 * float(np.mean(curve[:-1, 1]))
        return min(max(estimate, low, 0.0), high), max(low, 0.0), min(high, 1.0)


def _cumulated(values: Floats) -> Floats:
    return np.concatenate([[0.0], np.cumsum(values)]) / values.size
