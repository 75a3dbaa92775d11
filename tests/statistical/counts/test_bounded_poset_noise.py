"""The noise of the bounded poset mechanism; each test has a false-alarm rate of 1e-6."""

from collections import Counter
from itertools import product

import numpy as np
import pytest
from scipy.stats import gamma, kstest
from tests.support.chisquare import FALSE_ALARM, chi_square_p

from isotone.counts import BoundedPosetMechanism, LaplaceMechanism
from isotone.order import Poset


def test_releases_of_single_yeses_are_those_of_rounded_laplace_noise():
    P = Poset.antichain("ab")
    m = BoundedPosetMechanism(P, "1/2", max_size=1)
    seen = Counter(tuple(m.release([0, 0]).tolist()) for _ in range(4_000))
    cells = list(product(range(-12, 13), repeat=2))

    def p_value(epsilon):
        law = np.exp(LaplaceMechanism(P, epsilon, max_size=1).log_probability(cells))
        inside = [seen[cell] for cell in cells]
        return chi_square_p([*inside, seen.total() - sum(inside)], [*law, 1 - law.sum()])

    assert p_value("1/2") > FALSE_ALARM
    assert p_value("0.56") < FALSE_ALARM


@pytest.mark.parametrize("max_size", [3, 5])
def test_the_norm_of_the_noise_is_a_gamma_variable(max_size):
    P = Poset(range(9), [(1, 0), (2, 0), (3, 0), (4, 1), (5, 1), (7, 6), (8, 6)])
    m = BoundedPosetMechanism(P, 2, max_size=max_size)
    lengths = m.norm(m.simulate(20_000, np.random.default_rng(1)))
    assert kstest(lengths, gamma(9, scale=0.5).cdf).pvalue > FALSE_ALARM
    assert kstest(lengths, gamma(9, scale=0.55).cdf).pvalue < FALSE_ALARM
