"""Exact draws of bipartitions of orders of two levels, by coupling from the past."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from isotone.errors import InputError
from isotone.kernels import Int, Ints, Word, Words, kernel

if TYPE_CHECKING:
    from isotone.order.poset import Poset

# Sweeps over all coordinates of an order of two levels, for bounds from below and from above at once.
#
# Coordinates 0, …, m - 1 are *tied* to the shared coordinate, which is number n; those from m to n - 1 are not. With
# ``s`` the shared one, v a tied and w a free one, the body is given by
#
#     0 <= s <= 1,    s - 1 <= v <= s,    -1 <= w <= 0,    v - 1 <= w <= v  wherever v and w are related
#
# (docs/theory/counts.md, section 9). Given the others, a coordinate is uniform between two ends, each of which
# increases in every other coordinate; it becomes ``(1 - u)·end + u·other end``, which increases in both. A sweep
# without a word for the shared coordinate leaves it where it is.

_ONE = 1 << 60
_HALF_MASK = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


@kernel
def sweep(starts: Ints, others: Ints, m: Int, words: Words, low: Ints, high: Ints) -> None:
    """All sweeps of 64-bit words, in compiled code; coordinates in units of 2^-60.

    Word k stands for the interval [k, k + 1]/2^64. ``low`` and ``high`` are replaced by the bounds at the end.
    """
    n = low.size - 1
    for t in range(words.shape[0]):
        low_first, high_first = np.int64(0), np.int64(0)  # the ends of the shared coordinate
        low_last, high_last = np.int64(_ONE), np.int64(_ONE)
        for v in range(m):
            low_a, low_b, high_a, high_b = low[n] - _ONE, low[n], high[n] - _ONE, high[n]
            for k in range(starts[v], starts[v + 1]):
                w = others[k]
                low_a, low_b = max(low_a, low[w]), min(low_b, low[w] + _ONE)
                high_a, high_b = max(high_a, high[w]), min(high_b, high[w] + _ONE)
            low[v] = _between_down(low_a, low_b, words[t, v])
            high[v] = _between_up(high_a, high_b, words[t, v])
            low_first, low_last = max(low_first, low[v]), min(low_last, low[v] + _ONE)
            high_first, high_last = max(high_first, high[v]), min(high_last, high[v] + _ONE)
        if words.shape[1] > n:
            low[n] = _between_down(low_first, low_last, words[t, n])
            high[n] = _between_up(high_first, high_last, words[t, n])
        for w in range(m, n):
            low_a, low_b, high_a, high_b = np.int64(-_ONE), np.int64(0), np.int64(-_ONE), np.int64(0)
            for k in range(starts[w], starts[w + 1]):
                v = others[k]
                low_a, low_b = max(low_a, low[v] - _ONE), min(low_b, low[v])
                high_a, high_b = max(high_a, high[v] - _ONE), min(high_b, high[v])
            low[w] = _between_down(low_a, low_b, words[t, w])
            high[w] = _between_up(high_a, high_b, words[t, w])


@kernel(leaf=True)
def _between_down(first: Int, last: Int, word: Word) -> Int:
    """``first + u·(last - first)`` rounded down, for the least it can be with this word."""
    if last < first:  # by rounding only
        return last
    return first + np.int64(_product(np.uint64(last - first), word)[0])


@kernel(leaf=True)
def _between_up(first: Int, last: Int, word: Word) -> Int:
    """``first + u·(last - first)`` rounded up, for the most it can be with this word."""
    if last < first:
        return first
    length = np.uint64(last - first)
    above, below = _product(length, word)
    carried = below + length  # times word + 1
    if carried < below:
        above += np.uint64(1)
    return first + np.int64(above) + (1 if carried > np.uint64(0) else 0)


@kernel(leaf=True)
def _product(a: Word, b: Word) -> tuple[Word, Word]:
    """The product of two 64-bit numbers as two words, the higher first."""
    a_high, a_low, b_high, b_low = a >> _HALF, a & _HALF_MASK, b >> _HALF, b & _HALF_MASK
    middle = a_high * b_low + (a_low * b_low >> _HALF)
    other = a_low * b_high + (middle & _HALF_MASK)
    return a_high * b_high + (middle >> _HALF) + (other >> _HALF), a * b


def sweep_widely(
    starts: list[int],
    others: list[int],
    m: int,
    words: list[int],
    digits: int,
    bounds: tuple[list[int], list[int]],
) -> None:
    """One sweep of the bounds from below and above in Python's integers, for words of any number of ``digits``."""
    n, one = len(bounds[0]) - 1, 1 << (digits - SPARE)
    for rounding, values in enumerate(bounds):
        for v in range(m):
            related = [values[w] for w in others[starts[v] : starts[v + 1]]]
            ends = max([values[n] - one, *related]), min([values[n], *(w + one for w in related)])
            values[v] = _between(*ends, words[v], digits, rounding)
        if len(words) > n:
            ends = max([0, *values[:m]]), min([one, *(v + one for v in values[:m])])
            values[n] = _between(*ends, words[n], digits, rounding)
        for w in range(m, n):
            related = [values[v] for v in others[starts[w] : starts[w + 1]]]
            ends = max([-one, *(v - one for v in related)]), min([0, *related])
            values[w] = _between(*ends, words[w], digits, rounding)


