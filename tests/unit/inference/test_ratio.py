"""Shares: the set of all ratios that fit, as a grid finds it, and its coverage."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from isotone.counts import PosetMechanism
from isotone.inference import ratio
from isotone.linear.mechanism import rank
from isotone.order import Poset

P = Poset("abc", [("b", "a"), ("c", "b")])
LAW = PosetMechanism(P, 1).law(draws=4_000)
NOISE = LAW.draws[:, 1], LAW.draws[:, 0]


def fits(a, b, r):
    """Whether a ratio fits, from the definition."""
    k = rank(4_000, 0.95)
    return abs(a - r * b) <= np.sort(np.abs(NOISE[0] - r * NOISE[1]))[k - 1] + 1e-9


@pytest.mark.parametrize(
    ("a", "b"), [(50, 100), (3, 5), (40, 41), (0, 30), (-4, 20), (22, 20), (3, -1), (-2, -9)]
)
def test_the_interval_is_the_hull_of_what_a_grid_finds(a, b):
    found = ratio(a, b, *NOISE, 0.95, 1.0)
    grid = [r for r in np.linspace(0, 1, 401) if fits(a, b, r)]
    assert grid, "the cases are chosen so that something fits"
    assert found.low <= grid[0] + 1e-9
    assert grid[-1] <= found.high + 1e-9
    assert found.low >= grid[0] - 0.004
    assert found.high <= grid[-1] + 0.004


def test_what_nothing_fits_is_at_the_limit():
    for a, b, limit in ((60, 20, 1.0), (-40, 60, 0.0)):
        assert not any(fits(a, b, r) for r in np.linspace(0, 1, 101))
        found = ratio(a, b, *NOISE, 0.95, 1.0)
        assert (found.value, found.low, found.high) == (limit, limit, limit)
        assert "unusually large" in found.note


def test_what_is_not_known_has_no_value():
    for a, b in ((1, 2), (0, 0), (-1, -1), (2, -1)):
        found = ratio(a, b, *NOISE, 0.95, 1.0)
        assert (found.value, found.note) == (None, "not known")
        assert found.high - found.low > 0.999 or b <= 0


def test_ratios_of_counts_that_do_not_imply_each_other_have_no_upper_limit():
    found = ratio(300, 100, *NOISE, 0.95, math.inf)
    assert found.value == 3
    assert 2.5 < found.low < 3 < found.high < 3.5
    assert ratio(300, 1, *NOISE, 0.95, math.inf).high == math.inf


@pytest.mark.parametrize(("whole", "share"), [(20, 0.5), (200, 0.9), (10**9, 1 / 3), (10**9, 0.5)])
def test_the_true_share_is_inside_as_often_as_stated(whole, share):
    """At least 95 of 100, up to chance once in a million; also for counts where rounding of products matters."""
    part, tries = round(whole * share), 500
    fresh = PosetMechanism(P, 1).law("fresh", draws=tries).draws
    hits = 0
    for noise in fresh:
        found = ratio(part + noise[1], whole + noise[0], *NOISE, 0.95, 1.0)
        hits += found.low <= part / whole <= found.high
    assert binom.cdf(hits, tries, 0.95) > 1e-6
    narrow = sum(abs(part + n[1] - part / whole * (whole + n[0])) <= 1 for n in fresh)
    assert binom.cdf(narrow, tries, 0.95) < 1e-6  # and a set that is too small would be seen
