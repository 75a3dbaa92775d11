"""An attacker's black-box audit convicts the published sampler, and not ours. Confidence 99.9 % and more."""

import numpy as np

from _published import PublishedSampler, insertion_order, log_probability, plain_noise
from _published_loss import audit, choose_event, exact_loss, search_loss
from isotone.counts import PosetMechanism
from isotone.counts.norm import norms
from isotone.order import Poset

V_AND_POINT = Poset(["x", "v", "y"], [("x", "v")])
TWO_CHAINS = Poset("abcd", [("a", "b"), ("c", "d")])


def test_the_published_sampler_loses_more_than_it_promises_and_the_exact_one_does_not():
    rng = np.random.default_rng(8)
    event = choose_event(V_AND_POINT, 200_000, rng)
    theirs = audit(V_AND_POINT, event, True, 200_000, rng, confidence=1 - 1e-6)
    ours = audit(V_AND_POINT, event, False, 200_000, rng, confidence=1 - 1e-6)
    assert theirs.proven_loss > 1.2
    assert ours.proven_loss < 1
    assert ours.proven_loss > 0.8  # the same event comes close to the whole ε, so the audit is not blind


def test_its_true_loss_on_tiny_orders_is_known_exactly():
    assert abs(exact_loss(V_AND_POINT) - (1 + np.log(1.5))) < 1e-9
    assert abs(exact_loss(TWO_CHAINS) - (1 + np.log(2))) < 1e-9


def test_search_finds_the_same_loss_and_a_point_that_shows_it():
    found, y, v = search_loss(V_AND_POINT, 20_000, np.random.default_rng(0))
    assert abs(found - (1 + np.log(1.5))) < 1e-4
    assert abs(norms(V_AND_POINT, y - v) - norms(V_AND_POINT, y) - 1) < 1e-4
    m = PosetMechanism(V_AND_POINT, 1)
    assert m.log_density(y) - m.log_density(y - v) <= 1 + 1e-9


def test_the_transcription_is_the_law_of_its_own_probabilities():
    published = PublishedSampler(V_AND_POINT)
    law = published.distribution()
    assert sum(law.values()) == 1
    assert max(law.values()) / min(law.values()) == 3 / 2
    for (A, B), p in law.items():
        row = np.array(A + B, np.int64)
        assert (
            abs(log_probability(published.less, published.inserted, row, len(A)) - np.log(float(p))) < 1e-12
        )
    assert insertion_order(V_AND_POINT)[-1] == 1


def test_the_plain_transcription_has_noise_of_the_right_length():
    rng = np.random.default_rng(1)
    lengths = norms(TWO_CHAINS, [plain_noise(TWO_CHAINS, rng) for _ in range(4000)])
    assert abs(lengths.mean() - 4) < 6 * 2 / np.sqrt(4000)
