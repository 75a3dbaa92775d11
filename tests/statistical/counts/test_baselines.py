"""Released and simulated noise of the baselines against their stated laws.

Each test fails a correct sampler with probability at most FALSE_ALARM, and is shown to notice a scale that is
wrong by a quarter.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import gamma, norm
from tests.support.chisquare import FALSE_ALARM, assert_tells, assert_tells_continuous
from tests.support.effort import draws, off

from isotone.counts.independent import (
    DiscreteGaussianMechanism,
    DiscreteLaplaceMechanism,
    GaussianMechanism,
    HierarchicalMechanism,
    LaplaceMechanism,
)
from isotone.counts.knorm import LInfinityMechanism
from isotone.order import Poset
from isotone.published.counts import L2Mechanism, LpMechanism

WRONG = 1 + Fraction(str(off(0.25)))


def check_integers(sample, right, wrong):
    """Single-count noise has the law of the right mechanism (on one element), and not that of the wrong one."""
    k = np.arange(-200, 201)
    seen = [np.sum(sample == value) for value in k]
    assert_tells(seen, *(np.exp(mechanism.log_probability(k[:, None])) for mechanism in (right, wrong)))


INDEPENDENT = {
    "laplace": lambda P, s: LaplaceMechanism(P, Fraction(3, 10) * len(P) / s),
    "discrete laplace": lambda P, s: DiscreteLaplaceMechanism(P, Fraction(3, 10) * len(P) / s),
    "gaussian": lambda P, s: GaussianMechanism(P, rho=Fraction(len(P), 40) / s**2),
    "discrete gaussian": lambda P, s: DiscreteGaussianMechanism(P, rho=Fraction(len(P), 40) / s**2),
}


@pytest.mark.parametrize("name", INDEPENDENT)
def test_released_noise_has_the_stated_probabilities(name):
    size = draws(20_000, 0.25)
    many, one = Poset.antichain(range(size)), Poset.chain([0])
    counts = np.arange(size)
    sample = INDEPENDENT[name](many, 1).release(counts) - counts
    # with one element the sensitivity is 1: the same scale needs the guarantee divided by the number of elements
    check_integers(sample, INDEPENDENT[name](one, Fraction(1)), INDEPENDENT[name](one, WRONG))


def test_the_released_cube_has_the_stated_joint_probabilities():
    m = LInfinityMechanism(Poset.antichain("ab"), 1)
    check_cube(m, np.array([m.release([7, 9]) for _ in range(draws(12_000, 0.25))]) - [7, 9])


def check_cube(m, sample):
    k = np.arange(-40, 41)
    cells = np.stack(np.meshgrid(k, k, indexing="ij"), axis=-1).reshape(-1, 2)
    observed = np.bincount((sample[:, 0] + 40) * 81 + sample[:, 1] + 40, minlength=len(cells))
    wrong = LInfinityMechanism(Poset.antichain("ab"), WRONG)
    assert_tells(observed, *(np.exp(each.log_probability(cells)) for each in (m, wrong)))


def test_the_released_cube_reads_on_when_its_first_digits_do_not_decide(monkeypatch):
    monkeypatch.setattr("isotone.noise.exponential.first_places", lambda *_: 1)
    m = LInfinityMechanism(Poset.chain("a"), "0.3")
    sample = np.array([m.release([5])[0] - 5 for _ in range(draws(6_000, 0.3))])
    check_integers(sample, m, LInfinityMechanism(Poset.chain("a"), 0.3 * (1 + off(0.3))))


@pytest.mark.parametrize(
    "m",
    [
        LpMechanism(Poset.antichain(range(5)), 2, p=1),
        LpMechanism(Poset.antichain(range(5)), 2, p="1.5"),
        L2Mechanism(Poset.antichain(range(5)), 2),
        LpMechanism(Poset.antichain(range(5)), 2, p=7),
        LInfinityMechanism(Poset.antichain(range(5)), 2),
    ],
    ids=lambda m: f"{type(m).__name__} {getattr(m, 'p', '')}",
)
def test_the_norm_of_simulated_noise_is_gamma_distributed(m):
    norms = m.norm(m.simulate(20_000, np.random.default_rng(0)))
    assert_tells_continuous(norms, gamma(5, scale=0.5), gamma(5, scale=0.55))


MECHANISMS = [
    LaplaceMechanism(Poset.antichain(range(4)), "1.3", max_size=3),
    DiscreteLaplaceMechanism(Poset.antichain(range(4)), "1.3"),
    LpMechanism(Poset.antichain(range(4)), "1.3", p=3),
    L2Mechanism(Poset.antichain(range(4)), "1.3"),
    LInfinityMechanism(Poset.antichain(range(4)), "1.3"),
    GaussianMechanism(Poset.antichain(range(4)), "1.3", "1e-4"),
    DiscreteGaussianMechanism(Poset.antichain(range(4)), "1.3", "1e-4"),
    DiscreteGaussianMechanism(Poset.antichain(range(4)), rho=2),
    HierarchicalMechanism(Poset.chain(range(4)), "1.3", branching=2),
]


@pytest.mark.parametrize("m", MECHANISMS, ids=lambda m: type(m).__name__)
def test_the_stated_error_is_that_of_the_simulation(m):
    squares = np.asarray(m.simulate(60_000, np.random.default_rng(4))) ** 2
    standard_error = squares.std(axis=0) / math.sqrt(len(squares))
    limit = norm.isf(FALSE_ALARM / 8)
    assert np.all(np.abs(squares.mean(axis=0) - m.error().variance) < limit * standard_error)
    assert np.all(np.abs(squares.mean(axis=0) - 1.21 * m.error().variance) > limit * standard_error)


@pytest.mark.parametrize("branching", [2, 3])
def test_released_hierarchical_sums_have_the_stated_error(branching):
    n, repetitions = 9, draws(4_000, 0.22)
    m = HierarchicalMechanism(Poset.chain(range(n)), "0.5", branching=branching)
    counts = np.arange(n) ** 2
    squares = np.array([m.release(counts) - counts for _ in range(repetitions)]) ** 2.0
    standard_error = squares.std(axis=0) / math.sqrt(repetitions)
    expected = m.error().variance + 1 / 12  # rounding to integers adds the variance of a unit cell
    limit = norm.isf(FALSE_ALARM / (2 * n))
    assert np.all(np.abs(squares.mean(axis=0) - expected) < limit * standard_error)
    assert np.any(np.abs(squares.mean(axis=0) - (1 + off(0.22)) ** 2 * expected) > limit * standard_error)


def test_cells_of_the_simulated_cube_have_the_stated_probabilities():
    m = LInfinityMechanism(Poset.antichain("ab"), 1)
    check_cube(m, np.rint(np.asarray(m.simulate(draws(20_000, 0.25), np.random.default_rng(5)))).astype(int))
