"""What follows for all counts from the law of one: quantiles, intervals, errors."""

import math
from itertools import product
from typing import Any

import numpy as np
import pytest

from isotone.counts.independent import (
    DiscreteLaplaceMechanism,
    GaussianMechanism,
    LaplaceMechanism,
)
from isotone.errors import InputError
from isotone.noise.simulate import Simulated
from isotone.order import Poset

P = Poset.antichain("abc")
LAPLACE = LaplaceMechanism(P, 1)
RATE = 1 / 3
GAUSSIAN = GaussianMechanism(P, rho="1/2")


def inside(h: float) -> float:
    """The probability that one Laplace number of this rate stays within h."""
    return -math.expm1(-RATE * h)


def test_every_count_has_the_error_of_one():
    assert LAPLACE.error().variance.tolist() == [18.0] * 3


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.999])
def test_half_widths_hold_one_number_with_the_confidence_and_all_with_its_power(confidence):
    alone = LAPLACE.unrounded_half_widths(confidence)
    assert alone.shape == (3,)
    assert [inside(h) for h in alone] == pytest.approx([confidence] * 3, rel=1e-12)
    together = LAPLACE.unrounded_simultaneous_half_width(confidence)
    assert inside(together) ** 3 == pytest.approx(confidence, rel=1e-12)


def test_one_count_alone_has_one_half_width():
    m = LaplaceMechanism(Poset.antichain("a"), 1)
    assert m.unrounded_simultaneous_half_width(0.9) == pytest.approx(m.unrounded_half_widths(0.9)[0])


def test_quantiles_are_symmetric_rise_and_are_zero_in_the_middle():
    shares = [0.01, 0.3, 0.5, 0.7, 0.99]
    found = LAPLACE.quantiles(shares)
    assert found.shape == (5, 3)
    assert np.all(found == found[:, :1])
    column = found[:, 0]
    assert column[2] == 0.0
    assert column[::-1] == pytest.approx(-column)
    assert np.all(np.diff(column) > 0)
    below = [math.exp(RATE * x) / 2 if x <= 0 else 1 - math.exp(-RATE * x) / 2 for x in column]
    assert below == pytest.approx(shares)


@pytest.mark.parametrize("share", [0, 1, -0.1, 1.1, math.nan])
def test_shares_that_have_no_quantile_are_refused(share):
    with pytest.raises(InputError, match="strictly between 0 and 1"):
        LAPLACE.quantiles([0.5, share])


@pytest.mark.parametrize(
    "m", [LaplaceMechanism(Poset.antichain("ab"), 4), DiscreteLaplaceMechanism(Poset.antichain("ab"), 4)]
)
def test_probabilities_of_integers_sum_to_one(m: Any):
    outputs = np.array(list(product(range(-20, 21), repeat=2)))
    assert m.probability(outputs).sum() == pytest.approx(1, abs=1e-9)
    assert m.probability([[3, 4]], [3, 4]) == pytest.approx(m.probability([[0, 0]]))


@pytest.mark.parametrize("m", [LAPLACE, GAUSSIAN])
def test_simulated_noise_is_marked_has_the_stated_error_and_no_number_moves_another(m: Any):
    drawn = m.simulate(40_000, np.random.default_rng(3))
    assert isinstance(drawn, Simulated)
    assert drawn.shape == (40_000, 3)
    covariance = np.cov(np.asarray(drawn), rowvar=False)
    # eight standard errors of a variance (kurtosis at most 6) and of a covariance
    assert np.diag(covariance) == pytest.approx(m.error().variance, rel=8 * math.sqrt(5 / 40_000))
    apart = covariance[np.triu_indices(3, 1)] / m.error().variance[0]
    assert np.all(np.abs(apart) < 8 / math.sqrt(40_000))
