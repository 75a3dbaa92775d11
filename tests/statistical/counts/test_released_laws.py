"""Released integers on orders of three and more elements; each test has a false-alarm rate of 1e-8.

At a rate of 2**-12 rounding moves the noise by less than a thousandth of its scale, far below what the samples
here can see. So the released integers have the norm of the continuous noise, a Gamma variable, and lie in every
cone equally often (docs/theory/counts.md, sections 4, 7, 9 and 10).
"""

from collections import Counter

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import gamma
from tests.support.bipartitions import extended_bipartitions
from tests.support.chisquare import FALSE_ALARM, assert_tells_continuous, chi_square_p
from tests.support.cones import cone
from tests.support.effort import draws, effort, off

from isotone.counts import BoundedPosetMechanism, PosetMechanism, Relaxation
from isotone.counts.sampler import norms
from isotone.order import Poset

RATE = "1/4096"
SCALE = 4096
DRAWS = draws(1_200, 0.4)
V_AND_POINT = Poset("xvy", [("x", "v")])
N_ORDER = Poset("abcd", [("a", "c"), ("b", "c"), ("b", "d")])
TWO_CHAINS = Poset("abcd", [("a", "b"), ("c", "d")])


def assert_law(P: Poset, noise: NDArray[np.int64]) -> None:
    """The noise has the norm and the cones of P; with two fifths more scale it has not."""
    lengths = norms(P, noise.astype(float))
    assert_tells_continuous(lengths, gamma(len(P), scale=SCALE), gamma(len(P), scale=SCALE * (1 + off(0.4))))
    every = list(extended_bipartitions(P))
    cones = (cone(P, row) for row in noise.astype(float))
    seen = Counter((tuple(c.A.tolist()), tuple(c.B.tolist())) for c in cones)
    assert chi_square_p([seen[e] for e in every], [1 / len(every)] * len(every)) > FALSE_ALARM


@pytest.mark.parametrize("P", [Poset.antichain("abc"), V_AND_POINT, TWO_CHAINS, N_ORDER], ids=str)
def test_released_noise_has_the_law_of_the_order(P):
    m = PosetMechanism(P, RATE)
    assert_law(P, np.array([m.release([0] * len(P)) for _ in range(DRAWS)]))


def test_the_compiled_walk_releases_the_law_of_the_order(monkeypatch):
    monkeypatch.setattr("isotone.counts.sampler.is_small", lambda _: False)
    P = Poset(
        ["compiled", *"bcd"], [("compiled", "c"), ("b", "c"), ("b", "d")]
    )  # no kept sampler has these names
    m = PosetMechanism(P, RATE)
    assert_law(P, np.array([m.release([0] * 4) for _ in range(DRAWS)]))


def test_counts_and_the_number_of_records_together_have_the_law_of_the_order_with_a_root():
    P = V_AND_POINT
    rooted = Poset([*P.elements, "all"], [("x", "v"), *((x, "all") for x in P.elements)])
    m = PosetMechanism(P, RATE)
    pairs = (m.release_with_total([0, 0, 0], records=0) for _ in range(DRAWS))
    assert_law(rooted, np.array([[*values, total] for values, total in pairs]))


def test_rejection_from_a_relaxed_order_releases_the_law_of_the_order(monkeypatch):
    monkeypatch.setattr("isotone.counts.sampler.is_small", lambda _: False)
    m = PosetMechanism(N_ORDER, RATE, relaxation=Relaxation.of([("a", "c"), ("b", "d")]))
    assert m.method.name == "rejection"
    assert_law(N_ORDER, np.array([m.release([0] * 4) for _ in range(DRAWS)]))


@pytest.mark.parametrize("P", [Poset.antichain("abc"), V_AND_POINT], ids=str)
def test_bounded_records_release_the_law_of_the_smaller_ball(P):
    m = BoundedPosetMechanism(P, RATE, max_size=2)
    noise = np.array([m.release([0, 0, 0]) for _ in range(DRAWS)]).astype(float)
    assert_tells_continuous(m.norm(noise), gamma(3, scale=SCALE), gamma(3, scale=SCALE * (1 + off(0.4))))

    def binds(y: NDArray[np.float64]) -> NDArray[np.bool_]:
        return np.abs(y).sum(axis=1) / 2 > norms(P, y)

    # directions are those of a uniform point of the ball, here found in the cube around it
    cube = np.random.default_rng(5).uniform(-1, 1, (effort(400_000, 8_000_000), 3))
    share = float(np.mean(binds(cube[m.norm(cube) <= 1])))
    bound = int(np.sum(binds(noise)))
    assert 0.1 < share < 0.9
    assert chi_square_p([bound, len(noise) - bound], [share, 1 - share]) > FALSE_ALARM
