"""Stages that close records upward.

Which answers are joined to which is computed from the order alone.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from isotone.order.poset import Poset

__all__ = ["Stage", "closing_stages"]

Stage = dict[int, list[int]]
"""For some elements, by number, the elements whose answers are joined to theirs, all at once."""


def closing_stages(P: Poset) -> list[Stage]:
    """The stages that close any record upward.

    After them an element is a yes if one at or below it was.

    Levels are cut into blocks. First all blocks are closed in themselves, level by level along the covers. Then neighbouring
    blocks are joined in pairs, again and again: an element of the upper one joins the answers of the greatest elements
    below it in the lower one. The height of the first blocks is the power of two that makes the stages cheapest: all levels
    for flat orders, where the terms are the covers; one for chains, where n log n terms do in log n stages.
    """
    lower: list[list[int]] = [[] for _ in range(len(P))]
    for w, x in P.cover_pairs.tolist():
        lower[x].append(w)
    level = _levels(P)
    sizes = [1 << k for k in range(int(level.max()).bit_length())]
    best = _within(lower, level, len(P))
    merges: list[Stage] = []
    for size in reversed(sizes):
        merge = _across(P, lower, level, size, most=_cost(best, len(P)))
        if merge is None:
            break
        merges.insert(0, merge)
        best = min(best, [*_within(lower, level, size), *merges], key=lambda stages: _cost(stages, len(P)))
    return best


def _cost(stages: list[Stage], columns: int) -> int:
    """The cost of the stages.

    The number of terms, and the number of columns for each stage, since every column goes through it.
    """
    return columns * len(stages) + sum(len(joined) for stage in stages for joined in stage.values())


def _levels(P: Poset) -> NDArray[np.int64]:
    """Levels from 0, as high as the elements above allow.

    An element of a forest is then just below its upper one.
    """
    above = np.zeros(len(P), dtype=np.int64)
    place = np.empty(len(P), dtype=np.int64)
    place[P.linear_order] = np.arange(len(P))
    for w, x in sorted(P.cover_pairs.tolist(), key=lambda pair: -place[pair[0]]):
        above[w] = max(above[w], above[x] + 1)
    return above.max() - above


def _within(lower: list[list[int]], level: NDArray[np.int64], size: int) -> list[Stage]:
    """Close each block of ``size`` levels in itself, level by level."""
    stages: list[Stage] = [{} for _ in range(size - 1)]
    for x, below in enumerate(lower):
        joined = [w for w in below if level[w] // size == level[x] // size]
        if joined:
            stages[level[x] % size - 1][x] = joined
    return [stage for stage in stages if stage]


def _across(P: Poset, lower: list[list[int]], level: NDArray[np.int64], size: int, most: int) -> Stage | None:
    """Join pairs of closed blocks of ``size`` levels.

    Returns None if that takes more than ``most`` terms.
    """
    stage: Stage = {}
    terms = 0
    for x in P.linear_order.tolist():
        block = level[x] // size
        if block % 2 == 0:
            continue
        found: set[int] = set()
        for w in lower[x]:
            if level[w] // size == block:
                found.update(stage.get(w, ()))
            elif level[w] // size == block - 1:
                found.add(w)
        if found:
            stage[x] = _greatest(P, sorted(found))
            terms += len(stage[x])
        if terms > most:
            return None
    return stage


def _greatest(P: Poset, elements: list[int]) -> list[int]:
    """The elements that are below none of the others."""
    if len(elements) == 1:
        return elements
    names = P.elements
    return [w for w in elements if not any(x != w and P.leq(names[w], names[x]) for x in elements)]
