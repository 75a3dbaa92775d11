"""Which gaps between thresholds hold more than a smooth distribution explains, from private numbers alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from isotone.array_types import Ints

__all__ = ["rough_gaps"]

_SEEN = 8.0  # times one over the ε of the thresholds around a gap, an excess must have to be no chance
_WORTH = (
    4.0  # times one over the ε of the thresholds inside it, to be worth them: about three standard deviations
)
_ALIKE = 2.0  # times its share of the table, the excess that is clear is expected in every other gap


def rough_gaps(ends: Sequence[int], reached: Ints, one_over: tuple[float, float], smooth: float) -> list[int]:
    """The gaps whose inner thresholds are worth measuring (docs/theory/tables-whole.md, section 6).

    Gap ``i`` has the counts above ``ends[i]`` up to ``ends[i + 1]``, and ``reached`` are noisy numbers of categories up to each end.
    A gap whose density lies between those of its neighbours is smooth. The categories by which it is denser than both, or
    thinner, are its excess. ``one_over`` the ε of a threshold around a gap, and of one inside, an excess must be many times to be
    clear, and more than the share ``smooth`` of the denser ones. Heaps come together: if much of a table is clear excess, gaps with many categories count
    as rough as well.

    >>> ends, even, heaped = [-1, 4, 9, 14], np.array([0, 100, 200, 300]), np.array([0, 5, 295, 300])
    >>> rough_gaps(ends, even, (1, 2), 0.3), rough_gaps(ends, heaped, (1, 2), 0.3)
    ([], [1])
    """
    width = np.diff(ends).astype(np.float64)
    inside = np.diff(reached).astype(np.float64)
    density = np.maximum(inside / width, 0.0)
    before, after = np.append(density[0], density[:-1]), np.append(density[1:], density[-1])
    most, least = np.maximum(before, after), np.minimum(before, after)
    excess = width * np.maximum(np.maximum(density - most, least - density), 0.0)
    clear = excess > np.maximum(_SEEN * one_over[0], _WORTH * one_over[1])
    clear &= excess > smooth * width * np.maximum(density, least)
    size = max(float(reached[-1]), 1.0)
    expected = min(_ALIKE * float(np.sum(excess[clear])) / size, 1.0) * inside
    rough = np.maximum(np.where(clear, excess, 0.0), expected) > _WORTH * one_over[1]
    found: list[int] = np.flatnonzero(rough & (width > 1)).tolist()
    return found
