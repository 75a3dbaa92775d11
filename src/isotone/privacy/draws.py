"""The random draws that mechanisms make, in three forms with one interface.

:class:`ExactDraws` is for releases: cryptographic bits, exact probabilities (``isotone.noise``).
:class:`SeededDraws` is for planning: a seeded generator and floats. Tests add a third, which walks through *all*
outcomes of a mechanism with their exact probabilities. Mechanisms are written once, against :class:`Draws`, so
what is checked exhaustively is the code that releases. Where a release is made only :class:`ExactDraws` is
accepted, by its type and by :func:`require_exact`.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from isotone import noise
from isotone.array_types import Ints
from isotone.errors import InputError


class Draws(Protocol):
    """What a mechanism may draw."""

    def choice(self, scores: Ints, rate: Fraction) -> int:
        """An index with probability proportional to ``exp(−rate·score)``."""
        ...

    def segments(
        self,
        scores: Ints,
        offsets: Ints,
        rates: Sequence[Fraction],
        multiplicity: Ints,
        size: int | None = None,
    ) -> Ints:
        """In every segment an index ``i`` with weight ``multiplicity[i]·exp(−rate·scores[i])``.

        Where the number of candidates is private, ``size`` is a public bound: it decides which code runs.
        """
        ...

    def below(self, sizes: Ints, /) -> Ints:
        """Uniform integers, each at least 0 and below its size."""
        ...

    def perturb(self, values: Ints, rate: Fraction) -> Ints:
        """The values plus two-sided geometric noise.

        ``k`` has weight ``exp(−rate·|k|)``.
        """
        ...

    def geometrics(self, rate: Fraction, size: int, /) -> Ints:
        """Two-sided geometric noise.

        ``k`` has weight ``exp(−rate·|k|)``.
        """
        ...

    def uneven(self, values: Ints, line: noise.UnevenLine) -> Ints:
        """The values with geometric noise on a line of uneven steps."""
        ...

    def rounded_gaussians(self, variance: Fraction, size: int, /) -> Ints:
        """Gaussian noise, exactly rounded to integers."""
        ...

    def discrete_gaussians(self, variance: Fraction, size: int, /) -> Ints:
        """Discrete Gaussian noise.

        ``k`` has weight ``exp(−k²/(2·variance))``.
        """
        ...

    def one_sided_geometrics(self, rate: Fraction, size: int) -> Ints:
        """Numbers ``k >= 0`` with weight ``exp(−rate·k)``."""
        ...

    def lazy_geometrics(self, rate: Fraction, size: int) -> Ints:
        """The noise of ``geometrics``, by code that prepares nothing, for many different rates."""
        ...

    def geometric_sums(self, rate: Fraction, terms: int, size: int) -> Ints:
        """Sums of ``terms`` numbers ``k >= 0`` with weight ``exp(−rate·k)``."""
        ...

    def coins(self, rate: Fraction, multiples: Ints) -> NDArray[np.bool_]:
        """For each whole number m at least 0, True with probability ``exp(−rate·m)``."""
        ...

    def words(self, size: int, /) -> NDArray[np.uint64]:
        """Uniform 64-bit words, for post-processing."""
        ...


class ExactDraws:
    """Draws from cryptographic bits with exact probabilities.

    Only these can make a release.
    """

    one_sided_geometrics = staticmethod(noise.geometrics)
    lazy_geometrics = staticmethod(noise.lazy_two_sided_geometrics)
    geometric_sums = staticmethod(noise.geometric_sums)
    coins = staticmethod(noise.bernoulli_exps)
    # what no simulation needs
    lazy_coin = staticmethod(noise.bernoulli_exp_lazily)
    exponentials = noise.LazyExponentials
    integer = staticmethod(noise.choose_integer)
    bernoulli = staticmethod(noise.bernoulli)
    rounded_laplaces = staticmethod(noise.rounded_laplaces)
    rounded_cube = staticmethod(noise.rounded_cube)
    exponential_sums = staticmethod(noise.rounded_exponential_sums)
    exponential_rows = staticmethod(noise.rounded_exponential_rows)
    exponential_spans = staticmethod(noise.rounded_exponential_spans)

    def segments(
        self,
        scores: Ints,
        offsets: Ints,
        rates: Sequence[Fraction],
        multiplicity: Ints,
        size: int | None = None,
    ) -> Ints:
        """See ``Draws``."""
        return noise.choose_exponential_segments(scores, offsets, rates, multiplicity, size=size)

    # looked up when they are called: tests follow all paths with a source of their own
    def choice(self, scores: Ints, rate: Fraction) -> int:
        """See ``Draws``."""
        return noise.choose_exponential(scores, rate)

    def below(self, sizes: Ints) -> Ints:
        """See ``Draws``."""
        return noise.random_belows(sizes)

    def geometrics(self, rate: Fraction, size: int) -> Ints:
        """See ``Draws``."""
        return noise.two_sided_geometrics(rate, size)

    def uneven(self, values: Ints, line: noise.UnevenLine) -> Ints:
        """See ``Draws``."""
        return noise.uneven_geometrics(values, line)

    def rounded_gaussians(self, variance: Fraction, size: int) -> Ints:
        """See ``Draws``."""
        return noise.rounded_gaussians(variance, size)

    def discrete_gaussians(self, variance: Fraction, size: int) -> Ints:
        """See ``Draws``."""
        return noise.discrete_gaussians(variance, size)

    def words(self, size: int) -> NDArray[np.uint64]:
        """See ``Draws``."""
        return noise.random_words(size)

    def perturb(self, values: Ints, rate: Fraction) -> Ints:
        """See ``Draws``."""
        return values + noise.two_sided_geometrics(rate, values.size).reshape(values.shape)


class SeededDraws:
    """Floating-point draws from a seeded generator.

    The same laws up to rounding, and not private.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def choice(self, scores: Ints, rate: Fraction) -> int:
        """See ``Draws``."""
        weights = np.exp(-float(rate) * (scores - np.min(scores)))
        return int(self.rng.choice(len(scores), p=weights / np.sum(weights)))

    def segments(
        self,
        scores: Ints,
        offsets: Ints,
        rates: Sequence[Fraction],
        multiplicity: Ints,
        size: int | None = None,
    ) -> Ints:
        """The largest of the log-weights plus Gumbel noise."""
        sizes = np.diff(offsets)
        starts = offsets[:-1]
        best = np.minimum.reduceat(scores, starts)
        rate = np.repeat([float(r) for r in rates], sizes)
        with np.errstate(divide="ignore"):
            keys = np.log(multiplicity) - rate * (scores - np.repeat(best, sizes))
        keys = keys + self.rng.gumbel(size=scores.size)
        top = np.flatnonzero(keys == np.repeat(np.maximum.reduceat(keys, starts), sizes))
        first = np.searchsorted(top, starts)
        return top[first] - starts

    def below(self, sizes: Ints) -> Ints:
        """See ``Draws``."""
        return self.rng.integers(0, sizes)

    def perturb(self, values: Ints, rate: Fraction) -> Ints:
        """See ``Draws``."""
        return values + np.asarray(noise.simulate.two_sided_geometrics(self.rng, rate, values.shape))

    def geometrics(self, rate: Fraction, size: int) -> Ints:
        """See ``Draws``."""
        return np.asarray(noise.simulate.two_sided_geometrics(self.rng, rate, size))

    def uneven(self, values: Ints, line: noise.UnevenLine) -> Ints:
        """See ``Draws``."""
        return np.asarray(noise.simulate.uneven_geometrics(self.rng, values, line))

    def rounded_gaussians(self, variance: Fraction, size: int) -> Ints:
        """See ``Draws``."""
        return np.asarray(noise.simulate.rounded_gaussians(self.rng, variance, size))

    def discrete_gaussians(self, variance: Fraction, size: int) -> Ints:
        """See ``Draws``."""
        return np.asarray(noise.simulate.discrete_gaussians(self.rng, variance, size))

    def one_sided_geometrics(self, rate: Fraction, size: int) -> Ints:
        """See ``Draws``."""
        return np.asarray(noise.simulate.geometrics(self.rng, rate, size))

    def lazy_geometrics(self, rate: Fraction, size: int) -> Ints:
        """See ``Draws``."""
        return self.geometrics(rate, size)

    def geometric_sums(self, rate: Fraction, terms: int, size: int) -> Ints:
        """See ``Draws``."""
        return np.asarray(noise.simulate.geometrics(self.rng, rate, (size, terms))).sum(axis=1)

    def coins(self, rate: Fraction, multiples: Ints) -> NDArray[np.bool_]:
        """See ``Draws``."""
        return np.log(self.rng.random(multiples.size)) <= -float(rate) * multiples

    def words(self, size: int) -> NDArray[np.uint64]:
        """See ``Draws``."""
        return self.rng.integers(0, 1 << 64, size, np.uint64)


def require_exact(draws: Any) -> ExactDraws:
    """``draws`` if they are exact, otherwise an error.

    Every public entry that releases calls this first.
    """
    if not isinstance(draws, ExactDraws):
        raise InputError(
            f"A release takes ExactDraws only, not {type(draws).__name__}: other draws are not private. Use "
            "simulate() for planning."
        )
    return draws
