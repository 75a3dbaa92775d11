"""Rising hidden chains, with the priors of a curve's values from bin to bin, and their posterior by messages.

A state is a value of a grid and a slope. To the next bin the value rises by the slope (rounded down or up, so that the mean
rise is the slope), or it jumps to any higher one, evenly over the range; the slope is drawn again with some probability.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from isotone.array_types import Floats

__all__ = ["Prior", "evidence_of_nothing", "posterior_of", "priors", "value_grid"]

SLOPES = (0.0, 0.1, 0.3, 0.7, 1.3, 2.5, 5.0)
"""Slopes, in grids of values over the whole domain."""
JUMPS, REDRAWS = (0.3, 2.0, 8.0), (1.0, 5.0)
"""Expected numbers of jumps, and of new slopes, along the curve."""
STEPS = (2.0, 10.0, 40.0)
"""Expected numbers of jumps of curves that are flat but for them."""
ENDS = 3.0
"""How many values more the first value's lowest and highest count as."""


@dataclass(frozen=True)
class Prior:
    """Priors that share their slopes (in steps of the grid of values a bin), one for each entry of the others."""

    slopes: tuple[float, ...]
    jump: tuple[float, ...]
    redraw: tuple[float, ...]


def value_grid(values: int) -> Floats:
    """So many values from 0 to 1, denser near both ends, where shares vary less."""
    return np.sin(np.linspace(0.0, np.pi / 2, values)) ** 2


def priors(bins: int, values: int) -> tuple[Prior, ...]:
    """The nine priors for so many bins and values, in groups."""
    scale = values / bins
    slopes = tuple(slope * scale for slope in SLOPES)
    pairs = [(min(0.5, often / bins), min(0.9, anew / bins)) for often in JUMPS for anew in REDRAWS]
    smooth = Prior(slopes, tuple(jump for jump, _ in pairs), tuple(redraw for _, redraw in pairs))
    return smooth, Prior((0.0,), tuple(min(0.5, often / bins) for often in STEPS), (0.0,) * len(STEPS))


def posterior_of(likelihood: Floats, prior: Prior) -> tuple[Floats, Floats]:
    """The log evidence of each prior of a group, and the posterior of each bin's value under it.

    ``likelihood`` is by bin and value, up to a factor for each bin.
    """
    moves = _Moves(prior, likelihood.shape[1])
    evidence, forward = _forward(likelihood, moves)
    found = np.empty((len(prior.jump), *likelihood.shape))
    message = np.ones(forward.shape[1:])
    for b in range(likelihood.shape[0] - 1, -1, -1):
        seen = np.einsum("msv,msv->mv", forward[b], message)
        found[:, b] = seen / np.maximum(seen.sum(axis=1, keepdims=True), 1e-300)
        if b:
            message = moves.back(message * likelihood[b])
            message /= np.maximum(message.max(axis=(1, 2), keepdims=True), 1e-300)
    return evidence, found


@lru_cache(maxsize=4096)
def evidence_of_nothing(bins: int, values: int) -> tuple[tuple[float, ...], ...]:
    """The log weight of all paths that stay inside the range, for each group of priors."""
    flat = np.ones((bins, values))
    return tuple(
        tuple(_forward(flat, _Moves(prior, values), keep=False)[0].tolist()) for prior in priors(bins, values)
    )


class _Moves:
    """The step from one bin to the next for all priors of a group, on arrays by prior, slope and value."""

    def __init__(self, prior: Prior, values: int) -> None:
        self.values, self.size = values, len(prior.slopes)
        self.floor = [min(int(slope), values) for slope in prior.slopes]
        self.jump = np.array(prior.jump)[:, None, None]
        self.redraw = np.array(prior.redraw)[:, None, None]
        over = np.array([slope - int(slope) for slope in prior.slopes])[:, None]
        self.rounded_down, self.rounded_up = (1 - self.jump) * (1 - over), (1 - self.jump) * over
        self.jump_to = self.jump * np.gradient(value_grid(values))  # any height is as likely

    def start(self) -> Floats:
        """The law of the first value and slope."""
        first = np.ones(self.values)
        first[[0, -1]] += ENDS
        first /= first.sum() * self.size
        return np.broadcast_to(first, (self.jump.size, self.size, self.values))

    def ahead(self, state: Floats) -> Floats:
        """Where a law of states goes."""
        moved = self.jump_to * (np.cumsum(state, axis=2) - state)
        down, up = self.rounded_down * state, self.rounded_up * state
        for s, low in enumerate(self.floor):
            moved[:, s, low:] += down[:, s, : self.values - low]
            moved[:, s, low + 1 :] += up[:, s, : max(0, self.values - low - 1)]
        return self._slopes(moved)

    def back(self, message: Floats) -> Floats:
        """What a message about the next bin tells about this one."""
        message = self._slopes(message)
        jumped = self.jump_to * message
        moved = np.cumsum(jumped[:, :, ::-1], axis=2)[:, :, ::-1] - jumped
        down, up = self.rounded_down * message, self.rounded_up * message
        for s, low in enumerate(self.floor):
            moved[:, s, : self.values - low] += down[:, s, low:]
            moved[:, s, : max(0, self.values - low - 1)] += up[:, s, low + 1 :]
        return moved

    def _slopes(self, state: Floats) -> Floats:
        """The same with slopes drawn again, now and then."""
        if self.size == 1:
            return state
        return (1 - self.redraw) * state + self.redraw * state.mean(axis=1, keepdims=True)


def _forward(likelihood: Floats, moves: _Moves, *, keep: bool = True) -> tuple[Floats, Floats]:
    """The log evidence, and the law of each bin's state given the bins up to it."""
    state = moves.start()
    kept = np.empty((likelihood.shape[0] if keep else 0, *state.shape))
    evidence = np.zeros(state.shape[0])
    for b in range(likelihood.shape[0]):
        if b:
            state = moves.ahead(state)
        state = state * likelihood[b]
        total = np.maximum(state.sum(axis=(1, 2), keepdims=True), 1e-300)
        state = state / total
        evidence += np.log(total[:, 0, 0])
        if keep:
            kept[b] = state
    return evidence, kept
