"""Audits: a broken guarantee is caught, a kept one is not, and the bounds are what they say."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom, norm

from isotone.audit import audit, audit_exact
from isotone.audit.black_box import clopper_pearson, epsilon_bound, rho_bound
from isotone.audit.exact import gaussian_epsilon
from isotone.counts import (
    DiscreteLaplaceMechanism,
    GaussianMechanism,
    LaplaceMechanism,
    LInfinityMechanism,
    OrderGaussianMechanism,
    PosetMechanism,
)
from isotone.errors import InputError
from isotone.order import Poset
from isotone.privacy.calibration import sigma_squared
from isotone.privacy.guarantee import Guarantee
from isotone.tables import fixed_point, truncated_geometric

P = Poset(["hyp", "twice", "meds"], [("twice", "hyp"), ("meds", "hyp")])
FILTERS = [[1, 0, 0], [1, 1, 0], [1, 0, 1], [1, 1, 1]]
ONE = Guarantee.pure(1)


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
    for d in (0.1, 1.0, 3.0):
        proved = [rho_bound(float(norm.sf(t - d)), float(norm.sf(t))) for t in np.linspace(-4, 8, 200)]
        assert 0.3 * d**2 / 2 < max(proved) <= d**2 / 2


def laplace(scale, rng):
    """Laplace noise on a grid: unrounded, its last bits alone would give it away."""
    return lambda x, size: np.rint(1000 * (x + rng.laplace(scale=scale, size=size)))


def test_laplace_noise_that_is_too_small_by_five_percent_is_caught():
    """The seeds make it repeatable; a kept guarantee is called broken for one seed in a thousand at most."""
    rng = np.random.default_rng(5)
    honest = audit(laplace(1.0, rng), 0, 1, 300_000, claimed=ONE, batch=True)
    assert not honest.broken
    assert honest.bound > 0.95
    small = audit(laplace(1 / 1.05, rng), 0, 1, 300_000, claimed=ONE, batch=True)
    assert small.broken
    assert "BROKEN" in str(small)


def test_so_few_draws_are_enough_to_see_twice_the_loss():
    """How often a kept guarantee is called broken is tested in test_false_alarms.py."""
    rng = np.random.default_rng(6)
    weaker = [
        audit(laplace(0.4, rng), 0, 1, 400, claimed=ONE, confidence=0.8, batch=True).broken for _ in range(10)
    ]
    assert sum(weaker) > 7


SURE = 1 - 1e-6  # for draws from cryptographic bits, which no seed repeats


def test_a_vector_mechanism_that_claims_too_little_is_caught():
    mechanism = LaplaceMechanism(P, epsilon=5)
    assert audit(mechanism, [0, 0, 0], [1, 1, 1], 2_000, claimed=ONE).broken
    assert not audit(LaplaceMechanism(P, epsilon=1), [0, 0, 0], [1, 1, 1], 1_000, confidence=SURE).broken


def test_a_gaussian_that_claims_too_little_is_caught():
    mechanism = OrderGaussianMechanism(P, rho=4)
    claimed = Guarantee.zcdp(Fraction(1, 2))
    assert audit(mechanism, [0, 0, 0], [1, 1, 1], 2_000, claimed=claimed).broken
    assert audit(mechanism, [0, 0, 0], [1, 1, 1], 2_000, claimed=Guarantee.approximate(1, "1e-6")).broken
    kept = OrderGaussianMechanism(P, epsilon=1, delta="1e-6")
    honest = audit(kept, [0, 0, 0], [1, 1, 1], 1_000, confidence=SURE)
    assert not honest.broken
    assert "δ = 1e-06" in str(honest)


def test_floating_point_gives_itself_away_in_the_lowest_bit():
    """Outputs of one side are multiples of a power of two that the other side's are not."""
    rng = np.random.default_rng(1)
    leaky = audit(
        lambda x, size: x + np.round(rng.laplace(size=size) * 4) / 4,
        0.0,
        1e-16 + 0.1,
        6_000,
        claimed=ONE,
        batch=True,
    )
    assert leaky.broken


