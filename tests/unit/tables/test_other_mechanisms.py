"""The unfixed optimum, staircase and discrete Gaussian mechanisms, and the shape that all share."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.integrate import quad
from tests.support.tables_exact import shapes, solve

from isotone.errors import InputError
from isotone.mechanism import Mechanism
from isotone.noise import Simulated
from isotone.privacy.guarantee import Unit
from isotone.tables import (
    CountMechanism,
    discrete_gaussian,
    fixed_point,
    staircase,
    truncated_geometric,
    unfixed_optimum,
)
from isotone.tables.matrices.factored import UNIT, FactoredMechanism, Remap, comonotone
from isotone.tables.matrices.geometric import is_concentrating, is_convex, is_monge, loss_matrix

Z = np.random.default_rng(1).dirichlet(np.ones(7))
BLURRED = Remap(  # every row may go to either of two columns, so the loss is below epsilon
    np.arange(0, 15, 2),
    np.tile([1, 5], 7),
    np.column_stack([np.linspace(0.9, 0.2, 7) * UNIT, np.full(7, float(UNIT))]).astype(np.int64).ravel(),
)

ALL: dict[str, CountMechanism] = {
    "closed form": fixed_point(Z, 1),
    "soft target": fixed_point(Z, 1, price="0.2"),
    "heuristic": fixed_point(Z, 1, constructor="heuristic"),
    "linear program": fixed_point(Z, 1, constructor="lp", loss="zero-one"),
    "unfixed": unfixed_optimum(Z, 1),
    "geometric": truncated_geometric(7, 1),
    "staircase": staircase(7, 1),
    "staircase at a small epsilon": staircase(7, "1/5"),
    "Gaussian": discrete_gaussian(7, 1, "1e-3"),
    "blurred": FactoredMechanism(7, Fraction(1), Unit(), False, remap=BLURRED),
}


@pytest.mark.parametrize("name", ALL)
def test_every_summary_agrees_with_the_matrix(name: str) -> None:
    t = ALL[name]
    matrix = t.matrix()
    i = np.arange(7)
    squared = (i[:, None] - i[None, :]) ** 2.0
    assert np.abs(matrix.sum(axis=1) - 1).max() <= 1e-12
    assert np.abs(t.output(Z) - Z @ matrix).max() <= 1e-14
    assert abs(t.fixed_point_error(Z) - np.abs(Z @ matrix - Z).max()) <= 1e-14
    weird = np.random.default_rng(2).random((7, 7))
    for loss in ("absolute", "squared", "zero-one", weird):
        expected = float(np.sum(Z[:, None] * matrix * loss_matrix(loss, 7)))
        assert abs(t.count_error(Z, loss) - expected) <= 1e-12
    assert np.abs(t.error().variance - np.sum(matrix * squared, axis=1)).max() <= 1e-12
    used = matrix[:, matrix.sum(axis=0) > 0]
    assert abs(t.privacy_loss() - np.abs(np.diff(np.log(used), axis=0)).max()) <= 1e-9
    for a in range(7):
        for b in range(7):
            assert abs(t.probability(b, a) - matrix[a, b]) <= 1e-14
    with np.errstate(divide="ignore"):
        assert np.isclose(t.log_probability([1, 2], [0, 6]), np.log(matrix[0, 1] * matrix[6, 2]), atol=1e-9)


@pytest.mark.parametrize("name", ALL)
def test_every_mechanism_has_the_one_shape(name: str) -> None:
    t = ALL[name]
    assert isinstance(t, Mechanism)
    assert t.upper == 6
    out = t.release([0, 3, 6, 99])
    assert out.dtype == np.int64
    assert out.shape == (4,)
    assert out.min() >= 0
    assert out.max() <= 6
    assert t.release([]).shape == (0,)
    draws = t.simulate(np.arange(7), np.random.default_rng(3))
    assert isinstance(draws, Simulated)
    assert np.array_equal(draws, t.simulate(np.arange(7), np.random.default_rng(3)))
    assert repr(t).startswith(type(t).__name__)
    assert "ε" in repr(t)
    assert t.probability(7, 0) == 0
    with pytest.raises(InputError, match="output has 1"):
        t.probability([0], [0, 1])
    with pytest.raises(InputError, match="probabilities"):
        t.count_error([0.5, 0.5])
    with pytest.raises(AttributeError):
        t.n = 3  # type: ignore[misc]


@pytest.mark.parametrize("name", [name for name in ALL if name != "Gaussian"])
def test_pure_mechanisms_lose_at_most_epsilon(name: str) -> None:
    assert ALL[name].guarantee.kind == "pure"
    assert ALL[name].privacy_loss() <= 1 + 1e-12


@pytest.mark.parametrize("n", [1, 2])
def test_one_and_two_counts_work_everywhere(n: int) -> None:
    z = np.full(n, 1 / n)
    for t in (
        fixed_point(z, 1),
        fixed_point(z, 1, price=1),
        fixed_point(z, 1, constructor="heuristic"),
        fixed_point(z, 1, constructor="lp", loss="zero-one"),
        unfixed_optimum(z, 1),
        unfixed_optimum(z, 1, loss="zero-one"),
        truncated_geometric(n, 1),
        staircase(n, 1),
        discrete_gaussian(n, 1, "1e-3"),
    ):
        assert np.abs(t.matrix().sum(axis=1) - 1).max() <= 1e-12
        assert t.release([0, 5]).max() <= n - 1
        assert t.error().variance.shape == (n,)
        assert t.privacy_loss() <= (0 if n == 1 else 1 + 1e-12)
        assert np.abs(t.output(z) - z).max() <= 1e-9


def test_the_unfixed_optimum_is_the_least_count_error_of_all() -> None:
    rng = np.random.default_rng(4)
    for trial in range(60):
        n = int(rng.integers(2, 10))
        z = rng.dirichlet(np.ones(n))
        epsilon = float(rng.choice([0.1, 0.5, 1, 3]))
        loss = ("absolute", "squared", "zero-one", np.sqrt(loss_matrix("absolute", n)))[trial % 4]
        t = unfixed_optimum(z, epsilon, loss=loss)
        least = solve(z[:, None] * loss_matrix(loss, n), epsilon)
        assert abs(t.count_error(z, loss) - least) <= 1e-9


def test_the_unfixed_optimum_survives_underflow() -> None:
    i = np.arange(2000)
    z = np.exp(-((i - 1000.0) ** 2) / 1000)  # the binomial's shape: below the smallest float at both ends
    z /= z.sum()
    t = unfixed_optimum(z, 1)
    assert abs(t.count_error(z) - 0.8509) <= 1e-3
    assert np.all(np.diff(t.remap.columns) >= 0)
    assert t.error().sd.max() < 1001
    far = unfixed_optimum(np.eye(3000)[2999], 1, loss="zero-one")
    assert far.count_error(np.eye(3000)[2999], "zero-one") == 0


def test_the_columns_of_the_unfixed_optimum_are_posterior_medians() -> None:
    for z in shapes(40, np.random.default_rng(5)).values():
        t = unfixed_optimum(z, "0.3")
        for k in range(40):
            weights = z * np.exp(-0.3 * np.abs(np.arange(40) - k))
            below = np.cumsum(weights) / weights.sum()
            j = int(t.remap.columns[k])
            assert below[j] >= 0.5 - 1e-9
            assert j == 0 or below[j - 1] <= 0.5 + 1e-9


def test_the_unfixed_optimum_is_that_of_epsilon_per_step() -> None:
    shared = unfixed_optimum(Z, 6, contributions=3, neighbours="replace").remap.columns.tolist()
    assert shared == unfixed_optimum(Z, 1).remap.columns.tolist()
    assert shared != unfixed_optimum(Z, 6).remap.columns.tolist()


def test_a_loss_that_geometric_noise_may_not_serve_is_refused() -> None:
    loss = np.array([[0.0, 5, 1], [5, 0, 1], [1, 1, 0]])
    with pytest.raises(InputError, match="constructor='lp'"):
        unfixed_optimum([0.3, 0.3, 0.4], 1, loss=loss)
    with pytest.raises(InputError, match="loss must be one of"):
        unfixed_optimum([0.5, 0.5], 1, loss="cubic")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="3 by 3"):
        unfixed_optimum([0.3, 0.3, 0.4], 1, loss=np.eye(2))


def test_properties_of_losses_are_recognised() -> None:
    absolute = loss_matrix("absolute", 6)
    assert is_monge(absolute)
    assert is_convex(absolute)
    assert is_concentrating(absolute)
    for matrix in (loss_matrix("zero-one", 6), np.sqrt(absolute)):
        assert not is_monge(matrix)
        assert not is_convex(matrix)
        assert is_concentrating(matrix)
    assert not is_concentrating(np.arange(36.0).reshape(6, 6))


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_the_staircase_is_the_rounded_integral_of_its_density(epsilon: float) -> None:
    b, gamma = np.exp(-epsilon), 1 / (1 + np.exp(epsilon / 2))
    height = (1 - b) / (2 * (gamma + b * (1 - gamma)))

    def density(x: float) -> float:
        k = np.floor(abs(x))
        return float(height * b ** (k + (abs(x) - k >= gamma)))

    row = staircase(9, epsilon).matrix()[4]
    for j in range(1, 8):
        low, high = j - 4 - 0.5, j - 4 + 0.5
        inside = [
            p
            for k in range(-9, 10)
            for p in (k, k + np.sign(k or 1) * gamma, gamma, -gamma)
            if low < p < high
        ]
        assert abs(row[j] - quad(density, low, high, points=sorted(set(inside)) or None)[0]) <= 1e-9
    assert staircase(9, epsilon).privacy_loss() <= epsilon + 1e-12


def test_the_discrete_gaussian_is_wider_for_more_contributions() -> None:
    one = discrete_gaussian(9, 1, "1e-5")
    many = discrete_gaussian(9, 1, "1e-5", contributions=2, neighbours="replace")
    assert many.variance > 12 * one.variance
    assert one.guarantee.delta == many.guarantee.delta
    assert one.guarantee.kind == "approximate"
    ratios = one.matrix()[4, 1:8] / one.matrix()[4, 4]
    assert np.allclose(ratios, np.exp(-((np.arange(1, 8) - 4) ** 2) / (2 * float(one.variance))))


def test_every_row_of_a_coupling_has_a_column_whatever_the_masses_are() -> None:
    """Also where the target has less mass than the source, or a row none: nothing is drawn from an empty row."""
    rng = np.random.default_rng(0)
    sources = [np.array(x) for x in ([0.2, 0.6, 0.2], [0.3, 0.0, 0.7], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0])]
    sources += [rng.random(7) * (rng.random(7) < 0.6) for _ in range(40)]
    for source in sources:
        for target in (np.full(5, 0.04), rng.random(5), np.array([0.0, 1.0, 0.0])):
            coupling = comonotone(source, target)
            assert len(coupling) == len(source)
            assert np.all(np.diff(coupling.starts) > 0)
            assert np.all(coupling.ceilings[coupling.starts[1:] - 1] == UNIT)
