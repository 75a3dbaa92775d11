"""Draws by coupling from the past against the exact law; each test has a false-alarm rate of 1e-8."""

import math
from collections import Counter

import numpy as np
import pytest
from scipy.stats import chi2
from tests.support.bipartitions import extended_bipartitions
from tests.support.chisquare import FALSE_ALARM, chi_square_p
from tests.support.posets import all_posets
from tests.unit.counts.test_two_levels import crown, fence

from isotone import noise
from isotone.counts.difference import InterleavedSampler
from isotone.counts.sampler import CoupledSource, Method, Sampler, seeded
from isotone.order import Poset
from isotone.order.bipartitions.counting import draw, loosened, tables
from isotone.order.bipartitions.coupling import Past, TwoLevels

LOW = [P for n in (1, 2, 3, 4, 5) for P in all_posets(n) if P.levels.max() <= 1]


def law_p(P, balanced, drawn, draws):
    """The p-value of the law of draws, each a pair of sides."""
    every = list(extended_bipartitions(P))
    seen = Counter(drawn() for _ in range(draws * len(every)))
    assert set(seen) <= set(every)
    weights = np.array([math.comb(len(P), len(one)) if balanced else 1 for one, _ in every], float)
    return chi_square_p([seen[e] for e in every], weights / weights.sum())


def sides(order, a):
    return tuple(order[:a].tolist()), tuple(order[a:].tolist())


@pytest.mark.parametrize("P", [*LOW[:16], *LOW[16::2]], ids=str)
def test_orders_of_two_levels_with_up_to_five_elements_are_drawn_uniformly(P):
    levels = TwoLevels(P)
    assert law_p(P, False, lambda: sides(*levels.draw(noise.random_words)), 26) > FALSE_ALARM


@pytest.mark.parametrize("P", [*LOW[:16], *LOW[16::3]], ids=str)
def test_balanced_draws_weigh_interleavings(P):
    levels = TwoLevels(P, balanced=True)
    assert law_p(P, True, lambda: sides(*levels.draw(noise.random_words)), 26) > FALSE_ALARM


@pytest.mark.parametrize("balanced", [False, True])
def test_short_words_and_a_short_past_change_nothing(balanced):
    """Almost every draw needs further digits and older sweeps here."""
    P = Poset("abcd", [("a", "c"), ("b", "c"), ("b", "d")])
    levels, lengths = TwoLevels(P, balanced), list[int]()

    def drawn():
        past = Past(levels.columns, noise.random_words, bits=7)
        one, two = levels.settle(past, 1)
        lengths.append(len(past.layers))
        return tuple(one), tuple(two)

    assert law_p(P, balanced, drawn, 40) > FALSE_ALARM
    assert np.mean(np.array(lengths) > 1) > 0.3


def test_starting_over_where_the_words_do_not_tell_would_not_be_uniform():
    """What the sampler must not do: a new past in place of further digits or older sweeps."""
    P = Poset.antichain("ab")
    levels = TwoLevels(P)

    def hasty():
        while True:
            past = Past(levels.columns, noise.random_words, bits=8)
            past.reach_back(2)
            found = levels._read(*levels._bounds(past))
            if found is not None:
                return tuple(found[0]), tuple(found[1])

    every = list(extended_bipartitions(P))
    seen = Counter(hasty() for _ in range(20_000))
    assert chi_square_p([seen[e] for e in every], [1 / 6] * 6) < FALSE_ALARM


@pytest.mark.parametrize("P", [crown(4), fence(9), crown(6)], ids=["crown8", "fence9", "crown12"])
@pytest.mark.parametrize("balanced", [False, True])
def test_sizes_and_places_agree_with_the_tables(P, balanced):
    """The size of side A against its exact law, and the place of an element against draws from the tables."""
    made = loosened(tables(P)) if balanced else tables(P)
    kind = InterleavedSampler if balanced else Sampler
    sampler = kind(P, CoupledSource(TwoLevels(P, balanced)), Method("two levels"))
    orders, sizes = sampler.source.draw(6_000, noise.random_words, noise.bernoulli)
    counts = np.bincount(sizes, minlength=len(P) + 1)
    assert chi_square_p(counts, made.sizes) > FALSE_ALARM
    other, _ = draw(made, 6_000, *seeded(np.random.default_rng(0)))
    for x in (0, len(P) - 1):
        here, there = (
            np.bincount(np.argwhere(rows == x)[:, 1], minlength=len(P)) for rows in (orders, other)
        )
        statistic = np.sum((here - there) ** 2 / (here + there))
        assert chi2.sf(statistic, len(P) - 1) > FALSE_ALARM
