"""The law of noise: ranks on the safe side, draws of what is released, covariances by enumeration."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom
from tests.support.bipartitions import extended_bipartitions

from isotone.counts import (
    BoundedPosetMechanism,
    DifferenceBodyMechanism,
    HierarchicalMechanism,
    LaplaceMechanism,
    LInfinityMechanism,
    MarginsMechanism,
    OrderGaussianMechanism,
    PosetMechanism,
)
from isotone.counts.breakdown import read_breakdown
from isotone.errors import InputError
from isotone.linear.mechanism import (
    FALSE_CONFIDENCE,
    LAW_STREAM,
    OTHER_DRAWS,
    Law,
    log_concave_reach,
    rank,
    rounding_reach,
)
from isotone.linear.strategy import DiscreteGaussian
from isotone.noise.simulate import public_stream
from isotone.order import Poset

TREE = Poset("abcde", [("b", "a"), ("c", "a"), ("d", "c")])
PRIME = Poset("abcd", [("a", "c"), ("b", "c"), ("b", "d")])
ORDERS = [Poset.chain("abc"), Poset.antichain("abc"), TREE, PRIME]


@pytest.mark.parametrize("draws", [300, 5_000, 50_000])
@pytest.mark.parametrize("level", [0.5, 0.9, 0.95])
def test_the_rank_is_the_least_that_is_false_once_in_a_million(draws, level):
    k = rank(draws, level)
    assert binom.sf(k - 1, draws, level) <= FALSE_CONFIDENCE < binom.sf(k - 2, draws, level)


def test_a_confidence_that_no_draw_can_show_is_refused():
    with pytest.raises(InputError, match="cannot be known from 300 draws"):
        rank(300, 0.99)


def by_enumeration(P):
    """Covariances of the noise at rate 1, the last row that of the number of records."""
    less, n, total, count = P.leq_matrix(), len(P), np.zeros((len(P) + 1, len(P) + 1)), 0
    for sides in extended_bipartitions(P):
        last = [
            [max((k + 1 for k, y in enumerate(side) if less[y, x]), default=0) for x in range(n)]
            for side in sides
        ]
        for up in (0, 1):  # one more step for an element above all others
            i = np.array([*last[0], len(sides[0]) + up])
            j = np.array([*last[1], len(sides[1]) + 1 - up])
            total += np.minimum.outer(i, i) + np.minimum.outer(j, j) + np.outer(i - j, i - j)
            count += 1
    return total / count


@pytest.mark.parametrize("P", ORDERS, ids=["chain", "antichain", "tree", "prime"])
def test_covariances_are_those_of_all_bipartitions(P):
    m, exact, n = PosetMechanism(P, epsilon=2), by_enumeration(P) / 4, len(P)
    exactly = m.total_covariance().standard_error.size == 0
    assert exactly == (P is not PRIME)
    assert m.total_covariance().variance == pytest.approx(exact[:n, n], rel=1e-9 if exactly else 0.03)
    assert m.total_variance() == pytest.approx(exact[n, n], rel=1e-9)
    sd = np.sqrt(np.diag(exact)[:n])
    off = np.max(np.abs(m.covariance() - exact[:n, :n]) / np.outer(sd, sd))
    assert off < (1e-9 if exactly else 6 * m.covariance_error())
    assert (m.covariance_error() == 0) == exactly
    assert m.covariance_error() < 0.01


@pytest.mark.parametrize("P", ORDERS, ids=["chain", "antichain", "tree", "prime"])
def test_draws_with_the_number_of_records_have_its_law(P):
    m, exact = PosetMechanism(P, epsilon=1), by_enumeration(P)
    drawn = np.asarray(m.simulate_with_total(60_000, public_stream("test")))
    sd = np.sqrt(np.diag(exact))
    assert (
        np.max(np.abs((drawn.T @ drawn / len(drawn) - exact) / np.outer(sd, sd))) < 0.06
    )  # about eight errors


def test_gaussian_covariances_with_the_number_of_records():
    m = OrderGaussianMechanism(TREE, rho="0.5")
    drawn = np.asarray(m.simulate_with_total(60_000, public_stream("test")))
    found = drawn.T @ drawn / len(drawn)
    assert found[:-1, -1] == pytest.approx(m.total_covariance().variance, abs=0.03 * found.max())
    assert found[-1, -1] == pytest.approx(m.total_variance(), rel=0.04)
    assert found[:-1, :-1] == pytest.approx(m.covariance(), abs=0.03 * found.max())


MECHANISMS = [
    PosetMechanism(TREE, 1),
    PosetMechanism(PRIME, 1),
    DifferenceBodyMechanism(TREE, 1),
    BoundedPosetMechanism(TREE, 1, max_size=2),
    LaplaceMechanism(TREE, 1),
    LInfinityMechanism(TREE, 1),
    HierarchicalMechanism(Poset.chain("abcde"), 1),
    OrderGaussianMechanism(TREE, rho=1),
]


@pytest.mark.parametrize("m", MECHANISMS, ids=lambda m: type(m).__name__)
def test_laws_repeat_and_are_of_whole_numbers(m):
    law, again, other = m.law(draws=500), m.law(draws=500), m.law("other", draws=500)
    assert np.array_equal(law.draws, again.draws)
    assert not np.array_equal(law.draws, other.draws)
    assert not np.array_equal(law.draws[:100], law.other[:100])
    stream = public_stream(f"{LAW_STREAM} draws ")
    assert np.array_equal(law.draws, np.asarray(m.simulate_released(500, stream)))
    assert np.array_equal(law.draws, np.rint(law.draws))
    covariance = m.covariance()
    assert np.sqrt(np.diag(covariance)) == pytest.approx(m.error().sd, rel=0.05)
    scale = np.outer(m.error().sd, m.error().sd)
    found = np.asarray(m.simulate(40_000, public_stream("covariance test")))
    assert np.max(np.abs(found.T @ found / len(found) - covariance) / scale) < 0.1


@pytest.mark.parametrize(
    "m", [LaplaceMechanism(Poset.antichain("abcdef"), "0.1"), PosetMechanism(PRIME, "0.1")]
)
def test_scales_come_from_another_stream_than_the_draws(m):
    """No draw that decides which statement is made is one of those that say how sure it is."""
    law = m.law()
    assert not set(map(tuple, law.other.tolist())) & set(map(tuple, law.draws[:OTHER_DRAWS].tolist()))


def test_noise_without_a_number_of_records_says_so():
    for m in (MECHANISMS[2], MECHANISMS[3], MECHANISMS[4]):
        with pytest.raises(InputError, match="releases no number of records"):
            m.law(total=True)


def test_half_widths_are_released_integers_on_the_safe_side():
    """On 100,000 other draws each half-width holds for at least its share, less six standard errors."""
    m = PosetMechanism(TREE, 1)
    drawn = np.abs(np.rint(np.asarray(m.simulate(100_000, np.random.default_rng(5)))))
    slack = 6 * np.sqrt(0.95 * 0.05 / len(drawn))
    assert np.all(np.mean(drawn <= m.half_widths(0.95), axis=0) >= 0.95 - slack)
    assert np.any(np.mean(drawn <= m.half_widths(0.95) - 1, axis=0) < 0.95 - slack)


def test_linear_combinations_of_laws():
    law = Law(np.array([[1, 2], [3, 4]]), np.array([[1, 0]]))
    assert law.linear([[1], [-1]]).draws.tolist() == [[-1], [-1]]
    assert law.plus(Law(np.array([[10, 10]]), np.array([[1, 1]]))).draws.tolist() == [[11, 12]]
    assert law.along([0, 2]).tolist() == [4, 8]


def test_rows_of_a_law_are_independent_where_rejection_keeps_few(monkeypatch):
    """The random walk is used for scales alone: elsewhere it is replaced by an error, and the law can be drawn."""
    m = PosetMechanism(TREE, 1)
    real, walked = m.sampler.wander, list[int]()

    def walk(P, order, a, rows, sweeps, rng):
        assert rows == OTHER_DRAWS, "rows that follow each other are alike"
        walked.append(rows)
        return real(P, order, a, rows, sweeps, rng)

    monkeypatch.setattr(type(m.sampler), "rows_are_independent", property(lambda self: False))
    monkeypatch.setattr(type(m.sampler), "wander", staticmethod(walk))
    assert m.law(draws=400).size == 400
    assert m.law(draws=400, total=True).size == 400
    assert len(walked) == 2
    with pytest.raises(AssertionError):
        m.simulate(10, np.random.default_rng(0))


@pytest.mark.parametrize("outside", [0.1, 0.01, 1e-4])
def test_what_rounding_moves_stays_within_its_reach(outside):
    """Hoeffding on both sides together, and the true law of signs stays below it."""
    reach = rounding_reach(outside)
    assert 2 * math.exp(-(reach**2) / 2) == pytest.approx(outside)
    # an odd number of fair signs, over the root of their number
    signs = 101
    k = np.arange(signs + 1)
    beyond = binom.pmf(k, signs, 0.5)[np.abs(2 * k - signs) / math.sqrt(signs) > reach].sum()
    assert beyond <= outside


@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_a_breakdown_shares_what_may_go_wrong_between_noise_and_rounding(confidence):
    """Both tails together are no more than what the confidence leaves."""
    outside = 1 - confidence
    breakdown = read_breakdown(["sex"], {"sex": ["f", "m"]}, ["", "sex"])
    m = MarginsMechanism(LaplaceMechanism(Poset.chain("a"), 1), breakdown, shares=["1/2", "1/2"])
    rounding = outside / 50
    half = m.bounded_half_widths(confidence)
    plain = log_concave_reach(outside - rounding)
    noise = [0 if part is None else part.error().variance for part in m.parts]
    moved = [0 if part is None else part.rounding**2 for part in m.parts]
    for place, (drawn, rounded) in enumerate(zip(m._spreads(noise), m._spreads(moved), strict=True)):
        least = plain * np.sqrt(drawn) + rounding_reach(rounding) * np.sqrt(rounded)
        np.testing.assert_allclose(half[place], least, rtol=1e-9)


@pytest.mark.parametrize("sigma2", ["1/3", 2, 50])
def test_independent_whole_numbers_have_the_product_of_their_probabilities(sigma2):
    noise = DiscreteGaussian(Fraction(sigma2))
    single = np.arange(-40.0, 41.0)[:, None]
    alone = noise.log_probability(single)
    assert np.exp(alone).sum() == pytest.approx(1, abs=1e-6)
    together = noise.log_probability(np.array([[1.0, -2.0, 0.0]]))
    assert together == pytest.approx(alone[41] + alone[38] + alone[40])
