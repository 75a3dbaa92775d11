"""The distribution of counts: how many categories have each count, as an object, top-coded, and made private."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, Protocol, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isotone.errors import InputError
from isotone.noise import Simulated, refuse_simulated
from isotone.privacy.calibration import sigma_squared
from isotone.privacy.checks import Number, one_of, whole_number
from isotone.privacy.draws import Draws, ExactDraws, SeededDraws, require_exact
from isotone.privacy.guarantee import Guarantee, Unit

# The share of categories that have each of the counts ``0..upper``.
#
# Mechanisms take one as ``z``: either the private :class:`Distribution` that a privatiser made, or an array of
# probabilities, which is then taken as public.


@dataclass(frozen=True, eq=False)
class Distribution:
    """A private distribution of counts, and how it was made.

    ``probabilities`` has one entry for each count ``0..upper``. ``noisy_cumulative`` holds, for the methods
    that privatise the cumulative histogram, the noisy numbers of categories with count ``<= i`` for
    ``i = 0..upper-1``: a private output, free to be post-processed further.
    """

    probabilities: NDArray[np.float64]
    epsilon: Fraction
    size: int
    upper: int
    method: str
    post: str
    guarantee: Guarantee
    noisy_cumulative: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return self.upper + 1

    def __repr__(self) -> str:
        return (
            f"Distribution(counts 0..{self.upper}, {self.size} categories, method={self.method!r}, "
            f"post={self.post!r}, {self.guarantee})"
        )


DistributionLike = Distribution | Sequence[float] | NDArray[np.float64] | ArrayLike


def is_simulated(z: DistributionLike) -> bool:
    """Whether ``z`` came out of a simulation, so that nothing built on it may be released."""
    return isinstance(z.probabilities if isinstance(z, Distribution) else z, Simulated)


def probabilities_of(z: DistributionLike, name: str = "z") -> NDArray[np.float64]:
    """The probabilities of ``z``, exactly normalised.

    Returns a read-only copy.

    >>> probabilities_of([1, 0, 3], "z")
    Traceback (most recent call last):
      ...
    isotone.errors.InputError: z must be probabilities that sum to 1, not to 4.
    """
    values = z.probabilities if isinstance(z, Distribution) else z
    try:
        p = np.array(values, dtype=np.float64).view(np.ndarray)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be a Distribution, or a list or array of probabilities.") from None
    if p.ndim != 1 or p.size == 0:
        raise InputError(f"{name} must be a non-empty list of probabilities, one for each count 0..upper.")
    if not bool(np.all(np.isfinite(p))) or bool(np.any(p < 0)):
        raise InputError(f"{name} must be probabilities: finite numbers, none below 0.")
    total = float(np.sum(p))
    if abs(total - 1) > 1e-6:
        raise InputError(f"{name} must be probabilities that sum to 1, not to {total:g}.")
    p /= total
    p.flags.writeable = False
    return p


# Check and top-code tables of counts.
#
# Whole numbers, at least 0, clipped to a public bound.

Counts = Sequence[int] | NDArray[Any]
"""One count for each category, in a fixed public order of the categories."""


def top_coded(counts: Counts, upper: int) -> NDArray[np.int64]:
    """``counts`` as integers, those above ``upper`` replaced by ``upper``.

    Counts are private: the message of a refusal never quotes one.

    >>> top_coded([0, 7, 3], upper=5)
    array([0, 5, 3])
    """
    refuse_simulated(counts)
    try:
        values = np.asarray(counts)
    except (ValueError, OverflowError):
        values = np.asarray([None])
    if values.ndim != 1:
        raise InputError(
            "counts must be one number for each category: a list, or an array with one dimension."
        )
    if values.size == 0:
        return np.zeros(0, np.int64)
    if values.dtype == object:  # whole numbers beyond 64 bits, or things that are no numbers
        if not all(isinstance(v, (int, np.integer)) for v in values):
            raise _not_counts()
        values = np.asarray([min(max(int(v), -1), upper) for v in values])
    if values.dtype.kind == "f":
        if not bool(np.all(np.isfinite(values) & (values == np.floor(values)))):
            raise _not_counts()
    elif values.dtype.kind not in "iub":
        raise _not_counts()
    if bool(np.any(values < 0)):
        raise _not_counts()
    return np.minimum(values, upper).astype(np.int64)


def histogram(counts: NDArray[np.int64], upper: int) -> NDArray[np.int64]:
    """How many categories have each of the counts ``0..upper``."""
    return np.bincount(counts, minlength=upper + 1).astype(np.int64)


def _not_counts() -> InputError:
    return InputError(
        "counts must be whole numbers of at least 0, one for each category. Round, drop or repair the others "
        "by a rule that was fixed before the data were seen."
    )


# What a distribution privatiser measures, and how it reads a histogram out of the noisy measurements.
#
# Every privatiser here is a linear *strategy* over the histogram of counts: a vector of integers is measured,
# independent noise is added to each entry, and a histogram is estimated from the result. Measurements are
# integers, so integer noise is exact, and the two-sided geometric replaces the Laplace of the literature:
# the same privacy from the same scale, a little less variance, and nothing to round.
#
# One step (one count changes by one) moves one category from bin ``f`` to a bin next to it. ``l1`` is the
# largest distance, summed over entries, by which that moves the measurements.


class HistogramStrategy(Protocol):
    """A linear strategy on histograms of a fixed length.

    N, the number of categories, is public.
    """

    @property
    def l1(self) -> int:
        """How far one step moves the measurements, at most, in the sum of absolute values."""
        ...

    def measure(self, histogram: NDArray[np.int64]) -> NDArray[np.int64]:
        """The true measurements."""
        ...

    def estimate(self, noisy: NDArray[np.float64], size: int) -> NDArray[np.float64]:
        """The histogram of ``size`` categories that the measurements suggest.

        Bins may be negative.
        """
        ...


class Plain:
    """The bins themselves.

    One bin loses a category and its neighbour gains it, so ``l1`` is 2.
    """

    l1 = 2

    def measure(self, histogram: NDArray[np.int64]) -> NDArray[np.int64]:
        """The bins."""
        return histogram

    def estimate(self, noisy: NDArray[np.float64], size: int) -> NDArray[np.float64]:
        """The bins."""
        return noisy


class Cumulative:
    """The numbers of categories with count ``<= i``, for ``i = 0..n-2`` (docs/theory/tables.md, section 2).

    A step between ``f`` and ``f+1`` changes entry ``f`` by one and no other: ``l1`` is 1.
    """

    l1 = 1

    def measure(self, histogram: NDArray[np.int64]) -> NDArray[np.int64]:
        """The cumulative histogram without its last entry, which is N."""
        return np.cumsum(histogram)[:-1]

    def estimate(self, noisy: NDArray[np.float64], size: int) -> NDArray[np.float64]:
        """Differences of the cumulative histogram."""
        return np.diff(noisy, prepend=0.0, append=float(size))


class Cyclic:
    """The cumulative histogram with one more noise term common to all its entries (Kohli and Laskowski 2026).

    The published mechanism adds ``L_i - L_{i+1}`` to bin ``i`` with ``L_n = L_0``. In cumulative coordinates
    that is independent noise on each entry, which makes it private, and ``L_0`` on all of them, which is
    post-processing: it doubles the variance. Here ``L_0`` is the noise on a measurement that is always 0.
    """

    l1 = 1

    def measure(self, histogram: NDArray[np.int64]) -> NDArray[np.int64]:
        """The cumulative histogram without its last entry, and a 0."""
        return np.append(np.cumsum(histogram)[:-1], 0)

    def estimate(self, noisy: NDArray[np.float64], size: int) -> NDArray[np.float64]:
        """Differences of the cumulative histogram, shifted by the common term."""
        return np.diff(noisy[:-1] + noisy[-1], prepend=0.0, append=float(size))


# The Haar wavelet strategy in integers. Privelet (Xiao, Wang and Gehrke 2010).


class Haar:
    """Differences between the halves at each node of a binary tree.

    The left half of the bins minus the right half.

    Privelet scales its wavelet coefficients so that all the weights ``1/2^h`` in its noise cancel: up to that
    scaling it adds the same noise to every one of these differences. The tree has ``depth`` levels over
    ``2^depth >= n`` bins (the missing ones are empty). The base coefficient is N, which is public and costs
    nothing. A step between two bins that part at height ``h`` changes the difference there by 2 and those of
    the ``h-1`` nodes below, on each side, by 1: ``2h`` in all, so ``l1`` is ``2·depth``.
    """

    def __init__(self, n: int) -> None:
        self.n = n
        self.depth = max(n - 1, 0).bit_length()

    @property
    def l1(self) -> int:
        """Twice the depth of the tree."""
        return 2 * self.depth

    def measure(self, histogram: NDArray[np.int64]) -> NDArray[np.int64]:
        """The differences, from the root down, each level from left to right."""
        sums = np.zeros(1 << self.depth, np.int64)
        sums[: self.n] = histogram
        levels: list[NDArray[np.int64]] = []
        while sums.size > 1:
            levels.append(sums[0::2] - sums[1::2])
            sums = sums[0::2] + sums[1::2]
        return np.concatenate(levels[::-1]) if levels else np.zeros(0, np.int64)

    def estimate(self, noisy: NDArray[np.float64], size: int) -> NDArray[np.float64]:
        """The inverse transform, from the public total down to the bins."""
        sums = np.array([float(size)])
        start = 0
        for _ in range(self.depth):
            differences = noisy[start : start + sums.size]
            start += sums.size
            sums = np.column_stack([(sums + differences) / 2, (sums - differences) / 2]).ravel()
        return sums[: self.n]


# Counts at every level of a tree, made consistent by least squares.
#
# This is the hierarchical strategy.
#
# Hay, Rastogi, Miklau and Suciu 2010; branching factor 16 as Qardaji, Yang and Li 2013 recommend.


class IntervalHierarchy:
    """How many categories fall in each block of ``branching^h`` bins, for every height ``h`` below the root.

    The root is N, public. A step moves one category between bins that share a block from some height on:
    at each height below, one block loses it and another gains it, so ``l1`` is twice the number of levels.

    The estimate is the weighted least-squares fit: weighted averaging from the leaves up, mean consistency
    from the root down. Blocks at the right edge may have fewer children than ``branching``, so each block
    carries its own variance, and a discrepancy is shared among children in proportion to theirs.
    """

    def __init__(self, n: int, branching: int = 16) -> None:
        self.branching = branching
        self.widths = [n]  # number of blocks at each level, from the bins up to the level below the root
        while self.widths[-1] > branching:
            self.widths.append(-(-self.widths[-1] // branching))
        if n == 1:
            self.widths = []

    @property
    def l1(self) -> int:
        """Twice the number of measured levels."""
        return 2 * len(self.widths)

    def measure(self, histogram: NDArray[np.int64]) -> NDArray[np.int64]:
        """The blocks, from the bins up, each level from left to right."""
        levels: list[NDArray[np.int64]] = []
        blocks = histogram
        for _ in self.widths:
            levels.append(blocks)
            blocks = self._children_sums(blocks)
        return np.concatenate(levels) if levels else np.zeros(0, np.int64)

    def estimate(self, noisy: NDArray[np.float64], size: int) -> NDArray[np.float64]:
        """The least-squares fit of the bins, given that they sum to ``size``."""
        if not self.widths:
            return np.array([float(size)])
        measured = np.split(noisy, np.cumsum(self.widths)[:-1])
        values, variances = [measured[0]], [np.ones(self.widths[0])]
        for own in measured[1:]:  # weighted averaging: a block's own measurement against its children
            below, spread = self._children_sums(values[-1]), self._children_sums(variances[-1])
            values.append((own * spread + below) / (spread + 1))
            variances.append(spread / (spread + 1))
        parents = np.array([float(size)])
        for value, variance in zip(reversed(values), reversed(variances), strict=True):
            branching = len(value) if len(parents) == 1 else self.branching
            parent = np.arange(len(value)) // branching
            missing = parents - np.bincount(parent, value)
            parents = value + variance * (missing / np.bincount(parent, variance))[parent]
        return parents

    def _children_sums(self, blocks: NDArray[Any]) -> NDArray[Any]:
        return np.add.reduceat(blocks, np.arange(0, len(blocks), self.branching))


# Privatise the distribution of counts. How many categories have count 0, 1, …, upper.

Method = Literal["cumulative", "cyclic-laplace", "cyclic-gaussian", "laplace", "privelet", "hierarchical"]
Post = Literal["isotonic", "clip"]


def privatize_distribution(
    counts: Counts,
    upper: int,
    epsilon: Number | Guarantee,
    method: Method = "cumulative",
    *,
    post: Post = "isotonic",
    contributions: int = 1,
) -> Distribution:
    """A private distribution of ``counts``, top-coded at the public bound ``upper``.

    Guarantee: epsilon-DP for adding or removing one person ((epsilon, delta)-DP for ``cyclic-gaussian``, the
    only method that takes δ), whose up to ``contributions`` countings change one count by one each;
    docs/theory/tables.md, section 2. The number of categories is public.

    Parameters
    ----------
    epsilon
        A number, or a :class:`~isotone.Guarantee`, which says also δ and what neighbours are.
    method
        ``cumulative`` (default): noise on the cumulative histogram, the K-norm mechanism of this statistic.
        ``cyclic-laplace``, ``cyclic-gaussian``: those of Kohli and Laskowski 2026. ``laplace``: noise on each
        bin. ``privelet``: noise on Haar wavelet coefficients. ``hierarchical``: noise on a tree of branching
        16, made consistent by least squares. All noise is integer and exact: two-sided geometric in place of
        Laplace, the exactly rounded Gaussian in place of the Gaussian.
    post
        ``isotonic`` (default): least-squares projection of the cumulative histogram onto those that rise from
        0 to N. ``clip``: negative bins become 0 and the rest is rescaled, as published.

    >>> z = privatize_distribution([0, 0, 1, 3, 9], upper=4, epsilon=1)
    >>> len(z.probabilities), bool(abs(z.probabilities.sum() - 1) < 1e-12)
    (5, True)
    """
    return _Privatiser(upper, epsilon, method, post, contributions).run(counts, require_exact(ExactDraws()))


def simulate_distribution(
    counts: Counts,
    upper: int,
    epsilon: Number | Guarantee,
    method: Method = "cumulative",
    *,
    rng: np.random.Generator,
    post: Post = "isotonic",
    contributions: int = 1,
) -> Distribution:
    """Simulate ``privatize_distribution`` with seeded floats.

    For experiments, and not private.

    Its probabilities are :class:`~isotone.noise.Simulated`, and no mechanism built on them will release.
    """
    return _Privatiser(upper, epsilon, method, post, contributions).run(counts, SeededDraws(rng))


def measure_cumulative(
    table: NDArray[np.int64], upper: int, epsilon: Fraction, unit: Unit, draws: Draws
) -> Distribution:
    """The distribution by the method ``cumulative`` with the given draws, marked as simulated unless they are exact."""
    guarantee = unit.pure(epsilon)
    return _Privatiser(upper, guarantee, "cumulative", "isotonic", unit.contributions).run(table, draws)


class _Privatiser:
    """The checked public choices of a privatiser, and the noise that goes with them."""

    def __init__(
        self, upper: int, epsilon: Number | Guarantee, method: Method, post: Post, contributions: int
    ) -> None:
        guarantee = epsilon if isinstance(epsilon, Guarantee) else Guarantee.pure(epsilon)
        unit = Unit(contributions, guarantee.neighbours)
        self.upper = whole_number(upper, "upper", least=0)
        self.epsilon = guarantee.epsilon
        self.method: Method = one_of(method, "method", get_args(Method))
        self.post: Post = one_of(post, "post", get_args(Post))
        self.strategy = _strategy(self.method, self.upper + 1)
        self.gaussian = self.method == "cyclic-gaussian"
        self.guarantee = guarantee
        if self.gaussian:
            if guarantee.kind != "approximate":
                raise InputError(
                    "method 'cyclic-gaussian' is (epsilon, delta)-DP: pass Guarantee.approximate(…) as epsilon."
                )
            # unit steps add up to a distance of at most `steps` in Euclid's norm, whatever entries they hit
            self.variance = sigma_squared(self.epsilon, guarantee.delta, unit.steps**2)
        elif guarantee.kind != "pure":
            raise InputError(f"method {method!r} is pure epsilon-DP, and the guarantee must be.")
        else:
            self.rate = unit.per_step(self.epsilon) / max(self.strategy.l1, 1)

    def noise(self, size: int, draws: Draws) -> NDArray[np.int64]:
        """Integer noise of the law that the guarantee needs."""
        if self.gaussian:
            return draws.rounded_gaussians(self.variance, size)
        return draws.geometrics(self.rate, size)

    def run(self, counts: Counts, draws: Draws) -> Distribution:
        """Measure, add noise, estimate, project."""
        table = top_coded(counts, self.upper)
        size = len(table)
        truth = self.strategy.measure(histogram(table, self.upper))
        noisy = truth + self.noise(len(truth), draws)
        bins = self.strategy.estimate(noisy.astype(np.float64), size)
        probabilities = (_isotonic if self.post == "isotonic" else _clip)(bins, size)
        cumulative = _noisy_cumulative(self.strategy, noisy)
        if not isinstance(draws, ExactDraws):
            probabilities = Simulated.wrap(probabilities)
            cumulative = None if cumulative is None else Simulated.wrap(cumulative)
        else:
            probabilities.flags.writeable = False
            if cumulative is not None:
                cumulative.flags.writeable = False
        return Distribution(
            probabilities, self.epsilon, size, self.upper, self.method, self.post, self.guarantee, cumulative
        )


def _strategy(method: Method, n: int) -> HistogramStrategy:
    if method == "cumulative":
        return Cumulative()
    if method == "laplace":
        return Plain()
    if method == "privelet":
        return Haar(n)
    if method == "hierarchical":
        return IntervalHierarchy(n)
    return Cyclic()


def _noisy_cumulative(strategy: HistogramStrategy, noisy: NDArray[np.int64]) -> NDArray[np.int64] | None:
    if isinstance(strategy, Cumulative):
        return noisy
    return noisy[:-1] + noisy[-1] if isinstance(strategy, Cyclic) else None


def _isotonic(bins: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """The distribution whose cumulative histogram is nearest to that of ``bins`` in least squares."""
    from scipy.optimize import isotonic_regression

    if size == 0:
        return _uniform(len(bins))
    # the projection onto rising sequences within [0, size] is the unbounded one, clipped
    cumulative = np.clip(isotonic_regression(np.cumsum(bins)[:-1]).x, 0, size) if len(bins) > 1 else bins[:0]
    return np.diff(cumulative, prepend=0.0, append=float(size)) / size


def _clip(bins: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """Clip negative bins to 0 and rescale the sum to 1."""
    kept = np.maximum(bins, 0.0)
    total = float(np.sum(kept))
    return kept / total if size > 0 and total > 0 else _uniform(len(bins))


def _uniform(n: int) -> NDArray[np.float64]:
    """What to say of no categories at all, or when every bin was clipped."""
    return np.full(n, 1 / n)
