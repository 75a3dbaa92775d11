"""Noise shaped by differences of records, drawn and released; each test has a false-alarm rate of 1e-8."""

from collections import Counter
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import gamma, norm
from tests.support.bipartitions import coarse_tables, extended_bipartitions
from tests.support.chisquare import FALSE_ALARM, assert_tells_continuous, chi_square_p
from tests.support.cones import cone
from tests.support.effort import draws, off
from tests.support.posets import all_posets
from tests.support.tape import follow_all_paths

from isotone import noise
from isotone.counts import DifferenceBodyMechanism, Relaxation
from isotone.counts.difference import InterleavedSampler, interleaved_sampler
from isotone.counts.sampler import Method, TableSource, difference_norms
from isotone.order import Poset
from isotone.order.bipartitions.counting import loosened
from isotone.privacy.draws import ExactDraws

RATE, SCALE = "1/4096", 4096
DRAWS = draws(1_500, 0.4)
V_AND_POINT = Poset("xvy", [("x", "v")])
N_ORDER = Poset("abcd", [("a", "c"), ("b", "c"), ("b", "d")])
TWO_CHAINS = Poset("abcd", [("a", "b"), ("c", "d")])
SURVEY = Poset(
    range(15),
    [(1, 0), (2, 1), (3, 0), *((k, 4) for k in range(5, 11)), *((k, 11) for k in range(12, 15))],
)


def weights(P: Poset) -> dict[tuple[tuple[int, ...], tuple[int, ...]], int]:
    """Each extended bipartition with the number of interleavings of its sides."""
    return {(A, B): sum(1 for _ in combinations(range(len(P)), len(A))) for A, B in extended_bipartitions(P)}


def cones(P: Poset, rows: NDArray[np.float64]) -> Counter[tuple[tuple[int, ...], tuple[int, ...]]]:
    found = (cone(P, row) for row in rows)
    return Counter((tuple(c.A.tolist()), tuple(c.B.tolist())) for c in found)


def assert_law(P: Poset, rows: NDArray[np.float64]) -> None:
    """Norm and cones are those of the difference body; with two fifths more scale, or cones alike, they are not."""
    lengths = difference_norms(P, rows)
    assert_tells_continuous(lengths, gamma(len(P), scale=SCALE), gamma(len(P), scale=SCALE * (1 + off(0.4))))
    seen, law = cones(P, rows), weights(P)
    total = sum(law.values())
    assert chi_square_p([seen[e] for e in law], [w / total for w in law.values()]) > FALSE_ALARM


@pytest.mark.parametrize("P", all_posets(3), ids=str)
def test_every_pair_is_drawn_equally_often_by_all_paths(P, monkeypatch):
    """Through the code that releases: the law of its draws, exactly, and not by chance."""
    made = interleaved_sampler(P.canonical.order)
    sources = ["isotone.noise.bits.random_below"]
    law = follow_all_paths(
        lambda: tuple(map(tuple, (part.tolist() for part in made.draw_spans(ExactDraws())))),
        monkeypatch,
        sources,
    )
    assert law.unexplored == 0
    expected: Counter[tuple[tuple[int, ...], ...]] = Counter()
    less, n, pairs = made.order.leq_matrix(), len(P), 0
    for A, B in extended_bipartitions(made.order):
        for slots in combinations(range(1, n + 1), len(A)):
            rest = [t for t in range(1, n + 1) if t not in slots]
            ends = tuple(
                tuple(
                    max((t for t, y in zip(side, who, strict=True) if less[y, x]), default=0)
                    for x in range(n)
                )
                for side, who in ((slots, A), (rest, B))
            )
            expected[ends] += 1
            pairs += 1
    assert law.reached == {ends: Fraction(times, pairs) for ends, times in expected.items()}