def _between(first: int, last: int, word: int, digits: int, rounding: int) -> int:
    if last < first:
        return first if rounding else last
    length = last - first
    return first + (-(-length * (word + 1) >> digits) if rounding else length * word >> digits)


# Extended bipartitions of orders of two levels, of any size, by monotone coupling from the past.
#
# A uniform extended bipartition is that of a uniform point of a body in n + 1 dimensions. For an order of height 2 at
# most there are coordinates in which that body is closed under maxima and minima, coordinate by coordinate. So one can
# resample coordinate after coordinate with shared uniforms, from the highest and the lowest point at once: what
# lies between stays between, and once both are close enough to tell the extended bipartition, it is that of a chain
# that has run for ever (docs/theory/counts.md, section 9; Propp and Wilson 1996).
#
# Nothing is rounded to a result. A random word stands for an interval, and the two chains bound all that it may
# become: the lower is rounded down, the upper up, in integers. What they cannot tell yet is told by older sweeps or by
# further digits of the *same* words. Nothing starts over and there is no limit, since how long a draw takes depends on
# what it draws.

Result = tuple[list[int], list[int]]

BITS = 64
"""Binary digits that are read of a word at a time …"""

SPARE = 4
"""… and how many fewer a coordinate has after its point, so that it fits a machine word."""

PILOTS = 8
"""Simulated draws that decide how many sweeps a draw begins with."""


class Past:
    """The random words of all sweeps so far, by sweep and coordinate, the oldest sweep first.

    Each layer has ``bits`` further binary digits of every word.
    """

    def __init__(self, columns: int, words: Callable[[int], Words], bits: int = BITS) -> None:
        self.columns, self.bits, self._words = columns, bits, words
        self.layers = [np.empty((0, columns), np.uint64)]

    @property
    def sweeps(self) -> int:
        """How many sweeps there are."""
        return len(self.layers[0])

    @property
    def digits(self) -> int:
        """How many binary digits each word has."""
        return self.bits * len(self.layers)

    def reach_back(self, sweeps: int) -> None:
        """Put so many sweeps before the present ones, which stay as they are."""
        self.layers = [np.concatenate((self._fresh(sweeps), layer)) for layer in self.layers]

    def refine(self) -> None:
        """Append digits to every word, whose first digits stay as they are."""
        self.layers.append(self._fresh(self.sweeps))

    def numbers(self) -> Iterator[list[int]]:
        """The words of each sweep as integers of ``digits`` binary digits."""
        shift = BITS - self.bits
        for rows in zip(*(layer.tolist() for layer in self.layers), strict=True):
            yield [self._joined(word, shift) for word in zip(*rows, strict=True)]

    def _joined(self, parts: tuple[int, ...], shift: int) -> int:
        number = 0
        for part in parts:
            number = number << self.bits | part >> shift
        return number

    def _fresh(self, sweeps: int) -> Words:
        return self._words(sweeps * self.columns).reshape(sweeps, self.columns)


@dataclass(frozen=True, eq=False)
class _Coordinates:
    """The coordinates: the position of each one's element, and the coordinates that it is related to.

    The first ``tied`` ones are tied to the shared coordinate. Those related to v are ``others`` from ``starts[v]`` on.
    """

    positions: Ints
    tied: int
    starts: Ints
    others: Ints


