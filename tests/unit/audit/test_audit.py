"""Audits: a broken promise is caught, a kept one is not, and the bounds are what they say."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from isotone.audit import audit, audit_exact
from isotone.audit.bounds import clopper_pearson, epsilon_bound, rho_bound
from isotone.counts import GaussianMechanism, LaplaceMechanism, LInfinityMechanism, PosetMechanism
from isotone.errors import InputError
from isotone.guarantee import Guarantee
from isotone.order import Poset

P = Poset(["hyp", "twice", "meds"], [("twice", "hyp"), ("meds", "hyp")])
FILTERS = [[1, 0, 0], [1, 1, 0], [1, 0, 1], [1, 1, 1]]


@pytest.mark.parametrize("hits", [0, 1, 7, 50, 99, 100])
def test_confidence_bounds_are_the_exact_binomial_ones(hits):
    low, high = clopper_pearson(hits, 100, 0.01)
    assert hits == 0 or binom.sf(hits - 1, 100, low) == pytest.approx(0.01)
    assert hits == 100 or binom.cdf(hits, 100, high) == pytest.approx(0.01)
    assert low <= hits / 100 <= high


def test_bounds_on_the_loss_are_sharp_where_they_should_be():
    assert epsilon_bound(0.5, 0.5 / math.e) == pytest.approx(1)
    assert epsilon_bound(0.5, 0.4 / math.e, delta=0.1) == pytest.approx(1)
    assert epsilon_bound(0.1, 0.5, delta=0.2) == 0
    # Two unit-variance Gaussians a distance d apart are d²/2-zCDP: no event may prove more.
    from scipy.stats import norm

    for d in (0.1, 1.0, 3.0):
        proved = [rho_bound(float(norm.sf(t - d)), float(norm.sf(t))) for t in np.linspace(-4, 8, 200)]
        assert 0.3 * d**2 / 2 < max(proved) <= d**2 / 2


def test_laplace_noise_that_is_too_small_by_five_percent_is_caught():
    """A kept promise is called broken with probability below 1e-3 (the confidence); the seeds make it repeatable."""
    rng = np.random.default_rng(5)
    honest = audit(lambda x: x + rng.laplace(scale=1.0), 0, 1, 300_000, claimed=Guarantee.pure(1))
    assert not honest.broken
    assert honest.bound > 0.95
    small = audit(lambda x: x + rng.laplace(scale=1 / 1.05), 0, 1, 300_000, claimed=Guarantee.pure(1))
    assert small.broken
    assert "BROKEN" in str(small)


def test_a_vector_mechanism_that_claims_too_little_is_caught():
    mechanism = LaplaceMechanism(P, epsilon=2)
    assert audit(mechanism, [0, 0, 0], [1, 1, 1], 6_000, claimed=Guarantee.pure(1)).broken
    assert not audit(mechanism, [0, 0, 0], [1, 1, 1], 6_000).broken


def test_a_gaussian_that_claims_too_little_is_caught():
    mechanism = GaussianMechanism(P, rho=2)
    claimed = Guarantee.zcdp(Fraction(1, 2))
    assert audit(mechanism, [0, 0, 0], [1, 1, 1], 6_000, claimed=claimed).broken
    assert not audit(mechanism, [0, 0, 0], [1, 1, 1], 6_000).broken


def test_floating_point_gives_itself_away_in_the_lowest_bit():
    """Outputs of one side are multiples of a power of two that the other side's are not."""
    rng = np.random.default_rng(1)
    leaky = audit(
        lambda x: x + round(rng.laplace() * 4) / 4, 0.0, 1e-16 + 0.1, 6_000, claimed=Guarantee.pure(1)
    )
    assert leaky.broken


@pytest.mark.parametrize("kind", [PosetMechanism, LaplaceMechanism, LInfinityMechanism])
def test_an_exact_audit_finds_the_claimed_loss_and_not_more(kind):
    found = audit_exact(kind(P, epsilon=1), [0, 0, 0], FILTERS)
    assert found.loss == pytest.approx(1, abs=1e-6)
    assert not found.broken
    assert tuple(map(int, found.neighbour)) in {tuple(J) for J in FILTERS}


@pytest.mark.parametrize("kind", [PosetMechanism, LaplaceMechanism, LInfinityMechanism])
def test_an_exact_audit_catches_a_scale_that_is_wrong_by_five_percent(kind):
    found = audit_exact(kind(P, epsilon="1.05"), [0, 0, 0], FILTERS, claimed=Guarantee.pure(1))
    assert found.broken
    assert "BROKEN" in str(found)


def test_what_cannot_be_audited_is_explained():
    with pytest.raises(InputError, match="What is claimed"):
        audit(lambda x: x, 0, 1)
    with pytest.raises(InputError, match="at least 300"):
        audit(lambda x: x, 0, 1, 10, claimed=Guarantee.pure(1))
    with pytest.raises(InputError, match="confidence"):
        audit(lambda x: x, 0, 1, 400, claimed=Guarantee.pure(1), confidence=1.0)
    with pytest.raises(InputError, match="different lengths"):
        audit(lambda x: [0.0] * x, 1, 2, 300, claimed=Guarantee.pure(1))
    with pytest.raises(InputError, match="pure"):
        audit_exact(GaussianMechanism(P, rho=1), [0, 0, 0], FILTERS)
    with pytest.raises(InputError, match="no explicit density"):
        audit_exact(object(), [0], [[1]], claimed=Guarantee.pure(1))
