"""The random digraphs are uniform; every test has a false-alarm rate of 1e-8."""

from collections import Counter
from fractions import Fraction
from math import comb

import numpy as np
import pytest
from scipy.stats import norm
from tests.support.chisquare import FALSE_ALARM, chi_square_p

from isotone.order import Poset
from isotone.order.building import default_steps, random_dag

DIGRAPHS = {3: 25, 4: 543}  # acyclic, labelled


def p_of_uniform(n, draws, steps, seed):
    rng = np.random.default_rng(seed)
    counts = Counter(random_dag(n, rng, steps).tobytes() for _ in range(draws))
    assert len(counts) <= DIGRAPHS[n]
    observed = np.zeros(DIGRAPHS[n])
    observed[: len(counts)] = list(counts.values())
    return chi_square_p(observed, np.full(DIGRAPHS[n], draws / DIGRAPHS[n]))


@pytest.mark.parametrize(("n", "draws"), [(3, 5_000), (4, 20_000)])
def test_all_small_digraphs_are_equally_likely(n, draws):
    assert p_of_uniform(n, draws, None, seed=n) > FALSE_ALARM


@pytest.mark.parametrize(("n", "draws"), [(3, 5_000), (4, 20_000)])
def test_too_few_steps_are_noticed(n, draws):
    assert p_of_uniform(n, draws, 2 * n, seed=n) < FALSE_ALARM


def moments_of_arcs(n):
    """Count, mean and variance of the arcs of acyclic labelled digraphs, exactly.

    By Robinson's recurrence a_m(x) = Σ (−1)^(k+1) C(m, k) (1 + x)^(k(m−k)) a_(m−k)(x) for the polynomials
    that count them by arcs, carried along with two derivatives at x = 1.
    """
    polynomials = [(Fraction(1), Fraction(0), Fraction(0))]
    for m in range(1, n + 1):
        total = [Fraction(0)] * 3
        for k in range(1, m + 1):
            pairs, sign = k * (m - k), (-1) ** (k + 1) * comb(m, k)
            f = [
                sign * Fraction(2) ** pairs * c
                for c in (1, Fraction(pairs, 2), Fraction(pairs * (pairs - 1), 4))
            ]
            g = polynomials[m - k]
            total[0] += f[0] * g[0]
            total[1] += f[1] * g[0] + f[0] * g[1]
            total[2] += f[2] * g[0] + 2 * f[1] * g[1] + f[0] * g[2]
        polynomials.append((total[0], total[1], total[2]))
    count, first, second = polynomials[n]
    mean = first / count
    return int(count), float(mean), float((first + second) / count - mean**2)


def test_the_recurrence_counts_the_small_digraphs():
    assert [moments_of_arcs(n)[0] for n in (1, 2, 3, 4, 5)] == [1, 3, 25, 543, 29281]
    assert moments_of_arcs(2)[1:] == pytest.approx((2 / 3, 2 / 9))


def arcs_z(n, draws, steps, seed):
    """How far the mean number of arcs is from its exact expectation, in standard deviations."""
    _, mean, variance = moments_of_arcs(n)
    rng = np.random.default_rng(seed)
    observed = np.mean([len(random_dag(n, rng, steps)) for _ in range(draws)])
    return (observed - mean) / np.sqrt(variance / draws)


@pytest.mark.parametrize("n", [12, 40])
def test_the_default_number_of_steps_is_enough_for_the_number_of_arcs(n):
    limit = norm.isf(FALSE_ALARM / 2)
    assert abs(arcs_z(n, 100, None, seed=n)) < limit
    assert abs(arcs_z(n, 100, n * n, seed=n)) > limit


def test_a_seed_gives_the_same_order_again():
    first, again = (Poset.random_dag(20, np.random.default_rng(7)) for _ in range(2))
    assert first == again
    assert first.elements == tuple(range(20))


def test_no_steps_give_the_antichain_and_one_element_is_no_problem():
    rng = np.random.default_rng(0)
    assert Poset.random_dag(4, rng, steps=0) == Poset.antichain(range(4))
    assert Poset.random_dag(1, rng) == Poset.antichain(range(1))
    assert default_steps(1) > 0


def test_more_vertices_than_bits_in_a_word():
    arcs = random_dag(70, np.random.default_rng(0), steps=20_000)
    assert len(Poset(range(70), arcs.tolist()).elements) == 70
    assert arcs.max() > 63
