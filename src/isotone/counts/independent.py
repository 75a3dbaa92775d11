"""Laplace and Gaussian noise on every count, sums along chains, and noise shaped by the order and by the size of records."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import product

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isotone.array_types import Floats, Ints
from isotone.counts.knorm import PosetMechanism
from isotone.counts.mechanism import (
    ConcentratedMechanism,
    Counts,
    LinearCounts,
    PureMechanism,
    deviation,
    gaussian_variance,
    largest_record,
)
from isotone.counts.relaxation import Relaxation
from isotone.counts.sampler import RARE, Simulate, norms, sampler
from isotone.errors import InputError
from isotone.linear.least_squares import SumTree
from isotone.linear.strategy import Chains, DiscreteGaussian, Gaussian, Geometric, Identity, Laplace, Noise
from isotone.mechanism import Error, Progress
from isotone.noise.exponential import first_places
from isotone.order import Poset
from isotone.order.closure import Coding
from isotone.privacy.calibration import largest_rho
from isotone.privacy.checks import Number, truth, whole_number
from isotone.privacy.draws import ExactDraws
from isotone.privacy.guarantee import Guarantee, Neighbours

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

    def _prepare(self) -> None:
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

    def _prepare(self) -> None:
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


# Noise shaped by the order and by the size of the records at once.

LEAST_ACCEPTANCE = 1e-3
"""A mechanism that keeps fewer of its draws is refused: a release would take seconds."""

KEPT, LARGEST = 4_000, 1 << 19
"""The acceptance and the error are estimated from so many kept draws, or from so many draws."""


class TooFewDrawsError(InputError):
    """Rejection would keep too few draws. The order and the bound alone decide that."""


@dataclass(frozen=True, init=False)
class BoundedPosetMechanism(PosetMechanism):
    """Counts of records with at most ``max_size`` yeses, with noise shaped by the order and by that bound.

    The noise has density proportional to ``exp(-rate · norm(noise))``, where the norm is the larger of
    :class:`PosetMechanism`'s and of the ℓ1 norm over ``max_size``: no record moves the counts by more than 1
    in it. It is drawn as PosetMechanism's noise y, kept with probability ``exp(-rate · (norm(y) - its norm))``;
    ``acceptance`` is the estimated share that is kept. Between a few yeses, where Laplace noise is better, and
    about half the elements, where the bound no longer matters, it is the best of the three.

    Guarantee: epsilon-DP for ``neighbours``, for records that are cut to ``max_size`` by ``cut``
    (docs/theory/counts.md, section 10).
    Error: simulated, with its standard error.

    >>> from isotone.order import Poset
    >>> m = BoundedPosetMechanism(Poset.antichain("abcdef"), epsilon=1, max_size=2)
    >>> float(m.norm([1, 1, 0, 0, 0, 0])), float(m.norm([1, 1, 1, 1, 0, 0]))
    (1.0, 2.0)
    """

    acceptance: float = field(compare=False)
    _at_rate_one: Error = field(repr=False, compare=False)

    def _prepare(self, relaxation: Relaxation | None, progress: Progress) -> None:
        if self.max_size is None:
            raise InputError("A bounded mechanism needs max_size: the largest number of yeses in a record.")
        self._set(sampler=sampler(self._coded.canonical.order, relaxation, progress, share=RARE))
        acceptance, squares = self._estimate()
        if acceptance < LEAST_ACCEPTANCE:
            raise TooFewDrawsError(
                f"With max_size = {self.max_size} fewer than one in {1 / LEAST_ACCEPTANCE:.0f} draws would be kept. "
                "Use LaplaceMechanism with this max_size: for such short records it is better."
            )
        self._set(acceptance=acceptance, _at_rate_one=squares)

    @property
    def largest(self) -> int:
        """The size of the largest record. ``max_size``, or that of all records if it is less."""
        longest = largest_record(self.P)
        return longest if self.max_size is None else min(self.max_size, longest)

    def norm(self, y: ArrayLike) -> Floats:
        """The larger of the order's norm and of the ℓ1 norm over ``max_size``, of each row."""
        rows = deviation(self.P, y, None)
        return np.maximum(super().norm(rows), np.sum(np.abs(rows), axis=-1) / self.largest)

    def log_density(self, output: ArrayLike, counts: Counts | None = None) -> Floats:
        """The log density of real outputs given the counts (or of noise), up to an estimated constant."""
        return super().log_density(output, counts) - math.log(self.acceptance)

    def error(self) -> Error:
        """The variance of the noise on each count, before rounding.

        It is simulated, and has a standard error.
        """
        return self._in_given_sequence(self._at_rate_one)

    def _counts(self, noise: Floats) -> Floats:
        """Noise of the coded order as noise on the counts, in their canonical sequence. Sums of floats depend on it."""
        return self.P.canonical.forth(self._back(noise))

    @cached_property
    def _covariances(self) -> tuple[Floats, float]:
        return self._simulated_covariances()

    def _simulate(self, size: int, rng: np.random.Generator, draw: Simulate) -> Floats:
        rows, result = np.empty((size, len(self._coded))), 0
        while result < size:
            noise_, kept = self._propose(min(int((size - result) / self.acceptance) + 16, 1 << 16), rng, draw)
            new = noise_[rng.random(kept.size) < kept][: size - result]
            rows[result : result + len(new)] = new
            result += len(new)
        return rows

    def _propose(self, size: int, rng: np.random.Generator, draw: Simulate) -> tuple[Floats, Floats]:
        """Noise of the order alone, canonical and at rate 1, and the probability with which each row is kept."""
        y = super()._simulate(size, rng, draw)
        excess = np.sum(np.abs(self._counts(y)), axis=1) / self.largest - norms(self.sampler.order, y)
        return y, np.exp(-np.maximum(excess, 0.0))

    def _estimate(self) -> tuple[float, Error]:
        """The acceptance, and the expected squares at rate 1 as weighted means with their standard errors."""
        rng, n = np.random.default_rng(0), len(self.P)
        draws, weight, squared, sums = 0, 0.0, 0.0, np.zeros((3, n))
        while weight < KEPT and draws < LARGEST and weight >= draws * LEAST_ACCEPTANCE / 4:
            y, kept = self._propose(1 << 14, rng, self.sampler.simulate)
            draws, weight, squared = draws + len(y), weight + kept.sum(), squared + np.sum(kept**2)
            square = self._counts(y) ** 2
            sums += [kept @ square, kept**2 @ square, kept**2 @ square**2]
        if weight == 0.0:  # not one draw was kept: plans leave such a mechanism out
            return 0.0, Error(np.full(n, np.inf), "simulated", np.full(n, np.inf))
        mean = sums[0] / weight
        spread = sums[2] - 2 * mean * sums[1] + mean**2 * squared
        return float(weight / draws), Error(mean, "simulated", np.sqrt(np.maximum(spread, 0.0)) / weight)

    def _integer_noise(self, draws: ExactDraws) -> Ints:
        while True:
            plus, minus, a = self._steps(draws)
            attempt = _LazyDraw(self.rate, plus, minus, a, draws)
            if draws.lazy_coin(attempt.excesses(self.largest, self.P.coding if self.P.choices else None)):
                return self._decoded(attempt.rounded())

    def _integer_noises(self, size: int, draws: ExactDraws) -> Ints:
        return np.array([self._integer_noise(draws) for _ in range(size)]).reshape(size, len(self.P))

    @property
    def has_total(self) -> bool:
        """The number of records is not free here."""
        return False

    def release_with_total(self, counts: Counts, records: int) -> tuple[Ints, int]:
        """Raise an error, since the number of records is not free here.

        Its noise would change that of the counts.
        """
        raise InputError(
            "BoundedPosetMechanism releases no total. Use PosetMechanism, or release the number of records apart."
        )


