"""Reading integers from a stream of 64-bit words, in compiled code.

The ``cursor`` is a small integer array that says where the reader is. When the words run out, or a decision
needs arithmetic that compiled code does not have, ``cursor[STATUS]`` is set and stays set; what is returned
from then on is meaningless, and the reader must :func:`rewind` to where the present walk started.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from isotone.array_types import Ints
from isotone.kernels import kernel
from isotone.order.bipartitions.upward import Int64, share

__all__ = [
    "ASKED",
    "NEEDS_ANSWER",
    "NEEDS_WORDS",
    "POSITION",
    "QUESTION",
    "SLICE",
    "STATUS",
    "below",
    "bits",
    "certain",
    "in_tail",
    "last_unit_kept",
    "locate",
    "new_cursor",
    "rewind",
    "settle_walk",
]

Stream = NDArray[np.uint64]

POSITION, HELD, SPARE, STATUS, START, ASKED, QUESTION = range(7)  # QUESTION takes three places
NEEDS_WORDS, NEEDS_ANSWER = 1, 2

SLICE = 24
"""A decision that is yes with probability at least 1 - 2^-SLICE is asked with probability 2^-SLICE only."""


def new_cursor() -> Ints:
    """A reader at the first word."""
    return np.zeros(9, np.int64)


@kernel(leaf=True)
def settle_walk(cursor: Ints) -> None:
    """Make the present place the start of the next walk."""
    cursor[HELD], cursor[ASKED], cursor[START] = 0, 0, cursor[POSITION]


@kernel(leaf=True)
def rewind(cursor: Ints) -> None:
    """Go back to the start of the present walk. The status stays, for the caller to read."""
    cursor[HELD], cursor[ASKED], cursor[POSITION] = 0, 0, cursor[START]


@kernel(leaf=True)
def _half(words: Stream, cursor: Ints) -> Int64:
    """The next 32 bits."""
    if cursor[HELD] == 1:
        cursor[HELD] = 0
        return cursor[SPARE]
    if cursor[POSITION] >= words.size:
        cursor[STATUS] = NEEDS_WORDS
        return np.int64(0)
    word = words[cursor[POSITION]]
    cursor[POSITION] += 1
    cursor[HELD], cursor[SPARE] = 1, np.int64(word >> np.uint64(32))
    return np.int64(word & np.uint64(0xFFFFFFFF))


@kernel(leaf=True)
def bits(words: Stream, cursor: Ints, count: Int64) -> Int64:
    """``count`` bits as an integer, for at most 62 of them."""
    if count <= 32:
        return _half(words, cursor) >> (32 - count) if count > 0 else np.int64(0)
    high = _half(words, cursor)
    return (high << (count - 32)) | (_half(words, cursor) >> (64 - count))


@kernel(leaf=True)
def below(words: Stream, cursor: Ints, n: Int64) -> Int64:
    """A uniform integer below ``n``, which is below 2^31.

    Multiply and keep the high half (Lemire 2019).
    """
    product = _half(words, cursor) * np.int64(n)
    low = product & 0xFFFFFFFF
    if low < n:
        threshold = (np.int64(1) << 32) % np.int64(n)
        while low < threshold and cursor[STATUS] == 0:
            product = _half(words, cursor) * np.int64(n)
            low = product & 0xFFFFFFFF
    return product >> 32


@kernel(leaf=True)
def in_tail(words: Stream, cursor: Ints, rest: Int64, gap: Int64) -> bool:
    """True with probability ``rest / 2^gap``, for ``rest`` below 2^62 and any gap."""
    while gap > 62:
        width = min(32, gap - 62)
        if bits(words, cursor, width) != 0:
            return False
        gap -= width
    return bits(words, cursor, gap) < rest


@kernel(leaf=True)
def last_unit_kept(words: Stream, cursor: Ints, r: Int64, exact: Int64, gap: Int64) -> bool:
    """Whether unit r of the share of ``exact`` in units of 2^gap is kept.

    Only the last unit may have an excess.
    """
    if gap <= 0 or r < share(exact, gap) - 1:
        return True
    return in_tail(words, cursor, exact - (r << gap) if gap <= 61 else exact, gap)


@kernel(leaf=True)
def locate(cumulative: Ints, low: Int64, high: Int64, r: Int64) -> Int64:
    """The first place from ``low`` up to before ``high`` with a cumulative weight above r, or ``high``."""
    while low < high:
        middle = (low + high) >> 1
        if cumulative[middle] <= r:
            low = middle + 1
        else:
            high = middle
    return low


@kernel(leaf=True)
def certain(
    words: Stream, cursor: Ints, answers: NDArray[np.int8], step: Int64, a: Int64, state: Int64
) -> bool:
    """Decide a question whose answer is almost surely yes.

    Nothing is computed for it except in a small slice of the probability.
    """
    if bits(words, cursor, SLICE) != 0:
        return True
    if cursor[ASKED] < answers.size:
        cursor[ASKED] += 1
        return answers[cursor[ASKED] - 1] == 1
    if cursor[STATUS] == 0:
        cursor[STATUS] = NEEDS_ANSWER
        cursor[QUESTION], cursor[QUESTION + 1], cursor[QUESTION + 2] = step, a, state
    return False
