"""Hierarchical sums on a chain.

The noise grows with the logarithm of its length.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from isotone import noise
from isotone.counts.mechanisms.additive import AdditiveMechanism
from isotone.counts.mechanisms.sum_tree import SumTree
from isotone.counts.statistic import Counts, check_counts
from isotone.errors import InputError
from isotone.mechanism import Error
from isotone.noise.simulated import Simulated
from isotone.privacy.adjacency import Neighbours
from isotone.privacy.checks import Number, whole_number
from isotone.privacy.guarantee import Guarantee

if TYPE_CHECKING:
    from isotone.order import Poset

__all__ = ["HierarchicalMechanism"]

_BRANCHINGS = (2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32)


@dataclass(frozen=True, init=False)
class HierarchicalMechanism(AdditiveMechanism):
    """Counts over a chain, as running sums of a tree whose nodes carry two-sided geometric noise.

    A record on a chain is named by its lowest yes, so the counts are running sums of a histogram, and a tree
    of partial sums (Hay, Rastogi, Miklau and Suciu 2010) is an alternative to noise on the histogram itself,
    which is what ``PosetMechanism`` adds on a chain. One record is in one node of each level. The
    least-squares estimate from the noisy integer nodes is rounded; both are post-processing.

    ``branching`` is the number of children of a node; None takes the one with the least error, which depends
    only on the length of the chain.

    Guarantee: epsilon-DP for ``neighbours`` (docs/theory/baselines.md, section 6).
    Error: exact, before rounding.

    >>> from isotone.order import Poset
    >>> m = HierarchicalMechanism(Poset.chain(range(1000)), epsilon=1)
    >>> m.branching, round(m.error().rmse, 1)
    (10, 12.2)
    """

    branching: int

    def __init__(
        self,
        P: Poset,
        epsilon: Number,
        neighbours: Neighbours = "add-remove",
        contributions: int = 1,
        max_size: int | None = None,
        branching: int | None = None,
    ) -> None:
        self._settle(P, Guarantee.pure(epsilon, neighbours=neighbours), contributions, max_size)
        if P.height < len(P):
            raise InputError(
                "Hierarchical sums need a chain, and this order has elements that are not related. Use "
                "PosetMechanism, or let plan() choose."
            )
        # a node with one child would add nothing but noise
        chosen = (
            _best_branching(len(P)) if branching is None else whole_number(branching, "branching", least=2)
        )
        self._set(branching=chosen)

    @property
    def tree(self) -> SumTree:
        """The tree of sums over the chain, lowest element first."""
        return SumTree(len(self.P), self.branching)

    @property
    def rate(self) -> Fraction:
        """Epsilon over the number of nodes one unit can change."""
        levels = len(self.tree.lengths)
        # replacing a record changes two nodes a level but one root, or adds and removes it altogether
        nodes = max(levels, 2 * (levels - 1)) if self.unit.adjacency.exchanges else levels
        return self.epsilon / (nodes * self.sensitivity.records)

    def error(self) -> Error:
        """The exact variance of each least-squares running sum."""
        variance = np.empty(len(self.P))
        variance[self.P.linear_order] = self.tree.variances * self._node_variance
        return Error(variance)

    def simulate(self, size: int, rng: np.random.Generator) -> Simulated:
        """Simulate ``size`` float draws of the noise, one per row.

        They are not private and serve planning only.
        """
        tree, draw = self.tree, noise.simulate.two_sided_geometrics
        nodes = [np.asarray(draw(rng, self.rate, (size, length)), dtype=float) for length in tree.lengths]
        draws = np.empty((size, len(self.P)))
        draws[:, self.P.linear_order] = tree.running_sums(nodes)
        return Simulated.wrap(draws)

    def release(self, counts: Counts) -> NDArray[np.int64]:
        """Release the noisy counts as integers.

        Exactly private, from cryptographic bits.

        Noise is added to integer sums; the estimate is a function of the noisy sums alone, so that no
        rounding in floating point can touch the guarantee.
        """
        order, tree = self.P.linear_order, self.tree
        cells = np.diff(check_counts(self.P, counts)[order], prepend=0)
        draws = noise.two_sided_geometrics(self.rate, sum(tree.lengths))
        parts = np.split(draws, np.cumsum(tree.lengths)[:-1])
        noisy = [(exact + part).astype(float) for exact, part in zip(tree.sums(cells), parts, strict=True)]
        released = np.empty(len(self.P), dtype=np.int64)
        released[order] = np.rint(tree.running_sums(noisy))
        return released

    @property
    def _node_variance(self) -> float:
        return 0.5 / np.sinh(min(float(self.rate), 700.0) / 2) ** 2

    def _integer_noise(self) -> NDArray[np.int64]:
        return self.release(np.zeros(len(self.P), dtype=np.int64))


@lru_cache(maxsize=64)
def _best_branching(cells: int) -> int:
    """The branching with the least total error when the rate is small."""

    def total(branching: int) -> float:
        tree = SumTree(cells, branching)
        return len(tree.lengths) ** 2 * float(np.sum(tree.variances))

    return min(_BRANCHINGS, key=total)
