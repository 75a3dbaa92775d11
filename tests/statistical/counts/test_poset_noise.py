"""The noise of the poset mechanism against its density; each test has a false-alarm rate of 1e-8."""

from collections import Counter

import numpy as np
import pytest
from scipy.stats import gamma, norm
from tests.support.bipartitions import extended_bipartitions
from tests.support.chisquare import FALSE_ALARM, assert_tells_continuous, chi_square_p
from tests.support.cones import cone
from tests.support.effort import draws, off
from tests.support.posets import all_posets
from tests.support.rounded_plane import rounded_law

from isotone.counts import PosetMechanism
from isotone.order import Poset

SURVEY = Poset(
    range(15),
    [(1, 0), (2, 1), (3, 0), *((k, 4) for k in range(5, 11)), *((k, 11) for k in range(12, 15))],
)
DRAWS, WRONG = draws(4_000, 0.25), 1 + off(0.25)
ORDERS = [SURVEY, Poset.random_dag(12, np.random.default_rng(4)), Poset.chain(range(40))]


@pytest.mark.parametrize("P", ORDERS, ids=len)
def test_the_norm_of_the_noise_is_a_gamma_variable(P):
    m = PosetMechanism(P, "1/2")
    lengths = m.norm(m.simulate(40_000, np.random.default_rng(1)))
    assert_tells_continuous(lengths, gamma(len(P), scale=2), gamma(len(P), scale=2.2))


@pytest.mark.parametrize("P", [*all_posets(3), *all_posets(4)[::3]], ids=str)
def test_the_noise_is_in_every_cone_equally_often(P):
    every = list(extended_bipartitions(P))
    noise = PosetMechanism(P, 1).simulate(60 * len(every), np.random.default_rng(2))
    cones = (cone(P, row) for row in np.asarray(noise))
    seen = Counter((tuple(c.A.tolist()), tuple(c.B.tolist())) for c in cones)
    assert chi_square_p([seen[e] for e in every], [1 / len(every)] * len(every)) > FALSE_ALARM


def law_and_scale(m, sample):
    """The p-value of the rounded law of m, and how many standard errors the mean norm is from it."""
    law, seen = rounded_law(m, reach=14), Counter(map(tuple, sample.tolist()))
    inside = [seen[cell] for cell in law]
    p = chi_square_p([*inside, seen.total() - sum(inside)], [*law.values(), 1 - sum(law.values())])
    close = np.abs(sample).max(axis=1) <= 14
    lengths = m.norm(sample[close])
    mean = np.array(list(law.values())) @ m.norm(list(law)) / sum(law.values())
    return p, abs(lengths.mean() - mean) / (lengths.std() / np.sqrt(len(lengths)))


@pytest.mark.parametrize("P", all_posets(2), ids=str)
def test_released_integers_follow_the_integrated_density(P):
    sample = np.array([PosetMechanism(P, 1).release([0, 0]) for _ in range(DRAWS)])
    p, distance = law_and_scale(PosetMechanism(P, 1), sample)
    assert p > FALSE_ALARM
    assert distance < norm.isf(FALSE_ALARM / 2)
    assert law_and_scale(PosetMechanism(P, WRONG), sample)[1] > norm.isf(FALSE_ALARM / 2)


def test_released_totals_follow_the_law_of_the_root():
    m, rooted = PosetMechanism(Poset.chain(["only"]), 1), Poset.chain(["only", "all"])
    pairs = (m.release_with_total([5], records=9) for _ in range(DRAWS))
    sample = np.array([(int(values[0]) - 5, total - 9) for values, total in pairs])
    p, distance = law_and_scale(PosetMechanism(rooted, 1), sample)
    assert p > FALSE_ALARM
    assert distance < norm.isf(FALSE_ALARM / 2)
    assert law_and_scale(PosetMechanism(rooted, WRONG), sample)[1] > norm.isf(FALSE_ALARM / 2)


@pytest.mark.parametrize("P", ORDERS, ids=len)
def test_the_error_is_that_of_simulated_noise(P):
    m = PosetMechanism(P, 1)
    squares = np.asarray(m.simulate(40_000, np.random.default_rng(3))) ** 2
    doubt = np.hypot(
        squares.std(axis=0) / 200, m.error().standard_error if m.error().method != "exact" else 0
    )
    distance = np.abs(squares.mean(axis=0) - m.error().variance) / doubt
    limit = norm.isf(FALSE_ALARM / 2 / len(P))
    assert distance.max() < limit
    assert np.abs(squares.mean(axis=0) * 1.21 - m.error().variance).max() > limit * doubt.max()
