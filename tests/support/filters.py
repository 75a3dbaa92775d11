"""Filters of small orders by brute force, and neighbouring changes of the counts."""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import NDArray

from isotone.order import Poset

__all__ = ["changes", "filters"]


def filters(P: Poset, max_size: int | None = None) -> list[NDArray[np.int64]]:
    """The indicator of every filter of ``P`` with at most ``max_size`` elements, the empty one included."""
    pairs = P.cover_pairs
    largest = len(P) if max_size is None else max_size
    subsets = (np.array(bits) for bits in product((0, 1), repeat=len(P)))
    return [s for s in subsets if s.sum() <= largest and np.all(s[pairs[:, 0]] <= s[pairs[:, 1]])]


def changes(P: Poset, neighbours: str, contributions: int, max_size: int | None) -> set[tuple[int, ...]]:
    """Every change of the counts that one privacy unit can make, by enumeration."""
    records = [tuple(f.tolist()) for f in filters(P, max_size)]
    zero = (0,) * len(P)
    sums = {zero}
    for _ in range(contributions):
        sums = {tuple(a + b for a, b in zip(s, r, strict=True)) for s in sums for r in records}
    others = {zero} if neighbours == "add-remove" else sums
    forward = {tuple(a - b for a, b in zip(s, t, strict=True)) for s in sums for t in others}
    return forward | {tuple(-a for a in change) for change in forward}
