"""Figures of the population: coverage computed from the laws of sampling and noise, not simulated."""

import numpy as np
import pytest
from scipy.stats import binom

from isotone import inference as population
from isotone.counts import DiscreteLaplaceMechanism
from isotone.errors import InputError
from isotone.inference import Measured, population_proportion, population_share
from isotone.order import Poset

RECORDS = 30
ONE = DiscreteLaplaceMechanism(Poset.antichain("a"), 1)
LAW = ONE.law(draws=20_000)
NOISE = np.arange(-25, 26)
CHANCE = np.exp(-np.abs(NOISE)) * np.tanh(0.5)  # of each value of the noise


def interval(y, level=0.95, deff: float = 1):
    found = Measured(ONE.P, np.array([float(y)]), LAW, ONE.error().variance, ONE.covariance, records=RECORDS)
    return population_proportion(found, "a", level, deff)


ENDS = {y: interval(y) for y in range(-25, RECORDS + 26)}


@pytest.mark.parametrize("p", [0.0, 0.02, 0.1, 0.37, 0.5, 0.8, 1.0])
def test_the_true_proportion_is_inside_as_often_as_stated(p):
    counts = np.arange(RECORDS + 1)
    chance = binom.pmf(counts, RECORDS, p)
    inside = np.array([[ENDS[int(k + r)].low <= p <= ENDS[int(k + r)].high for r in NOISE] for k in counts])
    coverage = float(chance @ inside @ CHANCE)
    assert 0.95 <= coverage <= 1
    if 0.1 <= p <= 0.8:
        assert coverage < 0.985  # and not by saying nothing


def test_a_design_effect_makes_intervals_longer():
    one, more = interval(12), interval(12, deff=3)
    assert (one.about, more.about) == ("population", "population")
    assert more.low < one.low < one.high < more.high
    assert interval(12, level=0.8).low > one.low


PAIR = DiscreteLaplaceMechanism(Poset.chain("ba"), 2)
PAIR_LAW = PAIR.law(draws=8_000)


def test_the_true_share_is_inside_as_often_as_stated():
    """Over 300 samples, of which at least 95 of 100 hold, up to chance once in a million."""
    rng, hits, r = np.random.default_rng(1), 0, 0.7
    for noise in PAIR.law("fresh", draws=300).draws:
        whole = rng.binomial(200, 0.4)
        part = rng.binomial(whole, r)
        values = np.array([part + noise[0], whole + noise[1]], dtype=float)
        found = Measured(PAIR.P, values, PAIR_LAW, PAIR.error().variance, PAIR.covariance)
        share = population_share(found, "b", "a", 0.95)
        hits += share.low <= r <= share.high
    assert binom.cdf(hits, 300, 0.95) > 1e-6
    assert hits < 300


def test_what_is_no_part_of_the_whole_is_refused():
    found = Measured(PAIR.P, np.array([3.0, 5]), PAIR_LAW, PAIR.error().variance, PAIR.covariance)
    with pytest.raises(InputError, match="does not imply"):
        population_share(found, "a", "b", 0.95)
    with pytest.raises(InputError, match="number of records"):
        population_share(found, "a", None, 0.95)
    with pytest.raises(InputError, match="too close to 1"):
        population_share(found, "b", "a", 0.999)
    nothing = Measured(PAIR.P, np.array([-30.0, -40]), PAIR_LAW, PAIR.error().variance, PAIR.covariance)
    assert population_share(nothing, "b", "a", 0.95).value is None


@pytest.mark.parametrize("size", [30, 200, 10_000, 1_000_000])
@pytest.mark.parametrize("p", [1e-6, 0.001, 0.1, 0.5, 0.9, 1 - 1e-6])
def test_what_a_binomial_leaves_out_is_below_a_trillionth(size, p):
    counts, chance = population._binomial(size, p)
    beyond = binom.cdf(counts[0] - 1, size, p) + binom.sf(counts[-1], size, p)
    assert beyond < 1e-12
    np.testing.assert_allclose(chance, binom.pmf(counts, size, p), rtol=1e-6, atol=1e-14)
