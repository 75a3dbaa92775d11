"""How many records a bin holds, as far as the noisy totals of all bins tell.

The expected number of records of a bin is its *rate*. Rates are a chain on a public grid: the next bin has nearly the same
rate, or one not far away, or any. What the other bins tell about a bin's rate is the message that values are weighed with.
"""

from __future__ import annotations

import numpy as np

from isotone.array_types import Floats
from isotone.curves.posterior.noises import CountNoise

__all__ = ["Rates", "rates_of"]

NEAR, FAR = 0.4, 3.0
"""Scales of the two local moves, in steps of the grid,"""
MOVES = (0.55, 0.30, 0.15)
"""and how often rates move a little, further, or anywhere."""
EMPTY = 0.2
"""How much more often than other rates a rate of 0 is."""


class Rates:
    """Rates on a grid, with what the other bins tell (``others``), and what a bin's own total adds (``own``)."""

    def __init__(self, grid: Floats, others: Floats, own: Floats) -> None:
        self.grid, self.others, self.own = grid, others, own


def rates_of(totals: Floats, noise: CountNoise) -> Rates:
    """The rates of bins with noisy ``totals``, each a count plus two independent noise terms."""
    spread = 2 * noise.variance
    grid = _grid(max(8.0, 1.15 * float(totals.max()) + 1.5 * spread**0.5), spread)
    log_own = noise.total(totals[:, None], grid[None, :])
    own = np.exp(log_own - log_own.max(axis=1, keepdims=True))
    anywhere = np.gradient(np.sqrt(grid + 0.5))
    anywhere = 0.5 * anywhere / anywhere.sum() + 0.5 / grid.size
    anywhere[0] += EMPTY
    anywhere /= anywhere.sum()
    moves = _moves(grid.size, anywhere)
    forward, backward = np.empty_like(own), np.empty_like(own)
    message = anywhere
    for b in range(totals.size):
        forward[b] = message
        message = message * own[b]
        message = (message / max(message.sum(), 1e-300)) @ moves
    message = np.ones(grid.size)
    for b in range(totals.size - 1, -1, -1):
        backward[b] = message
        message = moves @ (message * own[b])
        message = message / max(message.max(), 1e-300)
    others = forward * backward
    return Rates(grid, others / others.sum(axis=1, keepdims=True), own)


def _moves(size: int, anywhere: Floats) -> Floats:
    """The probability of every rate after every other."""
    place = np.arange(size)
    apart = np.abs(place[:, None] - place[None, :])
    near, far = np.exp(-apart / NEAR), np.exp(-apart / FAR)
    local = [move / move.sum(axis=1, keepdims=True) for move in (near, far)]
    return MOVES[0] * local[0] + MOVES[1] * local[1] + MOVES[2] * anywhere[None, :]


def _grid(top: float, noise: float) -> Floats:
    """Rates from 0 to ``top``, in steps of about half the standard deviation of a total, and at least 6 %.

    ``noise`` is the variance that noise adds to a total.
    """
    found, here = [0.0], min(0.25, 0.25 * float(np.sqrt(noise + 0.25)))
    while here < top:
        found.append(here)
        here += max(min(0.5 * float(np.sqrt(here + noise)), max(0.4 * here, 0.1)), 0.06 * here)
    return np.array([*found, here])
