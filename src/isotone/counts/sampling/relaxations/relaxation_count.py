"""The number of extended bipartitions of a relaxed order, in floating point, for the search alone.

The search asks again and again, and from one step to the next few modules change. So the table of every module is
kept under a hash of its relations. Entry a of a table is the number of extended bipartitions of the module with a
elements on side A, by the formulas of docs/theory/counts.md, section 5, up to a common factor whose logarithm is kept
with it. Releases never use these numbers.
"""

from __future__ import annotations

import hashlib
import math
from typing import NamedTuple

import numpy as np

from isotone.array_types import Floats, Ints
from isotone.counts.sampling.relaxations.relaxation_modules import Matrix, split_module
from isotone.kernels import kernel

__all__ = ["LogCount"]

MOST = 20_000
"""Tables that are kept at most."""


class SizeTable(NamedTuple):
    """Numbers by size of side A, the largest of which is 1, and the logarithm of what they were divided by."""

    numbers: Floats
    log: float


POINT = SizeTable(np.ones(2), 0.0)


class LogCount:
    """Counts the extended bipartitions of orders that resemble each other."""

    def __init__(self) -> None:
        """Nothing is known at first."""
        self._tables: dict[bytes, SizeTable] = {}

    def __call__(self, Q: Matrix) -> float:
        """The logarithm of their number for the order ``Q``, or infinity if it is out of the range of floats."""
        found = self._table(Q, np.arange(len(Q), dtype=np.int64))
        total = float(found.numbers.sum())
        return found.log + math.log(total) if 0 < total < math.inf else math.inf

    def _table(self, Q: Matrix, part: Ints) -> SizeTable:
        if part.size == 1:
            return POINT
        key = hashlib.sha256(Q[np.ix_(part, part)].tobytes()).digest()
        if key not in self._tables:
            if len(self._tables) >= MOST:
                self._tables.clear()
            self._tables[key] = self._counted(Q, part)
        return self._tables[key]

    def _counted(self, Q: Matrix, part: Ints) -> SizeTable:
        label = np.zeros(len(Q), np.int64)
        count, prime = split_module(Q, part, label)
        if prime:
            modules = [part[label[part] == c] for c in range(count)]
            return _prime(Q, modules, [self._table(Q, module) for module in modules])
        pieces: list[Ints] = []
        related = False
        while not prime:  # one component after the other, as long as they are of one kind
            one, rest = part[label[part] == 0], part[label[part] == 1]
            if pieces and (Q[one[0], rest[0]] != 0) != related:
                break
            related = bool(Q[one[0], rest[0]] != 0)
            pieces.append(one)
            part = rest
            if part.size == 1:
                break
            _, prime = split_module(Q, part, label)
        tables = [self._table(Q, piece) for piece in [*pieces, part]]
        return _stacked(tables) if related else _beside(tables)


def _stacked(tables: list[SizeTable]) -> SizeTable:
    """The table of modules above each other: a convolution."""
    found = tables[0]
    for other in tables[1:]:
        found = _scaled(np.convolve(found.numbers, other.numbers), found.log + other.log)
    return found


def _beside(tables: list[SizeTable]) -> SizeTable:
    """The table of unrelated modules: a convolution of numbers without the orders of the two sides."""
    found = _loosened(tables[0], -1)
    for other in tables[1:]:
        loose = _loosened(other, -1)
        found = _scaled(np.convolve(found.numbers, loose.numbers), found.log + loose.log)
    return _loosened(found, 1)


def _loosened(table: SizeTable, sign: int) -> SizeTable:
    """Entry a times a! (n - a)!, or divided by it for a negative sign."""
    logs = np.array([math.lgamma(a + 1) for a in range(len(table.numbers))])
    logs = sign * (logs + logs[::-1])
    return _scaled(table.numbers * np.exp(logs - logs.max()), table.log + float(logs.max()))


def _prime(Q: Matrix, modules: list[Ints], tables: list[SizeTable]) -> SizeTable:
    """The table of a prime module, from the words over its modules."""
    some = np.array([module[0] for module in modules])
    sizes = np.array([module.size for module in modules], np.int64)
    above = (Q[np.ix_(some, some)] == 1) @ (1 << np.arange(len(some), dtype=np.int64))
    width = int(sizes.max()) + 1
    padded = np.array([np.pad(table.numbers, (0, width - len(table.numbers))) for table in tables])
    rate = len(modules) / 2  # words of m letters are about so many to the power of m: keeps floats in range
    numbers = _split(sizes, padded, _words(sizes, above, rate))
    return _scaled(numbers, sum(table.log for table in tables) + int(sizes.sum()) * math.log(rate))


def _scaled(numbers: Floats, log: float) -> SizeTable:
    largest = float(numbers.max())
    if not 0 < largest < math.inf:
        return SizeTable(np.full(len(numbers), np.inf), log)
    return SizeTable(numbers / largest, log + math.log(largest))


@kernel
def _words(sizes: Ints, above: Ints, rate: float) -> Floats:
    """The number of words with so many of each letter, divided by ``rate`` for each letter."""
    k, states = sizes.size, 1
    stride, count = np.empty(k, np.int64), np.zeros(k, np.int64)
    for i in range(k):
        stride[i] = states
        states *= sizes[i] + 1
    words = np.empty(states)
    words[0] = 1.0
    used = np.int64(0)
    for state in range(1, states):
        i = 0
        while count[i] == sizes[i]:
            count[i] = 0
            used &= ~(np.int64(1) << i)
            i += 1
        count[i] += 1
        used |= np.int64(1) << i
        total = 0.0
        for i in range(k):  # the last letter: none above it is used
            if used >> i & 1 and above[i] & used == 0:
                total += words[state - stride[i]]
        words[state] = total / rate
    return words


@kernel
def _split(sizes: Ints, tables: Floats, words: Floats) -> Floats:
    """The weights of all splits, by size of side A."""
    k, a, changed = sizes.size, 0, sizes.size - 1
    found, count, product = np.zeros(np.sum(sizes) + 1), np.zeros(k, np.int64), np.ones(k + 1)
    for state in range(words.size):
        if state > 0:
            changed = 0
            while count[changed] == sizes[changed]:
                a -= count[changed]
                count[changed] = 0
                changed += 1
            count[changed] += 1
            a += 1
        for i in range(changed, -1, -1):
            product[i] = product[i + 1] * tables[i, count[i]]
        found[a] += product[0] * words[state] * words[words.size - 1 - state]
    return found
