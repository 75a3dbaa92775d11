"""Cuts of regions against their definition: every ideal with its weight, exactly."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.support.poset_outcomes import brute_law, composed, cut_key, ideals_of, law, listed_whole, runs
from tests.support.posets import all_posets

from isotone.curves import surface as poset_arrangement
from isotone.curves.circuits import Circuit, CircuitTables
from isotone.curves.ideals import OrderComposition, Region
from isotone.curves.surface import GridRegion, ProductOrder, arrange
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


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
def test_parts_have_few_ideals(size: int) -> None:
    """At most (n/w + 1)^w in an order of width w, and one more in both sides of a cut together."""
    for poset in all_posets(size):
        ideals = ideals_of(poset, range(size))
        assert len(ideals) <= (size / poset.width + 1) ** poset.width + 1e-9
        for below in ideals:
            above = frozenset(range(size)) - below
            sides = len(ideals_of(poset, sorted(below))) + len(ideals_of(poset, sorted(above)))
            assert sides <= len(ideals) + 1


def test_a_staircase_takes_few_choices() -> None:
    shape = (3, 4)
    region = GridRegion.whole(np.arange(12).reshape(shape))
    weights = np.random.default_rng(2).integers(-4, 5, 12)
    taken = [len(outcomes.taken) for _, outcomes in runs(lambda o: region.cut(weights, RATE, o))]
    assert len(taken) == 35
    assert max(taken) <= sum(shape)


@pytest.mark.parametrize("bits", [0, 10, 20, 30, 40, 49])
def test_a_factor_is_right_to_within_its_stated_error(bits: int) -> None:
    """exp(−rate·cost) for exponents of both signs, against sixty digits."""
    rng = np.random.default_rng(bits)
    one = Circuit(np.array([False]), np.array([0, 0]), np.array([], np.int64))
    with localcontext(prec=60):
        for cost in rng.integers(-(2**62), 2**62, 200).tolist():
            rate = Fraction(int(rng.integers(1, 2**40)), 2**40) * Fraction(2**bits, 2**62)
            tables = CircuitTables(one, np.array([cost]), rate)
            mantissa, exponent, error = (
                part[0].item() for part in (tables._mantissa, tables._exponent, tables._error)
            )
            x = Decimal(rate.numerator) * cost / Decimal(rate.denominator)
            off = Decimal(mantissa).ln() + exponent * Decimal(2).ln() + x
            assert error == (64 + 8 * abs(float(rate) * cost)) * 2.0**-53
            assert abs(off) <= Decimal(error)


def relations(composition: OrderComposition) -> np.ndarray:
    """What the tree of a composition says about the order on its members."""
    start, stop = composition.places
    size = composition.members.size
    less = np.zeros((size, size), np.bool_)
    for part in composition.parts:
        for i, low in enumerate(part.children):
            for j, high in enumerate(part.children):
                if (part.series and i < j) or (part.less is not None and part.less[i, j]):
                    less[start[low] : stop[low], start[high] : stop[high]] = True
    whole = np.zeros((size, size), np.bool_)
    whole[np.ix_(composition.members, composition.members)] = less
    return whole


def tangled(seed: int) -> Poset:
    """An order that is out of reach, inside series and parallel parts."""
    rng = np.random.default_rng(seed)
    pairs = [(int(a), 40 + int(b)) for a, b in rng.integers(0, 40, (160, 2))]
    return Poset.disjoint_union(
        Poset.series(Poset(range(80), pairs), Poset.antichain("xy")), Poset.chain("pq")
    )


@pytest.mark.parametrize("seed", [1, 2])
def test_a_relaxed_order_has_only_relations_of_the_order(seed: int) -> None:
    poset = tangled(seed)
    found = arrange(poset)
    (region,) = found.regions
    assert found.relaxed
    assert isinstance(region, OrderComposition)
    kept, whole = relations(region), poset.leq_matrix() & ~np.eye(len(poset), dtype=np.bool_)
    assert not (kept & ~whole).any()
    assert not ((kept.astype(int) @ kept.astype(int) > 0) & ~kept).any()  # an order: transitive
    assert kept.sum() > 0.2 * whole.sum()


@pytest.mark.parametrize("most_projected", [5_000, 0])
def test_no_monotone_truth_gets_farther_away(most_projected: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the projection in squares, by the envelopes in the largest difference."""
    monkeypatch.setattr(poset_arrangement, "MOST_PROJECTED", most_projected)
    poset, rng = tangled(3), np.random.default_rng(3)
    found, covers = arrange(poset), poset.cover_pairs
    leq = poset.leq_matrix()
    for _ in range(20):
        truth = np.array([rng.random(len(poset))[leq[:, x]].max() for x in range(len(poset))])
        truth = np.array([truth[leq[:, x]].max() for x in range(len(poset))])
        values = np.clip(truth + rng.normal(0, 0.3, len(poset)), 0, 1)
        made = found.monotone(values)
        assert (made[covers[:, 0]] <= made[covers[:, 1]]).all()
        order = 2 if most_projected else np.inf
        assert np.linalg.norm(made - truth, order) <= np.linalg.norm(values - truth, order) * (1 + 1e-9)
