"""The law of coupling from the past, solved instead of drawn.

One sweep with given coins is a map from ideals to ideals. Starting further back puts one more map before those already
drawn, and once all of them together are constant they stay so: a Markov chain on maps that ends in constant ones. Its
ending probabilities are the law of the draw, whatever its running time.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from isotone.curves.ideals import Cut
from isotone.published.curves.threshold import CoupledRegion, _neighbours, _sweep

__all__ = ["SolvedRegion", "coupling_law", "sweeps"]

Map = tuple[int, ...]


def sweeps(region: CoupledRegion, weights: Any, rate: Fraction) -> tuple[list[Any], dict[Map, float]]:
    """The ideals of a region, and the maps between them that one sweep can be, with their probabilities."""
    size = region.elements.size
    place = np.full(weights.size, -1, np.int64)
    place[region.elements] = np.arange(size)
    pairs = place[region.covers]
    pairs = pairs[(pairs >= 0).all(axis=1)]
    subsets = [np.array(bits, np.bool_) for bits in itertools.product((False, True), repeat=size)]
    ideals = [inside for inside in subsets if not (inside[pairs[:, 1]] & ~inside[pairs[:, 0]]).any()]
    number = {inside.tobytes(): k for k, inside in enumerate(ideals)}
    exponents = [float(rate * int(weights[x])) for x in region.elements]
    maps: dict[Map, float] = {}
    for coin in subsets:
        images: list[int] = []
        for ideal in ideals:
            after = ideal.copy()
            _sweep(after, coin, *_neighbours(size, pairs))
            images.append(number[after.tobytes()])
        log_share = -sum(
            math.log1p(math.exp(t if side else -t)) for t, side in zip(exponents, coin, strict=True)
        )
        maps[tuple(images)] = maps.get(tuple(images), 0.0) + math.exp(log_share)
    return ideals, maps


def coupling_law(region: CoupledRegion, weights: Any, rate: Fraction) -> tuple[list[Any], list[float]]:
    """The ideals of a region, and the probability with which coupling ends in each."""
    ideals, maps = sweeps(region, weights, rate)
    start = tuple(range(len(ideals)))
    waiting, places = [start], {start: 0}
    steps: list[tuple[int, Map, float]] = []
    for known in waiting:
        for before, share in maps.items():
            both = tuple(known[image] for image in before)
            steps.append((places[known], both, share))
            if len(set(both)) > 1 and both not in places:
                places[both] = len(waiting)
                waiting.append(both)
    stays, ends = np.zeros((len(waiting), len(waiting))), np.zeros((len(waiting), len(ideals)))
    for row, both, share in steps:
        if both in places:
            stays[row, places[both]] += share
        else:
            ends[row, both[0]] += share
    if len(ideals) == 1:
        return ideals, [1.0]
    return ideals, np.linalg.solve(np.eye(len(waiting)) - stays, ends)[0].tolist()


@dataclass(frozen=True)
class SolvedRegion(CoupledRegion):
    """A coupled region whose cut is one choice with the solved law, so that mechanisms can be walked through."""

    def cut(self, weights: Any, rate: Fraction, draws: Any) -> Cut:
        """Choose an ideal."""
        ideals, shares = coupling_law(self, weights, rate)
        inside = ideals[draws.decide([math.log(share) for share in shares])]
        return Cut(self._part(inside), self._part(~inside))

    def _part(self, inside: Any) -> SolvedRegion | None:
        return SolvedRegion(self.elements[inside], self.covers) if inside.any() else None
