"""Shapes: the scores of every split against brute force, and the shape of everything that is released."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from tests.support.isotonic_brute import monotone

from isotone.curves import PrivateIsotonicRegression
from isotone.curves.circuits import cheapest
from isotone.curves.cuts import ChainProblem
from isotone.curves.losses import Absolute, Pinball, Squared
from isotone.curves.problem import FINE, CurveSetting, Grid, Records
from isotone.curves.regression import mechanism_for
from isotone.curves.shape_posterior import NearestOfShape, PieceDraw
from isotone.curves.shapes import LinearPieces, parse_shape, spread_knots
from isotone.errors import InputError
from isotone.published.curves.splits import (
    PIECE,
    ConstantSplitter,
    ConvexSplitter,
    LinearSplitter,
    LipschitzSplitter,
)
from isotone.published.curves.threshold import IMPOSSIBLE

POINTS, VALUES = 4, 5
ONE = (Fraction(0), Fraction(1))
Curve = tuple[int, ...]


def in_node(node: Any, curve: Curve) -> bool:
    """Whether a curve on the node's points respects its forced ends and its slopes."""
    slopes = np.diff(curve)
    steep = getattr(node, "most", None)
    return (
        (not getattr(node, "starts", False) or curve[0] == node.low)
        and (not getattr(node, "ends", False) or curve[-1] == node.high)
        and (steep is None or all(node.least <= slope <= steep for slope in slopes))
        and (steep is None or all(np.diff(slopes) >= 0))
    )


def crossing(node: Any, row: Any, curve: Curve) -> bool:
    """Whether a curve passes the middle as the row says."""
    count, last, following = row
    mid = (node.low + node.high) // 2
    size = node.last - node.first + 1
    return (
        sum(value <= mid for value in curve) == count
        and (count == 0 or curve[count - 1] == last)
        and (count == size or curve[count] == following)
    )


def constant_row(node: Any, row: Any, curve: Curve) -> bool:
    count, used = row
    mid = (node.low + node.high) // 2
    start = mid if node.high - node.low > 1 else node.high
    below, above = curve[:count], curve[count:]
    return (
        all(value <= mid for value in below)
        and all(value >= start for value in above)
        and len(set(below)) <= used
        and len(set(above)) <= node.pieces - used
    )


def nodes_to_test(splitter: Any, losses: Any, rng: np.random.Generator) -> Iterator[Any]:
    """The root, and nodes two levels further down."""
    active = [splitter.root()]
    for _ in range(3):
        yield from active
        below = []
        for node in active:
            if not splitter.settled(node):
                splits = splitter.splits(node, losses)
                possible = np.flatnonzero(splits.scores < IMPOSSIBLE)
                below += splitter.children(node, splits.rows[rng.choice(possible)])
        active = below


SPLITTERS: list[tuple[Any, Callable[[Any, Any, Curve], bool], Callable[[Curve], bool]]] = [
    (ConstantSplitter(POINTS, VALUES, 2), constant_row, lambda curve: True),
    (ConstantSplitter(POINTS, VALUES, 3), constant_row, lambda curve: True),
    (LipschitzSplitter(POINTS, VALUES, 1), crossing, lambda curve: bool(max(np.diff(curve), default=0) <= 1)),
    (LipschitzSplitter(POINTS, VALUES, 2), crossing, lambda curve: bool(max(np.diff(curve), default=0) <= 2)),
    (ConvexSplitter(POINTS, VALUES, 4), crossing, lambda curve: True),
    (ConvexSplitter(POINTS, VALUES, 2), crossing, lambda curve: True),
]


