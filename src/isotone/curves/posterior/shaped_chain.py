"""Chains whose states carry a shape: the posterior mean of curves that bend upward, or have a bounded slope.

A state is a value of an even grid and a slope. From a point to the next the value rises by the slope (rounded down or up, so
that the mean rise is the slope), and now and then the slope is drawn again; for curves that bend upward from those that are
not smaller. Seven priors are averaged by their evidence. Weights are logarithms: however much data there are, none is lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from isotone.array_types import Floats, Ints
from isotone.order.projection.chain import pool_adjacent_violators

__all__ = ["ShapedChain"]

SLOPES = (0.0, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 3.0, 5.0, 9.0)
"""Slopes, in grids of values over the whole domain, as far as they are allowed,"""
SHARES = (0.1, 0.25, 0.5, 0.75, 1.0)
"""and shares of the largest that is."""
REDRAWS = (0.0, 0.3, 1.5, 6.0, 20.0)
"""Expected numbers of new slopes along a curve, if any slope may come;"""
TURNS = 2.0
"""if only none and the largest do. The last prior is a curve without any slope."""
ENDS = 3.0
"""How many values more the first value's lowest and highest count as."""
BY_WIDTH, USUAL = 3.0, 2.0
"""So much of the weight of slopes, against 1 that all share alike, is by how far they are apart, and falls off at this scale."""


@dataclass(frozen=True)
class ShapedChain:
    """Curves on ``points`` with so many ``values`` from 0 to 1, which never rise by more than ``steepest`` at once.

    ``upward``: no rise is smaller than the one before.
    """

    points: int
    values: int
    steepest: float
    upward: bool

    def mean(self, log_likelihood: Floats) -> Floats:
        """The posterior mean at every point, which has the shape. The likelihood is by point and value."""
        evidence, forward = self.forward(log_likelihood)
        share = np.exp(evidence - evidence.max())
        share /= share.sum()
        message, grid = np.zeros_like(forward[0]), np.linspace(0.0, 1.0, self.values)
        found = np.empty(self.points)
        for point in range(self.points - 1, -1, -1):
            seen = forward[point] + message
            chance = np.exp(seen - seen.max(axis=(1, 2), keepdims=True)).sum(axis=1)
            found[point] = share @ (chance @ grid / chance.sum(axis=1))
            if point:
                ahead = self._redrawn(message + log_likelihood[point], back=True)
                message = self._moved(ahead[..., ::-1])[..., ::-1]
        return self._of_shape(found)

    def _of_shape(self, mean: Floats) -> Floats:
        """The same curve without what rounding to values did to its rises."""
        rises = np.clip(np.diff(mean), 0.0, self.steepest)
        if self.upward:
            rises = pool_adjacent_violators(rises, np.ones(rises.size))
        return np.minimum(mean[0] + np.r_[0.0, np.cumsum(rises)], 1.0)

    @cached_property
    def slopes(self) -> Floats:
        """All slopes, in values from a point to the next."""
        top = self.steepest * (self.points - 1)
        slopes = [slope for slope in SLOPES if slope < top] + [share * top for share in SHARES]
        return np.unique(slopes) * (self.values - 1) / max(1, self.points - 1)

    @cached_property
    def weights(self) -> Floats:
        """How likely slopes are, by prior."""
        size, slopes = self.slopes.size, self.slopes * (self.points - 1) / (self.values - 1)
        width = np.gradient(slopes) * np.exp(-slopes / USUAL)
        none, top = np.eye(size)[0], np.eye(size)[-1]
        any_slope = 1 + none + BY_WIDTH * size * width / width.sum()
        return np.array([any_slope for _ in REDRAWS] + [none + top, none])

    @cached_property
    def _logs(self) -> tuple[Floats, Floats, Floats]:
        """Logarithms by prior: of a slope that stays, of every new one, and of all that may come after each."""
        redraw = np.minimum(0.9, np.array([*REDRAWS, TURNS, 0.0]) / self.points)[:, None, None]
        weights = self.weights[:, :, None]
        after = np.cumsum(weights[:, ::-1], axis=1)[:, ::-1] if self.upward else weights.sum(1, keepdims=True)
        with np.errstate(divide="ignore"):
            return np.log(1 - redraw), np.log(redraw * weights), np.log(np.where(after > 0, after, 1.0))

    def _start(self) -> Floats:
        first = np.ones(self.values)
        first[[0, -1]] += ENDS
        with np.errstate(divide="ignore"):
            return np.log(self.weights[:, :, None] * first)

    def forward(self, log_likelihood: Floats, *, alone: bool = False) -> tuple[Floats, list[Floats]]:
        """The log evidence of each prior, against that of nothing, and of the states given the points up to each."""
        states = [self._start() + log_likelihood[0]]
        for point in range(1, self.points):
            states.append(self._redrawn(self._moved(states[-1])) + log_likelihood[point])
        evidence = np.logaddexp.reduce(states[-1].reshape(len(states[-1]), -1), axis=1)
        return evidence - (0.0 if alone else _of_nothing(self)), states

    @cached_property
    def _rises(self) -> tuple[tuple[Ints, Floats], ...]:
        """Where values come from if the rise is rounded down, or up, and the logarithm of how often it is."""
        low = np.floor(self.slopes).astype(np.int64)[:, None]
        over = self.slopes[:, None] - low
        place = np.maximum(np.arange(1, self.values + 1) - np.stack([low, low + 1]), 0)[:, None]
        with np.errstate(divide="ignore"):
            return (place[0], np.log(1 - over)), (place[1], np.log(over))

    def _moved(self, state: Floats) -> Floats:
        """Values after a rise by the slope. Those that would leave the range are gone."""
        padded = np.concatenate([np.full((*state.shape[:2], 1), -np.inf), state], axis=2)
        down, up = (np.take_along_axis(padded, place, axis=2) + log_p for place, log_p in self._rises)
        return np.logaddexp(down, up)

    def _redrawn(self, state: Floats, *, back: bool = False) -> Floats:
        """Slopes after they were drawn again, or not. ``back``: what a message about those after tells of those before."""
        stay, new, after = self._logs
        drawn = state + new if back else state - after
        if not self.upward:
            drawn = np.logaddexp.reduce(drawn, axis=1, keepdims=True)
        elif back:
            drawn = np.logaddexp.accumulate(drawn[:, ::-1], axis=1)[:, ::-1]
        else:
            drawn = np.logaddexp.accumulate(drawn, axis=1)
        return np.logaddexp(state + stay, drawn - after if back else drawn + new)


@lru_cache(maxsize=64)
def _of_nothing(chain: ShapedChain) -> Floats:
    """The log weight of all curves that stay inside the range, by prior."""
    return chain.forward(np.zeros((chain.points, chain.values)), alone=True)[0]
