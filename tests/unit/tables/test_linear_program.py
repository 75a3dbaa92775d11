"""The linear program over scales: against HiGHS on the full program, exact pricing, true privacy."""

from __future__ import annotations

import sys
from fractions import Fraction

import numpy as np
import pytest
from tests.support.tables_exact import solve

from isotone.errors import InputError, MissingExtraError
from isotone.privacy.guarantee import Unit
from isotone.published.tables.lp import full_program, is_private, linear_program
from isotone.published.tables.scales import ScaleMechanism, ScaleProgram, best_ratio, scales
from isotone.tables import certificate, fixed_point
from isotone.tables.matrices.fixed_point import Certificate
from isotone.tables.matrices.geometric import loss_matrix

SOLVERS = ("simplex", "interior-point", "column-generation", "auto")


def odd_loss(n: int, kind: int, rng: np.random.Generator) -> np.ndarray:
    if kind == 0:
        return loss_matrix("zero-one", n)
    if kind == 1:
        return np.sqrt(loss_matrix("absolute", n))
    return rng.random((n, n))


def test_every_solver_finds_the_optimum_for_any_loss() -> None:
    rng = np.random.default_rng(1)
    for trial in range(45):
        n = int(rng.integers(2, 9))
        z = rng.exponential(size=n) * (rng.random(n) < 0.8) + 1e-4
        z /= z.sum()
        target = z if trial % 2 else rng.dirichlet(np.ones(n))
        epsilon, loss = Fraction(str(rng.choice([0.1, 0.5, 1, 3]))), odd_loss(n, trial % 3, rng)
        least = solve(z[:, None] * loss, float(epsilon), z, target)
        for solver in SOLVERS:
            t = linear_program(z, target, epsilon, Unit(), loss, solver)  # type: ignore[arg-type]
            assert abs(t.count_error(z, loss) - least) <= 1e-8
            assert np.abs(t.output(z) - target).max() <= 1e-10
            assert t.privacy_loss() <= float(epsilon) * (1 + 1e-12)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_fifty_counts_are_solved_to_a_proved_optimum(epsilon: float) -> None:
    z = np.random.default_rng(2).dirichlet(np.ones(50))
    cost = z[:, None] * loss_matrix("zero-one", 50)
    t = linear_program(z, z, Fraction(str(epsilon)), Unit(), "zero-one")
    program = ScaleProgram(z, z, cost, epsilon)
    program.add_all((int(c), r) for c, r in zip(t.terms.columns, t.terms.patterns, strict=True))  # type: ignore[attr-defined]
    program.solve()
    assert t.count_error(z, "zero-one") <= program.lower_bound + 1e-7
    assert t.count_error(z, "zero-one") < fixed_point(z, epsilon).count_error(z, "zero-one")
    assert t.fixed_point_error(z) <= 1e-10
    assert is_private(t.matrix(), epsilon, 1e-9)


def test_for_monge_losses_it_agrees_with_the_closed_form() -> None:
    z = np.random.default_rng(3).dirichlet(np.ones(30))
    for loss in ("absolute", "squared"):
        by_program = fixed_point(z, "0.5", constructor="lp", loss=loss)
        assert isinstance(by_program, ScaleMechanism)
        assert abs(by_program.count_error(z, loss) - fixed_point(z, "0.5").count_error(z, loss)) <= 1e-7


def test_what_the_solver_returns_is_not_private_and_what_is_returned_is() -> None:
    n = 40
    z = np.exp(-0.3 * np.arange(n))
    z /= z.sum()
    raw = full_program(z, z, z[:, None] * loss_matrix("absolute", n), 1.0, "interior-point")
    assert not is_private(np.maximum(raw, 0), 1.0, 1e-6)
    assert is_private(fixed_point(z, 1, constructor="lp").matrix(), 1.0, 1e-9)


def test_pricing_finds_the_best_of_all_scales() -> None:
    rng = np.random.default_rng(4)
    for _ in range(200):
        n, epsilon = int(rng.integers(1, 11)), float(rng.choice([0.05, 0.5, 2, 8]))
        cost, z = rng.normal(size=n), rng.dirichlet(np.ones(n) * 0.3)
        every = scales(n, epsilon).T
        ratio, rises = best_ratio(cost, z, epsilon, float(rng.normal()))
        expected = float(np.min((every @ cost) / (every @ z)))
        assert abs(ratio - expected) <= 1e-9 * max(1, abs(expected))
        assert rises.shape == (n - 1,)


def test_pricing_sees_a_small_gain_beside_a_high_peak() -> None:
    """With ε = 8 a scale that peaks at the far end outweighs everything else by exp(320), rounding included."""
    n, epsilon = 41, 8.0
    z = np.full(n, 1 / n)
    cost = np.zeros(n)
    cost[3] = -1.0
    ratio, rises = best_ratio(cost, z, epsilon, 0.0)
    assert abs(ratio + n / (1 + 2 * np.exp(-epsilon))) < 0.1
    assert np.argmax(np.concatenate([[0], np.cumsum(np.where(rises, 1, -1))])) == 3


def test_the_certificate_bounds_every_optimum_and_meets_it_for_monge_losses() -> None:
    rng = np.random.default_rng(5)
    met = 0
    for trial in range(60):
        n = int(rng.integers(2, 8))
        z = rng.dirichlet(np.ones(n))
        target = z if trial % 2 else rng.dirichlet(np.ones(n))
        epsilon = float(rng.choice([0.1, 1, 3]))
        loss = ("absolute", "squared", odd_loss(n, trial % 3, rng))[trial % 3]
        found = certificate(z, epsilon, loss, target=target)
        least = solve(z[:, None] * loss_matrix(loss, n), epsilon, z, target)
        assert found.lower_bound <= least + 1e-9
        assert found.cost >= least - 1e-9
        if trial % 3 < 2:
            assert found.optimal
        met += found.optimal and trial % 3 == 2
    assert met < 20  # for other losses it often cannot vouch


def test_the_certificate_takes_weights_and_refuses_shapes_that_do_not_fit() -> None:
    z = np.array([0.5, 0.3, 0.2])
    weights = np.array([0.2, 0.1, 0.7])
    found = certificate(z, 1, "absolute", weights=weights)
    assert found.lower_bound <= solve(weights[:, None] * loss_matrix("absolute", 3), 1.0, z, z) + 1e-9
    assert certificate(np.full(300, 1 / 300), "0.2", "squared").optimal
    with pytest.raises(InputError, match="equally many"):
        certificate(z, 1, weights=[0.5, 0.5])


def test_too_many_counts_and_unknown_solvers_are_refused() -> None:
    with pytest.raises(InputError, match="at most 500"):
        fixed_point(np.full(501, 1 / 501), 1, constructor="lp")
    with pytest.raises(InputError, match="solver"):
        fixed_point([0.5, 0.5], 1, constructor="lp", solver="oracle")  # type: ignore[arg-type]


def test_programs_over_scales_say_which_solver_they_need(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "highspy", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'highspy"):
        fixed_point([0.5, 0.3, 0.2], epsilon=1, constructor="lp", solver="column-generation")


def test_a_closed_form_is_called_optimal_up_to_rounding_alone() -> None:
    """Relative to its cost, and never by more than to a cost of 1."""
    for cost, scale in ((0.1, 1.0), (1.0, 1.0), (250.0, 250.0)):
        assert Certificate(cost, cost - 0.9e-11 * scale).optimal
        assert not Certificate(cost, cost - 1.2e-11 * scale).optimal
