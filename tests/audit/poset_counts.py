"""Extended bipartitions and poset noise at length: every small order, large tables, and an attacker's audit."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
from scipy.stats import gamma, kstest

from isotone import noise
from isotone.counts import PosetMechanism, Relaxation
from isotone.counts.sampler import build_sampler
from isotone.mechanism import no_progress
from isotone.order import Poset
from isotone.order.bipartitions import counting as bipartitions
from tests.support.bipartitions import count_by_subsets, extended_bipartitions
from tests.support.chisquare import FALSE_ALARM, chi_square_p
from tests.support.posets import all_posets


def _uniform_p(P: Poset, orders: np.ndarray, sizes: np.ndarray) -> float:
    seen = Counter((tuple(row[:a]), tuple(row[a:])) for row, a in zip(orders.tolist(), sizes, strict=True))
    every = list(extended_bipartitions(P))
    return chi_square_p([seen[e] for e in every], [1 / len(every)] * len(every))


def audit_every_order_with_five_elements_is_drawn_uniformly() -> str:
    worst = 1.0
    for P in all_posets(5):
        made = bipartitions.tables(P)
        draws = bipartitions.draw(made, 400 * bipartitions.count(P), noise.random_words, noise.bernoulli)
        worst = min(worst, _uniform_p(P, *draws))
    assert worst > FALSE_ALARM, worst
    return f"63 orders, 400 draws for each extended bipartition, smallest p-value {worst:.2g}"


def audit_every_relaxation_by_one_relation_is_rejected_to_uniform() -> str:
    worst, tried = 1.0, 0
    for P in all_posets(4):
        for k in range(len(P.covers)):
            kept = Relaxation(P.covers[:k] + P.covers[k + 1 :])
            sampler = build_sampler(P, kept, no_progress)
            draws = sampler.source.draw(400 * bipartitions.count(P), noise.random_words, noise.bernoulli)
            worst, tried = min(worst, _uniform_p(P, *draws)), tried + 1
    assert worst > FALSE_ALARM, worst
    return f"{tried} relaxations of the orders with four elements, smallest p-value {worst:.2g}"


def audit_counts_agree_with_linear_extensions_of_all_subsets() -> str:
    rng = np.random.default_rng(0)
    for _ in range(60):
        P = Poset.random_dag(int(rng.integers(8, 15)), rng)
        assert bipartitions.count(P) == count_by_subsets(P), P
    return "60 random orders with 8 to 14 elements"


def audit_noise_of_large_orders_has_the_right_norm() -> str:
    rng, worst = np.random.default_rng(1), 1.0
    orders = {
        "binary tree": Poset(range(1023), [(k, (k - 1) // 2) for k in range(1, 1023)]),
        "chain": Poset.chain(range(2000)),
        "antichain": Poset.antichain(range(2000)),
        "random DAG": Poset.random_dag(45, rng),
    }
    for P in orders.values():
        m = PosetMechanism(P, "1/1000000")  # so much noise that rounding it to integers does not show
        zeros = np.zeros(len(P), np.int64)
        lengths = np.array([float(m.norm(m.release(zeros))) for _ in range(400)]) / 1e6
        worst = min(worst, kstest(lengths, gamma(len(P)).cdf).pvalue)
        assert lengths.mean() - len(P) < 6 * math.sqrt(len(P) / 400)
    assert worst > FALSE_ALARM, worst
    return f"{', '.join(orders)}: norms of 400 exact releases each, smallest p-value {worst:.2g}"
