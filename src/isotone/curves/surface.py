"""Surfaces: products of grids as orders, their ideals, and how an order is cut."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotone.array_types import Bools, Floats, Ints
from isotone.curves.circuits import Circuit, CircuitTables, CurveDraws
from isotone.curves.ideals import (
    MOST_IDEALS,
    MOST_QUOTIENT_IDEALS,
    CompositionNode,
    Cut,
    ListedRegion,
    OrderComposition,
    Region,
    compose,
    list_ideals,
)
from isotone.curves.problem import columns_of, numbers_of, parse_interval, shape_of
from isotone.errors import InputError
from isotone.kernels import kernel
from isotone.order import Parallel, Poset
from isotone.order.isotonic import project_bottom_up
from isotone.privacy.checks import shown, truth, whole_number

# Products of chains, without listing their relations.
#
# This is the order of several binned columns.
#
# A cell is below another if it is at most as high in every column. An order of 1,000 × 1,000 cells has 10¹² pairs to
# compare; as a product it is described by two numbers.

MOST_CELLS = 1 << 24
WHY_BOUNDS = "Columns are cut into bins between public limits, and values outside are moved to the ends."


@dataclass(frozen=True)
class ProductOrder:
    """The product of chains of the given lengths.

    Its elements are tuples of numbers, each from 0.

    >>> grid = ProductOrder((1000, 1000))
    >>> len(grid), (3, 999) in grid, grid.index((0, 7))
    (1000000, True, 7)
    """

    shape: tuple[int, ...]

    def __post_init__(self) -> None:
        shape: Any = self.shape
        scalar = isinstance(shape, (str, bytes)) or (isinstance(shape, np.ndarray) and shape.ndim == 0)
        if scalar or not isinstance(shape, Iterable) or not (entries := list(shape)):
            raise InputError(
                f"A product of chains needs the length of each chain, such as (20, 20), not {shown(shape)}. "
                "For columns with bounds, use PrivatePosetRegression.from_features."
            )
        sizes = tuple(
            whole_number(k, "the length of each chain (use from_features for columns with bounds)")
            for k in entries
        )
        object.__setattr__(self, "shape", sizes)
        if math.prod(sizes) > MOST_CELLS:
            raise InputError(
                f"A product of {' × '.join(map(str, sizes))} cells is too large: {MOST_CELLS:,} is the limit. Take fewer bins."
            )

    def rows(self, table: Any) -> int:
        """The number of rows of a table with a column for each chain.

        Other shapes raise an error.
        """
        shape = shape_of(table, "X")
        if len(shape) > 2 or (len(shape) == 2 and shape[1] != len(self.shape)):
            raise InputError(f"X must have two dimensions and {len(self.shape)} columns, not shape {shape}.")
        return len(table)

    def locate(self, table: Any) -> Ints:
        """The number of each row's element, −1 where it has none."""
        numbers, known = np.zeros(len(table), np.int64), True
        for column, size in zip(columns_of(table, "X", len(self.shape)), self.shape, strict=True):
            values = numbers_of(column)
            inside = (values >= 0) & (values < size) & (values == np.floor(values))
            known &= inside
            numbers = numbers * size + np.where(inside, values, 0).astype(np.int64)
        return np.where(known, numbers, -1)

    def __len__(self) -> int:
        return math.prod(self.shape)

    def __contains__(self, element: object) -> bool:
        return (
            isinstance(element, tuple)
            and len(element) == len(self.shape)
            and all(
                isinstance(k, (int, np.integer)) and 0 <= k < top
                for k, top in zip(element, self.shape, strict=True)
            )
        )

    def index(self, element: Any) -> int:
        """The number of an element, last column fastest."""
        if element not in self:
            raise KeyError(element)
        return int(np.ravel_multi_index(element, self.shape))

    def cover_pairs(self) -> Ints:
        """All covers ``(lower, upper)``, as numbers of elements."""
        cells = np.arange(len(self)).reshape(self.shape)
        pairs = [np.zeros((0, 2), np.int64)]
        for axis in range(len(self.shape)):
            lower = np.delete(cells, -1, axis=axis).ravel()
            upper = np.delete(cells, 0, axis=axis).ravel()
            pairs.append(np.stack([lower, upper], axis=1))
        return np.concatenate(pairs)

    def fewest_ideals(self) -> Fraction:
        """A lower bound on the number of ideals, exact with at most three axes (MacMahon's box formula)."""
        a, b, c = [*sorted(self.shape, reverse=True), 1, 1][:3]
        count = Fraction(1)
        for i in range(1, b + 1):
            for j in range(1, c + 1):
                count *= Fraction(i + j + a - 1, i + j - 1)
                if count > MOST_CELLS:
                    return count
        return count

    def planes(self) -> list[Ints]:
        """The cells of every plane along the two longest axes.

        One plane if no other axis has two places.
        """
        longest = sorted(range(len(self.shape)), key=lambda axis: -self.shape[axis])[:2]
        kept = [self.shape[axis] for axis in longest]
        cells = np.arange(len(self)).reshape(self.shape)
        cells = np.moveaxis(cells, longest, range(-len(longest), 0))
        rows, columns = kept if len(kept) == 2 else (1, *kept)
        return [np.ascontiguousarray(plane) for plane in cells.reshape(-1, rows, columns)]


