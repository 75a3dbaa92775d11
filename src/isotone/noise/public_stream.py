"""A public stream of numbers that is the same on every machine and in every version.

It serves what a reader computes again: the law of noise, never noise that is released. Word i of the stream of a
label is SplitMix64 (Steele, Lea and Flood 2014) at ``key + (i + 1)·γ``, where ``key`` is the first eight bytes of the
SHA-256 of the label. Everything else is defined here from these words, so no other library's numbers enter. The
methods have the names of those of numpy's generators, and mechanisms simulate from either.
"""

from __future__ import annotations

import hashlib
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

__all__ = ["PublicStream", "public_stream"]

Words = NDArray[np.uint64]
Size = int | tuple[int, ...] | None

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

    def random(self, size: Size = None) -> Any:
        """Uniform numbers in [0, 1), multiples of 2**-53."""
        drawn = (self.words(_count(size)) >> np.uint64(11)).astype(np.float64) * 2.0**-53
        return float(drawn[0]) if size is None else drawn.reshape(size)

    def standard_exponential(self, size: Size = None) -> Any:
        """Exponential numbers of rate 1."""
        return -np.log1p(-self.random(size))

    def standard_normal(self, size: Size = None) -> Any:
        """Normal numbers, two from each pair of uniform ones (Box and Muller 1958)."""
        count = _count(size)
        half = (count + 1) // 2
        radius, angle = np.sqrt(2 * self.standard_exponential(half)), 2 * np.pi * self.random(half)
        drawn = np.concatenate((radius * np.cos(angle), radius * np.sin(angle)))[:count]
        return float(drawn[0]) if size is None else drawn.reshape(size)

    def normal(self, loc: float = 0.0, scale: float = 1.0, size: Size = None) -> Any:
        """Normal numbers of the given mean and standard deviation."""
        return loc + scale * self.standard_normal(size)

    def laplace(self, loc: float = 0.0, scale: float = 1.0, size: Size = None) -> Any:
        """Laplace numbers, differences of two exponential ones."""
        return loc + scale * (self.standard_exponential(size) - self.standard_exponential(size))

    def uniform(self, low: float = 0.0, high: float = 1.0, size: Size = None) -> Any:
        """Uniform numbers in [low, high)."""
        return low + (high - low) * self.random(size)

    def standard_gamma(self, shape: Any, size: Size = None) -> Any:
        """Gamma numbers of whole shapes, sums of as many exponential ones; an array of shapes gives one for each."""
        shapes = np.asarray(shape) if size is None else np.broadcast_to(np.asarray(shape), size)
        flat = shapes.ravel()
        found, product = np.zeros(flat.size), np.ones(flat.size)
        for step in range(1, int(flat.max(initial=0)) + 1):
            more = np.flatnonzero(flat >= step)
            product[more] *= 1 - self.random(more.size)
            if step % _FACTORS == 0:  # before the product leaves the range of floats
                found -= np.log(product)
                product[:] = 1.0
        found -= np.log(product)
        return found.reshape(shapes.shape) if shapes.ndim else float(found[0])

    def integers(
        self,
        low: int,
        high: int | NDArray[np.int64] | None = None,
        size: Size = None,
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


def _count(size: Size) -> int:
    return 1 if size is None else int(np.prod(size))
