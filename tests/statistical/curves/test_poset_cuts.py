"""Exact cuts and draws against enumeration: false-alarm rate 1e-8, and a rate wrong by a third is noticed."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.support.chisquare import FALSE_ALARM, assert_tells, chi_square_p, observe
from tests.support.curve_outcomes import records_of
from tests.support.effort import draws, off
from tests.support.poset_outcomes import brute_law, composed, cut_key, law, listed_whole

from isotone import noise
from isotone.curves.circuits import Circuit, CircuitTables, ExactCurveDraws, SeededCurveDraws, descend
from isotone.curves.ideals import Region
from isotone.curves.losses import Absolute
from isotone.curves.poset_regression import PosetBaseline, PosetTree, branches
from isotone.curves.problem import FINE, CurveSetting
from isotone.curves.surface import GridRegion, ProductOrder, arrange
from isotone.order import Poset
from isotone.published.curves.threshold import CoupledRegion

DRAWS, WRONG = draws(6_000, 1 / 3), 1 + Fraction(off(1 / 3)).limit_denominator(30)
FEWER_DRAWS, MORE_WRONG = draws(2_500, 0.5), 1 + Fraction(off(0.5)).limit_denominator(30)
"""Of whole mechanisms, which are slower: they notice a half."""

FOREST = Poset("abcdef", [("a", "c"), ("b", "c"), ("c", "f"), ("d", "f")])
SERIES_PARALLEL = Poset("abcdef", [(x, y) for x in "ab" for y in "cd"] + [("c", "e"), ("d", "e")])
PRIME = Poset("abcde", [("a", "c"), ("b", "c"), ("b", "d"), ("d", "e")])
GRID = Poset(range(9), ProductOrder((3, 3)).cover_pairs().tolist())


def whole_grid(_: Poset) -> Region:
    return GridRegion.whole(np.arange(9).reshape(3, 3))


def window(_: Poset) -> Region:
    return GridRegion(np.arange(9).reshape(3, 3), np.array([2, 0, 0]), np.array([3, 3, 1]))


# weights of both signs, and rates at which a third more makes the largest difference
MIXED, POSITIVE = np.array([9, -7, 8, -9, 7, -8, 9, -7, 8]), np.array([9, 7, 8, 9, 7, 8])
Case = tuple[Poset, Callable[[Poset], Region], np.ndarray, Fraction]
CASES: dict[str, Case] = {
    "forest": (FOREST, composed, MIXED, Fraction(9, 30)),
    "series-parallel": (SERIES_PARALLEL, composed, POSITIVE, Fraction(7, 30)),
    "prime": (PRIME, composed, MIXED, Fraction(7, 30)),
    "grid": (GRID, whole_grid, MIXED, Fraction(12, 30)),
    "part of a grid": (GRID, window, MIXED, Fraction(9, 30)),
    "small width": (PRIME, listed_whole, MIXED, Fraction(7, 30)),
}


class OneTable(ExactCurveDraws):
    """Exact choices that compute the totals of a circuit once for many draws from it."""

    tables: CircuitTables | None = None

    def select(self, circuit: Circuit, costs: np.ndarray, rate: Fraction) -> np.ndarray:
        tables = self.tables = self.tables or CircuitTables(circuit, costs, rate)
        return descend(circuit, lambda node: noise.choose_lazily(lambda bits: tables.brackets(node, bits)))


def check(seen: list[Any], law_at: Callable[[Fraction], Any], wrong: Fraction) -> None:
    """The draws have the law at the stated rate, and not at one times ``wrong``."""
    right, other = law_at(Fraction(1)), law_at(wrong)
    counts, expected = observe(seen, right)
    assert len(counts) == len(right)  # nothing else was drawn
    assert_tells(counts, expected, [other[key] for key in right])


@pytest.mark.parametrize("case", CASES)
def test_cuts_have_the_law_of_the_exponential_mechanism(case: str) -> None:
    poset, build, weights, rate = CASES[case]
    region, choices = build(poset), OneTable()
    seen = [cut_key(region.cut(weights, rate, choices)) for _ in range(DRAWS)]
    check(seen, lambda factor: brute_law(poset, region.members, weights, rate * factor), WRONG)


def test_weights_that_cancel_beyond_floats_are_decided_by_integers() -> None:
    """The empty ideal and the full one weigh the same; the one between nothing. False-alarm rate below 1e-8."""
    chain, weights = Poset.chain("ab"), np.array([10**17, -(10**17)])
    choices = ExactCurveDraws()
    seen = [len(cut_key(composed(chain).cut(weights, Fraction(1), choices))) for _ in range(1000)]
    assert chi_square_p(*observe(seen, {0: 0.5, 2: 0.5})) > FALSE_ALARM
    assert chi_square_p(*observe(seen, {0: 0.25, 2: 0.75})) < FALSE_ALARM


def test_coupling_from_the_past_has_the_law_of_the_exponential_mechanism() -> None:
    rate = Fraction(7, 30)
    region = CoupledRegion(PRIME.linear_order, PRIME.cover_pairs)
    choices = ExactCurveDraws()
    seen = [cut_key(region.cut(MIXED[:5], rate, choices)) for _ in range(FEWER_DRAWS)]
    check(seen, lambda factor: brute_law(PRIME, range(5), MIXED, rate * factor), MORE_WRONG)


def test_simulated_cuts_have_the_same_law() -> None:
    weights = np.array([9, -7, 8, -9, 7, -8])
    choices = SeededCurveDraws(np.random.default_rng(0))
    seen = [cut_key(composed(FOREST).cut(weights, Fraction(9, 30), choices)) for _ in range(1000)]
    assert chi_square_p(*observe(seen, brute_law(FOREST, range(6), weights, Fraction(9, 30)))) > FALSE_ALARM


def test_whole_trees_have_their_enumerated_law() -> None:
    rows = [(0, 0), (1, 0), (2, FINE)]
    poset = Poset("abc", [("a", "c"), ("b", "c")])

    def mechanism(epsilon: Fraction) -> PosetTree:
        return PosetTree(CurveSetting(epsilon), arrange(poset), Absolute().slopes(FINE, Fraction(1)), 2)

    def key(values: np.ndarray) -> tuple[float, ...]:
        return tuple(values.tolist())

    def enumerated(epsilon: Fraction) -> dict[object, float]:
        run = mechanism(epsilon)
        return {k: p for (k, _), p in law(lambda o: run.draw(records_of(rows), o), key).items()}

    release = mechanism(Fraction(4))
    seen = [key(release.release(records_of(rows))) for _ in range(FEWER_DRAWS)]
    check(seen, lambda factor: enumerated(4 * factor), MORE_WRONG)


def test_the_baseline_has_its_enumerated_law() -> None:
    poset = Poset("abc", [("a", "b"), ("a", "c")])
    whole = arrange(poset)
    forest = branches(whole.size, whole.covers, whole.bottom_up)
    table = Absolute().table(1024, 4, Fraction(1))
    rows = [(x, FINE // 2) for x in range(3)] * 3

    def key(values: np.ndarray) -> tuple[int, ...]:
        return tuple(np.rint(values * 4).astype(int).tolist())

    def mechanism(epsilon: Fraction) -> PosetBaseline:
        return PosetBaseline(CurveSetting(epsilon), whole, forest, table)

    def enumerated(epsilon: Fraction) -> dict[object, float]:
        run = mechanism(epsilon)
        return {k: p for (k, _), p in law(lambda o: run.draw(records_of(rows), o), key).items()}

    release = mechanism(Fraction(2))
    seen = [key(release.release(records_of(rows))) for _ in range(FEWER_DRAWS)]
    check(seen, lambda factor: enumerated(2 * factor), MORE_WRONG)
