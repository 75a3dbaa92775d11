"""All at once: the closure by shortest paths against all whole counts that fit."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import binom

from isotone.counts import OrderGaussianMechanism, PosetMechanism
from isotone.inference import FeasibleRegion, Measured
from isotone.order import Poset

P = Poset("abc", [("b", "a"), ("c", "a")])


def brute(region, most):
    """Every vector of whole counts that the half-widths, the order and the bounds allow."""
    n, pairs = len(region.values), region.pairs.tolist()
    alone, along = region.half_widths[:n], region.half_widths[n:]
    top = int(max(region.values + alone)) if most is None else most
    for counts in product(range(max(top, 0) + 1), repeat=n):
        theta = np.array(counts)
        if np.any(np.abs(theta - region.values) > alone):
            continue
        if any(theta[x] > theta[z] for x, z in pairs):
            continue
        step = [theta[z] - theta[x] - (region.values[z] - region.values[x]) for x, z in pairs]
        if np.all(np.abs(step) <= along):
            yield theta


@pytest.mark.parametrize(
    ("values", "most"), [([12, 7, 2], None), ([9, 8, -1], None), ([5, 7, 6], 7), ([3, 1, 1], 4)]
)
def test_intervals_are_those_of_all_counts_that_fit(values, most):
    law = PosetMechanism(P, 2).law(draws=2_000)
    region = FeasibleRegion(np.array(values, float), law, P.cover_pairs, 0.8, whole=True, most=most)
    found = np.array(list(brute(region, most)))
    assert len(found)
    low, high = region.counts
    assert low.tolist() == found.min(axis=0).tolist()
    assert high.tolist() == found.max(axis=0).tolist()
    for x, z in ((1, 0), (2, 0), (2, 1)):
        step = found[:, z] - found[:, x]
        assert region.difference(x, z) == (step.min(), step.max())
    for x, z in ((1, 0), (2, 0)):
        ends = region.share(x, z)
        assert ends is not None
        positive = found[found[:, z] > 0]
        shares = positive[:, x] / positive[:, z]
        assert ends[0] <= shares.min() + 1e-12
        assert ends[1] >= shares.max() - 1e-12
        if found[:, z].min() > 0:
            assert ends == pytest.approx((shares.min(), shares.max()))


def test_nothing_fits_if_the_noise_was_unusually_large():
    law = PosetMechanism(P, 2).law(draws=2_000)
    region = FeasibleRegion(np.array([0.0, 60, 0]), law, P.cover_pairs, 0.8, whole=True, most=None)
    assert region.difference(0, 1) is None
    assert region.share(1, 0) is None
    assert region.counts[0].tolist() == np.maximum(region.values - region.half_widths[:3], 0).tolist()


TREE = Poset(range(12), [(i, (i - 1) // 2) for i in range(1, 12)])
TRUE = np.array([400, 300, 200, 250, 40, 199, 0, 100, 100, 20, 1, 150.0, 500])


@pytest.mark.parametrize(
    "m", [PosetMechanism(TREE, 1), OrderGaussianMechanism(TREE, rho="0.5")], ids=["poset", "gauss"]
)
def test_all_intervals_hold_at_once(m):
    """Counts, shares and the number of records: at least 95 of 100 families, up to chance once in a million."""
    law, fresh = m.law(total=True, draws=5_000), m.law("fresh", total=True, draws=150).draws
    hits = 0
    for noise in fresh:
        found = Measured(TREE, TRUE + noise, law, m.error().variance, m.covariance, has_total=True)
        low, high = found.region(0.95).counts
        shares = found.shares(TREE.covers, 0.95)
        right = np.all((low <= TRUE) & (high >= TRUE))
        for (x, z), share in shares.items():
            right &= share.low - 1e-12 <= TRUE[int(x)] / max(TRUE[int(z)], 1) <= share.high + 1e-12
        hits += bool(right)
    assert binom.cdf(hits, len(fresh), 0.95) > 1e-6
    assert hits > 0.9 * len(fresh)
