"""Independent noise with one law for all counts, as the classical mechanisms add it."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from itertools import product

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isotone.counts.mechanism import ConcentratedMechanism, LinearCounts, PureMechanism, gaussian_variance
from isotone.counts.statistic import Counts, deviation
from isotone.errors import InputError
from isotone.linear.least_squares import SumTree
from isotone.linear.noise import DiscreteGaussian, Gaussian, Geometric, Laplace, Noise
from isotone.linear.strategy import Chains, Identity
from isotone.mechanism import Progress
from isotone.order import Poset
from isotone.privacy.adjacency import Neighbours
from isotone.privacy.calibration import largest_rho
from isotone.privacy.checks import Number, truth, whole_number
from isotone.privacy.guarantee import Guarantee

__all__ = [
    "DiscreteGaussianMechanism",
    "DiscreteLaplaceMechanism",
    "GaussianMechanism",
    "HierarchicalMechanism",
    "IndependentMechanism",
    "LaplaceMechanism",
    "chains_of",
]


_SMALLEST_RATE = Fraction(1, 2**44)


@dataclass(frozen=True, init=False)
class IndependentMechanism(LinearCounts):
    """Counts over ``P``, each with its own draw of one symmetric noise."""

    def _measure(self, noise: Noise) -> None:
        places = self.P.canonical.back(np.arange(len(self.P)))
        self._set(strategy=Identity(places, self.sensitivity.coordinates), noise=noise)

    def log_probability(self, output: ArrayLike, counts: Counts | None = None) -> NDArray[np.float64]:
        """The log probability of released integers given the counts (or of integer noise), one per row."""
        return self.noise.log_probability(deviation(self.P, output, counts))

    def probability(self, output: ArrayLike, counts: Counts | None = None) -> NDArray[np.float64]:
        """The probability of released integers given the counts (or of integer noise), one per row."""
        return np.exp(self.log_probability(output, counts))

    def release_rows(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Release the counts of each row, with noise of its own."""
        return self._release_at_once(rows)


@dataclass(frozen=True, init=False)
class LaplaceMechanism(PureMechanism, IndependentMechanism):
    """Counts with independent Laplace noise of scale ``sensitivity / epsilon``.

    What a user without the order would pick first.
    The ℓ1 sensitivity is the largest number of yeses in a record: ``max_size``, or the number of elements.
    The released integers are the exactly rounded sum of counts and real noise.

    Guarantee: epsilon-DP for ``neighbours`` (docs/theory/baselines.md, section 2).
    Error: 2·(sensitivity/epsilon)² for each count, before rounding.

    >>> from isotone.order import Poset
    >>> m = LaplaceMechanism(Poset.chain("ab"), epsilon=1)
    >>> m.error().variance
    array([8., 8.])
    """

    noise: Laplace

    def _prepare(self) -> None:
        self._measure(Laplace(self.epsilon / self.sensitivity.l1))
        if self.rate < _SMALLEST_RATE:
            raise InputError(
                f"Laplace noise on counts needs a rate of at least 2**-44, not {float(self.rate):g}: below that, sums "
                "may not fit 64 bits. Ask for a larger epsilon, or for fewer contributions."
            )

    @property
    def rate(self) -> Fraction:
        """The rate of the exponential tails, epsilon over the ℓ1 sensitivity."""
        return self.noise.rate

    def log_density(self, output: ArrayLike, counts: Counts | None = None) -> NDArray[np.float64]:
        """The log density of real outputs given the counts (or of noise), one per row."""
        return self.noise.log_density(deviation(self.P, output, counts))


@dataclass(frozen=True, init=False)
class DiscreteLaplaceMechanism(PureMechanism, IndependentMechanism):
    """Counts with independent integer noise of probability proportional to ``exp(-rate·|k|)``.

    ``rate`` is epsilon over the ℓ1 sensitivity: ``max_size``, or the number of elements, times
    ``contributions``. Integers from the start: nothing is rounded, and the error is a little below Laplace's.

    Guarantee: epsilon-DP for ``neighbours`` (docs/theory/baselines.md, section 2).
    Error: 2a/(1-a)² with a = exp(-rate) for each count, exactly that of a release.

    >>> from isotone.order import Poset
    >>> m = DiscreteLaplaceMechanism(Poset.chain("ab"), epsilon=1)
    >>> m.error().variance.round(4)
    array([7.8354, 7.8354])
    """

    noise: Geometric

    def _prepare(self) -> None:
        self._measure(Geometric(self.epsilon / self.sensitivity.l1))

    @property
    def rate(self) -> Fraction:
        """The rate of the geometric tails, epsilon over the ℓ1 sensitivity."""
        return self.noise.rate


@dataclass(frozen=True, init=False)
class GaussianMechanism(ConcentratedMechanism, IndependentMechanism):
    """Counts with independent Gaussian noise, exactly rounded to integers.

    Give ``epsilon`` and ``delta`` (the variance is then the smallest that gives that guarantee; Balle and Wang
    2018, rounded up), or ``rho`` for zero-concentrated privacy (the variance is ``l2² / 2 rho``). The squared
    ℓ2 sensitivity is the largest number of yeses in a record: ``max_size``, or the number of elements.

    Guarantee: (epsilon, delta)-DP or rho-zCDP for ``neighbours`` (docs/theory/baselines.md, section 4).
    Error: ``variance`` for each count, before rounding.

    >>> from isotone.order import Poset
    >>> GaussianMechanism(Poset.chain("ab"), rho="0.5").error().variance
    array([2., 2.])
    """

    noise: Gaussian

    def _prepare(self, progress: Progress) -> None:
        self._measure(Gaussian(gaussian_variance(self.guarantee, self.sensitivity.l2_squared)))

    @property
    def variance(self) -> Fraction:
        """The variance of the noise on each count."""
        return self.noise.sigma2

    def log_density(self, output: ArrayLike, counts: Counts | None = None) -> NDArray[np.float64]:
        """The log density of real outputs given the counts (or of noise), one per row."""
        return self.noise.log_density(deviation(self.P, output, counts))


@dataclass(frozen=True, init=False)
class DiscreteGaussianMechanism(ConcentratedMechanism, IndependentMechanism):
    """Counts with independent integer noise of probability proportional to ``exp(-k² / 2·parameter)``.

    Give ``rho``, which is its natural guarantee: ``parameter`` is then ``l2² / 2 rho``. With ``epsilon`` and
    ``delta`` the largest rho that implies them is used; :class:`GaussianMechanism` needs about 13 % less
    variance for the same (1, 1e-6), because it need not go through rho.

    Guarantee: rho-zCDP, or (epsilon, delta)-DP through it, for ``neighbours`` (Canonne, Kamath and Steinke
    2020; docs/theory/baselines.md, section 5).
    Error: the variance of the discrete Gaussian, exactly that of a release.

    >>> from isotone.order import Poset
    >>> DiscreteGaussianMechanism(Poset.chain("ab"), rho="0.5").error().variance
    array([2., 2.])
    """

    noise: DiscreteGaussian

    def _prepare(self, progress: Progress) -> None:
        guarantee = self.guarantee
        concentrated = (
            guarantee.rho if guarantee.kind == "zcdp" else largest_rho(guarantee.epsilon, guarantee.delta)
        )
        self._measure(DiscreteGaussian(self.sensitivity.l2_squared / (2 * concentrated)))

    @property
    def parameter(self) -> Fraction:
        """The parameter of the noise, which is its variance unless it is small."""
        return self.noise.sigma2


# Hierarchical sums on chains. The noise grows with the logarithm of their length.

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