@dataclass(frozen=True, eq=False)
class TwoLevels:
    """Draws of extended bipartitions of an order of height 2 at most.

    All are equally likely; if ``balanced``, each is as likely as its sides have interleavings.
    """

    order: Poset
    balanced: bool = False

    def __post_init__(self) -> None:
        if np.any(self.order.levels > 1):
            raise InputError("The order has more than two levels.")

    @cached_property
    def _covers(self) -> Ints:
        place = {x: i for i, x in enumerate(self.order.elements)}
        return np.array([(place[x], place[y]) for x, y in self.order.covers], np.int64).reshape(-1, 2)

    @cached_property
    def _turned(self) -> bool:
        """Whether the elements above others are tied, which is better if they are fewer."""
        below, above = (np.unique(ends).size for ends in self._covers.T)
        return above < below

    @cached_property
    def _shape(self) -> _Coordinates:
        covers = self._covers[:, ::-1] if self._turned else self._covers
        tied = np.unique(covers[:, 0])
        free = np.setdiff1d(np.arange(len(self.order)), tied)
        positions = np.concatenate((tied, free))
        number = np.empty_like(positions)
        number[positions] = np.arange(positions.size)
        pairs = np.concatenate((number[covers], number[covers[:, ::-1]]))
        pairs = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
        starts = np.searchsorted(pairs[:, 0], np.arange(positions.size + 1))
        return _Coordinates(positions, tied.size, starts.astype(np.int64), pairs[:, 1].copy())

    @property
    def columns(self) -> int:
        """Random words of a sweep."""
        return len(self.order) + (not self.balanced)

    @cached_property
    def sweeps(self) -> int:
        """With how many sweeps a draw begins: twice as many as any of a few simulated ones needed.

        They are simulated from public bits, so that this depends on the order alone.
        """
        rng = np.random.default_rng(0)
        needed = [self._settled(self.past(lambda k: _seeded(rng, k)), 16)[1] for _ in range(PILOTS)]
        return 2 * max(needed)

    def past(self, words: Callable[[int], Words]) -> Past:
        """An empty past."""
        return Past(self.columns, words)

    def draw(self, words: Callable[[int], Words]) -> tuple[NDArray[np.int32], int]:
        """Draw once. ``words(k)`` gives k further random words.

        Returns positions (side A first, each side ascending), and the size of side A.
        """
        (one, two), _ = self._settled(self.past(words), self.sweeps)
        return np.array(one + two, np.int32), len(one)

    def settle(self, past: Past, sweeps: int) -> Result:
        """The extended bipartition that all words together tell, from as few of them as that takes.

        It begins with ``sweeps``. Whatever is read, and in whatever sequence, the result is the same.
        """
        return self._settled(past, sweeps)[0]

    def _settled(self, past: Past, sweeps: int) -> tuple[Result, int]:
        past.reach_back(sweeps)
        while True:
            low, high = self._bounds(past)
            result = self._read(low, high)
            if result is not None:
                return result, past.sweeps
            width = max(up - down for down, up in zip(low, high, strict=True))
            if width < max(1 << past.digits // 2, 8 * past.sweeps):  # as close as rounding lets them come
                past.refine()
            else:
                past.reach_back(past.sweeps)

    def _bounds(self, past: Past) -> tuple[list[int], list[int]]:
        """Bounds of all coordinates after the last sweep, in units of ``2^-(digits - SPARE)``."""
        shape, one = self._shape, 1 << (past.digits - SPARE)
        first, last = (one // 2, one // 2) if self.balanced else (0, one)
        free = len(self.order) - shape.tied
        low = [first - one] * shape.tied + [-one] * free + [first]
        high = [last] * shape.tied + [0] * free + [last]
        if past.digits == BITS:
            bounds = np.array([low, high], np.int64)
            sweep(shape.starts, shape.others, shape.tied, past.layers[0], bounds[0], bounds[1])
            return bounds[0].tolist(), bounds[1].tolist()
        starts, others = shape.starts.tolist(), shape.others.tolist()
        for numbers in past.numbers():
            sweep_widely(starts, others, shape.tied, numbers, past.digits, (low, high))
        return low, high

    def _read(self, low: list[int], high: list[int]) -> Result | None:
        """The extended bipartition of all points between the bounds, if it is the same for all: the climb."""
        starts, others = self._shape.starts.tolist(), self._shape.others.tolist()
        m, n, positions = self._shape.tied, len(self.order), self._shape.positions.tolist()
        sides: tuple[list[tuple[int, int, int]], ...] = ([], [])
        ups, downs = [(0, 0)] * m, [(0, 0)] * m
        for v in range(n):
            if v < m:
                y, a, b = (low[v], high[v]), (0, 0), (0, 0)
            else:
                y, below = (low[v] + low[n], high[v] + high[n]), others[starts[v] : starts[v + 1]]
                a, b = _largest([ups[w] for w in below]), _largest([downs[w] for w in below])
            if y[0] + b[0] > a[1]:
                side, height = 0, (y[0] + b[0], y[1] + b[1])
            elif y[1] + b[1] < a[0]:
                side, height = 1, (a[0] - y[1], a[1] - y[0])
            else:
                return None
            sides[side].append((*height, positions[v]))
            if v < m:
                (ups if side == 0 else downs)[v] = height
        for side in sides:
            side.sort(reverse=self._turned)
            ascending = side[::-1] if self._turned else side
            if any(one[1] >= other[0] for one, other in pairwise(ascending)):
                return None
        return [x for _, _, x in sides[0]], [x for _, _, x in sides[1]]


def _largest(bounds: list[tuple[int, int]]) -> tuple[int, int]:
    return max((low for low, _ in bounds), default=0), max((high for _, high in bounds), default=0)


def _seeded(rng: np.random.Generator, count: int) -> Words:
    return rng.integers(0, 2**64, size=count, dtype=np.uint64)
