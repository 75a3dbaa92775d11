"""Random bits from the operating system's cryptographic source, and unbiased integers made of them.

Nothing is kept between calls: every call asks the kernel for one block of exactly the size it needs. So
there is no state that a fork could duplicate, that threads could share, or that a core dump could reveal
before it is used. Unused bits of a block are dropped; they are independent of everything drawn before and
after, so dropping them changes no distribution (docs/theory/sampling.md, section 1).
"""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import NDArray

from isotone.errors import InputError

__all__ = ["random_below", "random_belows", "random_bits", "random_salt", "random_words"]


def random_bits(count: int) -> int:
    """A uniform integer in ``[0, 2**count)``.

    >>> random_bits(0)
    0
    >>> 0 <= random_bits(10) < 1024
    True
    """
    if count < 0:
        raise InputError(f"The number of random bits must be at least 0, not {count}.")
    size = (count + 7) // 8
    return int.from_bytes(os.urandom(size), "little") >> (8 * size - count)


def random_below(bound: int) -> int:
    """Draw a uniform integer in ``[0, bound)`` by rejection.

    Fewer than two tries are expected.

    >>> random_below(1)
    0
    """
    if bound < 1:
        raise InputError(f"A uniform integer needs a bound of at least 1, not {bound}.")
    count = (bound - 1).bit_length()
    while True:
        candidate = random_bits(count)
        if candidate < bound:
            return candidate


def random_words(count: int) -> NDArray[np.uint64]:
    """``count`` uniform 64-bit words, drawn in one block."""
    if count < 0:
        raise InputError(f"The number of random words must be at least 0, not {count}.")
    return np.frombuffer(bytearray(os.urandom(8 * count)), dtype=np.uint64)


def random_salt() -> bytes:
    """Draw the 16 bytes that decide which rows of a unit count.

    They are drawn for each attempt, used once and stored nowhere.

    >>> len(random_salt())
    16
    """
    return os.urandom(16)


def random_belows(bounds: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each bound a uniform integer in ``[0, bound)``, from a word each; words of an incomplete last round are drawn again.

    >>> random_belows(np.ones(2, np.int64))
    array([0, 0])
    """
    if np.any(bounds < 1):
        raise InputError("Uniform integers need bounds of at least 1.")
    sizes = bounds.astype(np.uint64)
    words, least = random_words(sizes.size), (np.uint64(0) - sizes) % sizes  # 2**64 modulo the bound
    open_places = np.flatnonzero(words < least)
    while open_places.size:
        words[open_places] = random_words(open_places.size)
        open_places = open_places[words[open_places] < least[open_places]]
    return (words % sizes).astype(np.int64)
