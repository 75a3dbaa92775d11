"""How an order is cut. Chosen from the order alone, before any data.

In this order of preference: products of two chains by rows; orders put together from series, parallel and small
prime parts by their tree; orders with at most a million ideals by listing them. Other orders are *relaxed*: some
relations are left out until one of these applies, and the released values are projected onto the functions monotone
on the whole order, which needs no data (docs/theory/curves-posets.md, section 6).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from isotone.array_types import Bools, Floats, Ints
from isotone.curves.poset.composed_ideals import (
    MOST_QUOTIENT_IDEALS,
    CompositionNode,
    OrderComposition,
    compose,
)
from isotone.curves.poset.grid import GridRegion
from isotone.curves.poset.ideals import MOST_IDEALS, list_ideals
from isotone.curves.poset.product import ProductOrder
from isotone.curves.poset.regions import ListedRegion, Region
from isotone.kernels import kernel
from isotone.order import Parallel, Poset
from isotone.order.projection.least_squares import project_bottom_up

__all__ = ["Arrangement", "Order", "arrange", "few_ideals", "listed", "whole"]

Order = Poset | ProductOrder

MOST_PROJECTED = 5_000
"""Larger orders are made monotone by envelopes, in linear time."""


@dataclass(frozen=True)
class Arrangement:
    """Regions that together hold every element, and whether relations between or within them were left out."""

    size: int
    regions: tuple[Region, ...] = field(repr=False)
    covers: Ints = field(repr=False)
    bottom_up: Ints = field(repr=False)
    way: str
    relaxed: bool = False

    def log_ideals(self) -> float:
        """The logarithm of the number of ideals, for all regions together."""
        return sum(region.log_ideals() for region in self.regions)

    def monotone(self, values: Floats) -> Floats:
        """Values that respect the whole order, which are those given if nothing was left out."""
        if not self.relaxed:
            return values
        rank = np.empty(self.size, np.int64)
        rank[self.bottom_up] = np.arange(self.size)
        covers = rank[self.covers]
        lined = values[self.bottom_up]
        fitted = np.empty(self.size)
        if self.size <= MOST_PROJECTED:
            fitted[self.bottom_up] = project_bottom_up(covers, lined, np.ones(self.size))
        else:
            fitted[self.bottom_up] = _between_envelopes(covers, lined)
        return np.clip(fitted, values.min(), values.max())


def _between_envelopes(covers: Ints, values: Floats) -> Floats:
    """Halfway between the largest value at or below an element and the smallest at or above it."""
    rising = covers[np.argsort(covers[:, 1], kind="stable")]
    falling = covers[np.argsort(-covers[:, 0], kind="stable")]
    return _envelopes(rising, falling, values)


@kernel(steps=lambda rising, *_: 4 * rising.shape[0])
def _envelopes(rising: Ints, falling: Ints, values: Floats) -> Floats:
    upper, lower = values.copy(), values.copy()
    for k in range(rising.shape[0]):
        upper[rising[k, 1]] = max(upper[rising[k, 1]], upper[rising[k, 0]])
    for k in range(falling.shape[0]):
        lower[falling[k, 0]] = min(lower[falling[k, 0]], lower[falling[k, 1]])
    return (upper + lower) / 2


def arrange(order: Order) -> Arrangement:
    """The way to cut an order. Kept for the next fit on the same order with its elements in the same sequence."""
    return _arrange(order, () if isinstance(order, ProductOrder) else order.elements)


@lru_cache(maxsize=16)
def _arrange(order: Order, elements: tuple[Any, ...]) -> Arrangement:
    # `elements` is part of the key only: equal orders may list their elements in another sequence
    if isinstance(order, ProductOrder):
        return _arrange_product(order)
    whole = (order.cover_pairs, order.linear_order)
    cells = _as_grid(order)
    if cells is not None:
        return Arrangement(len(order), (GridRegion.whole(cells),), *whole, "grid")
    composition = compose(order.decomposition())
    if not _large(composition):
        primes = any(part.less is not None for part in composition.parts)
        way = "small prime parts" if primes else "forest" if order.is_forest else "series-parallel"
        return Arrangement(len(order), (composition,), *whole, way)
    if few_ideals(order):
        return Arrangement(len(order), (listed(order),), *whole, "listed")
    grids, rest = _apart(order, composition)
    large = [] if rest is None else _large(rest)
    rests = () if rest is None else (_relaxed(rest, large),)
    return Arrangement(len(order), (*grids, *rests), *whole, "relaxed" if large else "grids", bool(large))


def _apart(order: Poset, composition: OrderComposition) -> tuple[list[Region], OrderComposition | None]:
    """The unrelated components of an order that are products of two chains, and what is left without them."""
    tree = order.decomposition()
    grids: list[Region] = []
    taken = np.zeros(len(order), np.bool_)
    for child in tree.children if isinstance(tree, Parallel) else ():
        component = order.induced([order.elements[x] for x in child.indices.tolist()])
        cells = _as_grid(component)
        if cells is not None:
            number = np.array([order.index(name) for name in component.elements])
            grids.append(GridRegion.whole(number[cells]))
            taken[number] = True
    return grids, composition.trimmed(~taken[composition.members])


def listed(order: Order) -> ListedRegion:
    """The order as a region whose ideals are listed when they are needed."""
    if isinstance(order, ProductOrder):
        return ListedRegion(np.arange(len(order)), order.cover_pairs())
    return ListedRegion(order.linear_order, order.cover_pairs)


def whole(order: Order, region: Region, way: str) -> Arrangement:
    """The whole order in one region."""
    if isinstance(order, ProductOrder):
        # numbered with the last column fastest, every cell comes after those below it
        return Arrangement(len(order), (region,), order.cover_pairs(), np.arange(len(order)), way)
    return Arrangement(len(order), (region,), order.cover_pairs, order.linear_order, way)


@lru_cache(maxsize=16)
def few_ideals(order: Order) -> bool:
    """Whether the ideals of an order can be listed."""
    if isinstance(order, ProductOrder) and order.fewest_ideals() > MOST_IDEALS:
        return False
    return listed(order).count_up_to(MOST_IDEALS) is not None


def _arrange_product(order: ProductOrder) -> Arrangement:
    planes = order.planes()
    # numbered with the last column fastest, every cell comes after those below it
    whole = (order.cover_pairs(), np.arange(len(order)))
    if len(planes) == 1:
        return Arrangement(len(order), (GridRegion.whole(planes[0]),), *whole, "grid")
    if few_ideals(order):
        return Arrangement(len(order), (listed(order),), *whole, "listed")
    regions = tuple(GridRegion.whole(plane) for plane in planes)
    return Arrangement(len(order), regions, *whole, "relaxed", True)


def _as_grid(order: Poset) -> Ints | None:
    """The elements as a table, if the order is a product of two chains of at least two elements. Else None.

    In such a product the elements with one lower cover form the two chains from the bottom; an element's row and
    column are the numbers of elements of each chain that it is above.
    """
    size, covers = len(order), order.cover_pairs
    below = np.bincount(covers[:, 1], minlength=size)
    if size < 4 or (below == 0).sum() != 1 or below.max() != 2:
        return None
    rank = np.zeros((size, 2), np.int64)
    lower_of: list[list[int]] = [[] for _ in range(size)]
    for low, up in covers.tolist():
        lower_of[up].append(low)
    atoms = 0
    for x in order.linear_order.tolist():
        lows = lower_of[x]
        if len(lows) == 1:
            rank[x] = rank[lows[0]]
            if not rank[x].any():
                if atoms == 2:
                    return None
                rank[x, atoms] = 1
                atoms += 1
            elif rank[x].all():
                return None
            else:
                rank[x, int(rank[x, 1] > 0)] += 1
        elif lows:
            rank[x] = np.maximum(rank[lows[0]], rank[lows[1]])
    rows, columns = (rank.max(axis=0) + 1).tolist()
    cells = np.full((rows, columns), -1, np.int64)
    if rows * columns != size:
        return None
    cells[rank[:, 0], rank[:, 1]] = np.arange(size)
    if (cells < 0).any():
        return None
    wanted = cells.ravel()[ProductOrder((rows, columns)).cover_pairs()]
    same = {tuple(pair) for pair in wanted.tolist()} == {tuple(pair) for pair in covers.tolist()}
    return cells if same else None


def _large(composition: OrderComposition) -> list[int]:
    """The parts with too many ideals to spell out."""
    return [k for k, part in enumerate(composition.parts) if part.less is not None and _many(part.less)]


def _many(less: Bools) -> bool:
    """Whether an order has too many ideals to spell out."""
    order = np.argsort(less.sum(axis=0), kind="stable")
    return list_ideals(less.shape[0], np.argwhere(less), order, MOST_QUOTIENT_IDEALS) is None


def _relaxed(composition: OrderComposition, large: Sequence[int]) -> OrderComposition:
    """The same tree, with each of the named parts replaced by a forest of its children."""
    parts: list[CompositionNode] = []
    now: list[int] = []
    replaced = set(large)
    for k, part in enumerate(composition.parts):
        children = tuple(now[c] for c in part.children)
        if k in replaced and part.less is not None:
            _add_forest(parts, children, part.less)
        else:
            parts.append(CompositionNode(children, part.element, part.less, part.series))
        now.append(len(parts) - 1)
    return OrderComposition(parts)


def _add_forest(parts: list[CompositionNode], children: tuple[int, ...], less: Bools) -> None:
    """Write a forest inside the order ``less`` as series and parallel parts, the one of two that keeps most.

    Either everything keeps one element above it, or everything keeps one below it.
    """
    up, kept_up = _forest(less)
    down, kept_down = _forest(less.T)
    parent, upward = (up, True) if kept_up >= kept_down else (down, False)
    roots: list[int] = []
    inner: list[list[int]] = [[] for _ in children]
    # children of the forest come before their parent when sorted by how many lie on the far side
    far = less.sum(axis=0) if upward else less.sum(axis=1)
    for x in np.argsort(far, kind="stable").tolist():
        node = children[x]
        if inner[x]:
            rest = _unrelated(parts, inner[x])
            parts.append(CompositionNode((rest, node) if upward else (node, rest), series=True))
            node = len(parts) - 1
        (roots if parent[x] < 0 else inner[parent[x]]).append(node)
    _unrelated(parts, roots)  # a single root was written last, as everything is below (or above) it


def _unrelated(parts: list[CompositionNode], nodes: list[int]) -> int:
    if len(nodes) == 1:
        return nodes[0]
    parts.append(CompositionNode(tuple(nodes)))
    return len(parts) - 1


def _forest(less: Bools) -> tuple[Ints, int]:
    """One element right above each (or −1), so that many pairs stay related, and how many do."""
    size = less.shape[0]
    covers = less & ~(less.astype(np.int32) @ less.astype(np.int32) > 0)
    parent = np.full(size, -1, np.int64)
    depth = np.zeros(size, np.int64)
    for x in np.argsort(-less.sum(axis=0), kind="stable").tolist():
        above = np.flatnonzero(covers[x])
        if above.size:
            parent[x] = above[np.argmax(depth[above])]
            depth[x] = depth[parent[x]] + 1
    return parent, int(depth.sum())
