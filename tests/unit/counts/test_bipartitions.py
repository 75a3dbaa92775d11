import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.bipartitions import count_by_subsets, expected_squares, extended_bipartitions
from tests.support.posets import all_posets

from isotone import noise
from isotone.counts import sample_extended_bipartition
from isotone.errors import InputError
from isotone.order import Poset
from isotone.order.bipartitions import counting as bipartitions
from isotone.order.bipartitions.moments import expected_squares as exact_squares
from isotone.order.bipartitions.steps import BESIDE, POINTS, PRIME, STACK, steps

N_ORDER = Poset("abcd", [("a", "c"), ("b", "c"), ("b", "d")])


@st.composite
def posets(draw, largest=9):
    n = draw(st.integers(1, largest))
    pairs = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(lambda p: p[0] < p[1])
    return Poset(range(n), draw(st.lists(pairs, max_size=2 * n)) if n > 1 else [])


def test_counts_agree_with_enumeration_on_every_poset_with_up_to_five_elements():
    for n in range(1, 6):
        for P in all_posets(n):
            assert P.count_extended_bipartitions() == sum(1 for _ in extended_bipartitions(P))


@given(posets())
@settings(deadline=None, max_examples=60)
def test_counts_agree_with_linear_extensions_of_subsets(P):
    assert bipartitions.count(P) == count_by_subsets(P)


@given(posets(14))
@settings(deadline=None, max_examples=30)
def test_turning_an_order_upside_down_leaves_the_count(P):
    assert bipartitions.count(P) == bipartitions.count(P.dual())


def test_chains_and_antichains_have_closed_forms():
    assert bipartitions.count(Poset.chain(range(700))) == 2**700
    assert bipartitions.count(Poset.antichain(range(150))) == math.factorial(151)


def test_a_large_order_of_every_kind_of_step_is_counted():
    wide = Poset.disjoint_union(*(Poset.chain(range(3 * k, 3 * k + 3)) for k in range(3)))
    block = N_ORDER.rename(lambda x: f"n{x}")
    P = Poset.series(Poset.disjoint_union(wide, block), Poset.antichain("xy"))
    assert bipartitions.count(P) == count_by_subsets(P)


def test_an_order_beyond_counting_is_refused_with_the_number_of_states():
    n = 30
    fence = Poset(range(n), [(i, j) for i in range(0, n, 2) for j in (i - 1, i + 1) if 0 <= j < n])
    with pytest.raises(InputError, match=str(2**n)):
        bipartitions.count(fence)
    with pytest.raises(InputError, match=r"Raise reach, or relax"):
        bipartitions.tables(fence)
    assert not bipartitions.within_reach(fence)


@given(posets(12))
@settings(deadline=None, max_examples=40)
def test_tables_bound_the_count_from_above_and_closely(P):
    made, exact = bipartitions.tables(P), bipartitions.count(P)
    assert 0 <= made.log_count - math.log(exact) + 1e-13 < 1e-6
    assert made.sizes == pytest.approx(made.sizes[::-1], rel=1e-6)


@given(posets(7))
@settings(deadline=None, max_examples=40)
def test_draws_are_extended_bipartitions(P):
    orders, sizes = bipartitions.draw(bipartitions.tables(P), 20, noise.random_words, noise.bernoulli)
    less = P.leq_matrix()
    for row, a in zip(orders, sizes, strict=True):
        assert sorted(row) == list(range(len(P)))
        for side in (row[:a], row[a:]):
            assert not any(less[side[j], side[i]] for j in range(len(side)) for i in range(j))


def test_a_sample_is_two_tuples_of_names_ascending():
    P = Poset(["hyp", "twice", "meds"], [("twice", "hyp"), ("meds", "hyp")])
    for _ in range(20):
        A, B = sample_extended_bipartition(P)
        assert len(A + B) == len(set(A + B) & set(P.elements)) == 3
        assert all(P.leq(x, "hyp") for x in A)
        for side in (A, B):
            assert "hyp" not in side[:-1]


