"""Soft targets: the trade-off between count error and distribution error, against linear programs."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog

from isotone.errors import InputError
from isotone.tables import fixed_point, unfixed_optimum
from isotone.tables.matrices.geometric import loss_matrix


def wasserstein(p: np.ndarray, q: np.ndarray) -> float:
    return float(np.abs(np.cumsum(p - q)).sum())


def least(z: np.ndarray, target: np.ndarray, epsilon: float, loss: np.ndarray, price: float) -> float:
    """min count error + price·W1, by HiGHS: a variable for the distance at each threshold."""
    n = len(z)
    ratio, identity, extra = np.exp(-epsilon), sparse.identity(n), n - 1
    here, following = sparse.eye(n - 1, n), sparse.eye(n - 1, n, k=1)
    private = sparse.vstack(
        [sparse.kron(ratio * here - following, identity), sparse.kron(ratio * following - here, identity)]
    )
    below = sparse.kron(z[None, :], np.tri(n)[:-1])
    upper = sparse.vstack(
        [
            sparse.hstack([private, sparse.csr_matrix((2 * n * extra, extra))]),
            sparse.hstack([below, -sparse.identity(extra)]),
            sparse.hstack([-below, -sparse.identity(extra)]),
        ]
    )
    wanted = np.cumsum(target)[:-1]
    equal = sparse.hstack([sparse.kron(identity, np.ones((1, n))), sparse.csr_matrix((n, extra))])
    found = linprog(
        np.concatenate([(z[:, None] * loss).ravel(), np.full(extra, price)]),
        A_ub=upper.tocsc(),
        b_ub=np.concatenate([np.zeros(2 * n * extra), wanted, -wanted]),
        A_eq=equal.tocsc(),
        b_eq=np.ones(n),
        method="highs-ds",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert found.status == 0, found.message
    return float(found.fun)


def pinball(n: int, weight: float) -> np.ndarray:
    difference = np.arange(n)[:, None] - np.arange(n)[None, :]
    return np.where(difference > 0, weight * difference, -(1 - weight) * difference)


def test_the_soft_target_minimises_the_sum_of_both_errors() -> None:
    rng = np.random.default_rng(1)
    for trial in range(90):
        n = int(rng.integers(2, 8))
        z = rng.exponential(size=n) * (rng.random(n) < 0.8) + 1e-3
        z /= z.sum()
        target = z if trial % 2 else rng.dirichlet(np.ones(n))
        epsilon, price = float(rng.choice([0.1, 0.5, 1, 3])), float(rng.choice([0, 0.05, 0.3, 0.8, 2]))
        loss = ("absolute", "squared", pinball(n, 0.8))[trial % 3]
        matrix = loss_matrix(loss, n)
        t = fixed_point(z, epsilon, target=target, price=price, loss=loss)
        mine = t.count_error(z, loss) + price * wasserstein(t.output(z), target)
        assert abs(mine - least(z, target, epsilon, matrix, price)) <= 1e-9


def test_named_losses_and_their_matrices_give_the_same_mechanism() -> None:
    z = np.random.default_rng(2).dirichlet(np.ones(30))
    for loss in ("absolute", "squared"):
        for price in (0, "0.1", 1):
            named = fixed_point(z, "0.5", price=price, loss=loss)
            written = fixed_point(z, "0.5", price=price, loss=loss_matrix(loss, 30))
            assert np.abs(named.matrix() - written.matrix()).max() <= 1e-9


def test_price_zero_is_the_unfixed_optimum_and_a_high_price_the_fixed_point() -> None:
    z = np.random.default_rng(3).dirichlet(np.ones(25))
    free = unfixed_optimum(z, 1)
    assert abs(fixed_point(z, 1, price=0).count_error(z) - free.count_error(z)) <= 1e-12
    assert np.abs(fixed_point(z, 1, price=2).matrix() - fixed_point(z, 1).matrix()).max() <= 1e-12


def test_along_the_prices_count_error_rises_and_distribution_error_falls() -> None:
    z = np.random.default_rng(4).dirichlet(np.ones(60))
    curve = [fixed_point(z, "0.3", price=price) for price in np.linspace(0, 1, 21)]
    errors = np.array([t.count_error(z) for t in curve])
    distances = np.array([wasserstein(t.output(z), z) for t in curve])
    assert np.all(np.diff(errors) >= -1e-12)
    assert np.all(np.diff(distances) <= 1e-12)
    assert distances[0] > 0.1
    assert distances[-1] <= 1e-12


def test_a_loss_that_is_not_convex_is_refused() -> None:
    with pytest.raises(InputError, match="convex"):
        fixed_point([0.5, 0.3, 0.2], 1, price=1, loss="zero-one")