def test_labels_of_any_kind_are_counted():
    rng = np.random.default_rng(2)

    def respond(truth):
        return ("told", truth) if rng.random() < 0.9 else None  # silence is an output too

    assert audit(respond, "yes", "no", 600, claimed=ONE).broken
    told = audit(lambda truth: "told" if rng.random() < 0.9 else None, "yes", "no", 600, claimed=ONE)
    assert told.bound < 0.2


def test_a_mechanism_that_fails_on_one_side_is_caught_by_its_not_a_numbers():
    rng = np.random.default_rng(3)

    def release(x, size):
        noise = rng.laplace(size=size)
        return np.where((x == 1) & (rng.random(size) < 0.3), np.nan, noise)

    assert audit(release, 0, 1, 2_000, claimed=ONE, batch=True).broken


def test_whole_numbers_beyond_floats_keep_their_last_digit():
    rng = np.random.default_rng(4)
    large = audit(lambda x: x + int(rng.integers(0, 2)), 2**62, 2**62 + 1, 600, claimed=ONE)
    assert large.broken  # in floats all four outputs are one number


def test_a_suspicion_is_an_event_like_any_other():
    rng = np.random.default_rng(7)

    def release(x, size):  # only the parity of a far coordinate tells
        noise = rng.integers(0, 10**9, size=(size, 20))
        noise[:, 13] += (noise[:, 13] + x) % 2 * (rng.random(size) < 0.9)
        return noise

    assert not audit(release, 0, 1, 1_000, claimed=ONE, batch=True).broken
    found = audit(
        release, 0, 1, 2_000, claimed=ONE, batch=True, suspicions=[lambda y: y[:, 13].astype(int) % 2]
    )
    assert found.broken
    assert "suspicion 0" in str(found)


@pytest.mark.parametrize(
    "kind", [PosetMechanism, LaplaceMechanism, LInfinityMechanism, DiscreteLaplaceMechanism]
)
def test_an_exact_audit_finds_the_claimed_loss_and_not_more(kind):
    found = audit_exact(kind(P, epsilon=1), [0, 0, 0], FILTERS)
    assert found.loss == pytest.approx(1, abs=1e-6)
    assert not found.broken
    assert tuple(map(int, found.neighbour)) in {tuple(J) for J in FILTERS}


@pytest.mark.parametrize(
    "kind", [PosetMechanism, LaplaceMechanism, LInfinityMechanism, DiscreteLaplaceMechanism]
)
def test_an_exact_audit_catches_a_scale_that_is_wrong_by_five_percent(kind):
    found = audit_exact(kind(P, epsilon="1.05"), [0, 0, 0], FILTERS, claimed=ONE)
    assert found.broken
    assert "BROKEN" in str(found)


