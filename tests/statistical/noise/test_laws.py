"""Every sampler against its law (false-alarm rate 1e-8), and against a law that is off by a fifth."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.support import laws
from tests.support.chisquare import FALSE_ALARM
from tests.support.effort import draws, off

from isotone import noise
from isotone.noise import gaussian, simulate
from isotone.noise import gaussian as gaussian_kernel

MANY, FEW = draws(100_000, 0.2), draws(25_000, 0.2)
RATES = [Fraction(1), Fraction(1, 10), Fraction(5, 2), Fraction(1, 1000), Fraction(22, 7 * 10**8)]
VARIANCES = [Fraction(1, 2), Fraction(1), Fraction(10), Fraction(1000, 3), Fraction(10**12)]


def check(sample: Any, law: Callable[[float], laws.Cdf], parameter: Fraction, cells: int = 50) -> None:
    """The draws fit the law, and do not fit it when its scale is a fifth off on either side."""
    power = 2 if "gaussian" in law.__name__ else 1  # a Gaussian's parameter is the square of its scale
    wrong = [law(float(parameter) * factor**power) for factor in (1 - off(0.2), 1 + off(0.2))]
    laws.assert_tells_integers(
        sample, law(float(parameter)), *wrong, cells=cells if len(sample) >= MANY else 16
    )


@pytest.mark.parametrize("rate", RATES)
def test_arrays_of_geometrics(rate):
    check(noise.geometrics(rate, MANY), laws.geometric_cdf, rate)


@pytest.mark.parametrize("rate", RATES)
def test_arrays_of_two_sided_geometrics(rate):
    check(noise.two_sided_geometrics(rate, MANY), laws.two_sided_geometric_cdf, rate)


@pytest.mark.parametrize("rate", [Fraction(1), Fraction(5, 7), Fraction(1, 1000)])
def test_single_geometrics(rate):
    check([noise.geometric(rate) for _ in range(FEW)], laws.geometric_cdf, rate)


@pytest.mark.parametrize("rate", [Fraction(1), Fraction(1, 1000)])
def test_single_two_sided_geometrics(rate):
    sample = [noise.two_sided_geometric(rate) for _ in range(FEW)]
    check(sample, laws.two_sided_geometric_cdf, rate)


@pytest.mark.parametrize("variance", VARIANCES)
def test_arrays_of_discrete_gaussians(variance):
    check(noise.discrete_gaussians(variance, MANY), laws.discrete_gaussian_cdf, variance)


def test_single_discrete_gaussians():
    sample = [noise.discrete_gaussian(Fraction(10)) for _ in range(FEW)]
    check(sample, laws.discrete_gaussian_cdf, Fraction(10))


@pytest.mark.parametrize("variance", [Fraction(1, 4), *VARIANCES])
def test_arrays_of_rounded_gaussians(variance):
    check(noise.rounded_gaussians(variance, MANY), laws.rounded_gaussian_cdf, variance)


def test_rounded_and_discrete_gaussians_differ_as_they_should():
    """At variance 1/4 rounding puts 0.6827 on zero, the discrete Gaussian 0.7866."""
    rounded, discrete = (
        noise.rounded_gaussians(Fraction(1, 4), MANY),
        noise.discrete_gaussians(Fraction(1, 4), MANY),
    )
    assert laws.fits(rounded, laws.discrete_gaussian_cdf(0.25)) < FALSE_ALARM
    assert laws.fits(discrete, laws.rounded_gaussian_cdf(0.25)) < FALSE_ALARM


@pytest.mark.parametrize(
    ("draw", "law"),
    [
        (noise.discrete_gaussians, laws.discrete_gaussian_cdf),
        (noise.rounded_gaussians, laws.rounded_gaussian_cdf),
    ],
)
def test_gaussians_that_the_kernel_never_decides(draw, law, monkeypatch):
    """The integers alone, without the compiled bracket, give the same law."""

    def never_sure(values, proposals, uniforms, fractions, shape, places, state):
        done = (
            state[gaussian_kernel.PROPOSAL] == proposals.size or state[gaussian_kernel.TAKEN] == values.size
        )
        return gaussian_kernel.DONE if done else gaussian_kernel.UNDECIDED

    monkeypatch.setattr(gaussian, "accept", never_sure)
    check(draw(Fraction(30), draws(12_000, 0.2)), law, Fraction(30))


@pytest.mark.parametrize(
    ("draw", "law", "parameter"),
    [
        (simulate.geometrics, laws.geometric_cdf, Fraction(1, 3)),
        (simulate.two_sided_geometrics, laws.two_sided_geometric_cdf, Fraction(1, 3)),
        (simulate.discrete_gaussians, laws.discrete_gaussian_cdf, Fraction(3)),
        (simulate.rounded_gaussians, laws.rounded_gaussian_cdf, Fraction(3)),
    ],
)
def test_simulations_have_the_laws_of_their_twins(draw, law, parameter):
    check(draw(np.random.default_rng(11), parameter, MANY), law, parameter)
