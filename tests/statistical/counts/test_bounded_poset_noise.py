"""The noise of the bounded poset mechanism; each test has a false-alarm rate of 1e-8."""

from collections import Counter
from itertools import product

import numpy as np
import pytest
from scipy.stats import gamma, norm
from tests.support.chisquare import FALSE_ALARM, assert_tells_continuous, chi_square_p
from tests.support.effort import draws, off

from isotone.counts import BoundedPosetMechanism, LaplaceMechanism
from isotone.order import Poset


def test_releases_of_single_yeses_are_those_of_rounded_laplace_noise():
    P = Poset.antichain("ab")
    m = BoundedPosetMechanism(P, "1/2", max_size=1)
    sample = np.array([m.release([0, 0]) for _ in range(draws(4_000, 0.25))])
    cells = np.array(list(product(range(-40, 41), repeat=2)))

    def law(epsilon):
        return np.exp(LaplaceMechanism(P, epsilon, max_size=1).log_probability(cells))

    seen = Counter(map(tuple, sample.tolist()))
    assert chi_square_p([seen[tuple(cell)] for cell in cells.tolist()], law("1/2")) > FALSE_ALARM
    lengths = np.abs(sample).sum(axis=1)
    doubt = lengths.std() / np.sqrt(len(lengths))

    def distance(epsilon):
        return abs(lengths.mean() - law(epsilon) @ np.abs(cells).sum(axis=1)) / doubt

    assert distance("1/2") < norm.isf(FALSE_ALARM / 2)
    assert distance(0.5 * (1 + off(0.25))) > norm.isf(FALSE_ALARM / 2)


@pytest.mark.parametrize("max_size", [3, 5])
def test_the_norm_of_the_noise_is_a_gamma_variable(max_size):
    P = Poset(range(9), [(1, 0), (2, 0), (3, 0), (4, 1), (5, 1), (7, 6), (8, 6)])
    m = BoundedPosetMechanism(P, 2, max_size=max_size)
    lengths = m.norm(m.simulate(20_000, np.random.default_rng(1)))
    assert_tells_continuous(lengths, gamma(9, scale=0.5), gamma(9, scale=0.55))
