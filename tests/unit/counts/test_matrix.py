"""Sums chosen for the order: their sensitivity by enumeration, their error by dense algebra, and what is refused."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from tests.support.count_plans import plan
from tests.support.draw_cases import Tape
from tests.support.filters import changes, filters
from tests.support.posets import all_posets

from isotone.counts import HierarchicalMechanism, PosetMechanism
from isotone.counts.count_plan import Setting, best_mechanism
from isotone.counts.matrix import MatrixMechanism, all_records_of, has_few_records, longest_change, records_of
from isotone.errors import InputError
from isotone.order import Poset
from isotone.privacy.draws import ExactDraws
from isotone.privacy.guarantee import Guarantee, Neighbours
from isotone.release.manifest import rebuild_count_mechanism, recipe_of

SMALL = [P for n in range(1, 5) for P in all_posets(n)]
BOTH: tuple[Neighbours, ...] = ("add-remove", "replace")


def parts_of(P: Poset) -> list[int]:
    """The sizes of the parts that weights are for."""
    neighbours = {x: {y for pair in P.covers if x in pair for y in pair} for x in P.elements}
    found, left = list[int](), list(P.canonical.order.elements)
    while left:
        part, new = set[Any](), {left[0]}
        while new:
            part |= new
            new = {y for x in new for y in neighbours[x]} - part
        found.append(len(part))
        left = [x for x in left if x not in part]
    return found


def some_weights(P: Poset, seed: int) -> list[dict[str, Any]]:
    """Weights of any sign, two sums for each part."""
    rng = np.random.default_rng(seed)
    sizes = parts_of(P)
    return [
        {"own": rng.integers(1, 9, n).tolist(), "sums": rng.integers(-5, 9, (2, n)).tolist()} for n in sizes
    ]


def matrix_of(m: MatrixMechanism) -> np.ndarray:
    """The whole strategy, in the sequence of the elements."""
    A, start = np.zeros((m.strategy.rows, len(m.P)), np.int64), 0
    for place, matrix in zip(m.strategy.places, m.strategy.matrices, strict=True):
        A[start : start + len(matrix), place] = matrix
        start += len(matrix)
    return A


def test_all_records_are_listed() -> None:
    for P in SMALL:
        listed = {tuple(map(int, row)) for row in records_of(P.leq_matrix())}
        assert listed == {tuple(f) for f in filters(P) if any(f)}
    assert len(records_of(Poset.antichain(range(12)).leq_matrix())) > 1_000  # too many, and known to be


@pytest.mark.parametrize("neighbours", BOTH)
def test_the_longest_change_is_that_of_all_records_by_enumeration(neighbours: Neighbours) -> None:
    for seed, P in enumerate(SMALL):
        A = np.random.default_rng(seed).integers(-9, 10, (5, len(P)))
        moves = np.array(sorted(changes(P, neighbours, 1, None)))
        brute = int(np.abs(moves @ A.T).sum(axis=1).max())
        assert longest_change(A, records_of(P.leq_matrix()), neighbours == "replace") == brute


@pytest.mark.parametrize("contributions", [1, 3])
@pytest.mark.parametrize("neighbours", BOTH)
def test_neighbours_move_the_sums_by_no_more_than_the_noise_covers(
    neighbours: Neighbours, contributions: int
) -> None:
    """For any weights the loss is at most epsilon, and it is reached: parts move together."""
    for seed, P in enumerate(SMALL):
        m = MatrixMechanism(P, 2, neighbours, contributions, weights=some_weights(P, seed))
        moves = np.array(sorted(changes(P, neighbours, contributions, None)))
        assert m.rate * int(np.abs(moves @ matrix_of(m).T).sum(axis=1).max()) == 2


@pytest.mark.parametrize("neighbours", BOTH)
def test_sums_across_parts_cost_what_the_noise_covers(neighbours: Neighbours) -> None:
    for seed, P in enumerate(P for P in SMALL if len(parts_of(P)) > 1):
        rng, n = np.random.default_rng(seed), len(P)
        weights = [{"own": rng.integers(1, 9, n).tolist(), "sums": rng.integers(-5, 9, (2, n)).tolist()}]
        m = MatrixMechanism(P, 2, neighbours, weights=weights)
        moves = np.array(sorted(changes(P, neighbours, 1, None)))
        assert m.rate * int(np.abs(moves @ matrix_of(m).T).sum(axis=1).max()) == 2


@pytest.mark.parametrize(("number", "length"), [(2, 20), (3, 14)])
def test_a_strategy_for_all_chains_covers_every_record_and_beats_one_for_each(
    number: int, length: int
) -> None:
    """Of three chains there are 3,375 records: a bound over the first thousand would not cover them."""
    P = Poset.disjoint_union(*(Poset.chain([(c, i) for i in range(length)]) for c in range(number)))
    m = MatrixMechanism(P, 1)
    assert len(m.weights) == 1
    A, places = matrix_of(m), {x: at for at, x in enumerate(P.elements)}
    ends = [
        np.cumsum(
            [np.zeros(len(A), np.int64), *(A[:, places[c, i]] for i in reversed(range(length)))], axis=0
        )
        for c in range(number)
    ]
    longest = max(int(np.abs(sum(moves)).sum()) for moves in product(*ends))
    assert m.rate == Fraction(1, longest)
    apart = MatrixMechanism(Poset.chain(range(length)), 1).error().rmse * number
    assert m.error().rmse < 0.97 * apart
    with pytest.raises(InputError, match="more than 12,000 possible records"):
        all_records_of(Poset.antichain(range(14)).leq_matrix())


def test_more_pairs_than_are_compared_cost_twice_the_longest() -> None:
    A, records = np.eye(301, dtype=np.int64), np.tril(np.ones((301, 301), np.bool_))
    assert longest_change(A, records, exchanges=True) == 602
    assert longest_change(A[:300, :300], records[:300, :300], exchanges=True) == 300


@pytest.mark.parametrize("P", [Poset.chain(range(12)), SMALL[-3], SMALL[20]])
def test_estimates_and_variances_are_those_of_dense_least_squares(P: Poset) -> None:
    m = MatrixMechanism(P, 1, weights=some_weights(P, 3))
    A = matrix_of(m).astype(float)
    covariance = np.linalg.inv(A.T @ A) * m.noise.variance
    np.testing.assert_allclose(m.error().variance, np.diag(covariance))
    np.testing.assert_allclose(m.covariance(), covariance, atol=1e-9 * covariance.max())
    y = np.random.default_rng(0).normal(size=(3, len(A)))
    np.testing.assert_allclose(m.strategy.estimate(y, m.noise), np.linalg.lstsq(A, y.T, rcond=None)[0].T)


def test_a_release_is_the_rounded_estimate_of_sums_with_integer_noise() -> None:
    P = Poset.disjoint_union(Poset.chain(range(9)), Poset.chain(range(9, 14)))
    m, counts = MatrixMechanism(P, 1), np.repeat([40, 70], [9, 5]) + np.arange(14)
    with Tape("sums").playing():
        drawn = m.noise.integers(ExactDraws(), m.strategy.rows)
    with Tape("sums").playing():
        released = m.release(counts)
    noisy = matrix_of(m) @ counts + drawn
    estimate = np.linalg.lstsq(matrix_of(m).astype(float), noisy.astype(float), rcond=None)[0]
    assert released.tolist() == np.rint(estimate).tolist()
    assert MatrixMechanism(P, 10**9).release(counts).tolist() == counts.tolist()


def test_the_noise_has_the_stated_error() -> None:
    """400 releases: a mean square is 7 standard errors off with probability below 1e-9; half the rate is always seen."""
    m = MatrixMechanism(Poset.chain(range(12)), "1/10")
    squares = np.array([m.release([0] * 12) for _ in range(400)], float) ** 2
    doubt = squares.std(axis=0) / 20
    assert np.max(np.abs(squares.mean(axis=0) - m.error().variance) / doubt) < 7
    assert np.max(np.abs(squares.mean(axis=0) - 4 * m.error().variance) / doubt) > 7


def test_errors_belong_to_the_elements_and_not_to_their_places() -> None:
    straight, places = MatrixMechanism(Poset.chain(range(9)), 1), [4, 0, 8, 1, 7, 2, 6, 3, 5]
    mixed = MatrixMechanism(Poset(places, [(i, i + 1) for i in range(8)]), 1)
    assert mixed.error().variance == pytest.approx(straight.error().variance[places])


def test_it_beats_trees_and_noise_on_steps_where_orders_are_tall() -> None:
    for P in (
        Poset.chain(range(30)),
        Poset.disjoint_union(Poset.chain(range(40)), Poset.chain(range(40, 80))),
    ):
        error = MatrixMechanism(P, 1).error().rmse
        assert error < 0.95 * HierarchicalMechanism(P, 1).error().rmse
        assert error < 0.95 * PosetMechanism(P, 1).error().rmse
        assert type(best_mechanism(Setting(P), Guarantee.pure(1))) is MatrixMechanism
    leaves = Poset([*range(30), "x"], [*pairwise(range(30)), ("x", 20)])  # no trees of sums for this one
    assert MatrixMechanism(leaves, 1).error().rmse < 0.9 * PosetMechanism(leaves, 1).error().rmse


def test_plans_list_it_where_it_can_win_and_take_it_where_it_does() -> None:
    P = Poset.chain(range(20))
    listed = plan(P, 1)
    assert type(listed.best) is MatrixMechanism
    assert listed.best == best_mechanism(Setting(P), Guarantee.pure(1))
    assert not has_few_records(Poset.chain(range(7)))  # short
    wide = Poset([*range(12), *"abcdefghij"], [*pairwise(range(12)), *((x, 11) for x in "abcdefghij")])
    assert not has_few_records(wide)  # more than a thousand records
    with pytest.raises(InputError, match="at most 200 elements"):
        MatrixMechanism(wide, 1)


def test_a_recipe_holds_the_weights_and_is_rebuilt_without_a_search(monkeypatch: pytest.MonkeyPatch) -> None:
    P = Poset.disjoint_union(Poset.chain(range(10)), Poset.chain(range(10, 18)))
    m = MatrixMechanism(P, 1, "replace", 2)
    recipe = json.loads(json.dumps(recipe_of(m)))
    for search in ("_search", "_together"):
        monkeypatch.setattr(f"isotone.counts.matrix.{search}", lambda *_: pytest.fail("searched"))
    again = rebuild_count_mechanism(P, recipe)
    assert again == m
    assert again.strategy.sensitivity == m.strategy.sensitivity
    np.testing.assert_array_equal(again.error().variance, m.error().variance)


@pytest.mark.parametrize(
    "weights",
    [
        "own",
        [],
        [{"own": [1, 1, 1]}],
        [{"own": [1, 1], "sums": []}],
        [{"own": [1, 0, 1], "sums": []}],
        [{"own": [1, -1, 1], "sums": []}],
        [{"own": [1, 1.0, 1], "sums": []}],
        [{"own": [1, True, 1], "sums": []}],
        [{"own": [1, 1, 1], "sums": [[1, 1]]}],
        [{"own": [1, 1, 1], "sums": [[1, 1, 1 << 40]]}],
        [{"own": [1, 1, 1], "sums": [[1, 1, 1]] * 65}],
        [{"own": [1, 1, 1], "sums": 3}],
        [{"own": [1, 1, 1], "sums": []}] * 2,
    ],
)
def test_weights_that_make_no_strategy_are_refused(weights: Any) -> None:
    with pytest.raises(InputError, match="weights"):
        MatrixMechanism(Poset.chain("abc"), 1, weights=weights)


def test_a_part_of_the_budget_has_wider_noise() -> None:
    m = MatrixMechanism(Poset.chain(range(9)), 1)
    half = m.part(Fraction(1, 2))
    assert half.rate * 2 == m.rate
    assert half.guarantee == Guarantee.pure("1/2")
