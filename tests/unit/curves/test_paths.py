"""Exact draws from path graphs: totals, brackets and refinement against enumeration in fractions."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from tests.support.curve_outcomes import scripts
from tests.support.isotonic_brute import shaped

from isotone.curves.circuits import CircuitTables
from isotone.curves.shapes import (
    constant_graph,
    convex_graph,
    linear_graph,
    lipschitz_graph,
    monotone_graph,
    piece_costs,
    spread_knots,
)
from isotone.errors import InputError

SIZES = [(1, 2), (3, 2), (4, 4), (5, 3)]


def all_curves(graph: Any) -> list[tuple[int, ...]]:
    """Every path of a graph as a curve."""
    costs = np.zeros(graph.graph.nodes, np.int64)
    return [
        tuple(graph.curve(path).tolist())
        for path, _ in scripts(lambda outcomes: outcomes.select(graph.graph, costs, Fraction(1)))
    ]


@pytest.mark.parametrize(("points", "values"), SIZES)
def test_the_paths_of_each_graph_are_the_curves_of_its_shape_once_each(points: int, values: int) -> None:
    assert sorted(all_curves(monotone_graph(points, values))) == sorted(shaped(points, values, "any"))
    for size in (1, 2, 3):
        ours = all_curves(constant_graph(points, values, size))
        assert sorted(ours) == sorted(shaped(points, values, "constant", size))
        ours = all_curves(lipschitz_graph(points, values, size))
        assert sorted(ours) == sorted(shaped(points, values, "lipschitz", size))
    assert sorted(all_curves(convex_graph(points, values, values))) == sorted(
        shaped(points, values, "convex")
    )


def test_linear_paths_are_sequences_of_pieces() -> None:
    graph = linear_graph(4, 3, 2)
    costs = np.zeros(graph.graph.nodes, np.int64)
    drawn = [
        tuple(map(tuple, np.stack(graph.curve(path), axis=1).tolist()))
        for path, _ in scripts(lambda outcomes: outcomes.select(graph.graph, costs, Fraction(1)))
    ]
    one = [((0, u), (3, v)) for u, v in itertools.combinations_with_replacement(range(3), 2)]
    two = [
        ((0, u), (k, v), (3, w))
        for k in (1, 2)
        for u, v, w in itertools.combinations_with_replacement(range(3), 3)
    ]
    assert sorted(drawn) == sorted(one + two)


def test_costs_of_linear_pieces_add_the_rounded_losses_of_their_points() -> None:
    rng = np.random.default_rng(0)
    table = rng.integers(0, 100, (7, 9))
    knots = spread_knots(7, 3)
    ends = linear_graph(4, 3, 1).ends
    for (s, e, u, v), cost in zip(ends.tolist(), piece_costs(table, knots, ends, 3).tolist(), strict=True):
        a, b = int(knots[s]), int(knots[e])
        points = range(a if s == 0 else a + 1, b + 1)
        at = [8 * (Fraction(u, 2) + Fraction(v - u, 2) * Fraction(x - a, b - a)) for x in points]
        assert cost == sum(
            table[x, math.floor(value + Fraction(1, 2))] for x, value in zip(points, at, strict=True)
        )


def exact_total(graph: Any, table: Any, rate: Fraction) -> Any:
    """The sum over all curves, with many digits."""
    with mpmath.workdps(60):
        return mpmath.fsum(
            mpmath.exp(
                -mpmath.mpf(rate.numerator)
                / rate.denominator
                * sum(int(table[x, v]) for x, v in enumerate(curve))
            )
            for curve in all_curves(graph)
        )


@pytest.mark.parametrize("scale", [1, 1000, 10**6])
def test_totals_are_right_to_within_their_stated_error(scale: int) -> None:
    rng = np.random.default_rng(scale)
    graph = constant_graph(5, 4, 3)
    table = rng.integers(0, scale, (5, 4))
    tables = CircuitTables(graph.graph, graph.costs(table), Fraction(1, 7))
    with mpmath.workdps(60):
        truth = mpmath.log(exact_total(graph, table, Fraction(1, 7)))
        found = mpmath.log(mpmath.mpf(float(tables._mantissa[-1]))) + int(tables._exponent[-1]) * mpmath.log(
            2
        )
        assert abs(found - truth) <= tables._error[-1]
    assert tables._error[-1] < 1e-8


@pytest.mark.parametrize("scale", [10, 10**6])
def test_brackets_hold_the_true_totals_and_shrink(scale: int) -> None:
    rng = np.random.default_rng(scale)
    graph = monotone_graph(4, 4)
    tables = CircuitTables(graph.graph, graph.costs(rng.integers(0, scale, (4, 4))), Fraction(1, 3))
    sink = graph.graph.nodes - 1
    coarse, fine, finest = (tables.brackets(sink, bits) for bits in (64, 128, 256))
    for (low, high), (lower, upper), (least, most) in zip(
        *(zip(*pair, strict=True) for pair in (coarse, fine, finest)), strict=True
    ):
        assert low << 64 <= lower <= upper <= high << 64
        assert lower << 128 <= least <= most <= upper << 128
        assert (most - least) << 100 <= max(most, 1 << 120)


def test_large_errors_are_left_to_the_wide_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = monotone_graph(3, 3)
    tables = CircuitTables(graph.graph, graph.costs(np.arange(9).reshape(3, 3)), Fraction(1))
    sink = graph.graph.nodes - 1
    narrow = tables.brackets(sink, 64)
    monkeypatch.setattr(tables, "_error", np.full(graph.graph.nodes, 0.3))
    wide = tables.brackets(sink, 64)
    assert all(a <= b for a, b in zip(narrow[0], wide[0], strict=True))
    assert all(a >= b for a, b in zip(narrow[1], wide[1], strict=True))


def test_nodes_that_no_path_reaches_have_no_weight() -> None:
    graph = constant_graph(2, 2, 2)  # at the first point no second piece can have begun
    tables = CircuitTables(graph.graph, np.zeros(graph.graph.nodes, np.int64), Fraction(1))
    assert round(math.exp(tables.log_total())) == 3


@pytest.mark.parametrize(
    "build",
    [
        lambda: monotone_graph(10**4, 10**4),
        lambda: constant_graph(10**4, 10**3, 64),
        lambda: lipschitz_graph(10**4, 10**4, 50),
        lambda: convex_graph(1000, 1000, 1000),
        lambda: linear_graph(200, 200, 8),
    ],
)
def test_graphs_that_are_too_large_are_refused_before_they_are_built(build: Any) -> None:
    with pytest.raises(InputError, match="is the limit"):
        build()
