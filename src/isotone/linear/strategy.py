"""Laws of independent noise, and strategies: what is measured of some counts, and how estimates follow.

The laws of independent noise, of which a mechanism draws one number for each measured sum.

Each draws exactly, as integers, for releases; simulates floats for plans; and knows its variance and its quantiles.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from isotone import noise
from isotone.array_types import Floats, Ints
from isotone.linear.least_squares import Hierarchy, SumTree, TreeLeastSquares, round_tree
from isotone.privacy.draws import Draws, ExactDraws

_WIDE = 10.0
"""From this standard deviation on, the discrete Gaussian is a rounded Gaussian to about four digits."""

_LARGEST_RATE = 700.0

_BLOCK = 1 << 18
"""Numbers that are rounded at once."""


@dataclass(frozen=True)
class Noise(ABC):
    """One symmetric law. ``rounding`` is how far rounding to integers moves a number, 0 for laws on integers."""

    rounding: ClassVar[float] = 0.5
    normal: ClassVar[bool] = False
    """Whether weighted sums of such numbers are Gaussian."""

    @property
    @abstractmethod
    def variance(self) -> float:
        """The variance, before rounding."""

    @abstractmethod
    def part(self, share: Fraction) -> Self:
        """The noise of a number that has this share of the budget."""

    @abstractmethod
    def integers(self, draws: Draws, size: int) -> Ints:
        """Exact draws, as integers."""

    @abstractmethod
    def floats(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
        """Seeded draws before rounding, for planning."""

    @abstractmethod
    def upper_quantile(self, tail: float) -> float:
        """The smallest h such that a number is above h with probability at most ``tail`` (below 1/2)."""

    @abstractmethod
    def log_probability(self, k: Floats) -> Floats:
        """The log probability of integers, summed over the last axis."""


@dataclass(frozen=True)
class Laplace(Noise):
    """Density proportional to ``exp(-rate·|y|)``, exactly rounded. A share is one of the rate."""

    rate: Fraction

    @property
    def variance(self) -> float:
        """Twice the squared scale."""
        return float(2 / self.rate**2)

    def part(self, share: Fraction) -> Self:
        """A share of the rate."""
        return replace(self, rate=self.rate * share)

    def integers(self, draws: Draws, size: int) -> Ints:
        """Exactly rounded."""
        assert isinstance(draws, ExactDraws)
        return draws.rounded_laplaces(self.rate, size)

    def floats(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
        """Before rounding."""
        return rng.laplace(scale=float(1 / self.rate), size=shape)

    def upper_quantile(self, tail: float) -> float:
        """Of the real number."""
        return -math.log(2 * tail) / float(self.rate)

    def log_density(self, y: Floats) -> Floats:
        """The log density, summed over the last axis."""
        rate = float(self.rate)
        return y.shape[-1] * math.log(rate / 2) - rate * np.sum(np.abs(y), axis=-1)

    def log_probability(self, k: Floats) -> Floats:
        """That of the rounded number."""
        k, rate = np.abs(k), float(self.rate)
        at_zero = math.log(-math.expm1(-rate / 2))
        elsewhere = math.log(-math.expm1(-rate) / 2) - rate * (k - 0.5)
        return np.sum(np.where(k == 0, at_zero, elsewhere), axis=-1)


@dataclass(frozen=True)
class Geometric(Noise):
    """Integers with probability proportional to ``exp(-rate·|k|)``. A share is one of the rate.

    ``lazy`` draws by code that prepares nothing, for many different rates.
    """

    rounding: ClassVar[float] = 0.0

    rate: Fraction
    lazy: bool = False

    @property
    def variance(self) -> float:
        """``2a/(1-a)²`` with ``a = exp(-rate)``."""
        return 0.5 / math.sinh(min(float(self.rate), _LARGEST_RATE) / 2) ** 2

    def part(self, share: Fraction) -> Self:
        """A share of the rate."""
        return replace(self, rate=self.rate * share)

    def integers(self, draws: Draws, size: int) -> Ints:
        """Two-sided geometric numbers."""
        return (draws.lazy_geometrics if self.lazy else draws.geometrics)(self.rate, size)

    def floats(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
        """The same integers."""
        return np.asarray(noise.simulate.two_sided_geometrics(rng, self.rate, shape), dtype=np.float64)

    def upper_quantile(self, tail: float) -> float:
        """A whole number."""
        rate = float(self.rate)  # above h with probability exp(-rate·(h + 1)) / (1 + exp(-rate))
        return max(0.0, math.ceil(-(math.log(tail) + math.log1p(math.exp(-rate))) / rate - 1))

    def log_probability(self, k: Floats) -> Floats:
        """The normalised weight."""
        rate = float(self.rate)
        return k.shape[-1] * math.log(math.tanh(rate / 2)) - rate * np.sum(np.abs(k), axis=-1)


@dataclass(frozen=True)
class Gaussian(Noise):
    """Gaussian noise, exactly rounded, or drawn as a discrete Gaussian. A share divides the variance.

    A ``discrete`` one has the laws of a Gaussian of the same variance nearly, and is stated as that.
    """

    normal: ClassVar[bool] = True

    sigma2: Fraction
    discrete: bool = False

    @property
    def variance(self) -> float:
        """The variance as a float."""
        return float(self.sigma2)

    def part(self, share: Fraction) -> Self:
        """The variance over the share."""
        return replace(self, sigma2=self.sigma2 / share)

    def integers(self, draws: Draws, size: int) -> Ints:
        """Rounded or discrete."""
        return (draws.discrete_gaussians if self.discrete else draws.rounded_gaussians)(self.sigma2, size)

    def floats(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
        """Before rounding."""
        return rng.normal(scale=math.sqrt(self.sigma2), size=shape)

    def upper_quantile(self, tail: float) -> float:
        """Of the real number."""
        from scipy.special import ndtri

        return -math.sqrt(self.sigma2) * float(ndtri(tail))

    def log_density(self, y: Floats) -> Floats:
        """The log density, summed over the last axis."""
        variance = float(self.sigma2)
        return -np.sum(y**2, axis=-1) / (2 * variance) - y.shape[-1] / 2 * math.log(2 * math.pi * variance)

    def log_probability(self, k: Floats) -> Floats:
        """That of the rounded number."""
        from scipy.special import log_ndtr

        k, sd = np.abs(k), math.sqrt(self.sigma2)
        upper, lower = log_ndtr((0.5 - k) / sd), log_ndtr((-0.5 - k) / sd)
        return np.sum(upper + np.log(-np.expm1(lower - upper)), axis=-1)


@dataclass(frozen=True)
class DiscreteGaussian(Noise):
    """Integers with probability proportional to ``exp(-k² / 2·sigma2)``. A share divides ``sigma2``."""

    rounding: ClassVar[float] = 0.0

    sigma2: Fraction

    @property
    def variance(self) -> float:
        """The variance of the integers, which is ``sigma2`` unless that is small."""
        if self.sigma2 >= 4:  # the difference is below 1e-30
            return float(self.sigma2)
        k, law = self._law()
        return float(2 * np.sum(k**2 * law))

    def part(self, share: Fraction) -> Self:
        """The variance over the share."""
        return replace(self, sigma2=self.sigma2 / share)

    def integers(self, draws: Draws, size: int) -> Ints:
        """Discrete Gaussians."""
        return draws.discrete_gaussians(self.sigma2, size)

    def floats(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
        """The same integers."""
        return noise.simulate.discrete_gaussians(rng, self.sigma2, shape).astype(float)

    def upper_quantile(self, tail: float) -> float:
        """A whole number."""
        from scipy.special import ndtri

        sd = math.sqrt(self.sigma2)
        if sd >= _WIDE:
            return max(0.0, math.ceil(-sd * float(ndtri(tail)) - 0.5))
        k, law = self._law()
        above = np.cumsum(law[::-1])[::-1] - law  # summed from the small end: tails keep their digits
        return float(k[np.argmax(above <= tail)])

    def log_probability(self, k: Floats) -> Floats:
        """The normalised weight."""
        return -np.sum(k**2, axis=-1) / (2 * float(self.sigma2)) - k.shape[-1] * self._log_total()

    def _log_total(self) -> float:
        """The logarithm of the sum of exp(-k² / 2·sigma2) over all integers k."""
        sigma2 = float(self.sigma2)
        if sigma2 >= 1:  # Poisson summation: the second term of the transformed sum is below 1e-8
            dual = 2 * sum(math.exp(-2 * sigma2 * (math.pi * m) ** 2) for m in range(1, 4))
            return 0.5 * math.log(2 * math.pi * sigma2) + math.log1p(dual)
        return math.log1p(2 * sum(math.exp(-(k**2) / (2 * sigma2)) for k in range(1, 12)))

    def _law(self) -> tuple[Floats, Floats]:
        """The values 0, 1, 2, … and their probabilities, as far as floating point can tell."""
        k = np.arange(math.ceil(40 * math.sqrt(self.sigma2)) + 2, dtype=float)
        return k, np.exp(-(k**2) / (2 * float(self.sigma2)) - self._log_total())


# Strategies, which say what is measured, how estimates follow, and how far one record moves what is measured.
#
# A strategy is a matrix A with integer entries. ``A·counts`` is measured with independent noise, and the counts are
# estimated by least squares; both what is rounded and what is estimated are functions of the noisy integers alone, so that
# no floating point touches the guarantee. Each measured sum has a share of the budget.

Blocks = list[tuple[Fraction, Ints]]
"""Shares of the budget, each with the rows that have it."""

_LARGEST_SUM = 2.0**61


class Strategy(ABC):
    """What is measured about some counts.

    ``sensitivity`` is how far one record moves the measured sums, each weighted by its share: in the ℓ1 norm for noise
    whose rate is shared, in the squared ℓ2 norm for Gaussian noise.
    """

    @property
    @abstractmethod
    def size(self) -> int:
        """How many numbers are estimated."""

    @property
    @abstractmethod
    def rows(self) -> int:
        """How many sums are measured."""

    @property
    def blocks(self) -> Blocks:
        """The shares of the rows, in the sequence in which noise is drawn. By default all rows have everything."""
        return [(Fraction(1), np.arange(self.rows))]

    @property
    @abstractmethod
    def sensitivity(self) -> Fraction | int:
        """How far one record moves the measured sums."""

    @abstractmethod
    def estimate(self, measured: Floats, noise: Noise) -> Floats:
        """The least-squares estimate of all numbers (last axis) from the measured sums (last axis)."""

    @abstractmethod
    def variances(self, noise: Noise) -> Floats:
        """The variance of each estimate, before rounding."""

    def covariance(self, noise: Noise) -> Floats | None:
        """The covariance of the estimates, or None where it is simulated."""
        return None

    @abstractmethod
    def released(self, rows: Ints, drawn: Ints, noise: Noise, draws: Draws) -> Ints:
        """Whole numbers from counts and the noise drawn for the sums measured of them, a row each."""

    def simulated(self, size: int, noise: Noise, rng: np.random.Generator) -> Floats:
        """``size`` draws of the noise on the measured sums, one per row."""
        measured = np.zeros((size, self.rows))
        for share, rows in self.blocks:
            measured[:, rows] = noise.part(share).floats(rng, (size, rows.size))
        return measured


@dataclass(frozen=True, eq=False)
class Identity(Strategy):
    """Every count itself. Simulated noise is for counts in the sequence of ``places``."""

    places: Ints
    coordinates: int

    @property
    def size(self) -> int:
        """One for each count."""
        return self.places.size

    @property
    def rows(self) -> int:
        """One for each count."""
        return self.places.size

    @property
    def sensitivity(self) -> int:
        """How many counts one record moves."""
        return self.coordinates

    def estimate(self, measured: Floats, noise: Noise) -> Floats:
        """What is measured."""
        return measured[..., self.places]

    def variances(self, noise: Noise) -> Floats:
        """The same for every count."""
        return np.full(self.size, noise.variance)

    def covariance(self, noise: Noise) -> Floats:
        """Independent noise."""
        return noise.variance * np.eye(self.size)

    def released(self, rows: Ints, drawn: Ints, noise: Noise, draws: Draws) -> Ints:
        """Counts plus noise."""
        return rows + drawn


@dataclass(frozen=True, eq=False)
class Chains(Strategy):
    """For each chain a tree of sums of its steps. ``chains`` has the positions of each chain, bottom up."""

    chains: tuple[Ints, ...]
    trees: tuple[SumTree, ...]
    exchanges: bool

    @property
    def size(self) -> int:
        """One for each element of a chain."""
        return sum(chain.size for chain in self.chains)

    @property
    def rows(self) -> int:
        """The nodes of all trees."""
        return sum(sum(tree.lengths) for tree in self.trees)

    @property
    def sensitivity(self) -> int:
        """The most nodes that one record changes."""
        return sum(tree.changed(self.exchanges) for tree in self.trees)

    def _parts(self) -> Iterator[tuple[Ints, SumTree, slice]]:
        start = 0
        for chain, tree in zip(self.chains, self.trees, strict=True):
            yield chain, tree, slice(start, start + sum(tree.lengths))
            start += sum(tree.lengths)

    @property
    def blocks(self) -> Blocks:
        """The nodes of one tree after those of another."""
        return [(Fraction(1), np.arange(rows.start, rows.stop)) for _, _, rows in self._parts()]

    def estimate(self, measured: Floats, noise: Noise) -> Floats:
        """Running sums along each chain."""
        result = np.empty((*measured.shape[:-1], self.size))
        for chain, tree, rows in self._parts():
            result[..., chain] = tree.running_sums(measured[..., rows])
        return result

    def variances(self, noise: Noise) -> Floats:
        """Those of running sums."""
        result = np.empty(self.size)
        for chain, tree in zip(self.chains, self.trees, strict=True):
            result[chain] = tree.variances * noise.variance
        return result

    def released(self, rows: Ints, drawn: Ints, noise: Noise, draws: Draws) -> Ints:
        """The rounded estimate from the noisy integers."""
        noisy = drawn.copy()
        for chain, tree, nodes in self._parts():
            noisy[:, nodes] += tree.sums(np.diff(rows[:, chain], prepend=0, axis=1))
        return np.rint(self.estimate(noisy.astype(np.float64), noise)).astype(np.int64)

    def simulated(self, size: int, noise: Noise, rng: np.random.Generator) -> Floats:
        """Level by level."""
        lengths = [length for tree in self.trees for length in tree.lengths]
        return np.concatenate([noise.floats(rng, (size, length)) for length in lengths], axis=1)


@dataclass(frozen=True, eq=False)
class MeasuredTree(Strategy):
    """The nodes of a hierarchy that have a share; counts add up, and so do released integers."""

    tree: Hierarchy
    shares: tuple[Fraction, ...]
    cost: Fraction

    @property
    def sensitivity(self) -> Fraction:
        """How far one record moves the nodes."""
        return self.cost

    @property
    def size(self) -> int:
        """One for each element."""
        return self.tree.node.size

    @property
    def rows(self) -> int:
        """All nodes, also those that are not measured."""
        return len(self.tree)

    @property
    def blocks(self) -> Blocks:
        """The nodes of each share above 0."""
        return self._blocks

    @cached_property
    def _blocks(self) -> Blocks:
        nodes: dict[Fraction, list[int]] = {}
        for x, share in enumerate(self.shares):
            if share:
                nodes.setdefault(share, []).append(x)
        return [(share, np.array(places, np.int64)) for share, places in nodes.items()]

    def fit(self, noise: Noise) -> TreeLeastSquares:
        """Least squares over the nodes."""
        return _tree_fit(self, noise)

    def estimate(self, measured: Floats, noise: Noise) -> Floats:
        """The estimates of the nodes of all elements."""
        return self.fit(noise).estimate(measured)[..., self.tree.node]

    def variances(self, noise: Noise) -> Floats:
        """Those of the nodes."""
        return self.fit(noise).variance[self.tree.node]

    def released(self, rows: Ints, drawn: Ints, noise: Noise, draws: Draws) -> Ints:
        """Integers that add up, from the counts of the nodes with noise."""
        measured = np.array([bool(share) for share in self.shares])
        noisy = np.where(measured, self.tree.sums(self.tree.leaves_of(rows)) + drawn, 0)
        return self.rounded(self.fit(noise).estimate(noisy.astype(np.float64)), draws)

    def rounded(self, estimates: Floats, draws: Draws) -> Ints:
        """Estimates of nodes, a row each, as integers of elements that add up."""
        result, step = np.empty((len(estimates), self.size), np.int64), max(1, _BLOCK // len(self.tree))
        for start in range(0, len(estimates), step):
            rows = estimates[start : start + step]
            ties = draws.words(rows.size).reshape(rows.shape)
            result[start : start + step] = round_tree(self.tree, rows, ties)[:, self.tree.node]
        return result


@lru_cache(maxsize=64)
def _tree_fit(strategy: MeasuredTree, noise: Noise) -> TreeLeastSquares:
    precision = np.zeros(len(strategy.tree))
    for share, nodes in strategy.blocks:
        precision[nodes] = 1 / noise.part(share).variance
    return TreeLeastSquares.of(strategy.tree, precision)


@dataclass(frozen=True, eq=False)
class Sums(Strategy):
    """Integer combinations of the counts: for each part of them, at its ``places``, a matrix of full column rank.

    ``reach`` is the largest ℓ1 norm of what one record adds to all of them.
    """

    places: tuple[Ints, ...]
    matrices: tuple[Ints, ...]
    reach: int

    @property
    def size(self) -> int:
        """One for each count."""
        return sum(place.size for place in self.places)

    @property
    def rows(self) -> int:
        """Those of all matrices."""
        return sum(len(matrix) for matrix in self.matrices)

    @property
    def sensitivity(self) -> int:
        """How far one record moves the sums."""
        return self.reach

    def _parts(self) -> Iterator[tuple[Ints, Ints, slice]]:
        start = 0
        for place, matrix in zip(self.places, self.matrices, strict=True):
            yield place, matrix, slice(start, start + len(matrix))
            start += len(matrix)

    @cached_property
    def _inverses(self) -> list[Floats]:
        """What makes estimates of measured sums, a matrix for each part."""
        return [np.linalg.pinv(matrix.astype(np.float64)).astype(np.float64) for matrix in self.matrices]

    def estimate(self, measured: Floats, noise: Noise) -> Floats:
        """Least squares in each part, by the normal equations."""
        result = np.empty((*measured.shape[:-1], self.size))
        for (place, _, rows), inverse in zip(self._parts(), self._inverses, strict=True):
            result[..., place] = measured[..., rows] @ inverse.T
        return result

    def variances(self, noise: Noise) -> Floats:
        """The diagonal of (AᵀA)⁻¹, scaled."""
        result = np.empty(self.size)
        for place, inverse in zip(self.places, self._inverses, strict=True):
            result[place] = np.square(inverse).sum(axis=1) * noise.variance
        return result

    def covariance(self, noise: Noise) -> Floats:
        """(AᵀA)⁻¹ in each part, scaled."""
        result = np.zeros((self.size, self.size))
        for place, inverse in zip(self.places, self._inverses, strict=True):
            result[np.ix_(place, place)] = inverse @ inverse.T * noise.variance
        return result

    def released(self, rows: Ints, drawn: Ints, noise: Noise, draws: Draws) -> Ints:
        """The rounded estimate from the noisy integers.

        Sums are added modulo 2⁶⁴, which is a function of the noisy sums whatever the counts are.
        """
        noisy = drawn.copy()
        for place, matrix, own in self._parts():
            noisy[:, own] += rows[:, place] @ matrix.T
        return np.rint(self.estimate(noisy.astype(np.float64), noise)).astype(np.int64)


class Square(Protocol):
    """A triangular matrix Q of integers on the counts, with or without the number of records as a further column.

    Noise is added to ``Q·counts``, and the counts follow by solving back. They are integers, so solving back in integers
    splits off exactly what they contribute: only the noise is ever solved for (docs/theory/gaussian.md, section 3).
    """

    @property
    def rows(self) -> int:
        """How many integers of noise one release takes."""
        ...

    @property
    def rooted(self) -> bool:
        """Whether the number of records is a column (last), so that it is released too."""
        ...

    @property
    def sensitivity_squared(self) -> int:
        """The largest squared length of Q times the change that one record makes."""
        ...

    def variances(self) -> Floats:
        """The variance of each released count, and of the number of records last if rooted, for unit noise."""
        ...

    def covariance(self) -> Floats:
        """The covariance of the released counts for unit noise (without the number of records)."""
        ...

    def solve_integers(self, noise: Ints) -> Ints:
        """``Q⁻¹ noise``, rounded to integers so that the result commutes with adding integers to the counts."""
        ...

    def solve(self, noise: Floats) -> Floats:
        """``Q⁻¹ noise`` for each row of ``noise``."""
        ...

    def multiply(self, counts: Floats) -> Floats:
        """``Q counts`` for each row of ``counts``."""
        ...

    def diagonal(self) -> Floats:
        """The diagonal of Q, in the order of the counts (and the number of records)."""
        ...

    def root_column(self) -> Floats:
        """The column of the number of records (zeros if not rooted), with one entry for each row."""
        ...


@dataclass(frozen=True, eq=False)
class Embedded(Strategy):
    """A square strategy for the counts at ``active``; the others, which no record can reach, are zero.

    The number of records, if the strategy covers it, is the last of all numbers.
    """

    within: Square
    active: Ints
    elements: int

    @property
    def size(self) -> int:
        """One for each count, and one for the number of records."""
        return self.elements + int(self.within.rooted)

    @property
    def rows(self) -> int:
        """Those of the strategy within."""
        return self.within.rows

    @property
    def sensitivity(self) -> int:
        """That of the strategy within."""
        return self.within.sensitivity_squared

    def place(self, solved: Any) -> Any:
        """Numbers of the strategy within (last axis) as numbers of all counts."""
        result = np.zeros((*solved.shape[:-1], self.size), solved.dtype)
        result[..., self.active] = solved[..., : self.active.size]
        if self.within.rooted:
            result[..., -1] = solved[..., -1]
        return result

    def estimate(self, measured: Floats, noise: Noise) -> Floats:
        """The solution within."""
        return self.place(self.within.solve(measured))

    def variances(self, noise: Noise) -> Floats:
        """Zero where no record can reach."""
        return self.place(self.within.variances()) * noise.variance

    def covariance(self, noise: Noise) -> Floats:
        """On all counts, without the number of records."""
        result = np.zeros((self.elements, self.elements))
        result[np.ix_(self.active, self.active)] = self.within.covariance() * noise.variance
        return result

    def released(self, rows: Ints, drawn: Ints, noise: Noise, draws: Draws) -> Ints:
        """Reachable counts, and the number of records if it is given, plus the solution of the noise."""
        solved = [self.within.solve_integers(one) for one in drawn]
        result = self.place(np.array(solved, np.int64).reshape(drawn.shape))[:, : rows.shape[1]]
        result[:, self.active] += rows[:, self.active]
        result[:, self.elements :] += rows[:, self.elements :]
        return result


def nearest_plane(kernel: Any, rows: tuple[Any, ...], noise: Ints) -> tuple[Ints, Ints]:
    """The whole part of ``Q⁻¹ noise`` by nearest-plane rounding, and the remainder.

    It is exact for any noise.

    Privacy needs that shifting the noise by Qc shifts the result by exactly c, so no sum may wrap. The compiled
    ``kernel`` adds up, in floats, the magnitudes of all terms of each ``rest``. As long as that is at most 2⁶¹,
    every partial sum is below 2⁶² (a float sum of positive terms is right to one part in 2³²), and with pivots
    below 2⁶¹ so is ``2·rest + pivot`` below 2⁶³. Otherwise the same function runs on Python's integers. Which
    of the two runs is a function of the noise alone and does not change the result.
    """
    result = np.zeros((2, noise.size), np.int64)
    if kernel(*rows, noise, result, _LARGEST_SUM):
        return result[0], result[1]
    exact = [part.astype(object) if isinstance(part, np.ndarray) else part for part in rows]
    wide = np.zeros(result.shape, object)
    kernel.plain(*exact, noise.astype(object), wide, math.inf)
    return wide[0].astype(np.int64), wide[1].astype(np.int64)
