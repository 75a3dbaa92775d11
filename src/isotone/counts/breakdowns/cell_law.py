"""The law of the noise on cells of a breakdown. Draws of the noise on all measured cells, through least squares.

Least squares mixes cells and never elements: it is a matrix over cells times the identity over elements. So the noise on
the elements of some cells is the same combination of independent draws that the values are (docs/theory/inference.md,
section 1).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from isotone.array_types import Floats
from isotone.counts.breakdowns.margins import MarginsMechanism
from isotone.errors import InputError
from isotone.linear.law import LAW_STREAM, Law
from isotone.noise.public_stream import public_stream

__all__ = ["Cell", "margins_law"]

Cell = tuple[int, int]
"""The place of a margin, and that of a cell in its table."""

_NUMBERS, _FEWEST, _SCALES, _MOST = 6_000_000, 400, 400, 60_000_000
"""A law draws about so many numbers in all; it has at least so many draws; so many for scales; and no more numbers than that."""

_SLOW = 5_000
"""Noise whose own law has fewer draws takes long to draw."""

_CHUNK = 1_000_000


def margins_law(mechanism: MarginsMechanism, cells: Sequence[Cell], stream: str = "") -> Law:
    """The law of the noise on the values of some cells, the elements of the first cell before those of the next.

    Laws of different ``stream`` are independent of each other: those of different releases.
    """
    size = _draws(mechanism)
    rows = _simulated(mechanism, cells, size, f"{LAW_STREAM} cells {stream}")
    return Law(rows, _simulated(mechanism, cells, _SCALES, f"{LAW_STREAM} scales of cells {stream}"))


def _measured(mechanism: MarginsMechanism) -> int:
    """How many noisy integers there are."""
    breakdown = mechanism.breakdown
    cells = [
        math.prod(breakdown.sizes(m)) for m, s in zip(breakdown.margins, mechanism.shares, strict=True) if s
    ]
    return sum(cells) * len(mechanism.base.P)


def _draws(mechanism: MarginsMechanism) -> int:
    """How many draws the law has, a public number."""
    numbers, most = _measured(mechanism), mechanism.base.law_draws
    if most < _SLOW or numbers * _FEWEST > _MOST:
        raise InputError(
            "The law of figures derived from this breakdown would take too long to draw: it has "
            f"{numbers:,} noisy numbers. Its columns low and high hold for each value alone."
        )
    return min(most, max(_FEWEST, _NUMBERS // numbers))


def _simulated(mechanism: MarginsMechanism, cells: Sequence[Cell], size: int, label: str) -> Floats:
    """Independent draws of the noise on the values of the cells, a row each."""
    n, rng = len(mechanism.base.P), public_stream(label)
    result = np.empty((size, len(cells) * n))
    step = max(1, _CHUNK // _measured(mechanism))
    for start in range(0, size, step):
        rows = result[start : start + step]
        tables: list[Floats | None] = []
        for margin, part in zip(mechanism.breakdown.margins, mechanism.parts, strict=True):
            if part is None:
                tables.append(None)
                continue
            sizes = mechanism.breakdown.sizes(margin)
            noise = np.asarray(part.simulate_released(len(rows) * math.prod(sizes), rng), dtype=np.float64)
            # to least squares a draw is one more element
            drawn = np.moveaxis(noise.reshape(len(rows), *sizes, n), 0, -2)
            tables.append(drawn.reshape(*sizes, len(rows) * n))
        found = mechanism.fit.estimate(tables)
        for k, (margin, cell) in enumerate(cells):
            own = found[margin].reshape(-1, len(rows), n)[cell]
            rows[:, k * n : (k + 1) * n] = own
    return result
