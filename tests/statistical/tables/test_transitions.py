"""Released counts follow the matrix of their mechanism.

Each test fails a correct sampler with probability at most 1e-8, and is shown to fail when the scale is wrong
by a quarter.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from tests.support.chisquare import FALSE_ALARM, assert_tells, chi_square_p, margin
from tests.support.effort import draws, off

from isotone.privacy.calibration import sigma_squared
from isotone.privacy.guarantee import Guarantee
from isotone.published.tables.scales import ScaleMechanism
from isotone.tables import (
    CountMechanism,
    discrete_gaussian,
    fixed_point,
    privatize_distribution,
    staircase,
    truncated_geometric,
    unfixed_optimum,
)
from isotone.tables.distribution import Method

N, EACH = 6, draws(20_000, 0.25)
EPSILON, WRONG = 0.8, 0.8 * (1 - off(0.25))
Z = np.array([0.35, 0.05, 0.25, 0.0, 0.15, 0.2])


def build(name: str, epsilon: float) -> CountMechanism:
    return {
        "closed form": lambda: fixed_point(Z, epsilon),
        "soft target": lambda: fixed_point(Z, epsilon, price="0.1"),
        "heuristic": lambda: fixed_point(Z, epsilon, constructor="heuristic", selector="max"),
        "linear program": lambda: fixed_point(Z, epsilon, constructor="lp", loss="zero-one"),
        "unfixed": lambda: unfixed_optimum(Z, epsilon),
        "geometric": lambda: truncated_geometric(N, epsilon),
        "staircase": lambda: staircase(N, epsilon),
        "Gaussian": lambda: discrete_gaussian(N, epsilon, "1e-2"),
    }[name]()


def transitions(counts: np.ndarray) -> np.ndarray:
    return np.array([np.bincount(row, minlength=N) for row in counts.reshape(N, EACH)])


NAMES = (
    "closed form",
    "soft target",
    "heuristic",
    "linear program",
    "unfixed",
    "geometric",
    "staircase",
    "Gaussian",
)


@pytest.mark.parametrize("name", NAMES)
def test_released_counts_follow_the_matrix(name: str) -> None:
    true = np.repeat(np.arange(N), EACH)
    seen = transitions(build(name, EPSILON).release(true))
    matrix, other = build(name, EPSILON).matrix(), build(name, WRONG).matrix()
    assert all(chi_square_p(seen[i], matrix[i]) > FALSE_ALARM / N for i in range(N))
    told = max(range(N), key=lambda i: margin(matrix[i], other[i], EACH))
    assert_tells(seen[told], matrix[told], other[told])


@pytest.mark.parametrize("name", NAMES)
def test_simulated_counts_follow_the_matrix(name: str) -> None:
    true = np.repeat(np.arange(N), EACH)
    seen = transitions(np.asarray(build(name, EPSILON).simulate(true, np.random.default_rng(1))))
    matrix, other = build(name, EPSILON).matrix(), build(name, WRONG).matrix()
    assert all(chi_square_p(seen[i], matrix[i]) > FALSE_ALARM / N for i in range(N))
    told = max(range(N), key=lambda i: margin(matrix[i], other[i], EACH))
    assert_tells(seen[told], matrix[told], other[told])


def test_the_rest_of_a_sum_of_scales_goes_to_the_goal() -> None:
    """With a rest large enough to see, the released law is still that of the matrix."""
    t = build("heuristic", EPSILON)
    assert isinstance(t, ScaleMechanism)
    large = replace(t, rest=Fraction(1, 4))
    seen = transitions(large.release(np.repeat(np.arange(N), EACH)))
    assert all(chi_square_p(seen[i], large.matrix()[i]) > FALSE_ALARM / N for i in range(N))
    assert any(chi_square_p(seen[i], t.matrix()[i]) < FALSE_ALARM for i in range(N))


@pytest.mark.parametrize("method", ["cumulative", "cyclic-laplace"])
def test_the_noise_on_the_cumulative_histogram_has_the_law_it_guarantees(method: Method) -> None:
    epsilon, n = 0.5, draws(60_000, 0.2) + 1
    counts = np.arange(200) % 50
    z = privatize_distribution(counts, n - 1, epsilon, method)
    assert z.noisy_cumulative is not None
    true = np.cumsum(np.bincount(counts, minlength=n))[:-1]
    noise = z.noisy_cumulative - true
    if method == "cyclic-laplace":  # differences of neighbours are free of the common term
        noise = np.diff(noise)[::2]
    reach = 60
    seen = np.bincount(np.clip(noise, -reach, reach) + reach, minlength=2 * reach + 1)

    def law(rate: float) -> np.ndarray:
        k = np.arange(-4 * reach, 4 * reach + 1)
        p = np.exp(-rate * np.abs(k))
        p /= p.sum()
        if method == "cyclic-laplace":
            p = np.convolve(p, p)[4 * reach : -4 * reach]
        folded = p[3 * reach : 5 * reach + 1].copy()
        folded[0] += p[: 3 * reach].sum()
        folded[-1] += p[5 * reach + 1 :].sum()
        return folded / folded.sum()

    assert_tells(seen, law(epsilon), law(epsilon * (1 - off(0.2))), law(epsilon * (1 + off(0.25))))


def test_the_cyclic_gaussian_has_the_variance_that_its_guarantee_needs() -> None:
    """The variance of 30,000 independent differences: the bounds hold but with probability 1e-8."""
    n = 60_001
    counts = np.arange(200) % 50
    z = privatize_distribution(counts, n - 1, Guarantee.approximate("0.5", "1e-4"), "cyclic-gaussian")
    assert z.noisy_cumulative is not None
    noise = z.noisy_cumulative - np.cumsum(np.bincount(counts, minlength=n))[:-1]
    expected = 2 * (float(sigma_squared(Fraction(1, 2), Fraction(1, 10**4))) + 1 / 12)
    measured = float(np.mean(np.diff(noise)[::2].astype(float) ** 2))
    spread = 5.8 * np.sqrt(2 / 30_000)  # 5.8 standard deviations: below 1e-8 on both sides
    assert abs(measured / expected - 1) < spread
    assert abs(measured / (expected * 1.1**2) - 1) > spread
