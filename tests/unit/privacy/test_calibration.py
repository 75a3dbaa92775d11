"""The variance of Gaussian noise: proved sufficient, and hardly more than necessary."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isotone.errors import InputError
from isotone.privacy import calibration
from isotone.privacy.calibration import (
    delta_bracket,
    discrete_sigma_squared,
    largest_rho,
    log_bracket,
    mills_bracket,
    normal_cdf_bracket,
    normal_density_bracket,
    sigma_squared,
    sigma_squared_zcdp,
)


def true_delta(epsilon: Fraction, ratio: mpmath.mpf) -> mpmath.mpf:
    e = mpmath.mpf(epsilon.numerator) / epsilon.denominator
    below, above = 1 / (2 * ratio) - e * ratio, -1 / (2 * ratio) - e * ratio
    return normal(below) - mpmath.exp(e) * normal(above)


def normal(x: mpmath.mpf) -> mpmath.mpf:
    """Φ(x), with all digits in the lower tail too."""
    return mpmath.erfc(-x / mpmath.sqrt(2)) / 2


GUARANTEES = [
    ("1", "1e-6"),
    ("0.1", "1e-9"),
    ("1/3", "1e-5"),
    ("8", "1e-10"),
    ("1e-9", "1e-6"),
    ("1e-6", "1e-30"),
    ("1", "0.5"),
    ("0.01", "0.999"),
    ("40", "1e-40"),
    ("2000", "1e-6"),  # e^ε has 2,886 bits: no step may need them
    ("1e6", "1e-6"),
]


@pytest.mark.parametrize(("epsilon", "delta"), GUARANTEES)
def test_the_variance_is_enough_and_a_trillionth_less_is_not(epsilon: str, delta: str) -> None:
    with mpmath.workdps(120):
        variance = sigma_squared(epsilon, delta)
        ratio = mpmath.mpf(mpmath.sqrt(mpmath.mpf(variance.numerator) / variance.denominator))
        target = mpmath.mpf(Fraction(delta).numerator) / Fraction(delta).denominator
        assert true_delta(Fraction(epsilon), ratio) <= target
        assert true_delta(Fraction(epsilon), ratio * (1 - mpmath.mpf("1e-12"))) > target


def test_the_variance_grows_with_the_squared_sensitivity() -> None:
    assert sigma_squared(1, "1e-6", 12) == 12 * sigma_squared(1, "1e-6")
    assert sigma_squared_zcdp("0.1", 12) == Fraction(60)


@given(st.fractions(-12, 12), st.integers(4, 200))
@settings(max_examples=200, deadline=None)
def test_the_normal_distribution_lies_inside_its_bracket(x: Fraction, bits: int) -> None:
    with mpmath.workdps(120):
        truth = mpmath.ncdf(mpmath.mpf(x.numerator) / x.denominator) * mpmath.mpf(2) ** bits
        low, high = normal_cdf_bracket(x, bits)
        assert low <= truth <= high
        assert high - low <= 3


@given(st.fractions("1/100", 6), st.fractions("1/100", 6))
@settings(max_examples=60, deadline=None)
def test_delta_lies_inside_its_bracket(epsilon: Fraction, ratio: Fraction) -> None:
    with mpmath.workdps(120):
        truth = true_delta(epsilon, mpmath.mpf(ratio.numerator) / ratio.denominator)
        low, high = delta_bracket(epsilon, ratio, 100)
        assert mpmath.mpf(low.numerator) / low.denominator <= truth
        assert truth <= mpmath.mpf(high.numerator) / high.denominator
        assert high - low < Fraction(1, 2**80)


@pytest.mark.parametrize("delta", [0, 1, -1, "3/2"])
def test_a_delta_outside_the_open_unit_interval_is_refused(delta: object) -> None:
    with pytest.raises(InputError, match="delta must be strictly between"):
        sigma_squared(1, delta)  # type: ignore[arg-type]


def test_other_numbers_must_be_positive() -> None:
    with pytest.raises(InputError, match="epsilon must be above 0"):
        sigma_squared(0, "1e-6")
    with pytest.raises(InputError, match="sensitivity_squared must be above 0"):
        sigma_squared(1, "1e-6", 0)
    with pytest.raises(InputError, match="rho must be above 0"):
        sigma_squared_zcdp(-1)


@given(st.fractions(1, 90), st.integers(8, 160))
@settings(max_examples=100, deadline=None)
def test_mills_ratio_lies_inside_its_bracket(t: Fraction, bits: int) -> None:
    with mpmath.workdps(120):
        x = mpmath.mpf(t.numerator) / t.denominator
        truth = normal(-x) / mpmath.npdf(x) * mpmath.mpf(2) ** bits
        low, high = mills_bracket(t, bits)
        assert low <= truth <= high
        assert high - low <= 2


@given(st.fractions(-20, 20), st.integers(4, 200))
@settings(max_examples=100, deadline=None)
def test_the_normal_density_lies_inside_its_bracket(x: Fraction, bits: int) -> None:
    with mpmath.workdps(120):
        truth = mpmath.npdf(mpmath.mpf(x.numerator) / x.denominator) * mpmath.mpf(2) ** bits
        low, high = normal_density_bracket(x, bits)
        assert low <= truth <= high
        assert high - low <= 3


@given(st.fractions("1/1000000000", 10**9), st.integers(4, 200))
@settings(max_examples=200, deadline=None)
def test_a_logarithm_lies_inside_its_bracket(x: Fraction, bits: int) -> None:
    if x == 0:
        return
    with mpmath.workdps(120):
        truth = mpmath.log(mpmath.mpf(x.numerator) / x.denominator) * mpmath.mpf(2) ** bits
        low, high = log_bracket(x, bits)
        assert low <= truth <= high
        assert high - low <= 2


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [("1", "1e-6"), ("0.1", "1e-9"), ("20", "1e-6"), ("1", "0.5"), ("1e-6", "1e-30"), ("2000", "1e-6")],
)
def test_a_converted_rho_is_valid_and_a_millionth_more_is_not(epsilon: str, delta: str) -> None:
    """The formula at its best order, found anew with 80 digits."""
    e, d = Fraction(epsilon), Fraction(delta)
    with mpmath.workdps(80):
        rho = largest_rho(e, d)
        r, target = (mpmath.mpf(x.numerator) / x.denominator for x in (rho, d))
        eps = mpmath.mpf(e.numerator) / e.denominator

        def log_delta(r: mpmath.mpf) -> mpmath.mpf:
            low, high = mpmath.mpf("1e-30"), mpmath.mpf("1e60")
            for _ in range(400):
                t = mpmath.sqrt(low * high)
                low, high = (t, high) if (2 * t + 1) * r - eps < mpmath.log1p(1 / t) else (low, t)
            return low * ((1 + low) * r - eps - mpmath.log1p(1 / low)) - mpmath.log1p(low)

        assert log_delta(r) <= mpmath.log(target)
        assert log_delta(r * (1 + mpmath.mpf("1e-8"))) > mpmath.log(target)


@pytest.mark.parametrize("off", [1e-9, 1e-6, 1e-3])
def test_floats_that_err_in_the_search_cost_accuracy_and_not_privacy(
    off: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search that thinks δ smaller than it is finds too large a rho; the comparison in integers takes it back."""
    e, d = Fraction(1), Fraction(1, 10**6)
    right, honest = largest_rho(e, d), calibration._log_delta
    monkeypatch.setattr(calibration, "_log_delta", lambda rho, epsilon: honest(rho, epsilon) - off)
    found = largest_rho.__wrapped__(e, d)
    assert right * (1 - Fraction(off) * 100) < found < right * (1 + Fraction(1, 10**8))


