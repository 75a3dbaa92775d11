"""The layout of a Hasse diagram.

Levels by height, few crossings, straight lines.

Coordinates are *across* a level and *along* the levels; a picture may let "along" run upward or sideways.
After Sugiyama, Tagawa and Toda (1981): relations that skip levels bend at a point on every level between;
each level is sorted by the mean position of its neighbours, in sweeps; then positions are pulled towards
neighbours, where keeping the elements of a level in order and apart is an isotonic regression.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from isotone.array_types import Floats
from isotone.order.drawing.straight import least_movement
from isotone.order.projection.chain import pool_adjacent_violators

if TYPE_CHECKING:
    from isotone.order.poset import Poset

__all__ = ["Diagram", "Placed", "arrange", "pack", "place"]

_SWEEPS, _CENTRINGS = 24, 8
_BEND_WIDTH = 0.4


@dataclass(frozen=True)
class Diagram:
    """A connected diagram without coordinates.

    It says what is on each level, from left to right.

    Points below ``len(elements)`` are elements, the others bends. ``segments`` join neighbouring levels.
    """

    elements: tuple[int, ...]
    levels: tuple[tuple[int, ...], ...]
    segments: tuple[tuple[int, int], ...]
    routes: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Placed:
    """A diagram, or several, with coordinates.

    Each route is a line from a lower to an upper element: corners 0–1, 2–3, … lie on one level and are
    joined by straight pieces; from 1 to 2, 3 to 4, … the line passes between levels. ``ends`` are the elements that
    each route joins.
    """

    elements: tuple[int, ...]
    centres: Floats
    routes: tuple[Floats, ...]
    ends: tuple[tuple[int, int], ...]
    across: float
    along: float

    def moved(self, across: float, along: float) -> Placed:
        """The same, shifted."""
        shift = np.array([across, along])
        return replace(
            self, centres=self.centres + shift, routes=tuple(route + shift for route in self.routes)
        )


def arrange(poset: Poset) -> list[Diagram]:
    """The connected parts of an order, each with its levels sorted so that few lines cross."""
    part = _components(poset)
    diagrams: list[Diagram] = []
    for number in range(part.max() + 1):
        elements = tuple(np.flatnonzero(part == number).tolist())
        diagrams.append(_untangled(_levelled(poset, elements)))
    return diagrams


def _components(poset: Poset) -> NDArray[np.int64]:
    part = np.arange(len(poset))
    for lower, upper in poset.cover_pairs:
        part[part == part[lower]] = part[upper]
    return np.unique(part, return_inverse=True)[1]


def _levelled(poset: Poset, elements: tuple[int, ...]) -> Diagram:
    """Elements on their levels, and a bend wherever a line crosses a level."""
    point = {x: k for k, x in enumerate(elements)}
    level = [int(poset.levels[x]) for x in elements]
    routes: list[tuple[int, ...]] = []
    for lower, upper in poset.cover_pairs.tolist():
        if lower in point:
            a, b = point[lower], point[upper]
            bends = range(len(level), len(level) + level[b] - level[a] - 1)
            level.extend(range(level[a] + 1, level[b]))
            routes.append((a, *bends, b))
    rows = tuple(tuple(k for k, at in enumerate(level) if at == height) for height in range(max(level) + 1))
    segments = tuple(pair for route in routes for pair in pairwise(route))
    return Diagram(elements, rows, segments, tuple(routes))


def _untangled(diagram: Diagram) -> Diagram:
    """Sort the levels in sweeps up and down.

    The arrangement with the fewest crossings is kept.

    The sweeps start from the points as listed and from the points as a walk along the lines meets them.
    """
    below, above = _neighbours(diagram)
    met = {point: k for k, point in enumerate(_walk(diagram.levels[-1][0], below, above))}
    best, fewest = diagram.levels, _crossings(diagram.levels, above)
    for start in (diagram.levels, [sorted(row, key=met.__getitem__) for row in diagram.levels]):
        rows = [list(row) for row in start]
        for sweep in range(_SWEEPS):
            if fewest == 0:
                break
            _sweep(rows, below, above, upward=sweep % 2 == 0)
            crossings = _crossings(rows, above)
            if crossings < fewest:
                best, fewest = tuple(map(tuple, rows)), crossings
    return replace(diagram, levels=best)


def _walk(start: int, below: list[list[int]], above: list[list[int]]) -> list[int]:
    """All points in the order of a depth-first walk along the lines."""
    met: dict[int, None] = {}
    waiting = [start]
    while waiting:
        point = waiting.pop()
        if point not in met:
            met[point] = None
            waiting.extend(reversed(above[point] + below[point]))
    return list(met)


def _sweep(rows: list[list[int]], below: list[list[int]], above: list[list[int]], *, upward: bool) -> None:
    """Sort every level by the one before it, bottom to top or top to bottom, in place."""
    sides = below if upward else above
    heights = range(len(rows)) if upward else range(len(rows) - 1, -1, -1)
    for before, height in pairwise(heights):
        rank = {point: k for k, point in enumerate(rows[before])}
        rows[height] = _sorted_by_neighbours(rows[height], rank, sides)
    _swap_neighbours(rows, below, above)


def _neighbours(diagram: Diagram) -> tuple[list[list[int]], list[list[int]]]:
    points = sum(len(row) for row in diagram.levels)
    below: list[list[int]] = [[] for _ in range(points)]
    above: list[list[int]] = [[] for _ in range(points)]
    for a, b in diagram.segments:
        above[a].append(b)
        below[b].append(a)
    return below, above


def _sorted_by_neighbours(row: list[int], rank: dict[int, int], sides: list[list[int]]) -> list[int]:
    """Sort a level by the mean rank of neighbours.

    Points without neighbours keep their places.
    """
    fixed = {k: point for k, point in enumerate(row) if not sides[point]}
    moving = [point for point in row if sides[point]]
    moving.sort(key=lambda point: sum(rank[other] for other in sides[point]) / len(sides[point]))
    return [fixed[k] if k in fixed else moving.pop(0) for k in range(len(row))]


def _swap_neighbours(rows: list[list[int]], below: list[list[int]], above: list[list[int]]) -> None:
    """Swap points next to each other as long as that removes crossings."""
    for height, row in enumerate(rows):
        ranks = [
            ({point: k for k, point in enumerate(rows[beside])}, sides)
            for beside, sides in ((height - 1, below), (height + 1, above))
            if 0 <= beside < len(rows)
        ]
        improved = True
        while improved:
            improved = False
            for k in range(len(row) - 1):
                left, right = row[k], row[k + 1]
                gain = sum(_inversions(rank, sides[left], sides[right]) for rank, sides in ranks)
                gain -= sum(_inversions(rank, sides[right], sides[left]) for rank, sides in ranks)
                if gain > 0:
                    row[k], row[k + 1] = right, left
                    improved = True


def _inversions(rank: dict[int, int], left: Sequence[int], right: Sequence[int]) -> int:
    return sum(rank[a] > rank[b] for a in left for b in right)


def _crossings(rows: Sequence[Sequence[int]], above: list[list[int]]) -> int:
    count = 0
    for lower, upper in pairwise(rows):
        rank = {point: k for k, point in enumerate(upper)}
        ends = np.array([end for point in lower for end in sorted(rank[b] for b in above[point])])
        count += int(sum(np.count_nonzero(ends[k + 1 :] < ends[k]) for k in range(len(ends))))
    return count


def place(diagram: Diagram, sizes: Floats, gap: float, level_gap: float) -> Placed:
    """Coordinates for a diagram whose elements have these sizes ``(across, along)``.

    Neighbours on a level are ``gap`` apart, levels ``level_gap``.
    """
    own = sizes[list(diagram.elements)]
    points = sum(len(row) for row in diagram.levels)
    width = np.full(points, _BEND_WIDTH)
    width[: len(own)] = own[:, 0]
    across = _straightened(diagram, width, gap)
    _centre(diagram, across, width, gap)
    across -= (across - width / 2).min()

    thick = [max([own[k, 1] for k in row if k < len(own)], default=0.0) for row in diagram.levels]
    start = np.cumsum([0.0, *thick[:-1]]) + level_gap * np.arange(len(thick))
    lanes = np.empty((points, 2))  # where each point's level begins and ends
    for row, first, thickness in zip(diagram.levels, start, thick, strict=True):
        lanes[list(row)] = first, first + thickness
    centres = np.column_stack((across, lanes.mean(axis=1)))[: len(own)]
    routes = tuple(_route(route, across, lanes, centres, own) for route in diagram.routes)
    ends = tuple((diagram.elements[route[0]], diagram.elements[route[-1]]) for route in diagram.routes)
    across_all = float((across + width / 2).max())
    return Placed(diagram.elements, centres, routes, ends, across_all, float(lanes.max()))


def _route(route: tuple[int, ...], across: Floats, lanes: Floats, centres: Floats, own: Floats) -> Floats:
    """The corners of a line from box to box. It is straight through each level it meets."""
    lower, upper = route[0], route[-1]
    along = lanes[list(route)].copy()
    along[0, 0] = centres[lower, 1] + own[lower, 1] / 2
    along[-1, 1] = centres[upper, 1] - own[upper, 1] / 2
    return np.column_stack((np.repeat(across[list(route)], 2), along.ravel()))


def _straightened(diagram: Diagram, width: Floats, gap: float) -> Floats:
    """Positions with the least total sideways movement of lines, above all between bends."""
    elements = len(diagram.elements)
    lines = np.array(diagram.segments, np.int64).reshape(-1, 2)
    pairs = np.array([pair for row in diagram.levels for pair in pairwise(row)], np.int64).reshape(-1, 2)
    weights = 1.0 + 2 * (lines >= elements).sum(axis=1) ** 2
    return least_movement(lines, weights, pairs, width[pairs].sum(axis=1) / 2 + gap, width.size)


def _centre(diagram: Diagram, across: Floats, width: Floats, gap: float) -> None:
    """Move elements towards the mean of their neighbours, where there is room, in place."""
    below, above = _neighbours(diagram)
    elements = len(diagram.elements)
    heights = range(len(diagram.levels))
    for sweep in range(_CENTRINGS):
        for height in heights if sweep % 2 else reversed(heights):
            row = list(diagram.levels[height])
            steps = (width[row][1:] + width[row][:-1]) / 2 + gap
            offset = np.concatenate(([0.0], np.cumsum(steps)))
            wish, weight = across[row], np.full(len(row), 1e-3)
            for k, point in enumerate(row):
                beside = below[point] + above[point]
                if point >= elements:
                    weight[k] = 1e6
                elif beside:
                    wish[k], weight[k] = across[beside].mean(), len(beside)
            across[row] = pool_adjacent_violators(wish - offset, weight) + offset


def pack(parts: Sequence[Placed], limit: float, gap: float) -> Placed:
    """Put diagrams side by side, starting a new shelf where they would reach across more than ``limit``.

    Shelves are filled in the given sequence, the first at the far end of "along" (the top of a picture).
    """
    shelves: list[list[Placed]] = []
    used = 0.0
    for part in parts:
        if not shelves or used + part.across > limit:
            shelves.append([])
            used = 0.0
        shelves[-1].append(part)
        used += part.across + gap
    placed: list[Placed] = []
    along = 0.0
    for shelf in reversed(shelves):
        across = 0.0
        for part in shelf:
            placed.append(part.moved(across, along))
            across += part.across + gap
        along += max(part.along for part in shelf) + gap
    return Placed(
        elements=tuple(x for part in placed for x in part.elements),
        centres=np.concatenate([part.centres for part in placed]),
        routes=tuple(route for part in placed for route in part.routes),
        ends=tuple(pair for part in placed for pair in part.ends),
        across=max(sum(part.across + gap for part in shelf) for shelf in shelves) - gap,
        along=along - gap,
    )
