"""Independent noise on the nodes of a hierarchy, then least squares, for zCDP and (ε, δ), and to compare with.

A record is in one node of each level. The noisy integers are all that is used after the draw: least squares, and the
rounding that makes integers add up, are post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotone.counts.caring import Care, care_of, care_weights
from isotone.counts.hierarchies.hierarchy_tree import require_hierarchy
from isotone.counts.hierarchies.node_shares import WORST_POWER, exact_shares, gaussian_shares, worst_weights
from isotone.counts.hierarchies.projection import AddsUp
from isotone.counts.hierarchies.stated_shares import replacing_cost, shares_by_element, shares_by_node
from isotone.counts.mechanisms.additive import LinearCounts
from isotone.counts.mechanisms.concentrated import gaussian_guarantee, gaussian_variance
from isotone.linear.least_squares import Hierarchy
from isotone.linear.noise import Gaussian, Geometric
from isotone.linear.strategy import MeasuredTree
from isotone.noise.simulate import Simulated
from isotone.order import Poset
from isotone.privacy.adjacency import Neighbours
from isotone.privacy.checks import Number
from isotone.privacy.draws import SeededDraws
from isotone.privacy.guarantee import Guarantee

__all__ = ["TreeGaussianMechanism", "TreeLaplaceMechanism"]


@dataclass(frozen=True, init=False)
class NodeMechanism(LinearCounts, AddsUp):
    """Noise of its own on each node that has a share, and the best estimate from all of them, in integers that add up."""

    care: str | dict[str, str]
    shares: dict[str, str]
    strategy: MeasuredTree = field(repr=False, compare=False)

    def _share(self, chosen: list[Fraction], care: str | dict[str, str], tree: Hierarchy) -> None:
        exchanges = self.unit.adjacency.exchanges
        cost = replacing_cost(tree, chosen) if exchanges else Fraction(1)
        self._set(strategy=MeasuredTree(tree, tuple(chosen), cost), tree=tree)
        self._set(care=care, shares=shares_by_element(self.P, tree, chosen))

    def simulate_released(self, size: int, rng: np.random.Generator) -> Simulated:
        """Simulate the whole numbers that a release adds to the counts, which add up."""
        rows = self.tree.leaves_of(np.asarray(self.simulate_independent(size, rng)))
        return Simulated.wrap(self.strategy.rounded(rows, SeededDraws(rng)).astype(float))

    def half_widths(self, confidence: float = 0.95) -> NDArray[np.float64]:
        """For each count alone, how far a release stays from the truth with at least the given probability.

        Rounding so that integers add up moves a count by a half at the top, and by at most 1 more a level.
        """
        return np.floor(self.unrounded_half_widths(confidence) + self.tree.depth[self.tree.node] + 0.5)

    def simultaneous_half_width(self, confidence: float = 0.95) -> float:
        """How far *all* released counts stay from the truth, at once, with at least the given probability."""
        depth = int(self.tree.depth[self.tree.node].max())
        return float(np.floor(self.unrounded_simultaneous_half_width(confidence) + depth + 0.5))

    @property
    def rounding(self) -> float:
        """Rounding so that integers add up moves a count by a half at the top, and by at most 1 more a level."""
        return 0.5 + int(self.tree.depth.max())

    @property
    def whole_parts(self) -> float:
        """The least variance of a measured node."""
        return self.noise.part(max(self.strategy.shares)).variance


@dataclass(frozen=True, init=False)
class TreeGaussianMechanism(NodeMechanism):
    """Counts of a hierarchy from Gaussian noise on its nodes and least squares, as integers that add up.

    Give ``epsilon`` and ``delta``, or ``rho``. A node with share s has noise of variance ``variance / s``, and the shares
    on the way to a leaf add up to 1 at most. ``care`` says which error is to be small: the shares are then within
    ``gap`` of the best for Gaussian noise on nodes. ``shares`` gives them by element instead.

    Guarantee: (epsilon, delta)-DP or rho-zCDP for ``neighbours`` (docs/theory/hierarchies.md, section 3).
    Error: exact, before rounding.

    >>> from isotone.order import Poset
    >>> T = Poset.from_mapping({"a": "all", "b": "all", "c": "all"}, children="partition")
    >>> m = TreeGaussianMechanism(T, rho="0.5")
    >>> m.release({"a": 5, "b": 3, "c": 0, "all": 8}).shape
    (4,)
    """

    noise: Gaussian
    gap: float = field(repr=False, compare=False)

    def __init__(
        self,
        P: Poset,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        neighbours: Neighbours = "add-remove",
        contributions: int = 1,
        max_size: int | None = None,
        care: Care = "nodes",
        shares: Mapping[Any, Any] | None = None,
    ) -> None:
        guarantee = gaussian_guarantee(epsilon, delta, rho, neighbours)
        self._settle(P, guarantee, contributions, max_size)
        tree, plain, gap = require_hierarchy(P), care_of(P, care), math.nan
        if shares is None:
            weights = np.bincount(tree.node, care_weights(P, plain), len(tree)).astype(np.float64)
            weights = worst_weights(tree, weights) if plain == "worst" else weights
            best = gaussian_shares(tree, weights, WORST_POWER if plain == "worst" else 1)
            chosen, gap = exact_shares(tree, best.shares), best.gap
        else:
            chosen = shares_by_node(P, tree, shares)
        self._share(chosen, plain, tree)
        variance = gaussian_variance(guarantee, self.strategy.sensitivity * self.unit.changes**2)
        self._set(noise=Gaussian(variance, guarantee.kind == "zcdp"), gap=gap)

    @property
    def variance(self) -> Fraction:
        """The variance of the noise on a node that has everything."""
        return self.noise.sigma2

    def unrounded_half_widths(self, confidence: float = 0.95) -> NDArray[np.float64]:
        """For each count alone, the half-width that its noise stays within, before rounding."""
        rounding = self.tree.depth[self.tree.node]  # by at most 1 a level, and 1/2 at the top
        return super().unrounded_half_widths(confidence) + rounding


@dataclass(frozen=True, init=False)
class TreeLaplaceMechanism(NodeMechanism):
    """Counts of a hierarchy from two-sided geometric noise on its nodes and least squares, as integers that add up.

    The usual way (Hay, Rastogi, Miklau and Suciu 2010), with as much for each level unless ``shares`` says otherwise.
    :class:`TreeFieldMechanism` was better in every case tried.

    Guarantee: epsilon-DP for ``neighbours`` (docs/theory/hierarchies.md, section 3).
    Error: exact, before rounding.

    >>> from isotone.order import Poset
    >>> T = Poset.from_mapping({"a": "all", "b": "all", "c": "all"}, children="partition")
    >>> TreeLaplaceMechanism(T, epsilon=1).shares["all"]
    '1/2'
    """

    noise: Geometric

    def __init__(
        self,
        P: Poset,
        epsilon: Number,
        neighbours: Neighbours = "add-remove",
        contributions: int = 1,
        max_size: int | None = None,
        shares: Mapping[Any, Any] | None = None,
    ) -> None:
        self._settle(P, Guarantee.pure(epsilon, neighbours=neighbours), contributions, max_size)
        tree = require_hierarchy(P)
        self._share(_level_shares(tree) if shares is None else shares_by_node(P, tree, shares), "nodes", tree)

        rate = self.epsilon / (self.strategy.sensitivity * self.unit.changes)
        self._set(noise=Geometric(rate, lazy=True))

    @property
    def rate(self) -> Fraction:
        """Epsilon over the records of a unit, and over what replacing one costs."""
        return self.noise.rate


def _level_shares(tree: Hierarchy) -> list[Fraction]:
    """As much for each level of the longest way, what is over for the leaves."""
    levels = len(tree.levels)
    return [
        1 - Fraction(depth, levels) if leaf else Fraction(1, levels)
        for depth, leaf in zip(tree.depth.tolist(), tree.leaf.tolist(), strict=True)
    ]