@pytest.mark.parametrize(("splitter", "passes", "allowed"), SPLITTERS)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_score_of_a_split_is_the_least_loss_that_it_allows(
    splitter: Any, passes: Any, allowed: Any, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    losses = rng.integers(0, 50, (POINTS, VALUES))
    for node in nodes_to_test(splitter, losses, rng):
        if splitter.settled(node):
            continue
        curves = [
            curve
            for curve in monotone(node.last - node.first + 1, node.low, node.high)
            if allowed(curve) and in_node(node, curve)
        ]
        splits = splitter.splits(node, losses)
        for row, score in zip(splits.rows.tolist(), splits.scores.tolist(), strict=True):
            fits = [curve for curve in curves if passes(node, row, curve)]
            if isinstance(splitter, ConstantSplitter):
                count, used = row
                size = node.last - node.first + 1
                if (count == 0) != (used == 0) or (count == size) != (used == node.pieces):
                    fits = []
            totals = [sum(losses[node.first + x, v] for x, v in enumerate(curve)) for curve in fits]
            assert score == min(totals, default=IMPOSSIBLE)


def linear_curves(node: Any) -> Iterator[tuple[tuple[int, int], ...]]:
    """All ways to write a curve of a node as corners (knot, value)."""
    for pieces in range(1, node.pieces + 1):
        for inner in itertools.combinations(range(node.first + 1, node.last), pieces - 1):
            knots = (node.first, *inner, node.last)
            for values in monotone(len(knots), node.low, node.high):
                if (node.starts and values[0] != node.low) or (node.ends and values[-1] != node.high):
                    continue
                yield tuple(zip(knots, values, strict=True))


@pytest.mark.parametrize("pieces", [1, 2, 3])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_score_of_a_linear_split_is_the_least_loss_that_it_allows(pieces: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    splitter = LinearSplitter(7, 4, pieces, spread_knots(7, 3))
    losses = splitter.prepare(rng.integers(0, 50, (7, 13)))
    for node in nodes_to_test(splitter, losses, rng):
        if splitter.settled(node):
            continue
        mid = (node.low + node.high) // 2
        curves = []
        for curve in linear_curves(node):
            steps = list(itertools.pairwise(curve))
            curves.append((curve, steps, sum(losses[s, e, u, v] for (s, u), (e, v) in steps)))
        splits = splitter.splits(node, losses)
        for row, score in zip(splits.rows.tolist(), splits.scores.tolist(), strict=True):
            kind, s, e, u, v, left, right = row
            totals = []
            for curve, steps, total in curves:
                if kind == PIECE:
                    place = steps.index(((s, u), (e, v))) if ((s, u), (e, v)) in steps else -1
                    fits = place >= 0 and place <= left and len(steps) - 1 - place <= right
                else:
                    fits = curve[-1][1] <= mid if kind == 0 else curve[0][1] > mid
                totals += [total] if fits else []
            assert score == min(totals, default=IMPOSSIBLE)


def random_records(rng: np.random.Generator, points: int, size: int = 60) -> Records:
    cells = rng.integers(0, points, size)
    levels = np.clip((cells / points + rng.normal(0, 0.3, size)) * FINE, 0, FINE).astype(np.int64)
    return Records(cells, levels, np.ones(size, np.int64)).sorted()


def check_shape(kind: str, size: Any, values: np.ndarray) -> None:
    steps = np.diff(values)
    assert steps.min() >= -1e-12
    if kind == "constant":
        assert np.unique(np.round(values, 9)).size <= size
    if kind == "linear":
        bends = np.abs(np.diff(steps)) > 1e-9
        assert bends.sum() <= size - 1
    if kind == "lipschitz":
        assert steps.max() <= size + 1e-12
    if kind in ("convex", "concave"):
        assert (np.diff(steps) * (1 if kind == "convex" else -1)).min() >= -1e-12


@pytest.mark.parametrize("method", ["auto", "threshold"])
@pytest.mark.parametrize("epsilon", ["1/10", "20"])
@pytest.mark.parametrize(
    ("shape", "points"),
    [(("constant", 3), 12), (("linear", 3), 17), (("lipschitz", "1/4"), 9), ("convex", 8), ("concave", 8)],
)
def test_everything_released_has_the_shape(shape: Any, points: int, method: str, epsilon: str) -> None:
    rng = np.random.default_rng(2)
    parsed = parse_shape(shape)
    assert parsed is not None
    for loss in (Squared(), Absolute(), Pinball(Fraction(3, 4))):
        for increasing in (True, False):
            grid = Grid(Fraction(0), Fraction(points - 1), points)
            plan = ChainProblem(
                loss,
                (Fraction(0), Fraction(1)),
                grid,
                method=method,
                shape=parsed,
                levels=None,
                value_levels=8,
                increasing=increasing,
            )
            mechanism = mechanism_for(plan.sized(60, CurveSetting(Fraction(epsilon))))
            for size in (0, 60):
                curve = mechanism.release(random_records(rng, points, size))
                values = curve.at(np.arange(points))
                limit = getattr(parsed, "pieces", 0) or float(getattr(parsed, "slope", 0))
                turned = values if increasing else values[::-1]
                check_shape(parsed.name, limit, turned)


@pytest.mark.parametrize("increasing", [True, False])
@pytest.mark.parametrize(
    ("slope", "bounds", "y_range"),
    [
        ("0.013", (0, 100), (0, 1)),
        ("7", ("-1/3", "2/3"), ("-3.3", "17.1")),
        ("1/3", ("0.1", "90.7"), ("1000000.1", "1000013.7")),
        ("1000000", (0, "0.00001"), (-5, 5)),
        ("1000000", (0, 1), (0, 1)),
    ],
)
def test_released_floats_keep_the_slope_exactly(
    slope: str, bounds: Any, y_range: Any, increasing: bool
) -> None:
    """A step between two points, which almost no noise hides: the curve rises as fast as it may."""
    low, high = (float(Fraction(end)) for end in bounds)
    ends = [float(Fraction(end)) for end in y_range][:: 1 if increasing else -1]
    x = np.linspace(low, high, 200)
    model = PrivateIsotonicRegression(
        1000, bounds, y_range, shape=("lipschitz", slope), x_grid=17, increasing=increasing
    )
    model.fit(x, np.where(x < low + 0.53 * (high - low), *ends))
    points = [
        [Fraction(number) for number in column.tolist()]
        for column in (model.X_thresholds_, model.y_thresholds_)
    ]
    (width, rise), sign = ([b - a for a, b in pairwise(column)] for column in points), 1 if increasing else -1
    assert all(0 <= sign * up <= Fraction(slope) * along for along, up in zip(width, rise, strict=True))
    fastest = min(Fraction(slope) * model.grid_.step, abs(Fraction(y_range[1]) - Fraction(y_range[0])))
    assert max(sign * up for up in rise) > fastest / 2


def test_points_that_floats_hardly_tell_apart_are_refused_with_a_slope() -> None:
    low = Fraction(2**36)
    plan = ChainProblem(
        Squared(), ONE, Grid(low, low + 1, 401), method="auto", shape=parse_shape(("lipschitz", 10**6))
    )
    mechanism_for(plan.sized(100, CurveSetting(Fraction(1))))
    crowded = replace(plan, grid=Grid(low, low + 1, 8193), value_levels=2)
    with pytest.raises(InputError, match="too coarse for a bounded slope"):
        mechanism_for(crowded.sized(100, CurveSetting(Fraction(1))))


def has_shape(kind: str, size: Any, values: np.ndarray) -> bool:
    try:
        check_shape(kind, size, values)
    except AssertionError:
        return False
    return True


SHAPED = [("constant", 2), ("lipschitz", "1/4"), "convex", ("linear", 2, 3)]


@pytest.mark.parametrize("shape", SHAPED)
def test_the_curve_of_a_shape_that_is_chosen_is_the_nearest_of_all(shape: Any) -> None:
    """Against all increasing curves on five points and five values, of which those with the shape are kept."""
    parsed, points, values = parse_shape(shape), 5, 4
    assert parsed is not None
    grid = Grid(Fraction(0), Fraction(points - 1), points)
    problem = ChainProblem(Squared(), ONE, grid, method="auto", shape=parsed, value_levels=values)
    built = NearestOfShape.of(problem.sized(60, CurveSetting(Fraction(1))))
    rng = np.random.default_rng(5)
    for _ in range(4):
        columns = built.shape.table.shape[1]
        wanted, weight = np.sort(rng.random(points)), rng.random(points)
        apart = weight[:, None] * (np.linspace(0, 1, columns) - wanted[:, None]) ** 2
        curve = built.shape.chosen(np.rint(2.0**40 * apart).astype(np.int64), cheapest)
        found = curve.at(np.arange(points))
        limit = getattr(parsed, "pieces", 0) or float(getattr(parsed, "slope", 0))
        least = np.inf
        for levels in monotone(points, 0, values):
            others = [np.array(levels) / values]
            if parsed.name == "linear":  # pieces have their ends at knots, with values of the grid
                others = [np.interp(np.arange(points), at, others[0][at]) for at in ([0, 2, 4], [0, 4])]
            for other in others:
                if has_shape(parsed.name, limit, other):
                    least = min(least, float((weight * (other - wanted) ** 2).sum()))
        # costs of linear pieces are rounded to 1,024 values
        off = 1e-3 if parsed.name == "linear" else 1e-9
        assert float((weight * (found - wanted) ** 2).sum()) == pytest.approx(least, abs=off)


@pytest.mark.parametrize("shape", SHAPED)
def test_a_curve_with_a_shape_depends_on_noisy_sums_alone(shape: Any) -> None:
    class Scripted:
        """Answers every round from a script, whatever the records are."""

        def __init__(self) -> None:
            self.rates: list[Fraction] = []

        def perturb(self, values: Any, rate: Fraction) -> Any:
            self.rates.append(rate)
            return np.arange(values.size).reshape(values.shape) * FINE

    grid = Grid(Fraction(0), Fraction(8), 9)
    problem = ChainProblem(Squared(), ONE, grid, method="auto", shape=parse_shape(shape), value_levels=8)
    built = mechanism_for(problem.sized(60, CurveSetting(Fraction(10))))
    rng, found = np.random.default_rng(3), []
    for size in (0, 1, 60):
        draws: Any = Scripted()
        found.append(built.draw(random_records(rng, 9, size), draws).at(np.arange(9)).tolist())
        assert sum(draws.rates) * FINE == 10
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize(
    "spec",
    ["wavy", ("constant", 0), ("constant", 2.5), ("linear", 65), ("lipschitz", 0), ("convex", 2), 7, ()],
)
def test_unusable_shapes_are_refused(spec: Any) -> None:
    with pytest.raises(InputError):
        parse_shape(spec)


def test_a_slope_too_small_for_the_grid_says_which_grid_would_do() -> None:
    plan = ChainProblem(
        Squared(),
        (Fraction(0), Fraction(1)),
        Grid(Fraction(0), Fraction(1), 65),
        method="auto",
        shape=parse_shape(("lipschitz", "0.1")),
    )
    with pytest.raises(InputError, match="at least 1024 steps"):
        mechanism_for(plan.sized(100, CurveSetting(Fraction(1))))


@pytest.mark.parametrize("method", ["auto", "threshold"])
def test_a_slope_may_be_as_large_as_one_likes(method: str) -> None:
    grid = Grid(-(Fraction(10) ** 200), Fraction(10) ** 200, 5)
    plan = ChainProblem(
        Squared(),
        (Fraction(0), Fraction(1)),
        grid,
        method=method,
        shape=parse_shape(("lipschitz", 1)),
        levels=None,
        value_levels=8,
    )
    curve = mechanism_for(plan.sized(60, CurveSetting(Fraction(20)))).release(
        random_records(np.random.default_rng(0), 5)
    )
    check_shape("any", 0, curve.at(np.arange(5)))


def test_shapes_need_even_grids_and_have_no_bins() -> None:
    listed = Grid(Fraction(0), Fraction(1), 2, (0.0, 1.0))
    with pytest.raises(InputError, match="evenly spaced"):
        ChainProblem(
            Squared(), (Fraction(0), Fraction(1)), listed, method="auto", shape=parse_shape("convex")
        )
    even = Grid(Fraction(0), Fraction(1), 9)
    with pytest.raises(InputError, match="no shape but rising"):
        ChainProblem(Squared(), (Fraction(0), Fraction(1)), even, method="bins", shape=parse_shape("convex"))


def test_linear_pieces_end_at_as_many_knots_as_asked_for() -> None:
    assert parse_shape(("linear", 3)) == LinearPieces(3, 17)
    assert parse_shape(["linear", 3, 5]) == LinearPieces(3, 5)
    grid = Grid(Fraction(0), Fraction(1), 41)
    drawn = mechanism_for(
        ChainProblem(Absolute(), ONE, grid, method="auto", shape=parse_shape(("linear", 3, 5))).sized(
            99, CurveSetting(Fraction(1))
        )
    )
    assert isinstance(drawn, PieceDraw)
    assert drawn.knots.tolist() == [0, 10, 20, 30, 40]
    for wrong in (1, 1026, 2.5):
        with pytest.raises(InputError, match="knots must be a whole number from 2 to 1025"):
            parse_shape(("linear", 3, wrong))
    with pytest.raises(InputError, match="no shape"):
        parse_shape(("constant", 3, 5))


@pytest.mark.parametrize(
    ("slope", "points", "advice"),
    [
        ("0.5", 1025, "Take at most 129 points (x_grid)."),  # 2,048 steps of values would be too many
        ("1", 300, "Take at most 257 points (x_grid) or at least 512 steps of values (value_levels)."),
        ("1/1000", 65, "Take a larger slope."),
    ],
)
def test_a_slope_too_small_for_the_grids_is_refused_with_what_would_do(
    slope: str, points: int, advice: str
) -> None:
    def plan(points: int) -> ChainProblem:
        grid = Grid(Fraction(0), Fraction(1), points)
        return ChainProblem(Absolute(), ONE, grid, method="auto", shape=parse_shape(("lipschitz", slope)))

    with pytest.raises(InputError, match=re.escape(advice)):
        mechanism_for(plan(points).sized(100, CurveSetting(Fraction(1))))
    if found := re.search(r"at most (\d+) points", advice):
        mechanism_for(plan(int(found[1])).sized(100, CurveSetting(Fraction(1))))
