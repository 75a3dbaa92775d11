"""Hierarchical sums on chains. The noise grows with the logarithm of their length."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from isotone.counts.mechanisms.additive import LinearCounts
from isotone.errors import InputError
from isotone.linear.least_squares import SumTree
from isotone.linear.noise import Geometric
from isotone.linear.strategy import Chains
from isotone.order import Poset
from isotone.privacy.adjacency import Neighbours
from isotone.privacy.checks import Number, truth, whole_number
from isotone.privacy.guarantee import Guarantee

__all__ = ["HierarchicalMechanism", "chains_of"]

_BRANCHINGS = (2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32)


@dataclass(frozen=True, init=False)
class HierarchicalMechanism(LinearCounts):
    """Counts over chains side by side, as running sums of trees whose nodes carry two-sided geometric noise.

    A record on a chain is named by its lowest yes, so the counts are running sums of a histogram, and a tree
    of partial sums (Hay, Rastogi, Miklau and Suciu 2010) is an alternative to noise on the histogram itself,
    which is what ``PosetMechanism`` adds on a chain. One record is in one node of each level. Several chains
    that are not related have a tree each, and a record is in all of them. The least-squares estimate from the
    noisy integer nodes is rounded; both are post-processing.

    ``branching`` is the number of children of a node, and ``root`` says whether the sum over a whole chain is measured
    too. None takes what has the least error, which depends only on the lengths of the chains and on the neighbours; with
    a branching of your own it means a root. A root is free if a record is replaced, and costs a level if one is added.

    Guarantee: epsilon-DP for ``neighbours`` (docs/theory/baselines.md, section 6).
    Error: exact, before rounding.

    >>> from isotone.order import Poset
    >>> m = HierarchicalMechanism(Poset.chain(range(1000)), epsilon=1)
    >>> m.branching, m.root, round(m.error().rmse, 1)
    (16, False, 10.9)
    """

    branching: int
    root: bool
    strategy: Chains = field(repr=False, compare=False)
    noise: Geometric

    def __init__(
        self,
        P: Poset,
        epsilon: Number,
        neighbours: Neighbours = "add-remove",
        contributions: int = 1,
        max_size: int | None = None,
        branching: int | None = None,
        root: bool | None = None,
    ) -> None:
        self._settle(P, Guarantee.pure(epsilon, neighbours=neighbours), contributions, max_size)
        chains = chains_of(P)
        if chains is None:
            raise InputError(
                "Hierarchical sums need a chain, or chains side by side, and this order branches. Use "
                "PosetMechanism, or let plan() choose."
            )
        lengths = tuple(len(chain) for chain in chains)
        # a node with one child would add nothing but noise
        roots = (True, False) if root is None else (truth(root, "root"),)
        chosen, measured = (
            _best_tree(lengths, self.unit.adjacency.exchanges, roots)
            if branching is None
            else (whole_number(branching, "branching", least=2), roots[0])
        )
        trees = tuple(SumTree(length, chosen, measured) for length in lengths)
        strategy = Chains(chains, trees, self.unit.adjacency.exchanges)
        rate = self.epsilon / (strategy.sensitivity * self.sensitivity.records)
        self._set(branching=chosen, root=measured, strategy=strategy, noise=Geometric(rate))

    @property
    def rate(self) -> Fraction:
        """Epsilon over the number of nodes one unit can change."""
        return self.noise.rate

    @property
    def whole_parts(self) -> float:
        """The variance of every node."""
        return self.noise.variance


def chains_of(P: Poset) -> tuple[NDArray[np.int64], ...] | None:
    """The positions of each chain, bottom up, if the order is chains side by side, or None if it branches."""
    lower, upper = P.cover_pairs.T
    if max(np.bincount(lower, minlength=1).max(), np.bincount(upper, minlength=1).max()) > 1:
        return None
    above = dict(zip(lower.tolist(), upper.tolist(), strict=True))
    number = P.canonical.back(np.arange(len(P)))  # so that the sequence of the chains is the order's own
    chains: list[list[int]] = []
    for bottom in sorted(set(range(len(P))) - set(upper.tolist()), key=lambda x: int(number[x])):
        chains.append([bottom])
        while chains[-1][-1] in above:
            chains[-1].append(above[chains[-1][-1]])
    return tuple(np.array(chain, np.int64) for chain in chains)


@lru_cache(maxsize=64)
def _best_tree(lengths: tuple[int, ...], exchanges: bool, roots: tuple[bool, ...]) -> tuple[int, bool]:
    """The branching, and whether with a root, of the least total error when the rate is small."""

    def total(shape: tuple[int, bool]) -> float:
        trees = [SumTree(length, *shape) for length in lengths]
        nodes = sum(tree.changed(exchanges) for tree in trees)
        return nodes**2 * sum(float(np.sum(tree.variances)) for tree in trees)

    return min(product(_BRANCHINGS, roots), key=total)
