"""The stages that close records: right for every order, and few."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.support.posets import all_labelled_posets

from isotone.order import Poset
from isotone.order.poset import closing_stages

RNG = np.random.default_rng(5)


def closed(P: Poset, records: np.ndarray) -> np.ndarray:
    for stage in closing_stages(P):
        before = records
        records = records.copy()
        for x, joined in stage.items():
            records[:, x] |= before[:, joined].any(axis=1)
    return records


def terms(P: Poset) -> int:
    return sum(len(joined) for stage in closing_stages(P) for joined in stage.values())


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_every_record_of_every_small_order_is_closed(n):
    records = (np.arange(2**n)[:, None] >> np.arange(n)) % 2 == 1
    for P in all_labelled_posets(n):
        assert np.array_equal(closed(P, records), P.close_all(records))


def random_order(n: int, density: float) -> Poset:
    above = np.triu(RNG.random((n, n)) < density, 1)
    names = RNG.permutation(n)
    return Poset(range(n), [(int(names[i]), int(names[j])) for i, j in np.argwhere(above)])


CASES = {
    "chain": Poset.chain(RNG.permutation(1000).tolist()),
    "forest": Poset(range(1000), [(i, int(RNG.integers(0, i))) for i in range(1, 1000)]),
    "deep forest": Poset(range(1000), [(i, max(0, i - 1 - int(RNG.integers(0, 5)))) for i in range(1, 1000)]),
    "broom": Poset(range(600), [(i, i + 1) for i in range(299)] + [(300 + i, 0) for i in range(300)]),
    "caterpillar": Poset(range(600), [(i, i + 1) for i in range(299)] + [(300 + i, i) for i in range(300)]),
    "sparse": random_order(500, 0.005),
    "dense": random_order(500, 0.1),
    "antichain": Poset.antichain(range(50)),
    "star": Poset(range(500), [(i, 0) for i in range(1, 500)]),
}


@pytest.mark.parametrize("name", CASES)
def test_large_orders_are_closed_in_few_stages_and_with_few_terms(name):
    P = CASES[name]
    records = RNG.random((64, len(P))) < 0.02
    assert np.array_equal(closed(P, records), P.close_all(records))
    assert len(closing_stages(P)) <= math.ceil(math.log2(P.height)) + 3
    assert terms(P) <= 5 * (len(P) + len(P.covers))