def test_an_exact_audit_reaches_twenty_dimensions():
    tree = Poset(range(20), [(k, (k - 1) // 3) for k in range(1, 20)])
    record = [int(x in (0, 1, 4)) for x in range(20)]
    honest = audit_exact(PosetMechanism(tree, epsilon=1), [0] * 20, [record])
    assert honest.loss == pytest.approx(1, abs=1e-6)
    assert audit_exact(PosetMechanism(tree, epsilon="1.05"), [0] * 20, [record], claimed=ONE).broken


def test_the_witness_of_an_exact_audit_shows_its_loss():
    mechanism = PosetMechanism(P, epsilon=1)
    found = audit_exact(mechanism, [0, 0, 0], FILTERS)
    here, there = (
        float(mechanism.log_density(found.output, list(map(int, counts))))
        for counts in (found.statistic, found.neighbour)
    )
    assert abs(here - there) == pytest.approx(found.loss, abs=1e-9)


@pytest.mark.parametrize("kind", [GaussianMechanism, OrderGaussianMechanism])
def test_gaussian_noise_is_judged_in_closed_form(kind):
    assert audit_exact(kind(P, rho=1), [0, 0, 0], FILTERS).loss == pytest.approx(1, rel=1e-3)
    assert not audit_exact(kind(P, rho=1), [0, 0, 0], FILTERS).broken
    assert audit_exact(kind(P, rho=1), [0, 0, 0], FILTERS, claimed=Guarantee.zcdp("0.9")).broken
    exact = kind(P, epsilon=1, delta="1e-6")
    assert audit_exact(exact, [0, 0, 0], FILTERS).loss == pytest.approx(1, rel=1e-3)
    assert not audit_exact(exact, [0, 0, 0], FILTERS).broken
    assert audit_exact(exact, [0, 0, 0], FILTERS, claimed=Guarantee.approximate("0.95", "1e-6")).broken


@pytest.mark.parametrize(("epsilon", "delta"), [("1", "1e-6"), ("0.1", "1e-9"), ("5", "0.01")])
def test_the_closed_form_of_gaussian_noise_inverts_its_calibration(epsilon, delta):
    distance = 1 / math.sqrt(sigma_squared(Fraction(epsilon), Fraction(delta), Fraction(1)))
    assert gaussian_epsilon(distance, float(delta)) == pytest.approx(float(epsilon), rel=1e-8)


def test_matrices_are_gone_through_entry_by_entry():
    exact = fixed_point([0.5, 0.3, 0.2], epsilon=1)
    assert audit_exact(exact).loss == pytest.approx(1)
    assert not audit_exact(exact).broken
    assert audit_exact(exact, claimed=Guarantee.pure("0.95")).broken
    assert audit_exact(exact.matrix(), claimed=ONE).output == audit_exact(exact).output
    twice = fixed_point([0.5, 0.3, 0.2], epsilon=1, contributions=2)
    assert audit_exact(twice).loss == pytest.approx(1)  # two steps of a half each
    far = audit_exact(truncated_geometric(150, epsilon=5))  # entries far below the smallest float
    assert far.loss == pytest.approx(5)
    assert not far.broken


def test_a_zero_beside_a_positive_entry_is_an_infinite_loss():
    found = audit_exact([[0.5, 0.5, 0], [0.4, 0.5, 0.1], [0.3, 0.6, 0.1]], claimed=ONE)
    assert found.loss == math.inf
    assert found.broken
    assert (found.statistic, found.neighbour, found.output) == ((0,), (1,), (2,))


def test_what_cannot_be_audited_is_explained():
    with pytest.raises(InputError, match="What is claimed"):
        audit(lambda x: x, 0, 1)
    with pytest.raises(InputError, match="at least 300"):
        audit(lambda x: x, 0, 1, 10, claimed=ONE)
    with pytest.raises(InputError, match="confidence"):
        audit(lambda x: x, 0, 1, 400, claimed=ONE, confidence=1.0)
    with pytest.raises(InputError, match="different lengths"):
        audit(lambda x: [0.0] * x, 1, 2, 300, claimed=ONE)
    with pytest.raises(InputError, match="one length"):
        audit(lambda x: np.zeros(np.random.default_rng().integers(1, 9)), 1, 2, 300, claimed=ONE)
    with pytest.raises(InputError, match="cannot be run"):
        audit(5, 1, 2, 300, claimed=ONE)
    with pytest.raises(InputError, match="labels"):
        audit(lambda x: {1: x}, 1, 2, 300, claimed=ONE)
    with pytest.raises(InputError, match="gave 2"):
        audit(lambda x, size: [1, 2], 1, 2, 300, claimed=ONE, batch=True)
    with pytest.raises(InputError, match="one number for each"):
        audit(lambda x, size: np.zeros(size), 1, 2, 300, claimed=ONE, batch=True, suspicions=[lambda y: y])
    with pytest.raises(InputError, match="pure"):
        audit_exact(np.eye(2), claimed=Guarantee.zcdp(1))
    with pytest.raises(InputError, match="Gaussian noise"):
        audit_exact(LaplaceMechanism(P, 1), [0, 0, 0], FILTERS, claimed=Guarantee.zcdp(1))
    with pytest.raises(InputError, match="no explicit density"):
        audit_exact(object(), [0], [[1]], claimed=ONE)
    with pytest.raises(InputError, match="at least one neighbour"):
        audit_exact(LaplaceMechanism(P, 1))
    with pytest.raises(InputError, match="one length"):
        audit_exact(LaplaceMechanism(P, 1), [0, 0, 0], [[1, 1]])
    for matrix in ([[0.5, 0.6], [0.5, 0.5]], [[1.5, -0.5], [0.5, 0.5]], [0.5, 0.5], [[np.nan, 1]]):
        with pytest.raises(InputError, match="transition matrix"):
            audit_exact(matrix, claimed=ONE)
