"""Seeded noise for plans and experiments, marked so that it cannot be released."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isotone.errors import InputError
from isotone.noise.laplace import UnevenLine
from isotone.privacy.checks import Number, positive

__all__ = [
    "PublicStream",
    "Simulated",
    "discrete_gaussians",
    "exponentials",
    "gaussians",
    "geometrics",
    "public_stream",
    "refuse_simulated",
    "rounded_gaussians",
    "two_sided_geometrics",
    "uneven_geometrics",
]


# The type of everything that a seeded float simulation returns.
#
# A simulated draw has the right distribution for planning, and none of the properties that make a release
# private: its bits can be guessed from the seed and its low digits carry rounding. So it has a type of its
# own, which survives arithmetic, indexing and numpy's functions, and which every release refuses
# (:func:`refuse_simulated`). It is a guard rail against mistakes: ``np.asarray`` and ``float`` take it off.


class Simulated(np.ndarray):
    """A numpy array that came out of a simulation.

    Anything computed from it is simulated too.

    >>> noise = Simulated.wrap([0.5, -1.25])
    >>> type(noise + np.ones(2)).__name__, type(noise[0]).__name__, type(np.concatenate([noise, noise])).__name__
    ('Simulated', 'Simulated', 'Simulated')
    """

    @classmethod
    def wrap(cls, values: ArrayLike) -> Simulated:
        """``values`` marked as simulated (no copy where numpy needs none)."""
        return np.asarray(values).view(cls)

    def __getitem__(self, key: Any) -> Any:
        """The entries at ``key``, marked as simulated even if there is only one."""
        return _marked(super().__getitem__(key))

    def __array_function__(
        self, func: Callable[..., Any], types: Iterable[type], args: Iterable[Any], kwargs: Mapping[str, Any]
    ) -> Any:
        """The result of a numpy function, its arrays marked as simulated."""
        return _marked(super().__array_function__(func, types, args, kwargs))


def _marked(result: Any) -> Any:
    if isinstance(result, (list, tuple)):
        parts = [_marked(part) for part in result]
        return type(result)(*parts) if hasattr(result, "_fields") else type(result)(parts)
    if isinstance(result, (np.ndarray, np.number)) and not isinstance(result, Simulated):
        return Simulated.wrap(result)
    return result


def refuse_simulated(values: Any) -> None:
    """Raise if ``values`` is a simulated array, or a mapping, list or tuple that holds one."""
    if isinstance(values, Simulated):
        raise InputError(
            "This array comes from simulate(): seeded float noise for planning, which is not private and "
            "must not be released. Pass the true statistic to release() instead."
        )
    if isinstance(values, Mapping):
        refuse_simulated(list(values.values()))
    elif isinstance(values, Sequence) and not isinstance(values, (str, bytes)):
        for part in values:
            if not isinstance(part, (int, float)):
                refuse_simulated(part)


# Seeded float twins of the exact samplers, for planning and experiments.
#
# Same names, same distributions up to floating-point error, a numpy Generator first. Every result is
# :class:`Simulated`, which no release accepts.

Size = int | tuple[int, ...]


def exponentials(rng: np.random.Generator, rate: Number, size: Size) -> Simulated:
    """Exponential variables of the given rate."""
    return Simulated.wrap(rng.standard_exponential(size) / float(positive(rate, "rate")))


def geometrics(rng: np.random.Generator, rate: Number, size: Size) -> Simulated:
    """Simulate geometric variables.

    The probability of ``k >= 0`` is proportional to ``exp(-rate·k)``. They are exponentials, rounded down.
    """
    return Simulated.wrap(np.floor(exponentials(rng, rate, size)).astype(np.int64))


def two_sided_geometrics(rng: np.random.Generator, epsilon: Number, size: Size) -> Simulated:
    """Simulate two-sided geometric noise.

    The probability of ``k`` is proportional to ``exp(-epsilon·|k|)``. Each is the difference of two
    geometrics.

    >>> two_sided_geometrics(np.random.default_rng(0), 1, 3)
    Simulated([...])
    """
    return Simulated.wrap(geometrics(rng, epsilon, size) - geometrics(rng, epsilon, size))


def uneven_geometrics(rng: np.random.Generator, values: NDArray[np.int64], line: UnevenLine) -> Simulated:
    """Simulate geometric noise on a line of uneven steps."""
    drawn = rng.standard_exponential(values.size) / float(line.unit)
    far = np.floor(drawn)
    rests = np.array([crossing.rest for crossing in line.crossings])
    passed = (drawn - far)[:, None] >= rests
    return Simulated.wrap(line.moved(values, far.astype(np.int64), rng.random(values.size) < 0.5, passed))


def gaussians(rng: np.random.Generator, sigma2: Number, size: Size) -> Simulated:
    """Gaussian variables of variance ``sigma2``."""
    return Simulated.wrap(rng.standard_normal(size) * np.sqrt(float(positive(sigma2, "sigma2"))))


def rounded_gaussians(rng: np.random.Generator, sigma2: Number, size: Size) -> Simulated:
    """Gaussian variables of variance ``sigma2``, rounded to integers."""
    return Simulated.wrap(np.floor(gaussians(rng, sigma2, size) + 0.5).astype(np.int64))


def discrete_gaussians(rng: np.random.Generator, sigma2: Number, size: Size) -> Simulated:
    """Integers with probability ∝ ``exp(-k²/(2·sigma2))``, accepted from two-sided geometrics."""
    variance = float(positive(sigma2, "sigma2"))
    scale = np.floor(np.sqrt(variance)) + 1.0
    expected = int(np.prod(size))
    kept: list[NDArray[np.int64]] = []
    while expected > 0:
        tried = np.asarray(two_sided_geometrics(rng, float(1.0 / scale), 2 * expected + 16))
        exponent = (np.abs(tried) - variance / scale) ** 2 / (2 * variance)
        kept.append(tried[rng.standard_exponential(tried.size) >= exponent][:expected])
        expected -= kept[-1].size
    return Simulated.wrap(np.concatenate([np.zeros(0, dtype=np.int64), *kept]).reshape(size))


# A public stream of numbers that is the same on every machine and in every version.
#
# It serves what a reader computes again: the law of noise, never noise that is released. Word i of the stream of a
# label is SplitMix64 (Steele, Lea and Flood 2014) at ``key + (i + 1)·γ``, where ``key`` is the first eight bytes of the
# SHA-256 of the label. Everything else is defined here from these words, so no other library's numbers enter. The
# methods have the names of those of numpy's generators, and mechanisms simulate from either.

Words = NDArray[np.uint64]
Shape = int | tuple[int, ...] | None

_GAMMA = 0x9E3779B97F4A7C15
_MIX = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
_ALL = 1 << 64
_FACTORS = 16
_CHUNK = 1 << 16
"""Words mixed at a time, so that they stay in the processor's cache."""