@pytest.mark.parametrize("P", [N_ORDER, Poset("xvy", [("x", "v")]), Poset.antichain(range(40))])
def test_words_that_come_in_drops_give_the_same_draws_as_words_that_come_in_a_flood(P):
    made = bipartitions.tables(P)
    flood = np.random.default_rng(3).integers(0, 2**64, size=200_000, dtype=np.uint64)

    def draw(pour):
        at = 0

        def words(count):
            nonlocal at
            given = flood[at : at + min(count, pour)]
            at += given.size
            return given

        return bipartitions.draw(made, 50, words, lambda p: p > 1)

    for few, many in zip(draw(1), draw(10**6), strict=True):
        assert np.array_equal(few, many)


def test_a_question_is_answered_with_the_exact_probability_and_the_words_are_played_again():
    n = 40  # its binomials need more than 31 bits
    P = Poset.chain(range(n))
    made = bipartitions.tables(P)
    assert steps(P).tree.tolist() == [[1, n, 0, -1, 0]]
    asked: list[Fraction] = []
    half = np.uint64(2**61)  # the size of side A comes from the first words, the question from the next ones
    first = np.array([half, 0, 0, 0, 0], np.uint64)
    supply = [first, *(noise.random_words(1000) for _ in range(5))]

    def settle(p):
        asked.append(p)
        return len(asked) > 1

    orders, sizes = bipartitions.draw(made, 1, lambda count: supply.pop(0), settle)
    assert sorted(orders[0]) == list(range(n))
    assert 0 <= sizes[0] <= n
    assert asked
    assert all(0 <= p <= 1 for p in asked)
    rounded = [Fraction(math.comb(n, a)) / _value(made.numbers[a]) for a in range(n + 1)]
    assert asked[0] in [1 - (1 - r) * 2**24 for r in rounded]


def test_every_question_has_an_answer_that_is_a_probability():
    parts = [
        Poset.antichain([f"{name}{k}" for k in range(size)])
        for name, size in zip("abcd", (9, 2, 1, 5), strict=True)
    ]
    covers = [
        (x, y)
        for a, c in (("a", "c"), ("b", "c"), ("b", "d"))
        for x in _named(parts, a)
        for y in _named(parts, c)
    ]
    block = Poset([x for part in parts for x in part.elements], covers)
    P = Poset.series(Poset.disjoint_union(block, Poset.chain(range(50))), Poset.antichain("xyz"))
    made = bipartitions.tables(P)
    asked = 0
    for step, (kind, size, *_) in enumerate(made.steps.tree.tolist()):
        for a in range(size + 1):
            states = [0]
            if kind == PRIME:
                states = made.words.state[made.words.first[a] : made.words.first[a + 1]].tolist()
            if kind not in (BESIDE, STACK):
                answers = [bipartitions._answer_probability(made, step, a, state) for state in states]
                assert all(0 <= p <= 1 for p in answers)
                asked += len(answers)
    assert asked > 400


def _named(parts, name):
    return [x for part in parts for x in part.elements if str(x).startswith(name)]


def _value(number):
    m, e = int(number) & (2**31 - 1), int(number) >> 36
    return Fraction(m) * Fraction(2) ** e


def test_the_steps_of_an_antichain_are_points_and_a_shuffle():
    assert [row[0] for row in steps(Poset.antichain("abc")).tree.tolist()] == [POINTS, 5]
    assert steps(N_ORDER).tree[-1, 0] == PRIME
    assert steps(N_ORDER).states == [16]


def test_expected_squares_are_those_of_an_enumeration_wherever_there_is_no_prime_block():
    seen = 0
    for n in range(1, 6):
        for P in all_posets(n):
            exact = exact_squares(bipartitions.tables(P))
            if exact is None:
                assert steps(P).states
            else:
                seen += 1
                assert exact == pytest.approx(expected_squares(P), rel=1e-7)
    assert seen == 71


def test_expected_squares_of_long_orders_have_closed_forms():
    chain = exact_squares(bipartitions.tables(Poset.chain(range(300))))
    assert chain == pytest.approx(2 * np.arange(1, 301), rel=1e-6)
    points = exact_squares(bipartitions.tables(Poset.antichain(range(300))))
    assert points == pytest.approx(np.full(300, 302 * 303 / 6), rel=1e-6)
