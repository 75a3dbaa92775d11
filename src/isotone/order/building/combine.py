"""Names and relations of several posets, side by side, stacked or multiplied."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from isotone.array_types import Ints
from isotone.errors import OrderError

if TYPE_CHECKING:
    from isotone.order.poset import Poset

__all__ = ["beside", "crossed", "stacked"]


def beside(posets: Sequence[Poset]) -> tuple[list[Hashable], Ints]:
    """All names, and the covers of each poset."""
    pairs = [poset.cover_pairs + first for poset, first in zip(posets, _firsts(posets), strict=True)]
    return _names(posets), np.concatenate(pairs)


def stacked(posets: Sequence[Poset]) -> tuple[list[Hashable], Ints]:
    """The same, and every maximal element below every minimal one of the next poset."""
    names, inside = beside(posets)
    firsts = _firsts(posets)
    pairs = [inside]
    for k in range(1, len(posets)):
        tops = [posets[k - 1].index(name) + firsts[k - 1] for name in posets[k - 1].maximal]
        bottoms = [posets[k].index(name) + firsts[k] for name in posets[k].minimal]
        pairs.append(np.column_stack((np.repeat(tops, len(bottoms)), np.tile(bottoms, len(tops)))))
    return names, np.concatenate(pairs)


def crossed(posets: Sequence[Poset]) -> tuple[list[Hashable], Ints]:
    """All tuples with one name of each poset, the last one running fastest, and the covers of their product."""
    if not posets:
        raise OrderError("There is nothing to combine: pass at least one poset.")
    sizes = [len(poset) for poset in posets]
    places = np.arange(np.prod(sizes)).reshape(sizes)
    pairs: list[Ints] = []
    for axis, poset in enumerate(posets):
        rows = np.moveaxis(places, axis, 0).reshape(sizes[axis], -1)
        pairs.append(rows[poset.cover_pairs].transpose(0, 2, 1).reshape(-1, 2))
    return list(itertools.product(*posets)), np.concatenate(pairs)


def _firsts(posets: Sequence[Poset]) -> list[int]:
    """The position of each poset's first element among all."""
    if not posets:
        raise OrderError("There is nothing to combine: pass at least one poset.")
    sizes = [len(poset) for poset in posets]
    return [sum(sizes[:k]) for k in range(len(sizes))]


def _names(posets: Sequence[Poset]) -> list[Hashable]:
    names: dict[Hashable, None] = {}
    for poset in posets:
        for name in poset:
            if name in names:
                raise OrderError(
                    f"Two of the posets have an element {name!r}. Give one new names with rename()."
                )
            names[name] = None
    return list(names)