def test_a_budget_too_small_to_convert_is_refused() -> None:
    with pytest.raises(InputError, match="at least 1e-50"):
        largest_rho(Fraction(1, 10**90), Fraction(1, 10**90))


@pytest.mark.parametrize(
    ("epsilon", "delta"), [("1", "1e-6"), ("0.1", "1e-3"), ("10", "1e-6"), ("0.2", "0.1")]
)
def test_the_discrete_variance_meets_its_exact_condition_and_a_billionth_less_does_not(
    epsilon: str, delta: str
) -> None:
    e, d = Fraction(epsilon), Fraction(delta)
    variance = discrete_sigma_squared(e, d, 1)
    with mpmath.workdps(60):
        eps, target = (mpmath.mpf(x.numerator) / x.denominator for x in (e, d))

        def loss(v: mpmath.mpf) -> mpmath.mpf:
            weights = [mpmath.exp(-(k**2) / (2 * v)) for k in range(int(20 * mpmath.sqrt(v)) + 20)]
            first = int(mpmath.floor(eps * v - mpmath.mpf(1) / 2)) + 1
            difference = mpmath.fsum(weights[first:]) - mpmath.exp(eps) * mpmath.fsum(weights[first + 1 :])
            return difference / (2 * mpmath.fsum(weights) - 1)

        v = mpmath.mpf(variance.numerator) / variance.denominator
        assert loss(v) <= target
        assert loss(v * (1 - mpmath.mpf("1e-9"))) > target