@dataclass(frozen=True)
class FeatureOrder(ProductOrder):
    """The order of several columns cut into equal bins.

    Higher in every column is higher.

    ``falling`` columns are taken the other way round: the prediction falls as they rise.
    """

    bounds: tuple[tuple[Fraction, Fraction], ...] = ()
    falling: tuple[bool, ...] = ()

    @classmethod
    def of(
        cls, bounds: Iterable[Any], bins: int | Sequence[int], directions: bool | Sequence[bool]
    ) -> FeatureOrder:
        """Check public limits and numbers of bins, one for each column."""
        if not isinstance(bounds, Iterable) or isinstance(bounds, (str, bytes, Mapping)):  # pyright: ignore[reportUnnecessaryIsInstance] - what users pass
            raise InputError(
                f"from_features needs bounds=[(low, high), …], one pair for each column, not {shown(bounds)}. {WHY_BOUNDS} "
                "They must not be the data's own minimum and maximum, because those belong to single records."
            )
        limits = tuple(
            parse_interval(pair, f"bounds of column {place}", WHY_BOUNDS) for place, pair in enumerate(bounds)
        )
        if not limits:
            raise InputError("from_features needs bounds=[(low, high), …], one pair for each column.")
        sizes = _one_each(bins, len(limits), "bins")
        rising = _one_each(directions, len(limits), "directions")
        return cls(sizes, limits, tuple(not truth(up, "each of directions") for up in rising))

    def locate(self, table: Any) -> Ints:
        """The number of each row's cell, −1 where a value is missing. Values outside are moved to the ends."""
        numbers, missing = np.zeros(len(table), np.int64), False
        columns = columns_of(table, "X", len(self.shape))
        for column, (low, high), bins, falls in zip(
            columns, self.bounds, self.shape, self.falling, strict=True
        ):
            values = numbers_of(column)
            missing |= np.isnan(values)
            # first into the interval, then divided: no value is too large then
            inside = np.clip(np.nan_to_num(values), float(low), float(high)) - float(low)
            cell = np.minimum(np.floor(inside / float(high - low) * bins).astype(np.int64), bins - 1)
            numbers = numbers * bins + (bins - 1 - cell if falls else cell)
        return np.where(missing, -1, numbers)


def _one_each(value: Any, count: int, name: str) -> tuple[Any, ...]:
    """One entry for each column, from one for all or from a list.

    Arrays are turned into plain values.
    """
    if hasattr(value, "tolist"):
        value = value.tolist()
    entries = tuple(value) if isinstance(value, (list, tuple)) else (value,) * count
    if len(entries) != count:
        raise InputError(f"{name} must be one value, or one for each of the {count} columns, not {value!r}.")
    return entries


# Products of two chains. An ideal is a staircase, drawn row by row.
#
# In the product of a chain of rows and a chain of columns an ideal holds the first ``h[i]`` columns of row ``i``, and
# ``h`` never rises. A region is what lies between two staircases, ``low[i] <= h[i] <= high[i]``. Totals over the
# heights of the rows before are running sums, so a cut costs O(cells) (docs/theory/curves-posets.md, section 5).


@dataclass(frozen=True)
class GridRegion:
    """The cells ``cells[i, low[i]:high[i]]`` of a product of two chains. ``low`` and ``high`` never rise.

    ``cells`` holds the numbers of the elements, row by row.
    """

    cells: Ints = field(repr=False)
    low: Ints = field(repr=False)
    high: Ints = field(repr=False)

    @classmethod
    def whole(cls, cells: Ints) -> GridRegion:
        """All cells."""
        rows, columns = cells.shape
        return cls(cells, np.zeros(rows, np.int64), np.full(rows, columns, np.int64))

    @property
    def members(self) -> Ints:
        """The elements, row by row."""
        return self._members

    @cached_property
    def _members(self) -> Ints:
        column = np.arange(self.cells.shape[1])
        inside = (column >= self.low[:, None]) & (column < self.high[:, None])
        return self.cells[inside]

    def log_ideals(self) -> float:
        """The logarithm of the number of staircases."""
        circuit = Circuit(*_staircases(self.low, self.high))
        return CircuitTables(circuit, np.zeros(circuit.nodes, np.int64), Fraction(1)).log_total()

    def cut(self, weights: Ints, rate: Fraction, draws: CurveDraws) -> Cut:
        """Draw a staircase."""
        circuit = Circuit(*_staircases(self.low, self.high))
        costs = _row_costs(weights, self.cells, self.low, self.high, circuit.nodes)
        selected = draws.select(circuit, costs, rate)
        chosen = selected[~circuit.summed[selected]]  # one height for each row
        starts = np.concatenate([[0], np.cumsum(2 * (self.high - self.low + 1))])
        row = np.searchsorted(starts, chosen, side="right") - 1
        heights = np.empty_like(self.low)
        heights[row] = self.high[row] - (chosen - starts[row]) // 2
        return Cut(self._between(self.low, heights), self._between(heights, self.high))

    def _between(self, low: Ints, high: Ints) -> GridRegion | None:
        rows = np.flatnonzero(low < high)
        if not rows.size:
            return None
        span = slice(int(rows[0]), int(rows[-1]) + 1)
        return GridRegion(self.cells[span], low[span], high[span])


