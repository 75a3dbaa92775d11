"""Coupling from the past against its definition: sweeps, their order, and the law that they end in."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.support.coupling_law import coupling_law, sweeps
from tests.support.poset_outcomes import brute_law, cut_key
from tests.support.posets import all_posets

from isotone.order import Poset
from isotone.published.curves.threshold import CoupledRegion

RATE = Fraction(1, 3)
N_SHAPE = Poset("abcd", [("a", "c"), ("b", "c"), ("b", "d")])


def region_of(poset: Poset) -> CoupledRegion:
    return CoupledRegion(poset.linear_order, poset.cover_pairs)


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_coupling_ends_in_every_ideal_by_its_weight(size: int) -> None:
    rng = np.random.default_rng(size)
    for poset in all_posets(size):
        weights = rng.integers(-6, 7, size)
        ideals, shares = coupling_law(region_of(poset), weights, RATE)
        expected = brute_law(poset, range(size), weights, RATE)
        assert sum(shares) == pytest.approx(1)
        for inside, share in zip(ideals, shares, strict=True):
            members = frozenset(poset.linear_order[inside].tolist())
            assert share == pytest.approx(expected[members], rel=1e-9)


@pytest.mark.parametrize("size", [2, 3, 4])
def test_sweeps_keep_ideals_inside_one_another_so_two_starts_stand_for_all(size: int) -> None:
    for poset in all_posets(size):
        ideals, maps = sweeps(region_of(poset), np.zeros(size, np.int64), RATE)
        assert sum(maps.values()) == pytest.approx(1)
        inside = [
            (a, b) for a, b in itertools.permutations(range(len(ideals)), 2) if (ideals[a] <= ideals[b]).all()
        ]
        for images in maps:
            assert all((ideals[images[a]] <= ideals[images[b]]).all() for a, b in inside)


class Coins:
    """Choices that name a side for every element, sweep after sweep."""

    def __init__(self, sides: Any) -> None:
        self.sides = list(sides)

    def segments(
        self, scores: Any, offsets: Any, rates: Any, multiplicity: Any, size: int | None = None
    ) -> Any:
        return self.sides.pop(0).astype(np.int64)


def swept(poset: Poset, inside: set[int], coin: Any) -> set[int]:
    """One sweep by its definition: take the side of the coin if an ideal results."""
    leq = poset.leq_matrix()
    for place, x in enumerate(poset.linear_order.tolist()):
        trial = inside | {x} if coin[place] else inside - {x}
        if all(low in trial for up in trial for low in range(len(poset)) if leq[low, up]):
            inside = trial
    return inside


@pytest.mark.parametrize("seed", range(20))
def test_later_sweeps_are_put_before_those_already_drawn(seed: int) -> None:
    """Coins drawn later belong to an earlier time; the number of sweeps doubles until both starts meet."""
    rng = np.random.default_rng(seed)
    coins = rng.random((64, 4)) < 0.5
    sweeping, met = 1, None
    while met is None:
        low, high = set[int](), set(range(4))
        for coin in reversed(coins[:sweeping]):
            low, high = swept(N_SHAPE, low, coin), swept(N_SHAPE, high, coin)
        met = low if low == high else None
        sweeping *= 2
    script = Coins(coins)
    cut = region_of(N_SHAPE).cut(np.zeros(4, np.int64), RATE, script)  # pyright: ignore[reportArgumentType] - only coins
    assert cut_key(cut) == met
    assert len(script.sides) == 64 - sweeping // 2
