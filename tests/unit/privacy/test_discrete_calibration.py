"""Gaussian noise is as large as its guarantee needs, and hardly larger."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import norm

from isotone.errors import InputError
from isotone.privacy.calibration import _discrete_delta, discrete_sigma_squared, sigma_squared


def hockey_stick(variance: float, epsilon: float, shift: tuple[int, ...]) -> float:
    """The δ of discrete Gaussian noise at ε, for a shift of several coordinates, by summation."""
    reach = int(12 * variance**0.5 + 12)
    k = np.arange(-reach, reach + 1)
    losses, chances = np.zeros(1), np.ones(1)
    weights = np.exp(-(k**2) / (2 * variance))
    for s in shift:
        loss = (2 * s * k + s * s) / (2 * variance)  # ln P(k)/P(k+s)
        losses = (losses[:, None] + loss[None, :]).ravel()
        chances = (chances[:, None] * (weights / weights.sum())[None, :]).ravel()
    return float(np.sum(chances * np.maximum(0, -np.expm1(epsilon - losses))))


@pytest.mark.parametrize("variance", ["1/3", "2", "17.9", "60"])
@pytest.mark.parametrize("epsilon", ["0.1", "1", "5/2"])
def test_the_bound_of_delta_is_above_the_true_one_and_near(epsilon: str, variance: str) -> None:
    """Of what the search below goes by: if it were too low the search would not end."""
    e, v = Fraction(epsilon), Fraction(variance)
    found, true = float(_discrete_delta(e, v, 120)), hockey_stick(float(v), float(e), (1,))
    assert true * (1 - 1e-9) - 1e-15 <= found <= true * (1 + 1e-9) + 1e-15


@pytest.mark.parametrize(("epsilon", "delta"), list(itertools.product(("0.1", "1", "4"), ("1e-3", "1e-6"))))
def test_the_analytic_variance_is_just_enough(epsilon: str, delta: str) -> None:
    for sensitivity in (1, 2, 5):
        variance = float(sigma_squared(epsilon, delta, sensitivity**2))

        def loss(v: float, distance: int = sensitivity) -> float:
            sigma, e = v**0.5, float(epsilon)
            return float(
                norm.cdf(distance / 2 / sigma - e * sigma / distance)
                - np.exp(e) * norm.cdf(-distance / 2 / sigma - e * sigma / distance)
            )

        assert loss(variance) <= float(delta) * (1 + 1e-6)
        assert loss(variance * 0.99) > float(delta)


@pytest.mark.parametrize(("epsilon", "delta"), [("0.5", "1e-3"), ("1", "1e-5"), ("3", "1e-4")])
def test_the_discrete_variance_is_enough_and_nearly_the_least(epsilon: str, delta: str) -> None:
    e, d = Fraction(epsilon), Fraction(delta)
    one = float(discrete_sigma_squared(e, d, 1))
    assert hockey_stick(one, float(e), (1,)) <= float(d) * (1 + 1e-9)
    assert hockey_stick(one * 0.97, float(e), (1,)) > float(d)
    two = float(discrete_sigma_squared(e, d, 2))
    for shift in ((2,), (1, 1), (1, -1)):
        assert hockey_stick(two, float(e), shift) <= float(d)
    assert two < 8 * one


def test_a_delta_that_guarantees_nothing_is_refused() -> None:
    for delta in (Fraction(0), Fraction(1)):
        with pytest.raises(InputError, match="delta"):
            sigma_squared(1, delta)
        with pytest.raises(InputError, match="delta"):
            discrete_sigma_squared(Fraction(1), delta, 1)