@pytest.mark.parametrize("P", [Poset.antichain("abc"), V_AND_POINT, TWO_CHAINS, N_ORDER], ids=str)
def test_released_noise_has_the_law_of_the_difference_body(P):
    m = DifferenceBodyMechanism(P, RATE)
    assert_law(P, np.array([m.release([0] * len(P)) for _ in range(DRAWS)]).astype(float))


def test_the_compiled_walk_and_rejection_release_the_law_of_the_difference_body(monkeypatch):
    monkeypatch.setattr("isotone.counts.sampler.is_small", lambda _: False)
    P = Poset(
        ["walked", *"bcd"], [("walked", "c"), ("b", "c"), ("b", "d")]
    )  # no kept sampler has these names
    kept = Relaxation.of([("walked", "c"), ("b", "d")])
    for relaxation, name in ((None, "exact"), (kept, "rejection")):
        m = DifferenceBodyMechanism(P, RATE, relaxation=relaxation)
        assert m.method.name == name
        assert_law(P, np.array([m.release([0] * 4) for _ in range(DRAWS)]).astype(float))


def test_cones_that_were_equally_likely_would_be_seen():
    """A sampler that forgets the weight C(n, |A|) fails the test of the cones."""
    law = weights(TWO_CHAINS)
    total = sum(law.values())
    blind = np.random.default_rng(1).multinomial(1_500, [1 / len(law)] * len(law))
    assert chi_square_p(blind, [w / total for w in law.values()]) < FALSE_ALARM


@pytest.mark.parametrize("P", [V_AND_POINT, TWO_CHAINS, N_ORDER], ids=str)
def test_tables_that_are_rounded_coarsely_carry_the_weight_exactly(P, monkeypatch):
    monkeypatch.setattr("isotone.counts.sampler.is_small", lambda _: False)
    sampler = InterleavedSampler(P, TableSource(loosened(coarse_tables(P))), Method("exact"))
    law, seen = weights(P), Counter[tuple[tuple[int, ...], tuple[int, ...]]]()
    for _ in range(4_000):
        order, a = sampler.draw(ExactDraws())
        seen[tuple(order[:a].tolist()), tuple(order[a:].tolist())] += 1
    total = sum(law.values())
    assert chi_square_p([seen[e] for e in law], [w / total for w in law.values()]) > FALSE_ALARM


@pytest.mark.parametrize(
    "P", [SURVEY, Poset.random_dag(12, np.random.default_rng(4)), Poset.chain(range(40))], ids=len
)
def test_simulated_noise_has_the_norm_and_the_error_of_the_mechanism(P):
    m = DifferenceBodyMechanism(P, "1/2")
    rows = np.asarray(m.simulate(40_000, np.random.default_rng(1)))
    assert_tells_continuous(m.norm(rows), gamma(len(P), scale=2), gamma(len(P), scale=2.2))
    squares, error = rows**2, m.error()
    own = error.standard_error if error.standard_error.size else np.zeros(len(P))
    doubt = np.hypot(squares.std(axis=0) / 200, own)
    limit = norm.isf(FALSE_ALARM / 2 / len(P))
    assert np.max(np.abs(squares.mean(axis=0) - error.variance) / doubt) < limit
    assert np.max(np.abs(squares.mean(axis=0) * 1.21 - error.variance) / doubt) > limit


def test_spans_of_one_sequence_are_rounded_jointly():
    """S_3 - S_1 and S_1 - S_3 are one number with two signs; their roundings agree but at exact halves."""
    upper, lower = np.array([3, 1, 3, 2, 1]), np.array([1, 3, 2, 1, 0])
    size = draws(2_000, 0.5)
    spans = np.array([noise.rounded_exponential_spans(Fraction(1, 4096), upper, lower) for _ in range(size)])
    assert np.array_equal(spans[:, 0], -spans[:, 1])
    assert np.abs(spans[:, 2] + spans[:, 3] - spans[:, 0]).max() <= 1
    assert_tells_continuous(spans[:, 0], gamma(2, scale=4096), gamma(2, scale=4096 * (1 + off(0.5))))
    assert np.all(spans[:, 4] >= 0)
