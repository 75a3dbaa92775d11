"""Draws of extended bipartitions against the uniform law; each test has a false-alarm rate of 1e-8."""

from collections import Counter

import numpy as np
import pytest
from tests.support.bipartitions import coarse_tables, extended_bipartitions
from tests.support.chisquare import FALSE_ALARM, chi_square_p
from tests.support.posets import all_posets

from _published import PublishedSampler
from isotone import noise
from isotone.counts import Relaxation
from isotone.counts.relaxation_tree import wander
from isotone.counts.sampler import Method, Sampler, TableSource, build_sampler
from isotone.mechanism import no_progress
from isotone.order import Poset
from isotone.order.bipartitions import counting as bipartitions
from isotone.privacy.draws import ExactDraws

V_AND_POINT = Poset(["x", "v", "y"], [("x", "v")])
N_ORDER = Poset("abcd", [("a", "c"), ("b", "c"), ("b", "d")])
FENCE = Poset(range(5), [(0, 1), (2, 1), (2, 3), (4, 3)])
TWO_CHAINS = Poset("abcd", [("a", "b"), ("c", "d")])


def uniform_p(P, orders, sizes):
    """The p-value of the uniform law on the extended bipartitions of P."""
    seen = Counter((tuple(row[:a]), tuple(row[a:])) for row, a in zip(orders.tolist(), sizes, strict=True))
    every = list(extended_bipartitions(P))
    assert set(seen) <= set(every)
    return chi_square_p([seen[e] for e in every], [1 / len(every)] * len(every))


def exact_draws(made, size):
    return bipartitions.draw(made, size, noise.random_words, noise.bernoulli)


@pytest.mark.parametrize("P", [*all_posets(3), *all_posets(4), *all_posets(5)[::7], FENCE], ids=str)
def test_draws_are_uniform(P):
    made = bipartitions.tables(P)
    draws = 60 * bipartitions.count(P)
    assert uniform_p(P, *exact_draws(made, draws)) > FALSE_ALARM


COARSE = [V_AND_POINT, TWO_CHAINS, Poset.series(TWO_CHAINS, Poset.antichain("xy")), N_ORDER, FENCE]


@pytest.mark.parametrize("P", COARSE, ids=str)
def test_draws_stay_uniform_when_the_tables_are_rounded_so_coarsely_that_many_walks_start_over(P):
    made = coarse_tables(P)
    assert made.log_count > bipartitions.tables(P).log_count + 0.4
    assert uniform_p(P, *exact_draws(made, 60 * bipartitions.count(P))) > FALSE_ALARM


def test_coarse_tables_without_starting_over_would_not_be_uniform():
    made = coarse_tables(V_AND_POINT)
    shares = np.diff(made.top, prepend=0) / made.top[-1]
    exact = bipartitions.tables(V_AND_POINT).sizes
    assert np.max(np.abs(shares - exact)) > 0.01


def test_the_published_sampler_is_not_uniform():
    rng = np.random.default_rng(5)
    draws = PublishedSampler(V_AND_POINT).simulate(60 * 16, rng)
    p = uniform_p(V_AND_POINT, *draws)
    more = PublishedSampler(V_AND_POINT).simulate(200 * 16, rng)
    assert p < 0.01
    assert uniform_p(V_AND_POINT, *more) < FALSE_ALARM


@pytest.mark.parametrize(
    ("P", "kept"),
    [
        (N_ORDER, [("a", "c"), ("b", "d")]),
        (FENCE, [(0, 1), (4, 3)]),
        (Poset.chain("abcd"), [("a", "b"), ("c", "d")]),
        (V_AND_POINT, []),
    ],
    ids=str,
)
def test_rejection_from_a_relaxed_order_is_uniform(P, kept):
    sampler = build_sampler(P, Relaxation.of(kept), no_progress)
    assert sampler.method.name == "rejection"
    draws = sampler.source.draw(60 * bipartitions.count(P), noise.random_words, noise.bernoulli)
    assert uniform_p(P, *draws) > FALSE_ALARM


def test_the_relaxed_method_is_uniform_for_the_relaxed_order():
    kept = Relaxation.of([("a", "c"), ("b", "d")], restored=[])
    sampler = build_sampler(N_ORDER, kept, no_progress)
    assert sampler.method.name == "relaxed"
    relaxed = Poset("abcd", [("a", "c"), ("b", "d")])
    assert sampler.order == relaxed
    draws = [sampler.draw(ExactDraws()) for _ in range(60 * 54)]
    rows, sizes = np.array([row for row, _ in draws]), np.array([a for _, a in draws])
    assert uniform_p(relaxed, rows, sizes) > FALSE_ALARM


PARTLY = Poset(range(6), [(0, 1), (1, 2), (3, 2), (3, 4), (4, 5)])


def test_the_partly_relaxed_method_is_uniform_for_the_order_between(monkeypatch):
    monkeypatch.setattr("isotone.counts.sampler.is_small", lambda _: False)
    kept = Relaxation.of([(0, 1), (4, 5)], restored=[(1, 2), (3, 4)])
    sampler = build_sampler(PARTLY, kept, no_progress)
    assert sampler.method.name == "partly relaxed"
    between = Poset(range(6), [(0, 1), (1, 2), (3, 4), (4, 5)])
    assert sampler.order == between
    draws = sampler.source.draw(26 * bipartitions.count(between), noise.random_words, noise.bernoulli)
    assert uniform_p(between, *draws) > FALSE_ALARM


def test_wandering_keeps_the_uniform_law():
    rng = np.random.default_rng(11)
    start, sizes = Sampler(FENCE, TableSource(bipartitions.tables(FENCE)), Method("exact")).simulate(1, rng)
    rows = wander(FENCE.leq_matrix(), start[0], int(sizes[0]), 60 * 196, 12, rng)
    assert uniform_p(FENCE, *rows) > FALSE_ALARM
