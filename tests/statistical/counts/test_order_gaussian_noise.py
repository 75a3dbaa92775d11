"""The exact release has the covariance it claims: each test has a false-alarm rate of 1e-8, and a scale wrong by 25 % is caught.

Sums of squares with 1,500 and more degrees of freedom lie ten standard deviations beyond the limit at such a scale:
the tests miss it with a probability below 1e-20.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2, kstest
from tests.support.chisquare import FALSE_ALARM
from tests.support.effort import draws, off

from isotone.counts import OrderGaussianMechanism
from isotone.order import Poset

SURVEY = Poset(
    range(15),
    [(1, 0), (2, 1), (3, 0), *((x, 4) for x in range(5, 11)), *((x, 11) for x in (12, 13, 14))],
)
DIAMOND = Poset("abcd", [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")])
DRAWS = draws(1500, 0.25)
TOO_LARGE, TOO_SMALL = (1 + off(0.25)) ** 2, (1 - off(0.25)) ** 2  # variances of noise with a wrong scale


def two_sided(statistic: float, degrees: int) -> float:
    return 2 * min(float(chi2.cdf(statistic, degrees)), float(chi2.sf(statistic, degrees)))


@pytest.mark.parametrize("P", [SURVEY, Poset.chain(range(9)), DIAMOND], ids=["forest", "chain", "dense"])
@pytest.mark.parametrize(
    "guarantee", [{"rho": "0.0002"}, {"epsilon": "0.1", "delta": "1e-6"}], ids=["zcdp", "dp"]
)
def test_released_noise_has_the_covariance_of_the_mechanism(P: Poset, guarantee: dict[str, str]) -> None:
    m = OrderGaussianMechanism(P, **guarantee)  # type: ignore[arg-type]
    number = draws(6_000, 0.25) // len(P)
    noise = np.array([m.release(np.zeros(len(P), int)) for _ in range(number)], dtype=float)
    # rounding to integers adds a variance of 1/12, here a part in ten thousand at most
    white = np.linalg.solve(np.linalg.cholesky(m.covariance() + np.eye(len(P)) / 12), noise.T)
    lengths = np.sum(white**2, axis=0)
    assert two_sided(float(lengths.sum()), number * len(P)) > FALSE_ALARM
    assert two_sided(float(lengths.sum()) / TOO_LARGE, number * len(P)) < FALSE_ALARM
    assert two_sided(float(lengths.sum()) / TOO_SMALL, number * len(P)) < FALSE_ALARM
    assert kstest(lengths, chi2(len(P)).cdf).pvalue > FALSE_ALARM
    # every pair of coordinates: squares of sums and differences of whitened noise
    first, rest = white[0], white[1:]
    for other in rest:
        assert two_sided(float(np.sum((first + other) ** 2) / 2), number) > FALSE_ALARM


def test_the_released_number_of_records_has_its_variance() -> None:
    m = OrderGaussianMechanism(SURVEY, rho="0.0002")
    totals = np.array(
        [m.release_with_total(np.zeros(15, int), 50)[1] - 50 for _ in range(DRAWS)], dtype=float
    )
    statistic = float(np.sum(totals**2)) / m.total_variance()
    assert two_sided(statistic, DRAWS) > FALSE_ALARM
    assert two_sided(statistic / TOO_LARGE, DRAWS) < FALSE_ALARM


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_simulated_noise_has_the_covariance_of_the_mechanism(neighbours: str) -> None:
    m = OrderGaussianMechanism(SURVEY, rho=1, neighbours=neighbours)  # type: ignore[arg-type]
    noise = np.asarray(m.simulate(draws(4000, 0.25), np.random.default_rng(0)))
    white = np.linalg.solve(np.linalg.cholesky(m.covariance()), noise.T)
    assert two_sided(float(np.sum(white**2)), white.size) > FALSE_ALARM
    assert two_sided(float(np.sum(white**2)) / TOO_LARGE, white.size) < FALSE_ALARM