class _LazyDraw:
    """One draw of the order's noise, known to as many binary places as were needed so far."""

    def __init__(self, rate: Fraction, plus: Ints, minus: Ints, a: int, draws: ExactDraws) -> None:
        self.plus, self.minus = plus.tolist(), minus.tolist()
        self.a, self.b = a, len(self.plus) - a
        places = first_places(rate, len(self.plus), len(self.plus))
        self.up, self.down = (draws.exponentials(rate, size, places) for size in (self.a, self.b))

    def excesses(self, largest: int, coding: Coding | None) -> Iterator[tuple[Fraction, Fraction]]:
        """Ever closer bounds of ``rate · max(0, l1 norm / largest - norm)``.

        The norm is the sum of all steps. With a coding the ℓ1 norm is that of differences of running totals.
        """
        while True:
            norm = self.up.partial_sum(self.a) + self.down.partial_sum(self.b)
            bounds = [_magnitude(low, high) for low, high in _differences(self._coordinates(), coding)]
            unit = self.up.rate / 2**self.up.places
            low = Fraction(sum(low for low, _ in bounds), largest) - norm - self.a - self.b
            high = Fraction(sum(high for _, high in bounds), largest) - norm
            yield unit * max(low, 0), unit * max(high, 0)
            self._read_on()

    def rounded(self) -> Ints:
        """The noise, rounded to integers."""
        while True:
            half, places = 1 << (self.up.places - 1), self.up.places
            ends = [((low + half) >> places, (high + half) >> places) for low, high in self._coordinates()]
            if all(low == high for low, high in ends):
                return np.array([low for low, _ in ends], dtype=np.int64)
            self._read_on()

    def _read_on(self) -> None:
        self.up.read_on()
        self.down.read_on()

    def _coordinates(self) -> list[tuple[int, int]]:
        """Bounds of each coordinate in units of the last place read.

        A sum of m steps is known to m units.
        """
        ups = [self.up.partial_sum(m) for m in range(self.a + 1)]
        downs = [self.down.partial_sum(m) for m in range(self.b + 1)]
        pairs = zip(self.plus, self.minus, strict=True)
        return [(ups[p] - downs[q] - q, ups[p] - downs[q] + p) for p, q in pairs]


def _differences(totals: list[tuple[int, int]], coding: Coding | None) -> list[tuple[int, int]]:
    """Bounds of the counts, given those of running totals."""
    if coding is None:
        return totals
    result: list[tuple[int, int]] = []
    for target, before in zip(coding.target.tolist(), coding.before.tolist(), strict=True):
        low, high = totals[target]
        less, more = totals[before] if before >= 0 else (0, 0)
        result.append((low - more, high - less))
    return result


def _magnitude(low: int, high: int) -> tuple[int, int]:
    """Bounds of the absolute value of a number between ``low`` and ``high``."""
    if low >= 0:
        return low, high
    return (-high, -low) if high <= 0 else (0, max(-low, high))
