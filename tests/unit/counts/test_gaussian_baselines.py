import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import norm

from isotone.counts.independent import DiscreteGaussianMechanism, GaussianMechanism
from isotone.errors import InputError
from isotone.mechanism import Mechanism
from isotone.order import Poset
from isotone.privacy.calibration import largest_rho
from isotone.privacy.guarantee import Guarantee

BOTH = pytest.mark.parametrize("kind", [GaussianMechanism, DiscreteGaussianMechanism])


def analytic_delta(epsilon: float, sd: float) -> float:
    return float(norm.cdf(0.5 / sd - epsilon * sd) - np.exp(epsilon + norm.logcdf(-0.5 / sd - epsilon * sd)))


@BOTH
def test_they_have_the_shape_of_a_mechanism(kind):
    P = Poset.chain("abc")
    m = kind(P, epsilon=1, delta="1e-6")
    assert isinstance(m, Mechanism)
    assert m.guarantee == Guarantee.approximate(1, "1e-6")
    assert kind(P, rho="1/8", neighbours="replace").guarantee == Guarantee.zcdp("1/8", neighbours="replace")
    assert m.simulate(4, np.random.default_rng(0)).shape == (4, 3)
    assert kind(P, rho=10**9).release([3, 4, 5]).tolist() == [3, 4, 5]


@BOTH
def test_under_zcdp_the_variance_is_the_squared_sensitivity_over_two_rho(kind):
    P = Poset.antichain(range(12))
    assert kind(P, rho="1/8").error().variance == pytest.approx(np.full(12, 48.0))
    assert kind(P, rho="1/8", max_size=3).error().variance == pytest.approx(np.full(12, 12.0))
    assert kind(P, rho="1/8", max_size=3, contributions=2).error().variance == pytest.approx(
        np.full(12, 48.0)
    )


def test_the_gaussian_variance_is_the_smallest_that_gives_its_guarantee():
    m = GaussianMechanism(Poset.antichain(range(4)), 1, "1e-6")
    sd = math.sqrt(m.variance / 4)
    assert analytic_delta(1.0, sd) <= 1e-6 * (1 + 1e-9)
    assert analytic_delta(1.0, sd * 0.999) > 1e-6


@pytest.mark.parametrize(("epsilon", "delta"), [(1, 1e-6), (0.1, 1e-9), (3, 1e-3), (20, 1e-6), (1, 0.5)])
def test_the_rho_of_an_epsilon_and_delta_is_valid_and_cannot_be_raised(epsilon, delta):
    rho = float(largest_rho(Fraction(repr(epsilon)), Fraction(repr(delta))))

    def best_log_delta(rho):
        alpha = 1 + np.exp(np.linspace(-8, 12, 200_001))
        return np.min((alpha - 1) * (alpha * rho - epsilon + np.log1p(-1 / alpha)) - np.log(alpha))

    assert best_log_delta(rho) <= math.log(delta) + 1e-6
    assert best_log_delta(rho * 1.001) > math.log(delta)
    assert rho >= (math.sqrt(epsilon - math.log(delta)) - math.sqrt(-math.log(delta))) ** 2


def test_the_discrete_gaussian_gives_its_epsilon_and_delta_on_one_and_on_two_counts():
    for n in (1, 2):
        m = DiscreteGaussianMechanism(Poset.antichain(range(n)), "1.5", "1e-3")
        one = np.arange(-120, 121)
        grid = np.stack(np.meshgrid(*([one] * n), indexing="ij"), axis=-1)
        p = np.exp(m.log_probability(grid))
        assert math.isclose(p.sum(), 1, rel_tol=1e-9)
        shifted = np.exp(m.log_probability(grid - np.ones(n)))
        delta = np.sum(np.maximum(0, p - math.exp(1.5) * shifted))
        assert 5e-5 < delta <= 1e-3


def test_the_rounded_gaussian_gives_its_epsilon_and_delta_and_uses_them():
    m = GaussianMechanism(Poset.chain("a"), "0.2", "1e-3")
    k = np.arange(-500, 501)[:, None]
    p, shifted = np.exp(m.log_probability(k)), np.exp(m.log_probability(k - 1))
    assert math.isclose(p.sum(), 1, rel_tol=1e-9)
    delta = np.sum(np.maximum(0, p - math.exp(0.2) * shifted))
    assert 0.9e-3 < delta <= 1e-3


@pytest.mark.parametrize("rho", ["2", "1/2", "1/200", "1/20000"])
def test_the_law_of_the_discrete_gaussian_is_normalised_and_has_its_variance(rho):
    m = DiscreteGaussianMechanism(Poset.chain("a"), rho=rho)
    k = np.arange(-20_000, 20_001)
    law = np.exp(m.log_probability(k[:, None]))
    assert math.isclose(law.sum(), 1, rel_tol=1e-12)
    assert math.isclose(m.error().variance[0], np.sum(k**2 * law), rel_tol=1e-12)
    for confidence in (0.5, 0.95, 0.9999):
        width = m.half_widths(confidence)[0]
        assert law[np.abs(k) <= width].sum() >= confidence - 1e-4
        assert law[np.abs(k) < width].sum() <= confidence + 1e-4


def test_the_gaussian_density_is_the_normal_one():
    m = GaussianMechanism(Poset.antichain("ab"), rho="0.1")
    expected = norm.logpdf([1.0, -2.0], scale=math.sqrt(10)).sum()
    assert m.log_density([4.0, 1.0], [3, 3]) == pytest.approx(expected)
    assert m.unrounded_half_widths(0.95) == pytest.approx(np.full(2, 1.959964 * math.sqrt(10)))
    assert m.half_widths(0.95).tolist() == [6.0, 6.0]


@BOTH
@pytest.mark.parametrize(
    ("guarantee", "message"),
    [
        ({}, "needs epsilon and delta, or rho"),
        ({"epsilon": 1}, "needs epsilon and delta, or rho"),
        ({"epsilon": 1, "delta": 0}, "delta must be above 0"),
        ({"epsilon": 1, "delta": 1}, "below 1"),
        ({"epsilon": 1, "delta": 0.1, "rho": 1}, "not both"),
        ({"rho": 0}, "rho must be above 0"),
    ],
)
def test_a_guarantee_must_be_one_of_two_forms(kind, guarantee, message):
    with pytest.raises(InputError, match=message):
        kind(Poset.chain("ab"), **guarantee)
