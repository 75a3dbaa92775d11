"""The ellipses: the identity behind them, their traces, and how near they are to the best."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.support.filters import filters
from tests.support.isotonic import sparse_poset
from tests.support.posets import all_posets

from isotone.counts.ellipse import (
    _Family,
    filter_bound,
    fit_chain,
    fit_chain_differences,
    fit_dense,
    fit_dense_nonnegative,
)
from isotone.counts.ellipse_forest import (
    _WORK,
    ForestEllipse,
    _affordable_window,
    _elements_below,
    _evaluate,
    _start,
    fit_forest,
    fold_forest,
    forest_bound,
)
from isotone.order import Poset

SURVEY = np.array([-1, 0, 1, 0, -1] + [4] * 6 + [-1] + [11] * 3)
SMALL = [P for size in (1, 2, 3, 4, 5) for P in all_posets(size)]


def bottom_up(P: Poset) -> NDArray[np.bool_]:
    return P.leq_matrix()[np.ix_(P.linear_order, P.linear_order)]


def order_of(parents: NDArray[np.int64]) -> Poset:
    return Poset(range(parents.size), [(i, int(p)) for i, p in enumerate(parents) if p >= 0])


def random_forest(size: int, rng: np.random.Generator) -> NDArray[np.int64]:
    return np.array([int(rng.integers(-1, x)) if x else -1 for x in range(size)])


def dense_precision(e: ForestEllipse) -> NDArray[np.float64]:
    """M on the elements and the root (last), from the factor of the elimination."""
    g, n = e.forest, e.forest.node.size
    M = np.zeros((n + 1, n + 1))
    M[n, n] = e.pivot[0]
    for x in range(n):
        row = np.zeros(n + 1)
        v = g.node[x]
        row[x] = 1.0
        ancestors = [int(g.parents[x])]
        while ancestors[-1] >= 0:
            ancestors.append(int(g.parents[ancestors[-1]]))
        path = [n, *ancestors[-2::-1]]
        kept = [path[0], *path[1:][len(path) - g.width[v] :]] if g.width[v] < len(path) else path
        row[kept] = -e.share[g.start[v] : g.start[v + 1]]
        M[:] += e.pivot[v] * np.outer(row, row)
    return M


def test_every_record_has_length_one_in_every_matrix_of_the_family() -> None:
    rng = np.random.default_rng(0)
    for P in SMALL:
        family = _Family(bottom_up(P), None)
        M = family.matrix(rng.integers(-9, 10, family.lower.size).astype(float), 0.0)  # exact in floats
        for J in filters(P):
            v = np.append(J[P.linear_order], 1.0)
            assert v @ M @ v == 1.0


def test_the_identity_needs_closed_records() -> None:
    family = _Family(bottom_up(Poset.chain("ab")), None)
    M = family.matrix(np.array([1.0, 2.0, 4.0]), 0.0)
    broken = np.array([1.0, 0.0, 1.0])  # a yes to the lower element alone
    assert broken @ M @ broken != 1.0


def test_bounded_records_have_length_at_most_one() -> None:
    rng = np.random.default_rng(1)
    for P in SMALL:
        for k in range(1, len(P) + 1):
            family = _Family(bottom_up(P), k)
            logit = float(rng.normal())
            s = family.root_scale(logit)
            M = family.matrix(rng.normal(size=family.lower.size), logit)
            for J in filters(P):
                v = np.append(J[P.linear_order].astype(float), s)
                assert v @ M @ v == pytest.approx(1 - (1 - s * s) / k * (k - J.sum()), abs=1e-12)


@pytest.mark.parametrize("max_size", [None, 3])
def test_the_dense_gradient_is_the_slope(max_size: int | None) -> None:
    rng = np.random.default_rng(2)
    family = _Family(bottom_up(sparse_poset(7, 0.3, rng)), max_size)
    ties, logit, _ = family.start()
    ties = ties + 0.01 * rng.random(ties.size)
    found = family.evaluate(ties, logit)
    assert found is not None
    direction, turn = rng.normal(size=ties.size), float(rng.normal())
    h = 1e-6
    ahead, behind = (family.evaluate(ties + t * direction, logit + t * turn) for t in (h, -h))
    assert ahead is not None
    assert behind is not None
    slope = (ahead[0] - behind[0]) / (2 * h)
    assert found[1] @ direction + found[2] * turn == pytest.approx(slope, rel=1e-6)


@pytest.mark.parametrize("bound", [0.0, 0.25])
def test_the_forest_gradient_is_the_slope(bound: float) -> None:
    rng = np.random.default_rng(3)
    g = fold_forest(random_forest(12, rng))
    s = 0.7
    ties = _start(g, _elements_below(g), s, bound) * rng.uniform(0.9, 1.1, g.start[-1])
    direction, turn = rng.normal(size=ties.size), float(rng.normal())
    trace, gradient, by_scale, *_ = _evaluate(g, ties, s, bound)
    assert trace > 0
    h = 1e-7
    ahead, behind = (_evaluate(g, ties + t * direction, s + t * turn, bound)[0] for t in (h, -h))
    assert gradient @ direction + by_scale * turn == pytest.approx((ahead - behind) / (2 * h), rel=1e-5)


def test_forest_and_dense_methods_agree() -> None:
    rng = np.random.default_rng(4)
    for _ in range(3):
        parents = random_forest(12, rng)
        P = order_of(parents)
        for max_size in (None, 3):
            sparse = fit_forest(fold_forest(parents), max_size, tolerance=1e-9)
            dense = fit_dense(bottom_up(P), max_size, tolerance=1e-9)
            assert sparse.trace == pytest.approx(dense.trace, rel=1e-5)


def test_the_factor_of_a_forest_is_in_the_family() -> None:
    rng = np.random.default_rng(5)
    for parents in (SURVEY[:9], random_forest(9, rng), np.full(6, -1), np.arange(-1, 6)):
        ellipse = fit_forest(fold_forest(parents))
        M = dense_precision(ellipse)
        P = order_of(parents)
        for J in filters(P):
            v = np.append(J, 1.0)
            assert v @ M @ v == pytest.approx(1.0, abs=1e-12)
        assert np.trace(np.linalg.inv(M)[:-1, :-1]) == pytest.approx(ellipse.trace, rel=1e-9)


def test_twins_are_folded_into_one_node() -> None:
    g = fold_forest(SURVEY)
    # the root; hyp with a chain and a leaf; cholesterol with six twins; asthma with three
    assert g.nodes == 1 + 4 + 2 + 2
    assert sorted(g.copies[1:].tolist()) == [1, 1, 1, 1, 1, 1, 3, 6]
    assert fold_forest(np.full(1000, -1)).nodes == 2


def test_distant_ancestors_are_left_out_of_deep_forests_and_the_noise_stays_valid() -> None:
    two_chains = np.concatenate((np.arange(-1, 29), [-1], np.arange(30, 59)))
    forest = fold_forest(two_chains)
    width = np.minimum(forest.depth, 9)
    short = forest._replace(width=width, start=np.concatenate(([0], np.cumsum(width))))
    full, cut = fit_forest(forest), fit_forest(short)
    assert full.trace < cut.trace < 2 * full.trace
    M = dense_precision(cut)
    for a, b in ((0, 0), (30, 0), (7, 23), (30, 30)):
        v = np.zeros(61)
        v[:a], v[30 : 30 + b], v[60] = 1, 1, 1
        assert v @ M @ v == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize(("elements", "deepest"), [(10**6, 50), (10**5, 400), (10**4, 10**4), (100, 20)])
def test_a_window_keeps_as_many_ancestors_as_an_evaluation_can_afford(elements: int, deepest: int) -> None:
    depth = np.arange(elements) % deepest

    def steps(window: int) -> int:  # a square of each element's ancestors, itself and at most so many
        return int(np.sum(np.minimum(depth, window + 1).astype(np.int64) ** 2))

    window = _affordable_window(depth)
    assert 8 <= window <= max(8, deepest - 1)
    assert window == 8 or steps(window) <= _WORK
    assert window == max(8, deepest - 1) or steps(window + 1) > _WORK


@pytest.mark.parametrize("n", [1, 2, 5, 50, 1000])
def test_an_antichain_has_its_closed_form(n: int) -> None:
    ellipse = fit_forest(fold_forest(np.full(n, -1)), tolerance=1e-10)
    assert ellipse.trace == pytest.approx(n * (math.sqrt(n) + 1) ** 2 / 4, rel=1e-6)


@pytest.mark.parametrize("m", [1, 2, 6, 100])
def test_a_star_has_its_closed_form(m: int) -> None:
    ellipse = fit_forest(fold_forest(np.array([-1] + [0] * m)), tolerance=1e-10)
    assert ellipse.trace == pytest.approx(((m + math.sqrt(m + 4)) / 2) ** 2, rel=1e-6)


def test_the_expected_figures() -> None:
    assert fit_forest(fold_forest(SURVEY)).trace / 15**2 == pytest.approx(0.3456, abs=5e-5)
    assert fit_chain(50).trace / 50**2 == pytest.approx(0.0820, abs=6e-5)
    assert fit_chain(500).trace / 500**2 == pytest.approx(0.0149, abs=5e-5)
    assert fit_forest(fold_forest(np.full(50, -1))).trace / 50**2 == pytest.approx(0.3257, abs=5e-5)


@pytest.mark.parametrize("n", [1, 2, 3, 17, 250])
def test_the_ellipse_of_a_chain_is_certified_by_its_own_bound(n: int) -> None:
    e = fit_chain(n, tolerance=1e-5)
    assert e.lower_bound * (1 - 1e-12) <= e.trace <= e.lower_bound * (1 + 1.1e-5)
    M = (e.vectors * e.values) @ e.vectors.T
    prefixes = np.tril(np.ones((n, n)))
    assert np.max(np.einsum("ij,jk,ik->i", prefixes, M, prefixes)) == pytest.approx(1.0, rel=1e-9)
    assert np.sum(1 / e.values) == pytest.approx(e.trace, rel=1e-9)


@pytest.mark.parametrize("n", [1, 2, 3, 12, 60])
def test_the_ellipse_of_a_replaced_chain_is_certified_by_its_own_bound(n: int) -> None:
    e = fit_chain_differences(n)
    assert e.lower_bound * (1 - 1e-12) <= e.trace <= e.lower_bound * 1.003
    M = (e.vectors * e.values) @ e.vectors.T
    prefixes = np.vstack((np.zeros(n), np.tril(np.ones((n, n)))))
    apart = prefixes[:, None] - prefixes
    assert np.max(np.einsum("abi,ij,abj->ab", apart, M, apart)) == pytest.approx(1.0, rel=1e-9)


def test_small_orders_are_within_ten_percent_of_the_best_gaussian() -> None:
    gaps: list[float] = []
    for P in (*SMALL[:8], *SMALL[8::5]):
        ellipse = fit_dense(bottom_up(P), tolerance=1e-8)
        bound = filter_bound(bottom_up(P), ellipse.presence)
        # the identity makes the ellipse valid, so it cannot beat a true lower bound
        assert ellipse.trace >= bound * (1 - 1e-9)
        gaps.append(ellipse.trace / bound - 1)
    assert max(gaps) < 0.1  # attained by two unrelated elements
    assert np.mean(gaps) < 0.03


def test_the_lower_bound_is_tight_where_the_best_ellipse_is_known() -> None:
    # of an antichain with a perfect square of elements the family contains the best of all Gaussians
    for n in (4, 16):
        bound = filter_bound(np.eye(n, dtype=bool), np.full(n, 0.6), rounds=12)
        assert bound == pytest.approx(n * (math.sqrt(n) + 1) ** 2 / 4, rel=2e-3)


def test_the_forest_bound_counts_the_eigenvalues_of_a_random_filter() -> None:
    rng = np.random.default_rng(6)
    for parents in (SURVEY, random_forest(40, rng)):
        ellipse = fit_forest(fold_forest(parents))
        n = parents.size
        presence = np.minimum(ellipse.presence[ellipse.forest.node - 1], 1 - 1e-9)
        gate = np.array([presence[x] / (presence[p] if p >= 0 else 1.0) for x, p in enumerate(parents)])
        leq = order_of(parents).leq_matrix()
        V = np.array([[np.prod(gate[leq[x] | leq[y]]) for y in range(n)] for x in range(n)])
        exact = np.sqrt(np.linalg.eigvalsh(V)).sum() ** 2
        assert exact * (1 - 5e-4) <= forest_bound(ellipse) <= exact * (1 + 1e-9)


def test_bounded_noise_is_never_worse_than_independent_noise() -> None:
    for k in (1, 2, 5, 20, 49):
        ellipse = fit_forest(fold_forest(np.full(50, -1)), k)
        assert ellipse.trace <= 50 * k * (1 + 1e-4)
        bound = filter_bound(np.eye(50, dtype=bool), np.full(50, 0.5), k, rounds=2)
        assert ellipse.trace >= bound * (1 - 1e-9)


def test_ties_that_must_not_be_negative_are_not() -> None:
    P = sparse_poset(30, 0.2, np.random.default_rng(7))
    free, tied = fit_dense(bottom_up(P)), fit_dense_nonnegative(bottom_up(P))
    assert np.all(tied.precision - np.diag(np.diag(tied.precision)) <= 0)
    assert np.any(free.precision - np.diag(np.diag(free.precision)) > 1e-6)
    assert free.trace <= tied.trace * (1 + 1e-3)
