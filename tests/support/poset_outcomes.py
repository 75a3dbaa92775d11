"""Every outcome of a mechanism on an order with its exact probability, and brute force to compare with."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from isotone.curves.ideals import Cut, ListedRegion, Region, compose
from isotone.order import Poset
from tests.support.curve_outcomes import Outcomes

__all__ = ["brute_law", "composed", "cut_key", "ideals_of", "law", "listed_whole", "runs"]


def runs(run: Callable[[Outcomes], Any]) -> Iterator[tuple[Any, Outcomes]]:
    """Run once for every possible sequence of choices."""
    stack: list[list[int]] = [[]]
    while stack:
        script = stack.pop()
        outcomes = Outcomes(script)
        yield run(outcomes), outcomes
        for place in range(len(script), len(outcomes.taken)):
            stack += [[*outcomes.taken[:place], other] for other in range(1, outcomes.options[place])]


def law(run: Callable[[Outcomes], Any], key: Callable[[Any], Any]) -> dict[Any, float]:
    """The probability of every output; noisy sums are part of it."""
    table: dict[Any, float] = {}
    for output, outcomes in runs(run):
        name = (key(output), tuple(outcomes.noisy))
        table[name] = table.get(name, 0.0) + math.exp(outcomes.log_probability)
    return table


def cut_key(cut: Cut) -> frozenset[int]:
    """The ideal of a cut."""
    return frozenset() if cut.below is None else frozenset(cut.below.members.tolist())


def ideals_of(poset: Poset, members: Any) -> list[frozenset[int]]:
    """All ideals of the order on some elements, by trying all subsets."""
    leq = poset.leq_matrix()
    every = [int(x) for x in members]
    found: list[frozenset[int]] = []
    for size in range(len(every) + 1):
        for subset in itertools.combinations(every, size):
            inside = set(subset)
            if all(x in inside for y in inside for x in every if leq[x, y]):
                found.append(frozenset(subset))
    return found


def brute_law(poset: Poset, members: Any, weights: Any, rate: Fraction) -> dict[Any, float]:
    """The law of the cut of a region, by its definition."""
    ideals = ideals_of(poset, members)
    scores = np.array([sum(int(weights[x]) for x in ideal) for ideal in ideals])
    shares = np.exp(-float(rate) * (scores - scores.min()))
    return dict(zip(ideals, (shares / shares.sum()).tolist(), strict=True))


def composed(poset: Poset) -> Region:
    """The order by its decomposition, however large its prime parts are."""
    return compose(poset.decomposition())


def listed_whole(poset: Poset) -> Region:
    """The order by its list of ideals."""
    return ListedRegion(poset.linear_order, poset.cover_pairs)
