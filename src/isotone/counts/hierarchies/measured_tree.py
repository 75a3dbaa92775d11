"""Independent noise on the nodes of a hierarchy, then least squares, for zCDP and (ε, δ), and to compare with.

A record is in one node of each level. The noisy integers are all that is used after the draw: least squares, and the
rounding that makes integers add up, are post-processing.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotone.array_types import Floats, Ints
from isotone.counts.caring import Care, care_of, care_weights
from isotone.counts.hierarchies.hierarchy_tree import Hierarchy, require_hierarchy
from isotone.counts.hierarchies.node_shares import WORST_POWER, exact_shares, gaussian_shares, worst_weights
from isotone.counts.hierarchies.projection import AddsUp, round_tree
from isotone.counts.hierarchies.stated_shares import replacing_cost, shares_by_element, shares_by_node
from isotone.counts.hierarchies.tree_least_squares import TreeLeastSquares
from isotone.counts.mechanisms.concentrated import gaussian_guarantee, gaussian_variance, part_of_gaussian
from isotone.counts.statistic import Counts, check_counts
from isotone.mechanism import Error
from isotone.noise.simulate import Simulated
from isotone.order import Poset
from isotone.privacy.adjacency import Neighbours
from isotone.privacy.checks import Number, confidence_level
from isotone.privacy.draws import Draws, ExactDraws, SeededDraws, require_exact
from isotone.privacy.guarantee import Guarantee

__all__ = ["TreeGaussianMechanism", "TreeLaplaceMechanism"]

_CHUNK = 1 << 22


@dataclass(frozen=True, init=False)
class MeasuredTree(AddsUp):
    """Noise of its own on each node that has a share, and the best estimate from all of them, in integers that add up."""

    care: str | dict[str, str]
    shares: dict[str, str]
    tree: Hierarchy = field(repr=False, compare=False)
    node_shares: tuple[Fraction, ...] = field(repr=False, compare=False)

    def _share(self, chosen: list[Fraction], care: str | dict[str, str], tree: Hierarchy) -> None:
        self._set(care=care, tree=tree, node_shares=tuple(chosen))
        self._set(shares=shares_by_element(self.P, tree, chosen))

    @property
    def cost(self) -> Fraction:
        """How far one record can move the nodes, in the norm of the shares, under the neighbours."""
        exchanges = self.unit.adjacency.exchanges
        return replacing_cost(self.tree, list(self.node_shares)) if exchanges else Fraction(1)

    @abstractmethod
    def _variance_of(self, share: Fraction) -> float:
        """The variance of the noise on a node with this share."""

    @abstractmethod
    def _draw_integers(self, share: Fraction, size: int, draws: Draws) -> Ints:
        """Exact integer noise for nodes with this share."""

    @abstractmethod
    def _draw_floats(self, share: Fraction, size: int, rng: np.random.Generator) -> Floats:
        """Seeded noise for nodes with this share, for planning."""

    @cached_property
    def _by_share(self) -> dict[Fraction, Ints]:
        """The nodes of each share above 0."""
        nodes: dict[Fraction, list[int]] = {}
        for x, share in enumerate(self.node_shares):
            if share:
                nodes.setdefault(share, []).append(x)
        return {share: np.array(places, np.int64) for share, places in nodes.items()}

    @cached_property
    def fit(self) -> TreeLeastSquares:
        """The least squares of the noisy nodes."""
        precision = np.zeros(len(self.tree))
        for share, nodes in self._by_share.items():
            precision[nodes] = 1 / self._variance_of(share)
        return TreeLeastSquares.of(self.tree, precision)

    def error(self) -> Error:
        """The exact variance of each least-squares count, before rounding to integers."""
        return Error(self.fit.variance[self.tree.node])

    def simulate(self, size: int, rng: np.random.Generator) -> Simulated:
        """Simulate ``size`` float draws of the noise, one per row, for planning only, as they are not private."""
        result = np.empty((size, len(self.P)))
        step = max(1, _CHUNK // len(self.tree))
        for start in range(0, size, step):
            rows = min(step, size - start)
            measured = np.zeros((rows, len(self.tree)))
            for share, nodes in self._by_share.items():
                drawn = self._draw_floats(share, rows * nodes.size, rng)
                measured[:, nodes] = np.asarray(drawn).reshape(rows, -1)
            result[start : start + rows] = self.fit.estimate(measured)[:, self.tree.node]
        return Simulated.wrap(result)

    def simulate_released(self, size: int, rng: np.random.Generator) -> Simulated:
        """Simulate the whole numbers that a release adds to the counts, which add up."""
        rows = self.tree.leaves_of(np.asarray(self.simulate_independent(size, rng)))
        ties = SeededDraws(rng).words
        rounded = [round_tree(self.tree, row, ties(row.size))[self.tree.node] for row in rows]
        return Simulated.wrap(np.array(rounded, dtype=float).reshape(size, len(self.P)))

    def half_widths(self, confidence: float = 0.95) -> NDArray[np.float64]:
        """For each count alone, how far a release stays from the truth with at least the given probability.

        Rounding so that integers add up moves a count by a half at the top, and by at most 1 more a level.
        """
        return np.floor(self.unrounded_half_widths(confidence) + self.tree.depth[self.tree.node] + 0.5)

    def simultaneous_half_width(self, confidence: float = 0.95) -> float:
        """How far *all* released counts stay from the truth, at once, with at least the given probability."""
        depth = int(self.tree.depth[self.tree.node].max())
        return float(np.floor(self.unrounded_simultaneous_half_width(confidence) + depth + 0.5))

    def release(self, counts: Counts) -> NDArray[np.int64]:
        """Release the noisy counts as integers that add up.

        Exactly private, from cryptographic bits: noise is added to integers, and what follows is a function of the
        noisy integers alone.
        """
        return self._estimated(check_counts(self.P, counts), require_exact(ExactDraws()))

    def _estimated(self, counts: Ints, draws: Draws) -> Ints:
        """Integers that add up, from the counts of the nodes with noise."""
        noisy = self.tree.sums(self.tree.leaves_of(counts))
        for share, nodes in self._by_share.items():
            noisy[nodes] += self._draw_integers(share, nodes.size, draws)
        measured = np.array([bool(share) for share in self.node_shares])
        estimate = self.fit.estimate(np.where(measured, noisy, 0).astype(float))
        return round_tree(self.tree, estimate, draws.words(len(self.tree)))[self.tree.node]

    @property
    def rounding(self) -> float:
        """Rounding so that integers add up moves a count by a half at the top, and by at most 1 more a level."""
        return 0.5 + int(self.tree.depth.max())

    @property
    def whole_parts(self) -> float:
        """The least variance of a measured node."""
        return self._variance_of(max(self.node_shares))

    def _integer_noise(self, draws: ExactDraws) -> NDArray[np.int64]:
        return self._estimated(np.zeros(len(self.P), dtype=np.int64), draws)


@dataclass(frozen=True, init=False)
class TreeGaussianMechanism(MeasuredTree):
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

    variance: Fraction
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
        self._set(variance=gaussian_variance(guarantee, self.cost * self.unit.changes**2), gap=gap)

    def part(self, share: Fraction) -> TreeGaussianMechanism:
        """One of several draws from the same records, with the variance of the noise divided by its share."""
        made = self._copy()
        made._set(guarantee=part_of_gaussian(self.guarantee, share), variance=self.variance / share)
        return made

    def _variance_of(self, share: Fraction) -> float:
        return float(self.variance / share)

    def _draw_integers(self, share: Fraction, size: int, draws: Draws) -> Ints:
        draw = draws.discrete_gaussians if self.guarantee.kind == "zcdp" else draws.rounded_gaussians
        return draw(self.variance / share, size)

    def _draw_floats(self, share: Fraction, size: int, rng: np.random.Generator) -> Floats:
        return rng.normal(scale=math.sqrt(self.variance / share), size=size)

    def _quantiles(self, p: NDArray[np.float64]) -> NDArray[np.float64]:
        from scipy.special import ndtri

        return ndtri(p)[:, None] * self.error().sd

    def unrounded_half_widths(self, confidence: float = 0.95) -> NDArray[np.float64]:
        """For each count alone, the half-width that its noise stays within, before rounding."""
        from scipy.special import ndtri

        rounding = self.tree.depth[self.tree.node]  # by at most 1 a level, and 1/2 at the top
        return float(ndtri((1 + confidence_level(confidence)) / 2)) * self.error().sd + rounding


@dataclass(frozen=True, init=False)
class TreeLaplaceMechanism(MeasuredTree):
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

    @property
    def rate(self) -> Fraction:
        """Epsilon over the records of a unit, and over what replacing one costs."""
        return self.epsilon / (self.cost * self.unit.changes)

    def _variance_of(self, share: Fraction) -> float:
        return 0.5 / math.sinh(min(float(self.rate * share), 700.0) / 2) ** 2

    def _draw_integers(self, share: Fraction, size: int, draws: Draws) -> Ints:
        return draws.lazy_geometrics(self.rate * share, size)

    def _draw_floats(self, share: Fraction, size: int, rng: np.random.Generator) -> Floats:
        return SeededDraws(rng).lazy_geometrics(self.rate * share, size).astype(float)


def _level_shares(tree: Hierarchy) -> list[Fraction]:
    """As much for each level of the longest way, what is over for the leaves."""
    levels = len(tree.levels)
    return [
        1 - Fraction(depth, levels) if leaf else Fraction(1, levels)
        for depth, leaf in zip(tree.depth.tolist(), tree.leaf.tolist(), strict=True)
    ]
