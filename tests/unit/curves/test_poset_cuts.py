"""Cuts of regions against their definition: every ideal with its weight, exactly."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.support.poset_outcomes import brute_law, composed, cut_key, ideals_of, law, listed_whole, runs
from tests.support.posets import all_posets

from isotone.curves.circuits import CircuitTables
from isotone.curves.poset_arrangement import arrange
from isotone.curves.poset_grid import GridRegion
from isotone.curves.poset_product import ProductOrder
from isotone.curves.poset_regions import Region
from isotone.order import Poset

RATE = Fraction(1, 3)
Build = Callable[[Poset], Region]


def product_poset(*sizes: int) -> Poset:
    order = ProductOrder(sizes)
    return Poset(range(len(order)), order.cover_pairs().tolist())


def assert_law(region: Region, poset: Poset, weights: Any) -> None:
    found = law(lambda outcomes: region.cut(weights, RATE, outcomes), cut_key)
    expected = brute_law(poset, region.members, weights, RATE)
    assert {key for key, _ in found} == expected.keys()
    for (ideal, _), share in found.items():
        assert share == pytest.approx(expected[ideal], rel=1e-9)


def assert_law_and_children(region: Region, poset: Poset, weights: Any) -> None:
    assert_law(region, poset, weights)
    for cut, _ in list(runs(lambda outcomes: region.cut(weights, RATE, outcomes))):
        sides = [side for side in (cut.below, cut.above) if side is not None]
        assert sorted(x for side in sides for x in side.members.tolist()) == sorted(region.members.tolist())
        for side in sides:
            assert_law(side, poset, weights)


@pytest.mark.parametrize("build", [composed, listed_whole])
@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_every_small_order_and_its_parts_are_cut_by_the_weights(size: int, build: Build) -> None:
    rng = np.random.default_rng(size)
    for poset in all_posets(size):
        assert_law_and_children(build(poset), poset, rng.integers(-6, 7, size))


@pytest.mark.parametrize("build", [composed, listed_whole])
def test_orders_of_five_elements_are_cut_by_the_weights(build: Build) -> None:
    rng = np.random.default_rng(5)
    for poset in all_posets(5):
        assert_law(build(poset), poset, rng.integers(-6, 7, 5))


def test_prime_parts_hold_modules() -> None:
    """An order with four places in the shape of an N, each an order of two elements."""
    pairs = [("a", "c"), ("b", "c"), ("b", "d")]
    inner = [(x + "0", x + "1") for x in "ac"]
    across = [(x + i, y + j) for x, y in pairs for i in "01" for j in "01"]
    poset = Poset([x + i for x in "abcd" for i in "01"], inner + across)
    assert_law(composed(poset), poset, np.random.default_rng(8).integers(-5, 6, 8))


@pytest.mark.parametrize("shape", [(1, 4), (3, 1), (2, 2), (2, 3), (3, 3)])
def test_grids_and_their_parts_are_cut_by_the_weights(shape: tuple[int, int]) -> None:
    size = shape[0] * shape[1]
    region = GridRegion.whole(np.arange(size).reshape(shape))
    weights = np.random.default_rng(size).integers(-4, 5, size)
    assert_law_and_children(region, product_poset(*shape), weights)


def test_heavy_weights_do_not_overflow_a_cut() -> None:
    weights = np.array([10**15, -(10**15), 10**15, -(10**15)])
    for build in (composed, listed_whole):
        poset = Poset("abcd", [("a", "c"), ("b", "c"), ("b", "d")])
        cut = next(iter(runs(lambda outcomes, b=build, p=poset: b(p).cut(weights, Fraction(1), outcomes))))[0]
        assert cut_key(cut) in ideals_of(poset, range(4))


@pytest.mark.parametrize("seed", range(6))
def test_float_totals_agree_with_wide_integers(seed: int) -> None:
    rng = np.random.default_rng(seed)
    poset = Poset.random_dag(7, rng)
    region: Any = composed(poset)
    circuit = region.spelled.circuit
    costs = rng.integers(-(10 ** (seed * 2)), 10 ** (seed * 2) + 1, circuit.nodes)
    tables = CircuitTables(circuit, costs, Fraction(rng.integers(1, 1000).item(), 777))
    for node in np.flatnonzero(circuit.summed).tolist():
        lower, upper = tables.brackets(node, 64)
        fine_lower, fine_upper = tables.brackets(node, 192)
        for low, high, fine_low, fine_high in zip(lower, upper, fine_lower, fine_upper, strict=True):
            assert low << 128 <= fine_low <= fine_high <= high << 128
            assert fine_high - fine_low <= 2 + (fine_high >> 180)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
def test_the_number_of_ideals_is_known(size: int) -> None:
    for poset in all_posets(size):
        count = len(ideals_of(poset, range(size)))
        for region in (composed(poset), listed_whole(poset), *arrange(poset).regions):
            assert np.exp(region.log_ideals()) == pytest.approx(count)


def test_products_of_two_chains_are_recognised_under_any_names() -> None:
    rng = np.random.default_rng(3)
    for shape in [(2, 2), (2, 5), (4, 3)]:
        order = ProductOrder(shape)
        names = rng.permutation(len(order))
        poset = Poset(range(len(order)), [(int(names[a]), int(names[b])) for a, b in order.cover_pairs()])
        found = arrange(poset)
        assert found.way == "grid"
        assert_law(found.regions[0], poset, rng.integers(-4, 5, len(order)))


def test_orders_close_to_grids_are_not_taken_for_grids() -> None:
    order = ProductOrder((3, 3))
    pairs = order.cover_pairs().tolist()
    for left_out in range(len(pairs)):
        assert arrange(Poset(range(9), pairs[:left_out] + pairs[left_out + 1 :])).way != "grid"
    assert arrange(Poset(range(10), [*pairs, [8, 9]])).way != "grid"


@pytest.mark.parametrize(
    ("poset", "way"),
    [
        (Poset.chain(range(5)), "forest"),
        (Poset("abc", [("a", "b"), ("a", "c")]), "series-parallel"),
        (Poset("abcd", [("a", "c"), ("b", "c"), ("b", "d")]), "small prime parts"),
        (ProductOrder((30, 20, 1)), "grid"),
        (ProductOrder((3, 3, 3)), "listed"),
        (ProductOrder((10, 10, 3)), "relaxed"),
    ],
)
def test_the_way_to_cut_is_chosen_from_the_order_alone(poset: Any, way: str) -> None:
    assert arrange(poset).way == way


def test_an_order_out_of_reach_is_relaxed_to_one_with_fewer_relations() -> None:
    rng = np.random.default_rng(1)
    pairs = [(int(a), 40 + int(b)) for a, b in rng.integers(0, 40, (160, 2))]
    poset = Poset(range(80), pairs)
    found = arrange(poset)
    assert found.way == "relaxed"
    assert sorted(found.regions[0].members.tolist()) == list(range(80))
    values = found.monotone(rng.random(80))
    assert (values[poset.cover_pairs[:, 0]] <= values[poset.cover_pairs[:, 1]]).all()
    # every ideal of the whole order is one of the relaxed order: it is a down-set there too
    assert found.regions[0].log_ideals() > np.log(1e6)


def test_components_that_are_grids_are_cut_as_grids() -> None:
    grid = ProductOrder((12, 12))
    pairs = [((side, a), (side, b)) for side in "xy" for a, b in grid.cover_pairs().tolist()]
    names = [(side, k) for k in range(144) for side in "xy"]
    found = arrange(Poset([*names, "p", "q"], [*pairs, ("p", "q")]))
    assert found.way == "grids"
    assert not found.relaxed
    assert [region.members.size for region in found.regions] == [144, 144, 2]
    assert sorted(np.concatenate([region.members for region in found.regions]).tolist()) == list(range(290))
