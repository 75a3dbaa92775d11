"""Small orders: exact integers and NumPy rows against enumeration and against the compiled walk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from math import factorial
from typing import Any

import numpy as np
import pytest
from tests.support.bipartitions import extended_bipartitions
from tests.support.chisquare import FALSE_ALARM, chi_square_p
from tests.support.posets import all_posets

from isotone.order import Poset
from isotone.order.bipartitions import counting as extended
from isotone.order.bipartitions.small import ELEMENTS, Part, SmallRows, is_small, part_of

N_ORDER = Poset("abcd", [("a", "c"), ("b", "c"), ("b", "d")])
NESTED = Poset.series(Poset.disjoint_union(N_ORDER, Poset.antichain("xy")), Poset.chain("uv"))


class _BranchError(Exception):
    def __init__(self, weights: Sequence[int]) -> None:
        self.weights = list(weights)


def law(part: Part) -> dict[Any, Fraction]:
    """The exact law of a draw: every path of choices is followed, with its probability."""
    reached: dict[Any, Fraction] = {}
    waiting: list[tuple[tuple[int, ...], Fraction]] = [((), Fraction(1))]
    while waiting:
        path, probability = waiting.pop()
        taken = iter(path)

        def choose(weights: Sequence[int]) -> int:
            for index in taken:  # noqa: B023
                return index
            raise _BranchError(weights)

        try:
            one, two = part.draw(choose(part.counts), choose)
        except _BranchError as branch:
            total = sum(branch.weights)
            waiting += [
                ((*path, i), probability * Fraction(weight, total))
                for i, weight in enumerate(branch.weights)
                if weight
            ]
            continue
        outcome = tuple(one), tuple(two)
        reached[outcome] = reached.get(outcome, Fraction(0)) + probability
    return reached


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_draws_of_every_poset_are_exactly_uniform(n: int) -> None:
    for P in all_posets(n):
        wanted = {(tuple(A), tuple(B)) for A, B in extended_bipartitions(P)}
        found = law(part_of(P))
        assert set(found) == wanted
        assert set(found.values()) == {Fraction(1, len(wanted))}


def test_counts_of_every_poset_with_five_elements() -> None:
    for P in all_posets(5):
        sizes = Counter(len(A) for A, _ in extended_bipartitions(P))
        assert part_of(P).counts == [sizes[a] for a in range(6)]


@pytest.mark.parametrize("P", [NESTED, Poset.chain(range(60)), Poset.antichain(range(40))])
def test_counts_are_those_of_the_compiled_tables(P: Poset) -> None:
    assert sum(part_of(P).counts) == extended.count(P)


def test_closed_forms() -> None:
    assert sum(part_of(Poset.chain(range(100))).counts) == 2**100
    assert sum(part_of(Poset.antichain(range(100))).counts) == factorial(101)


def test_what_is_small_depends_on_elements_and_prime_blocks() -> None:
    assert is_small(Poset.antichain(range(ELEMENTS)))
    assert not is_small(Poset.antichain(range(ELEMENTS + 1)))
    fence = [(k, k + 1) if k % 2 else (k + 1, k) for k in range(13)]
    assert is_small(Poset(range(12), fence[:11]))
    assert not is_small(Poset(range(14), fence))


def _frequencies(P: Poset, orders: Any, sizes: Any) -> list[int]:
    drawn = Counter(
        (tuple(row[:a].tolist()), tuple(row[a:].tolist())) for row, a in zip(orders, sizes, strict=True)
    )
    wanted = [(tuple(A), tuple(B)) for A, B in extended_bipartitions(P)]
    assert set(drawn) <= set(wanted)
    return [drawn[key] for key in wanted]


BESIDE = Poset.disjoint_union
INTERLEAVED = [
    BESIDE(Poset.chain("ab"), Poset.series(Poset.antichain("xy"), Poset.chain("z"))),
    BESIDE(Poset.chain("z"), Poset.series(BESIDE(Poset.chain("ab"), Poset.chain("x")), Poset.chain("y"))),
    BESIDE(N_ORDER, Poset.chain("z")),
    Poset(
        "abcxy", [("a", "c"), ("b", "c"), ("b", "x"), ("b", "y"), ("x", "y")]
    ),  # a block with a chain in it
]
"""Parts inside parts, where keys must lie as uniform numbers do."""


@pytest.mark.parametrize(
    "P", [*all_posets(3), N_ORDER, Poset.series(N_ORDER, Poset.chain("z")), *INTERLEAVED]
)
def test_simulated_rows_are_uniform(P: Poset) -> None:
    frequencies = _frequencies(P, *SmallRows(part_of(P)).draw(40_000, np.random.default_rng(7)))
    uniform = [1 / len(frequencies)] * len(frequencies)
    assert chi_square_p(frequencies, uniform) > FALSE_ALARM
    tilted = [p * (1.1 if k % 2 else 0.9) for k, p in enumerate(uniform)]
    assert chi_square_p(frequencies, [p / sum(tilted) for p in tilted]) < FALSE_ALARM


def test_simulated_rows_follow_the_sizes_and_relations_of_a_larger_order() -> None:
    orders, sizes = SmallRows(part_of(NESTED)).draw(20_000, np.random.default_rng(3))
    counts = part_of(NESTED).counts
    found = np.bincount(sizes, minlength=len(counts)).tolist()
    assert chi_square_p(found, [count / sum(counts) for count in counts]) > FALSE_ALARM
    assert np.all(np.sort(orders, axis=1) == np.arange(len(NESTED)))
    place = np.argsort(orders, axis=1)
    for x, y in product(range(len(NESTED)), repeat=2):
        if x != y and NESTED.leq_matrix()[x, y]:
            same_side = (place[:, x] < sizes) == (place[:, y] < sizes)
            assert np.all(place[same_side, x] < place[same_side, y])
