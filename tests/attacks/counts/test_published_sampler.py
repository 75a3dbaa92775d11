"""The public audit convicts the published sampler of poset noise, and not ours, on the same number of draws."""

from typing import Any

import numpy as np
import pytest
from tests.support.published import CASES, exact_mechanism, published_mechanism, suspicion, telling_record

from _published import PublishedSampler, insertion_order, log_probability, plain_noise
from _published_loss import exact_loss, search_loss
from isotone.audit import audit
from isotone.counts import PosetMechanism
from isotone.counts.sampler import norms
from isotone.order import Poset
from isotone.privacy.guarantee import Guarantee

V_AND_POINT = Poset(["x", "v", "y"], [("x", "v")])
TWO_CHAINS = Poset("abcd", [("a", "b"), ("c", "d")])
DRAWS = 20_000


@pytest.mark.parametrize("name", CASES)
def test_the_published_sampler_is_caught_and_the_exact_one_is_not(name):
    """Caught at 99.9 %, from a seed; ours, from cryptographic bits, is called broken with probability below 1e-6."""
    P, elements = CASES[name]
    rng, record = np.random.default_rng(1), telling_record(P, elements)
    sides = np.zeros(len(P)), record
    options: dict[str, Any] = {"claimed": Guarantee.pure(1), "batch": True}
    options["suspicions"] = [suspicion(P, record)]
    theirs = audit(published_mechanism(P, rng), *sides, DRAWS, **options)
    assert theirs.bound > 1.05
    ours = audit(exact_mechanism(P, rng), *sides, DRAWS, confidence=1 - 1e-6, **options)
    assert 0.6 < ours.bound <= 1  # the audit comes close to the whole ε, so it is not blind


def test_without_any_hint_the_audit_finds_where_the_published_sampler_fails():
    rng, record = np.random.default_rng(1), telling_record(V_AND_POINT, ("v", "y"))
    found = audit(
        published_mechanism(V_AND_POINT, rng),
        np.zeros(3),
        record,
        2 * DRAWS,
        claimed=Guarantee.pure(1),
        batch=True,
    )
    assert found.broken
    assert "signs and order" in found.event


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
