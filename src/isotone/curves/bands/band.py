"""Limits of a curve at every point of the public grid, as shares of the range of ``y``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np

from isotone.array_types import Floats, Ints

__all__ = ["Band", "GridBand", "LineBand", "StepBand", "TurnedBand"]


class Band(NamedTuple):
    """The lower and the upper ends of a band, point by point."""

    low: Floats
    high: Floats


class GridBand(Protocol):
    """A band on the points ``0, …, points − 1``."""

    @property
    def corners(self) -> Ints:
        """Points that tell all. Between two of them both ends are linear, or keep their value."""
        ...

    def at(self, points: Ints) -> Band:
        """Both ends at grid points."""
        ...


@dataclass(frozen=True)
class StepBand:
    """A rising band, in which ``lows[i]`` holds from the point ``low_from[i]`` on, ``highs[i]`` up to the point ``high_to[i]``."""

    low_from: Ints
    lows: Floats
    high_to: Ints
    highs: Floats
    points: int

    @property
    def corners(self) -> Ints:
        """The points where an end has just changed or is about to."""
        up = self.low_from[np.diff(self.lows, prepend=0.0) != 0]
        down = self.high_to[np.diff(self.highs, append=1.0) != 0]
        found = np.concatenate([[0, self.points - 1], up, up - 1, down, down + 1])
        return np.unique(found[(found >= 0) & (found < self.points)])

    def at(self, points: Ints) -> Band:
        """Before the first lower end there is 0, after the last upper end 1.

        Sums that contradict a rising curve would leave nothing between: there the ends change places.
        """
        low = np.r_[0.0, self.lows][np.searchsorted(self.low_from, points, side="right")]
        high = np.r_[self.highs, 1.0][np.searchsorted(self.high_to, points, side="left")]
        return Band(np.minimum(low, high), np.maximum(low, high))

    def widened(self, by: float) -> StepBand:
        """The same, wider on both sides and inside the range."""
        return replace(self, lows=np.maximum(self.lows - by, 0.0), highs=np.minimum(self.highs + by, 1.0))


@dataclass(frozen=True)
class LineBand:
    """Lines through the ends at ``middles``, which may lie between two points."""

    middles: Floats
    lows: Floats
    highs: Floats
    points: int

    @property
    def corners(self) -> Ints:
        """The points beside the middles, and both ends of the grid."""
        beside = [np.floor(self.middles), np.ceil(self.middles), [0, self.points - 1]]
        return np.unique(np.concatenate(beside)).astype(np.int64)

    def at(self, points: Ints) -> Band:
        """Both ends, constant beyond the first and the last middle."""
        return Band(
            np.interp(points, self.middles, self.lows),
            np.interp(points, self.middles, self.highs),
        )


@dataclass(frozen=True)
class TurnedBand:
    """A band with the points in reverse order, for falling curves."""

    inner: GridBand
    points: int

    @property
    def corners(self) -> Ints:
        """Those of the rising band, turned."""
        return self.points - 1 - self.inner.corners[::-1]

    def at(self, points: Ints) -> Band:
        """Those of the rising band, turned."""
        return self.inner.at(self.points - 1 - points)
