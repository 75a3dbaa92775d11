"""The published score on orders, and the baseline, against brute force."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.support.curve_outcomes import records_of
from tests.support.poset_outcomes import ideals_of, law, listed_whole
from tests.support.posets import all_posets

from isotone.curves import PrivatePosetRegression
from isotone.curves import poset_regression as baseline
from isotone.curves.ideals import list_ideals
from isotone.curves.losses import Absolute, Squared
from isotone.curves.poset_regression import PosetBaseline, PosetProblem, branches
from isotone.curves.problem import FINE, CurveSetting
from isotone.curves.surface import ProductOrder, arrange
from isotone.errors import InputError
from isotone.order import Poset
from isotone.published.curves.threshold import ideal_losses


def monotone_functions(poset: Poset, values: int) -> list[tuple[int, ...]]:
    pairs = poset.cover_pairs.tolist()
    return [
        f for f in itertools.product(range(values), repeat=len(poset)) if all(f[a] <= f[b] for a, b in pairs)
    ]


def convex_costs(rng: np.random.Generator, size: int, values: int) -> np.ndarray:
    slopes = np.sort(rng.integers(-9, 10, (size, values - 1)), axis=1)
    return np.concatenate([np.zeros((size, 1), np.int64), np.cumsum(slopes, axis=1)], axis=1)


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_ideal_losses_are_the_best_losses_on_both_sides(size: int) -> None:
    rng = np.random.default_rng(size)
    for poset in all_posets(size):
        costs = convex_costs(rng, size, 5)
        region = listed_whole(poset)
        scores = ideal_losses(region, costs)  # pyright: ignore[reportArgumentType] - a listed region
        functions = monotone_functions(poset, 5)
        for index, score in enumerate(scores.tolist()):
            inside = set(region.members[region.ideals.ideal(index)].tolist())  # pyright: ignore[reportAttributeAccessIssue]
            best = min(
                sum(int(costs[x, f[x]]) for x in range(size))
                for f in functions
                if all(f[x] <= 2 if x in inside else f[x] >= 2 for x in range(size))
            )
            assert score == best


def test_lists_of_ideals_stop_at_their_limit_and_pass_64_elements() -> None:
    chain = np.array([[k, k + 1] for k in range(99)])
    whole = list_ideals(100, chain, np.arange(100))
    assert whole is not None
    assert whole.count == 101
    smaller, larger = whole.extensions()
    assert (larger - smaller == 1).all()
    assert smaller.size == 100
    assert list_ideals(30, np.zeros((0, 2), np.int64), np.arange(30), most=1000) is None


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_the_additive_excess_bounds_the_excess_of_the_least_loss_on_orders(size: int) -> None:
    """With derivatives at the middle from the left or the right; two steps of values are half the interval."""
    rng = np.random.default_rng(10 + size)
    for poset in all_posets(size):
        region: Any = listed_whole(poset)
        for side in (1, 2):
            costs = convex_costs(rng, size, 5)
            slopes = np.diff(costs, axis=1)[:, side]
            least = ideal_losses(region, costs)
            additive = region.ideals.sums(-slopes[region.members])
            assert (least - least.min() <= 2 * (additive - additive.min())).all()


def scores_moved(size: int, records: int) -> Iterator[tuple[int, np.ndarray]]:
    """How far scores move apart if one record is added, or replaced; and the change of its loss. Light and heavy data."""
    rng = np.random.default_rng(10 * records + size)
    for poset in all_posets(size):
        region: Any = listed_whole(poset)
        for x, heavy in itertools.product(range(size), [0, -100, 100] * 2):
            costs = convex_costs(rng, size, 5) + heavy * np.arange(5)
            old, new = np.vstack([convex_costs(rng, records, 5), np.zeros((1, 5), np.int64)])[:2]
            before, after = costs.copy(), costs.copy()
            before[x] += old
            after[x] += new
            moved = ideal_losses(region, after) - ideal_losses(region, before)
            yield int(np.ptp(moved)), new - old


@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize("records", [1, 2])
def test_one_record_moves_the_scores_of_ideals_apart_by_at_most_half_the_interval(
    size: int, records: int
) -> None:
    """By the range of its loss over half the interval; replaced at its element, by that of the difference of both."""
    shares: list[float] = []
    for moved, change in scores_moved(size, records):
        bound = max(int(np.ptp(change[:3])), int(np.ptp(change[2:])))
        assert moved <= bound
        shares.append(moved / max(1, bound))
    assert max(shares) == 1


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
def test_pairs_of_ideals_that_differ_by_one_element_are_all_found_in_order(size: int) -> None:
    for poset in all_posets(size):
        found = list_ideals(size, poset.cover_pairs, poset.linear_order)
        assert found is not None
        ideals = [frozenset(np.flatnonzero(found.ideal(k)).tolist()) for k in range(found.count)]
        assert sorted(map(sorted, ideals)) == sorted(map(sorted, ideals_of(poset, range(size))))
        smaller, larger = (pair.tolist() for pair in found.extensions())
        expected = {(a, b) for a in ideals for b in ideals if a < b and len(b) == len(a) + 1}
        assert len(smaller) == len(expected)
        assert {(ideals[low], ideals[high]) for low, high in zip(smaller, larger, strict=True)} == expected
        # in this order each ideal's own pairs come before those it is the smaller of
        assert larger == sorted(larger)
        assert all(low < high for low, high in zip(smaller, larger, strict=True))


def test_long_orders_of_small_width_are_listed() -> None:
    """Half a million ideals of two chains of 700: each is looked at a few times, not once for each element."""
    chains = np.array([[k, k + 2] for k in range(1398)])
    found = list_ideals(1400, chains, np.arange(1400))
    assert found is not None
    assert found.count == 701**2
    long = list_ideals(20_000, np.array([[k, k + 1] for k in range(19_999)]), np.arange(20_000))
    assert long is not None
    assert (np.diff(long.extensions()[1]) == 1).all()


def test_an_order_with_too_many_ideals_is_refused_with_the_limits() -> None:
    def plan(order: Any) -> PosetProblem:
        return PosetProblem(Absolute(), (Fraction(0), Fraction(1)), order, method="threshold")

    for order in (Poset.antichain(range(20)), ProductOrder((30, 30)), ProductOrder((8, 8, 8))):
        with pytest.raises(InputError, match=r"up to 1,000,000 of them and 128 MB .* method='additive'"):
            plan(order)
    assert plan(Poset.antichain(range(19))).arrangement.way == "listed"


FORESTS = [
    Poset.chain("abc"),
    Poset("abc", [("a", "c"), ("b", "c")]),
    Poset("abc", [("a", "b"), ("a", "c")]),
    Poset("abcd", [("a", "b"), ("c", "d")]),
]


@pytest.mark.parametrize("poset", FORESTS)
def test_the_baseline_draws_every_monotone_function_by_its_loss(poset: Poset) -> None:
    table = Squared().table(1024, 4, Fraction(1))
    setting = CurveSetting(Fraction(3))
    whole = arrange(poset)
    mechanism = PosetBaseline(setting, whole, branches(whole.size, whole.covers, whole.bottom_up), table)
    rows = [(0, FINE), (1, FINE // 3), (len(poset) - 1, 0), (len(poset) - 1, FINE // 2)]
    found = law(
        lambda outcomes: mechanism.draw(records_of(rows), outcomes),
        lambda values: tuple(np.rint(values * 4).astype(int).tolist()),
    )
    functions = monotone_functions(poset, 5)
    levels = [(level * 1024 + FINE // 2) // FINE for _, level in rows]
    losses = np.array(
        [sum(int(table[u, f[x]]) for (x, _), u in zip(rows, levels, strict=True)) for f in functions]
    )
    rate = 3 / int(np.ptp(table, axis=1).max())
    weights = np.exp(-rate * losses)
    expected = dict(zip(functions, weights / weights.sum(), strict=True))
    assert {key for key, _ in found} == expected.keys()
    for (f, _), share in found.items():
        assert share == pytest.approx(expected[f], rel=1e-9)
    assert mechanism.error().noise > 0


def test_the_baseline_is_refused_where_elements_have_two_covers_on_both_sides() -> None:
    poset = Poset("abcd", [("a", "c"), ("b", "c"), ("b", "d")])
    with pytest.raises(InputError, match="chain or a forest"):
        branches(4, poset.cover_pairs, poset.linear_order)


def test_the_baseline_refuses_sizes_out_of_reach() -> None:
    whole = arrange(Poset.chain(range(20_000)))
    forest = branches(whole.size, whole.covers, whole.bottom_up)
    with pytest.raises(InputError, match="too large"):
        PosetBaseline(CurveSetting(Fraction(1)), whole, forest, Absolute().table(1024, 512, Fraction(1)))


def test_a_baseline_out_of_reach_is_refused_before_the_charge(monkeypatch: pytest.MonkeyPatch) -> None:
    """The noisy number of records sets how many values there are, up to 129: it must not decide after the charge."""
    book = SimpleNamespace(charge=lambda guarantee, description: pytest.fail("charged"))
    model = PrivatePosetRegression(Poset.chain("abc"), y_range=(0, 1), method="baseline", ledger=book)
    monkeypatch.setattr(baseline, "MOST_NODES", 2 * 3 * 129 - 1)
    with pytest.raises(InputError, match="too large"):
        model.fit(["a"], [1])
    monkeypatch.setattr(baseline, "MOST_NODES", 2 * 3 * 129)
    model.check()
