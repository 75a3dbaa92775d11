"""The mechanism with Gaussian noise shaped by the order."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from tests.support.isotonic import sparse_poset

from isotone.counts import GaussianMechanism, OrderGaussianMechanism
from isotone.counts.order_gaussian import shape_of
from isotone.errors import InputError
from isotone.mechanism import Mechanism
from isotone.noise.simulate import Simulated
from isotone.order import Poset
from isotone.privacy.calibration import sigma_squared
from isotone.privacy.guarantee import Guarantee, Neighbours

SURVEY = Poset(
    range(15),
    [(1, 0), (2, 1), (3, 0), *((x, 4) for x in range(5, 11)), *((x, 11) for x in (12, 13, 14))],
)
DIAMOND = Poset("abcd", [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")])
ORDERS = {
    "survey": SURVEY,
    "chain": Poset.chain(range(8)),
    "antichain": Poset.antichain(range(6)),
    "diamond": DIAMOND,
    "sparse": sparse_poset(12, 0.2, np.random.default_rng(0)),
}


def test_it_has_the_shape_of_a_mechanism() -> None:
    m = OrderGaussianMechanism(SURVEY, epsilon=1, delta="1e-6")
    assert isinstance(m, Mechanism)
    assert m.guarantee == Guarantee.approximate(1, "1e-6")
    assert OrderGaussianMechanism(SURVEY, rho="0.1").guarantee == Guarantee.zcdp("0.1")
    drawn = m.simulate(5, np.random.default_rng(0))
    assert isinstance(drawn, Simulated)
    assert drawn.shape == (5, 15)
    released = m.release([20, 10, 5, 8, 9, *[1] * 6, 7, 2, 2, 2])
    assert released.dtype == np.int64
    assert released.shape == (15,)
    assert "OrderGaussianMechanism over 15 elements" in str(m)


def test_with_a_weak_guarantee_the_counts_come_back() -> None:
    counts = [20, 10, 5, 8, 9, *[1] * 6, 7, 2, 2, 2]
    assert OrderGaussianMechanism(SURVEY, rho=10**9).release(counts).tolist() == counts


@pytest.mark.parametrize("name", list(ORDERS))
@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("max_size", [None, 2])
def test_its_error_is_the_diagonal_of_its_covariance_and_beats_independent_noise(
    name: str, neighbours: Neighbours, max_size: int | None
) -> None:
    P = ORDERS[name]
    m = OrderGaussianMechanism(P, rho="0.5", neighbours=neighbours, max_size=max_size)
    plain = GaussianMechanism(P, rho="0.5", neighbours=neighbours, max_size=max_size)
    np.testing.assert_allclose(m.error().variance, np.diag(m.covariance()), rtol=1e-9, atol=1e-12)
    assert m.error().total <= plain.error().total * (1 + 1e-6)
    certificate = m.certificate()
    assert certificate.trace == pytest.approx(
        m.error().total, rel=1e-6
    )  # sensitivity 1, variance 1/(2·rho) = 1
    if certificate.lower_bound is not None:
        assert certificate.trace >= certificate.lower_bound * (1 - 1e-9)


def test_both_calibrations_give_the_expected_totals() -> None:
    n2 = 15**2
    assert OrderGaussianMechanism(SURVEY, rho="1/2").error().total == pytest.approx(0.3456 * n2, rel=2e-4)
    m = OrderGaussianMechanism(SURVEY, epsilon=1, delta="1e-6")
    assert m.error().total == pytest.approx(float(sigma_squared(1, "1e-6")) * 0.3456 * n2, rel=2e-4)
    assert m.error().total == pytest.approx(1388, abs=1)


def test_the_survey_is_certified_within_two_percent_of_the_best_gaussian() -> None:
    certificate = OrderGaussianMechanism(SURVEY, rho=1).certificate()
    assert certificate.method == "forest"
    assert certificate.gap is not None
    assert 0.014 < certificate.gap < 0.02
    assert certificate.independent == 225
    assert certificate.sensitivity_squared == pytest.approx(2**56, rel=1e-6)
    assert "of the best Gaussian" in str(certificate)


def test_contributions_scale_the_noise() -> None:
    one = OrderGaussianMechanism(DIAMOND, rho=1)
    three = OrderGaussianMechanism(DIAMOND, rho=1, contributions=3)
    assert three.error().total == pytest.approx(9 * one.error().total, rel=1e-5)


@pytest.mark.parametrize("name", list(ORDERS))
@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_its_log_density_is_that_of_its_covariance(name: str, neighbours: Neighbours) -> None:
    P = ORDERS[name]
    m = OrderGaussianMechanism(P, epsilon="0.7", delta="1e-5", neighbours=neighbours)
    law = multivariate_normal(np.zeros(len(P)), m.covariance())  # pyright: ignore[reportArgumentType] scipy's stub
    points = np.asarray(m.simulate(6, np.random.default_rng(1)))
    np.testing.assert_allclose(m.log_density(points), law.logpdf(points), rtol=1e-8)
    counts = np.zeros(len(P), int)
    assert m.log_density(points[0], counts).shape == ()
    assert m.log_density(points[0], counts) == pytest.approx(float(law.logpdf(points[0])))


def test_densities_of_neighbours_differ_as_zcdp_allows() -> None:
    # the log ratio of two Gaussians is Gaussian with mean rho times the squared length, at most rho
    m = OrderGaussianMechanism(DIAMOND, rho="0.25")
    precision = np.linalg.inv(m.covariance())
    for J in ([0, 0, 0, 1], [0, 1, 0, 1], [0, 1, 1, 1], [1, 1, 1, 1]):
        v = np.array(J, dtype=float)
        assert v @ precision @ v / 2 <= 0.25 * (1 + 1e-6)


def test_a_count_that_short_records_cannot_have_is_released_as_zero() -> None:
    """It has no noise, so that whatever is given must not be shown."""
    m = OrderGaussianMechanism(Poset.chain("ab"), rho=1, max_size=1)
    assert m.error().variance[0] == 0
    assert [m.release([n, 9])[0] for n in (0, 5, 9)] == [0, 0, 0]


def test_records_of_bounded_size_need_less_noise_and_unreachable_elements_none() -> None:
    m = OrderGaussianMechanism(SURVEY, rho="0.5", max_size=2)
    deep = [2]  # twice under two gates: three yeses at least
    assert m.error().variance[deep].tolist() == [0.0]
    assert np.all(np.delete(m.error().variance, deep) > 0)
    released = m.release([20, 10, 0, 8, 9, *[1] * 6, 7, 2, 2, 2])
    assert released[2] == 0
    assert m.log_density(np.eye(15)[2]) == -math.inf
    loose = OrderGaussianMechanism(SURVEY, rho="0.5").error().total
    assert m.error().total < 0.5 * loose


@pytest.mark.parametrize("k", [1, 2, 3, 10, 29])
def test_bounding_is_never_worse_than_independent_noise_of_that_size(k: int) -> None:
    m = OrderGaussianMechanism(Poset.antichain(range(30)), rho="0.5", max_size=k)
    assert m.error().total <= 30 * k * (1 + 1e-6)


def test_a_bound_that_binds_nothing_changes_nothing() -> None:
    free = OrderGaussianMechanism(DIAMOND, rho=1).error().total
    assert OrderGaussianMechanism(DIAMOND, rho=1, max_size=4).error().total == pytest.approx(free, rel=1e-6)


def test_the_number_of_records_comes_for_free() -> None:
    for P in ORDERS.values():
        m = OrderGaussianMechanism(P, rho=10**8)
        values, total = m.release_with_total(np.ones(len(P), int), 17)
        assert values.tolist() == [1] * len(P)
        assert total == 17
        assert 0 < OrderGaussianMechanism(P, rho="0.5").total_variance() < math.inf


def test_the_number_of_records_is_refused_where_it_has_no_noise() -> None:
    m = OrderGaussianMechanism(SURVEY, rho=1, neighbours="replace")
    assert m.total_variance() == math.inf
    with pytest.raises(InputError, match="does not cover the number of records"):
        m.release_with_total(np.ones(15, int), 20)
    with pytest.raises(InputError, match="fewer records"):
        OrderGaussianMechanism(SURVEY, rho=1).release_with_total(np.full(15, 9), 5)


def test_quantiles_are_those_of_gaussian_noise() -> None:
    m = OrderGaussianMechanism(DIAMOND, rho=1)
    alone = m.unrounded_half_widths(0.95)
    np.testing.assert_allclose(alone, 1.959964 * m.error().sd, rtol=1e-6)
    np.testing.assert_allclose(m.quantiles([0.975])[0], alone)
    # between independence and perfect dependence
    together = m.unrounded_simultaneous_half_width(0.95)
    assert alone.max() < together < 1.01 * m.unrounded_half_widths(0.9885).max()
    with pytest.raises(InputError, match="Probabilities"):
        m.quantiles([0.0])


def test_counts_without_noise_can_be_made_consistent() -> None:
    bounded = OrderGaussianMechanism(DIAMOND, rho=1, max_size=2)
    assert bounded.consistent([0, 5, 1, 2], integers=True).dtype == np.int64


def test_equal_orders_with_other_sequences_of_elements_get_their_own_noise() -> None:
    one = OrderGaussianMechanism(Poset("abc", [("a", "b")]), rho=1)
    other = OrderGaussianMechanism(Poset("cba", [("a", "b")]), rho=1)
    np.testing.assert_allclose(one.error().variance, other.error().variance[::-1], rtol=1e-6)
    assert one.error().variance[0] != pytest.approx(one.error().variance[2], rel=1e-3)


def test_large_orders_that_are_no_forest_use_a_forest_inside() -> None:
    n = 1200
    P = Poset(range(n), [(x, (x - 1) // 2) for x in range(1, n)] + [(x, 0) for x in (700, 701)] + [(900, 5)])
    twisted = Poset(range(n), [*P.covers, (1100, 3)])
    assert not twisted.is_forest
    m = OrderGaussianMechanism(twisted, rho=1)
    assert m.method == "forest inside the order"
    assert m.certificate().gap is None
    assert m.error().total < 0.2 * n**2 / 2


def test_mechanisms_are_values() -> None:
    a, b = (OrderGaussianMechanism(DIAMOND, rho=1) for _ in range(2))
    assert a == b
    assert a != OrderGaussianMechanism(DIAMOND, rho=2)
    with pytest.raises(AttributeError):
        a.variance = Fraction(1)  # type: ignore[misc]


def test_progress_goes_forward() -> None:
    seen: list[float] = []
    shape_of(sparse_poset(20, 0.2, np.random.default_rng(99)), progress=lambda f, _: seen.append(f))
    assert seen == sorted(seen)
    assert seen[-1] == 1.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "needs epsilon and delta, or rho"),
        ({"rho": 1, "epsilon": 1}, "not both"),
        ({"epsilon": 1, "delta": 0}, "delta must be above 0"),
        ({"rho": 1, "neighbours": "both"}, "neighbours must be"),
        ({"rho": 1, "max_size": 0}, "max_size must be"),
        ({"rho": 1, "contributions": 0}, "contributions must be"),
        ({"rho": "1e-25"}, "weaker one"),
    ],
)
def test_what_cannot_be_guaranteed_is_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        OrderGaussianMechanism(DIAMOND, **arguments)  # type: ignore[arg-type]


def test_what_is_too_large_is_refused() -> None:
    with pytest.raises(InputError, match="HierarchicalMechanism"):
        OrderGaussianMechanism(Poset.chain(range(5001)), rho=1)
    with pytest.raises(InputError, match="too large a matrix"):
        OrderGaussianMechanism(Poset.antichain(range(6000)), rho=1).covariance()


def test_counts_that_break_the_order_and_simulated_counts_are_refused() -> None:
    m = OrderGaussianMechanism(Poset.chain("ab"), rho=1)
    with pytest.raises(InputError, match="break that order"):
        m.release([2, 1])
    with pytest.raises(InputError, match="simulate"):
        m.release(Simulated.wrap(np.array([1, 2])))
