"""The variance of Gaussian noise: proved sufficient, and hardly more than necessary."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isotone.errors import InputError
from isotone.privacy.gaussian_calibration import (
    delta_bracket,
    normal_cdf_bracket,
    sigma_squared,
    sigma_squared_zcdp,
)


def true_delta(epsilon: Fraction, ratio: mpmath.mpf) -> mpmath.mpf:
    e = mpmath.mpf(epsilon.numerator) / epsilon.denominator
    below, above = 1 / (2 * ratio) - e * ratio, -1 / (2 * ratio) - e * ratio
    return mpmath.ncdf(below) - mpmath.exp(e) * mpmath.ncdf(above)


PROMISES = [
    ("1", "1e-6"),
    ("0.1", "1e-9"),
    ("1/3", "1e-5"),
    ("8", "1e-10"),
    ("1e-9", "1e-6"),
    ("1e-6", "1e-30"),
    ("1", "0.5"),
    ("0.01", "0.999"),
]


@pytest.mark.parametrize(("epsilon", "delta"), PROMISES)
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
