"""Places and boxes of the elements in a drawing of an order, and an order as an outline."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from isotone.array_types import Floats, Ints
from isotone.errors import InputError
from isotone.order.isotonic import pool_adjacent_violators

if TYPE_CHECKING:
    from isotone.order.poset import Poset

# Positions with the least total sideways movement of the lines of a diagram.
#
# A linear program (Gansner, Koutsofios, North and Vo 1993) whose corners make long lines upright. It is solved by
# their network simplex: a spanning tree of constraints that hold with equality is changed, one edge at a time, until no
# edge of the tree has a negative cut value. O(points + lines) for each change.

_NEARLY = 1e-9
_CHANGES = 20
"""Changes of the tree for each node, after which the positions are good enough: rounding may let it cycle."""


def least_movement(lines: Ints, weights: Floats, pairs: Ints, distances: Floats, points: int) -> Floats:
    """Positions that minimise the weighted sum of ``|x_a − x_b|`` over ``lines``.

    The second point of each of ``pairs`` is at least its distance to the right of the first, which needs to be
    possible. All points must be joined by lines or pairs.
    """
    corners = points + np.arange(len(lines))  # the left end of each line is a node of its own
    tails = np.concatenate((corners, corners, pairs[:, 0]))
    heads = np.concatenate((lines[:, 0], lines[:, 1], pairs[:, 1]))
    lengths = np.concatenate((np.zeros(2 * len(lines)), distances))
    cost = np.concatenate((weights, weights, np.zeros(len(pairs))))
    surplus = np.zeros(points + len(lines))
    np.add.at(surplus, tails, cost)
    np.subtract.at(surplus, heads, cost)
    network = _Network(tails, heads, lengths, surplus, _far_left(tails, heads, lengths, surplus.size))
    tree = network.tight_tree()
    if not tree:
        return np.zeros(points)
    for _ in range(_CHANGES * surplus.size):
        if not network.improve(tree):
            break
    return network.at[:points] - network.at[:points].min()


def _far_left(tails: Ints, heads: Ints, lengths: Floats, nodes: int) -> Floats:
    """Every node as far to the left as its constraints allow."""
    at = np.zeros(nodes)
    for _ in range(nodes):
        moved = at.copy()
        np.maximum.at(moved, heads, at[tails] + lengths)
        if np.array_equal(moved, at):
            break
        at = moved
    return at


@dataclass
class _Network:
    """Nodes with positions ``at``, such that each edge is at least as long as it must be."""

    tails: Ints
    heads: Ints
    lengths: Floats
    surplus: Floats
    at: Floats

    def slack(self) -> Floats:
        return self.at[self.heads] - self.at[self.tails] - self.lengths

    def tight_tree(self) -> list[int]:
        """Edges of a spanning tree without slack. Nodes are moved until there is one."""
        inside = np.zeros(self.at.size, np.bool_)
        inside[0] = True
        tree: list[int] = []
        while len(tree) < self.at.size - 1:
            leaving, entering = inside[self.tails], inside[self.heads]
            slack = np.where(leaving != entering, self.slack(), np.inf)
            edge = int(np.argmin(slack))
            self.at[inside] += slack[edge] if leaving[edge] else -slack[edge]
            inside[[self.tails[edge], self.heads[edge]]] = True
            tree.append(edge)
        return tree

    def improve(self, tree: list[int]) -> bool:
        """Replace an edge with a negative cut value by the one that then becomes tight; False if there is none."""
        order, parent, above = self._rooted(tree)
        sums = self.surplus.copy()
        for node in reversed(order[1:]):
            sums[parent[node]] += sums[node]
        nodes = np.array(order[1:], np.int64)
        edges = np.array(tree, np.int64)[np.array(above, np.int64)[nodes]]
        # moving the side of the head to the right by one costs the surplus of the other side
        values = np.where(self.tails[edges] == nodes, sums[nodes], -sums[nodes])
        worst = int(np.argmin(values))
        if values[worst] >= -_NEARLY:
            return False
        node = order[1 + worst]
        self._exchange(tree, above[node], self._below(node, order, parent))
        return True

    def _exchange(self, tree: list[int], place: int, side: NDArray[np.bool_]) -> None:
        if side[self.tails[tree[place]]]:
            side = ~side  # the side of the head, which moves to the right
        crossing = side[self.tails] & ~side[self.heads]
        slack = np.where(crossing, self.slack(), np.inf)
        edge = int(np.argmin(slack))
        self.at[side] += max(slack[edge], 0.0)
        tree[place] = edge

    def _rooted(self, tree: list[int]) -> tuple[list[int], list[int], list[int]]:
        """The nodes from the root down, with the parent and the place in the tree of the edge to it."""
        beside: list[list[tuple[int, int]]] = [[] for _ in range(self.at.size)]
        for place, edge in enumerate(tree):
            tail, head = int(self.tails[edge]), int(self.heads[edge])
            beside[tail].append((head, place))
            beside[head].append((tail, place))
        order, parent, above = [0], [-1] * self.at.size, [-1] * self.at.size
        for node in order:
            for other, place in beside[node]:
                if place != above[node]:
                    parent[other], above[other] = node, place
                    order.append(other)
        return order, parent, above

    def _below(self, top: int, order: list[int], parent: list[int]) -> NDArray[np.bool_]:
        below = np.zeros(self.at.size, np.bool_)
        below[top] = True
        for node in order:
            if parent[node] >= 0 and below[parent[node]]:
                below[node] = True
        return below


# The layout of a Hasse diagram.
#
# Levels by height, few crossings, straight lines.
#
# Coordinates are *across* a level and *along* the levels; a picture may let "along" run upward or sideways.
# After Sugiyama, Tagawa and Toda (1981): relations that skip levels bend at a point on every level between;
# each level is sorted by the mean position of its neighbours, in sweeps; then positions are pulled towards
# neighbours, where keeping the elements of a level in order and apart is an isotonic regression.

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


# Boxes with text in the place that a layout gives them, whatever paints them.

Direction = Literal["up", "left"]
Measure = Callable[[str], float]
"""How wide a line of text is, in ems."""

# Sizes are in ems (multiples of the font size) until a font size is chosen, and then in points.
LINE = 1.25
_PADDING, _GAP, _LEVEL_GAP = 0.5, {"up": 1.0, "left": 0.5}, {"up": 2.6, "left": 4.0}
_WRAPS = (16, 24, 34, 48)
_SHELVES = 12
_JOIN = 0.35
_LARGEST_FONT, _GOOD_FONT, USUAL_FONT, LEAST_FONT = 11.0, 9.0, 8.0, 2.5
PAGE = np.array([760.0, 500.0])  # what a picture without a given axis should not exceed where it can


@dataclass(frozen=True)
class Box:
    """The text of an element and its size ``(width, height)``.

    Lines of its name, then of its value.
    """

    name: str
    value: str
    size: tuple[float, float]


@dataclass(frozen=True)
class Picture:
    """Boxes with coordinates in ems, x to the right and y upward."""

    boxes: Sequence[Box]
    centres: Floats
    routes: Sequence[Floats]
    ends: Sequence[tuple[int, int]]
    extent: Floats
    direction: Direction
    joins: Sequence[tuple[str, Floats]] = ()
    """The kind of each choice, and a line that joins its options on their upper side."""

    def font(self, page: Floats) -> float:
        """The largest font at which the picture fits on the page."""
        return float(min(_LARGEST_FONT, *(page / (self.extent + 1))))


def compose(
    poset: Poset,
    values: Mapping[Any, object] | Sequence[object] | None,
    labels: Mapping[Any, str] | None,
    direction: Direction | None,
    page: Floats,
    measure: Measure,
    beside_lines: float = 0.0,
) -> Picture:
    """The picture of an order that can best be read on the page.

    See :meth:`isotone.order.Poset.plot`. ``beside_lines`` is the width of the text that is to stand at the lines.
    """
    if direction not in (None, "up", "left"):
        raise InputError(
            f"direction must be 'up', 'left' or None (whichever reads better), not {direction!r}."
        )
    names, notes = _names(poset, labels), _notes(poset, values)
    result = _best(arrange(poset), names, notes, page, direction, measure, beside_lines)
    return replace(result, joins=_joins(poset, result)) if poset.choices else result


def _joins(poset: Poset, picture: Picture) -> list[tuple[str, Floats]]:
    """A line for each choice with several options, just before the lines to what is above them meet their boxes."""
    up = picture.direction == "up"
    joins: list[tuple[str, Floats]] = []
    for choice in poset.choices:
        places = [poset.index(option) for option in choice.options]
        sides = np.array([picture.boxes[x].size for x in places]) / 2 + _JOIN
        points = picture.centres[places] + (sides * (0, 1) if up else sides * (-1, 0))
        if len(places) > 1:
            joins.append((choice.kind, points[np.argsort(points[:, 0 if up else 1])]))
    return joins


def _names(poset: Poset, labels: Mapping[Any, str] | None) -> list[str]:
    for name in labels or ():
        poset.index(name)
    return [str((labels or {}).get(name, name)) for name in poset.elements]


def _notes(poset: Poset, values: Mapping[Any, object] | Sequence[object] | None) -> list[str]:
    if values is None:
        return [""] * len(poset)
    if isinstance(values, Mapping):
        for name in values:
            poset.index(name)
        values = [values.get(name, "") for name in poset.elements]
    if len(values) != len(poset):
        raise InputError(f"values must hold one entry per element: {len(poset)}, not {len(values)}.")
    return [_shown(value) for value in values]


def _shown(value: object) -> str:
    if isinstance(value, (int, np.integer)):
        return f"{value:,}"
    if isinstance(value, (float, np.floating)):
        return f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.0f}"
    return str(value)


def _best(
    diagrams: list[Diagram],
    names: list[str],
    notes: list[str],
    page: Floats,
    direction: Direction | None,
    measure: Measure,
    beside_lines: float,
) -> Picture:
    """The first picture with a good font, or else the one with the largest, from many arrangements.

    Upright ones come first, and are chosen unless the others' font is a quarter larger.
    """
    best, best_font = None, 0.0
    for way in ("up", "left") if direction is None else (direction,):
        handicap = 1.25 if way != "up" and direction is None else 1.0
        for wrap in _WRAPS:
            for picture in _pictures(diagrams, _boxes(names, notes, wrap, measure), way, beside_lines):
                font = min(picture.font(page), _GOOD_FONT) / handicap
                if font == _GOOD_FONT:
                    return picture
                if best is None or font > best_font * 1.03:
                    best, best_font = picture, font
            if all(len(name) <= wrap for name in names):
                break
    assert best is not None
    return best


def _boxes(names: list[str], notes: list[str], wrap: int, measure: Measure) -> list[Box]:
    boxes: list[Box] = []
    for name, note in zip(names, notes, strict=True):
        lines = [part for line in name.splitlines() or [""] for part in textwrap.wrap(line, wrap) or [""]]
        extra = [
            part
            for line in note.splitlines()
            for part in textwrap.wrap(line, wrap, break_long_words="\xa0" not in line)
        ]
        width = max(_width(lines, measure), 1.15 * _width(extra, measure))  # values are in bold
        size = width + 2 * _PADDING, (len(lines) + len(extra)) * LINE + 2 * _PADDING * 0.7
        boxes.append(Box("\n".join(lines), "\n".join(extra), size))
    return boxes


def _width(lines: list[str], measure: Measure) -> float:
    """The width of the widest of some lines of text."""
    return max(map(measure, lines), default=0.0)


def _pictures(
    diagrams: list[Diagram], boxes: list[Box], way: Direction, beside_lines: float
) -> Iterator[Picture]:
    """The same boxes on one shelf, on two, and so on."""
    room = (1.0 if way == "up" else beside_lines) if beside_lines else 0.0
    sizes = np.array([box.size for box in boxes])
    if way == "left":
        sizes = sizes[:, ::-1]
    parts = [place(diagram, sizes, _GAP[way], _LEVEL_GAP[way] + room) for diagram in diagrams]
    total = sum(part.across + 2 * _GAP[way] for part in parts)
    widest = max(part.across for part in parts)
    for shelves in range(1, min(len(parts), _SHELVES) + 1):
        for slack in (1.02, 1.1, 1.25):
            placed = pack(parts, max(widest, total / shelves * slack), 2 * _GAP[way])
            yield _turned(placed, boxes, way)


def _turned(placed: Placed, boxes: list[Box], way: Direction) -> Picture:
    """Coordinates (x, y) from (across, along). Greater elements are above, or to the left."""

    def turn(points: Floats) -> Floats:
        if way == "up":
            return points
        return np.array([placed.along, placed.across]) - points[:, ::-1]

    centres = np.empty((len(boxes), 2))
    centres[list(placed.elements)] = turn(placed.centres)
    extent = np.array([placed.across, placed.along])
    routes = [turn(route) for route in placed.routes]
    return Picture(boxes, centres, routes, placed.ends, extent if way == "up" else extent[::-1], way)


def curve(route: Floats, along: int) -> list[tuple[Literal["move", "line", "bend"], Floats]]:
    """A path through the corners of a route.

    Straight on levels, an S between them.

    A bend comes with its two control points and its end.
    """
    path: list[tuple[Literal["move", "line", "bend"], Floats]] = [("move", route[:1])]
    for k in range(1, len(route)):
        here, there = route[k - 1], route[k]
        if k % 2 == 0:
            controls = np.array([here, there])
            controls[:, along] = (here[along] + there[along]) / 2
            path.append(("bend", np.vstack((controls, there))))
        else:
            path.append(("line", there[None]))
    return path


# An order as an outline.


def nested_order(P: Poset) -> list[tuple[int, int]]:
    """The places of all elements with their depth, each once, under the first element that covers it.

    >>> from isotone.order import Poset
    >>> P = Poset(["year", "hyp", "meds", "flu"], [("year", "hyp"), ("meds", "hyp")])
    >>> [(P.elements[x], depth) for x, depth in nested_order(P)]
    [('hyp', 0), ('year', 1), ('meds', 1), ('flu', 0)]
    """
    first: dict[int, int] = {}
    for lower, upper in P.cover_pairs.tolist():
        first[lower] = min(upper, first.get(lower, upper))
    below: dict[int, list[int]] = {}
    for x in range(len(P)):
        below.setdefault(first.get(x, -1), []).append(x)
    result: list[tuple[int, int]] = []
    left = [(x, 0) for x in reversed(below.get(-1, []))]
    while left:
        x, depth = left.pop()
        result.append((x, depth))
        left += [(y, depth + 1) for y in reversed(below.get(x, []))]
    return result