class PublicStream:
    """The stream of one label, read from its beginning or from a later word.

    >>> [hex(word) for word in PublicStream("isotone").words(2).tolist()]
    ['0xa53e41200980265a', '0x9886436dfb290b60']
    """

    def __init__(self, label: str, start: int = 0) -> None:
        """Read from word ``start`` on."""
        self._key = int.from_bytes(hashlib.sha256(label.encode()).digest()[:8], "little")
        self._read = start

    def words(self, count: int) -> Words:
        """The next ``count`` words."""
        out = np.empty(count, np.uint64)
        steps = np.arange(1, min(count, _CHUNK) + 1, dtype=np.uint64) * np.uint64(_GAMMA)
        for start in range(0, count, _CHUNK):
            part = out[start : start + _CHUNK]
            first = (self._key + (self._read + start) * _GAMMA) % _ALL
            np.add(steps[: part.size], np.uint64(first), out=part)
            for shift, factor in _MIX:
                part ^= part >> np.uint64(shift)
                part *= np.uint64(factor)
            part ^= part >> np.uint64(31)
        self._read += count
        return out

    def random(self, size: Shape = None) -> Any:
        """Uniform numbers in [0, 1), multiples of 2**-53."""
        drawn = (self.words(_count(size)) >> np.uint64(11)).astype(np.float64) * 2.0**-53
        return float(drawn[0]) if size is None else drawn.reshape(size)

    def standard_exponential(self, size: Shape = None) -> Any:
        """Exponential numbers of rate 1."""
        return -np.log1p(-self.random(size))

    def standard_normal(self, size: Shape = None) -> Any:
        """Normal numbers, two from each pair of uniform ones (Box and Muller 1958)."""
        count = _count(size)
        half = (count + 1) // 2
        radius, angle = np.sqrt(2 * self.standard_exponential(half)), 2 * np.pi * self.random(half)
        drawn = np.concatenate((radius * np.cos(angle), radius * np.sin(angle)))[:count]
        return float(drawn[0]) if size is None else drawn.reshape(size)

    def normal(self, loc: float = 0.0, scale: float = 1.0, size: Shape = None) -> Any:
        """Normal numbers of the given mean and standard deviation."""
        return loc + scale * self.standard_normal(size)

    def laplace(self, loc: float = 0.0, scale: float = 1.0, size: Shape = None) -> Any:
        """Laplace numbers, differences of two exponential ones."""
        return loc + scale * (self.standard_exponential(size) - self.standard_exponential(size))

    def uniform(self, low: float = 0.0, high: float = 1.0, size: Shape = None) -> Any:
        """Uniform numbers in [low, high)."""
        return low + (high - low) * self.random(size)

    def standard_gamma(self, shape: Any, size: Shape = None) -> Any:
        """Gamma numbers of whole shapes, sums of as many exponential ones; an array of shapes gives one for each."""
        shapes = np.asarray(shape) if size is None else np.broadcast_to(np.asarray(shape), size)
        flat = shapes.ravel()
        result, product = np.zeros(flat.size), np.ones(flat.size)
        for step in range(1, int(flat.max(initial=0)) + 1):
            more = np.flatnonzero(flat >= step)
            product[more] *= 1 - self.random(more.size)
            if step % _FACTORS == 0:  # before the product leaves the range of floats
                result -= np.log(product)
                product[:] = 1.0
        result -= np.log(product)
        return result.reshape(shapes.shape) if shapes.ndim else float(result[0])

    def integers(
        self,
        low: int,
        high: int | NDArray[np.int64] | None = None,
        size: Shape = None,
        dtype: Any = np.int64,
    ) -> Any:
        """Whole numbers from ``low`` to below ``high``, or from 0 to below ``low``; one for each entry of an array."""
        if isinstance(high, np.ndarray):
            return low + np.floor(self.random(high.shape) * (high - low)).astype(np.int64)
        start, stop = (0, low) if high is None else (low, high)
        if stop - start == _ALL:
            return self.words(_count(size)).reshape(size or ())
        drawn = start + np.floor(self.random(_count(size)) * (stop - start)).astype(np.int64)
        return int(drawn[0]) if size is None else drawn.astype(dtype).reshape(size)


def public_stream(label: str) -> np.random.Generator:
    """The stream of a label, for ``simulate``.

    It has those methods of a numpy generator that simulations use, and no others.
    """
    return cast("np.random.Generator", PublicStream(label))


def _count(size: Shape) -> int:
    return 1 if size is None else int(np.prod(size))
