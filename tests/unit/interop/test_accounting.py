"""Guarantees and mechanisms in the real dp_accounting: what it computes is never better than the truth."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from dp_accounting import dp_event
from dp_accounting.pld import PLDAccountant
from dp_accounting.pld import privacy_loss_distribution as distributions
from dp_accounting.rdp import RdpAccountant

import isotone.counts as counts
from isotone.curves import PrivateIsotonicRegression
from isotone.errors import InputError
from isotone.interop.accounting import event, pld
from isotone.order import Poset
from isotone.privacy.guarantee import Guarantee
from isotone.tables import TwoStageMechanism

PAIR = Poset(["a", "b"], [("a", "b")])
EPSILONS = (0.0, 0.1, 0.3, 0.7, 0.95, 1.0, 1.5)


def true_delta(mechanism, moved, epsilon: float) -> float:
    """The hockey-stick divergence between counts 0 and counts moved by one record, from all likely outputs."""
    outputs = np.array(list(itertools.product(range(-60, 61), repeat=len(mechanism.P))), dtype=float)
    here = np.exp(mechanism.log_probability(outputs))
    there = np.exp(mechanism.log_probability(outputs - np.array(moved)))
    factor = math.exp(epsilon)
    return max(np.maximum(here - factor * there, 0).sum(), np.maximum(there - factor * here, 0).sum())


EXPLICIT = [
    counts.DiscreteLaplaceMechanism(PAIR, 1),
    counts.LInfinityMechanism(PAIR, 1),
    counts.GaussianMechanism(PAIR, rho="1/8"),
    counts.GaussianMechanism(PAIR, 1, "1/1000"),
    counts.DiscreteGaussianMechanism(PAIR, rho="1/8"),
]


@pytest.mark.parametrize("mechanism", EXPLICIT)
def test_what_is_accounted_is_at_least_the_true_loss_of_every_record(mechanism):
    told = pld(mechanism, 1e-3)
    for epsilon in EPSILONS:
        worst = max(true_delta(mechanism, moved, epsilon) for moved in ([0, 1], [1, 1]))
        assert worst <= told.get_delta_for_epsilon(epsilon) + 1e-12


@pytest.mark.parametrize("mechanism", EXPLICIT[:1] + EXPLICIT[2:])
def test_a_distribution_for_a_tenth_more_noise_would_be_caught(mechanism):
    kind, guarantee = type(mechanism), mechanism.guarantee
    if guarantee.kind == "zcdp":
        kinder = pld(kind(PAIR, rho=guarantee.rho * 8 / 10))
    elif guarantee.kind == "approximate":
        kinder = pld(kind(PAIR, guarantee.epsilon * 9 / 10, guarantee.delta))
    else:
        kinder = pld(kind(PAIR, guarantee.epsilon * 9 / 10))
    gaps = [
        true_delta(mechanism, [1, 1], epsilon) - kinder.get_delta_for_epsilon(epsilon) for epsilon in EPSILONS
    ]
    assert max(gaps) > 1e-6


def test_pure_guarantees_add_up_at_delta_zero_and_gain_by_composition_above_it():
    one = pld(Guarantee.pure("1/10"))
    many = one.self_compose(100)
    assert one.compose(one).get_epsilon_for_delta(0) == pytest.approx(0.2, abs=1e-9)
    assert 3 < many.get_epsilon_for_delta(1e-6) < 5.5


def test_our_counts_and_another_librarys_gaussian_compose():
    theirs = distributions.from_gaussian_mechanism(5.0)
    ours = pld(counts.PosetMechanism(PAIR, "1/2"))
    both = ours.compose(theirs).get_epsilon_for_delta(1e-6)
    assert theirs.get_epsilon_for_delta(1e-6) < both
    assert both < 0.5 + theirs.get_epsilon_for_delta(1e-6)


def test_a_calibrated_gaussian_meets_its_own_guarantee_and_no_more():
    for mechanism in (
        counts.GaussianMechanism(PAIR, 1, "1e-6"),
        counts.OrderGaussianMechanism(PAIR, 1, "1e-6"),
        counts.OrderGaussianMechanism(PAIR, 1, "1e-6", neighbours="replace", contributions=3),
    ):
        assert pld(mechanism).get_epsilon_for_delta(1e-6) == pytest.approx(1, rel=1e-6)
    assert pld(Guarantee.approximate(1, "1e-6")).get_epsilon_for_delta(1.001e-6) == pytest.approx(1, abs=2e-4)


@pytest.mark.parametrize("rho", ["1/200", "1/2"])
def test_concentrated_guarantees_lie_between_the_gaussian_and_the_simple_conversion(rho):
    guarantee = Guarantee.zcdp(rho)
    told = pld(guarantee, 1e-3)
    gaussian = distributions.from_gaussian_mechanism(math.sqrt(0.5 / float(guarantee.rho)))
    for delta in (1e-2, 1e-4, 1e-8):
        epsilon = told.get_epsilon_for_delta(delta)
        assert gaussian.get_epsilon_for_delta(delta) <= epsilon
        assert epsilon <= float(guarantee.to_approximate(delta).epsilon)
    for epsilon in (-0.5, -0.1, 0.0, 0.1, 0.5):
        assert told.get_delta_for_epsilon(epsilon) >= gaussian.get_delta_for_epsilon(epsilon) - 1e-12


def test_discrete_noise_shaped_by_the_order_is_accounted_by_its_guarantee():
    shaped = counts.OrderGaussianMechanism(PAIR, rho="1/8")
    guaranteed = pld(Guarantee.zcdp("1/8"))
    assert pld(shaped).get_epsilon_for_delta(1e-6) == guaranteed.get_epsilon_for_delta(1e-6)
    twice = counts.DiscreteGaussianMechanism(PAIR, rho="1/8", contributions=2)
    assert pld(twice).get_epsilon_for_delta(1e-6) == guaranteed.get_epsilon_for_delta(1e-6)


def test_events_are_taken_by_the_accountants():
    rdp = RdpAccountant()
    rdp.compose(event(counts.OrderGaussianMechanism(PAIR, rho="1/8")))
    rdp.compose(event(counts.PosetMechanism(PAIR, "1/2")))
    simple = (Guarantee.zcdp("1/8") + Guarantee.pure("1/2")).to_approximate("1e-6")
    assert 0 < rdp.get_epsilon(1e-6) <= float(simple.epsilon) * 1.01
    gaussian = counts.GaussianMechanism(PAIR, 1, "1e-6")
    accountant = PLDAccountant()
    accountant.compose(event(gaussian))
    assert accountant.get_epsilon(1e-6) == pytest.approx(1, rel=1e-4)


def test_tables_curves_and_their_guarantees_are_accounted_too():
    assert pld(TwoStageMechanism(5, "1/2")).get_epsilon_for_delta(0) == pytest.approx(0.5, abs=1e-4)
    model = PrivateIsotonicRegression("1/2", (0, 1), (0, 1)).fit([0.5], [0.5])
    assert pld(model).get_epsilon_for_delta(0) == pytest.approx(0.5, abs=1e-4)
    assert event(model) == dp_event.ZCDpEvent(0.125)


def test_what_has_no_guarantee_or_no_event_is_refused():
    with pytest.raises(InputError, match="not a int"):
        pld(3)
    with pytest.raises(InputError, match="no event"):
        event(Guarantee.approximate(1, "1e-6"))
