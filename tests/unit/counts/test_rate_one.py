"""Half-widths that are kept at rate 1 are those of the law drawn at each budget, bit by bit."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from isotone.counts import BoundedPosetMechanism, PosetMechanism
from isotone.counts.sampler import Recent
from isotone.linear.mechanism import LAW_STREAM, upper_draw
from isotone.noise.simulate import public_stream
from isotone.order import Poset

TREE = Poset("abcde", [("b", "a"), ("c", "a"), ("d", "c")])
TURNED = Poset("edcba", [("d", "e"), ("c", "e"), ("b", "c")])
FLAT = Poset("abcde", [("b", "a")])
OPTIONS = Poset.from_mapping({"x": "p", "y": "p", "z": "x"}, children="exclusive")


@pytest.mark.parametrize("epsilon", ["1", "0.37"])
def test_the_widths_are_those_of_the_draws(epsilon):
    made = [PosetMechanism(P, epsilon) for P in (TREE, TURNED, FLAT, OPTIONS)]
    for mechanism in (*made, BoundedPosetMechanism(TREE, epsilon, max_size=3)):
        stream = public_stream(f"{LAW_STREAM} draws ")
        drawn = np.abs(np.asarray(mechanism.simulate_independent(mechanism.law_draws, stream)))
        for confidence in (0.95, 0.6):
            alone = mechanism.unrounded_half_widths(confidence)
            assert np.array_equal(alone, upper_draw(drawn, confidence))
            together = mechanism.unrounded_simultaneous_half_width(confidence)
            assert together == upper_draw(drawn.max(axis=1), confidence)


def test_exclusive_options_have_the_widths_of_their_law():
    """Their running totals are rounded before they are subtracted."""
    mechanism = PosetMechanism(OPTIONS, "0.8")
    law = mechanism.law()
    assert np.array_equal(mechanism.half_widths(0.9), law.half_widths(0.9))
    assert mechanism.simultaneous_half_width(0.9) == law.simultaneous_half_width(0.9)


def test_what_is_kept_serves_several_threads():
    """One thread forgets what another has just built: both have their values all the same."""
    kept, wrong, both = Recent[int](1), [], threading.Barrier(2)

    def ask(key):
        def build():
            both.wait(30)
            return key

        if kept.get(key, build) != key:
            wrong.append(key)

    threads = [threading.Thread(target=ask, args=(key,)) for key in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert kept.get(3, lambda: 4) == kept.get(3, lambda: 5) == 4