@kernel(steps=lambda low, high: 8 * (low.size + int((high - low).sum())))
def _staircases(low: Ints, high: Ints) -> tuple[NDArray[np.bool_], Ints, Ints]:
    """The circuit of all staircases.

    For each row two nodes a height, from the highest down: "this height" (a product with the sum of the row before) and
    "this height or a higher one" (a sum).
    """
    nodes, edges = 0, 0
    for i in range(low.size):
        heights = high[i] - low[i] + 1
        nodes += 2 * heights
        edges += (3 if i > 0 else 2) * heights - 1
    summed = np.zeros(nodes, np.bool_)
    first = np.empty(nodes + 1, np.int64)
    child = np.empty(edges, np.int64)
    node, edge, before = 0, 0, 0
    for i in range(low.size):
        start = node
        for h in range(high[i], low[i] - 1, -1):
            first[node] = edge
            if i > 0:  # the sum over heights of at least h in the row before
                child[edge] = before + 2 * (high[i - 1] - max(h, low[i - 1])) + 1
                edge += 1
            node += 1
            first[node] = edge
            summed[node] = True
            if h < high[i]:
                child[edge] = node - 2
                edge += 1
            child[edge] = node - 1
            edge += 1
            node += 1
        before = start
    first[nodes] = edge
    return summed, first, child


@kernel(steps=lambda weights, cells, *_: 4 * cells.size)
def _row_costs(weights: Ints, cells: Ints, low: Ints, high: Ints, nodes: int) -> Ints:
    """The weights below the height in its row, less the least such sum, for "this height" nodes."""
    costs = np.zeros(nodes, np.int64)
    node = 0
    for i in range(low.size):
        total, least = 0, 0
        for h in range(low[i], high[i]):
            total += weights[cells[i, h]]
            least = min(least, total)
        for h in range(high[i], low[i] - 1, -1):
            costs[node] = total - least
            node += 2
            if h > low[i]:
                total -= weights[cells[i, h - 1]]
    return costs


# How an order is cut. Chosen from the order alone, before any data.
#
# In this order of preference: products of two chains by rows; orders put together from series, parallel and small
# prime parts by their tree; orders with at most a million ideals by listing them. Other orders are *relaxed*: some
# relations are left out until one of these applies, and the released values are projected onto the functions monotone
# on the whole order, which needs no data (docs/theory/curves-posets.md, section 6).

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
    relation = (order.cover_pairs, order.linear_order)
    cells = _as_grid(order)
    if cells is not None:
        return Arrangement(len(order), (GridRegion.whole(cells),), *relation, "grid")
    composition = compose(order.decomposition())
    if not _large(composition):
        primes = any(part.less is not None for part in composition.parts)
        way = "small prime parts" if primes else "forest" if order.is_forest else "series-parallel"
        return Arrangement(len(order), (composition,), *relation, way)
    if few_ideals(order):
        return Arrangement(len(order), (listed(order),), *relation, "listed")
    grids, rest = _apart(order, composition)
    large = [] if rest is None else _large(rest)
    rests = () if rest is None else (_relaxed(rest, large),)
    return Arrangement(len(order), (*grids, *rests), *relation, "relaxed" if large else "grids", bool(large))


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
    relation = (order.cover_pairs(), np.arange(len(order)))
    if len(planes) == 1:
        return Arrangement(len(order), (GridRegion.whole(planes[0]),), *relation, "grid")
    if few_ideals(order):
        return Arrangement(len(order), (listed(order),), *relation, "listed")
    regions = tuple(GridRegion.whole(plane) for plane in planes)
    return Arrangement(len(order), regions, *relation, "relaxed", True)


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
    expected = cells.ravel()[ProductOrder((rows, columns)).cover_pairs()]
    same = {tuple(pair) for pair in expected.tolist()} == {tuple(pair) for pair in covers.tolist()}
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
