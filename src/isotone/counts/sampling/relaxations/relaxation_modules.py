"""The modules of an order, found so often that all of it is compiled.

Sets of elements are rows of machine words with ``BITS`` bits each. An order is two such rows for each element x: the
elements above x and those below. It is transitively closed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotone.array_types import Ints
from isotone.kernels import kernel

__all__ = [
    "BITS",
    "Int64",
    "Matrix",
    "component",
    "copied",
    "members",
    "rows_of",
    "split",
    "split_module",
]

Matrix = NDArray[np.int8]
"""Entry [x, y] is 1 where x < y, 2 where x > y, 0 where neither."""

Int64 = Any  # an integer in compiled code

BITS = 62


@kernel(leaf=True)
def _ones(word: Int64) -> Int64:
    """The number of bits that are set, of a word that is not negative."""
    word = word - ((word >> 1) & 0x5555555555555555)
    word = (word & 0x3333333333333333) + ((word >> 2) & 0x3333333333333333)
    word = (word + (word >> 4)) & 0x0F0F0F0F0F0F0F0F
    word = word + (word >> 8)
    word = word + (word >> 16)
    word = word + (word >> 32)
    return word & 127


@kernel
def rows_of(Q: Matrix) -> tuple[Ints, Ints]:
    """The rows of all elements above and below each one."""
    n = Q.shape[0]
    up, down = (
        np.zeros((n, (n + BITS - 1) // BITS), np.int64),
        np.zeros((n, (n + BITS - 1) // BITS), np.int64),
    )
    for x in range(n):
        for y in range(n):
            if Q[x, y] == 1:
                up[x, y // BITS] |= np.int64(1) << (y % BITS)
                down[y, x // BITS] |= np.int64(1) << (x % BITS)
    return up, down


@kernel(leaf=True)
def copied(row: Ints, to: Ints) -> None:
    """Write a set over another. To assign one array to another takes seconds to compile."""
    for k in range(row.size):
        to[k] = row[k]


@kernel
def members(row: Ints, found: Ints) -> Int64:
    """List the elements of a set. Returns how many there are."""
    count = 0
    for k in range(row.size):
        word = row[k]
        while word:
            low = word & -word
            found[count] = k * BITS + _ones(low - 1)
            count += 1
            word ^= low
    return count


@kernel
def component(up: Ints, down: Ints, part: Ints, v: Int64, unrelated: bool, seen: Ints) -> bool:
    """The elements of ``part`` connected to v by relations, or by their absence. Returns whether they are all."""
    n, width = up.shape
    queue = np.empty(n, np.int64)
    for k in range(width):
        seen[k] = 0
    seen[v // BITS] |= np.int64(1) << (v % BITS)
    queue[0], count, done = v, 1, 0
    while done < count:
        x = queue[done]
        done += 1
        for k in range(width):
            near = up[x, k] | down[x, k]
            if unrelated:
                near = ~near
            word = near & part[k] & ~seen[k]
            seen[k] |= word
            while word:
                low = word & -word
                queue[count] = k * BITS + _ones(low - 1)
                count += 1
                word ^= low
    whole = True
    for k in range(width):
        whole = whole and seen[k] == part[k]
    return whole


@kernel
def split(up: Ints, down: Ints, part: Ints, found: Ints) -> tuple[Int64, bool]:
    """Write the children of a module in the rows of ``found``.

    Returns how many there are, and whether it is prime.

    One parallel or series component is split off at a time: the rest is split when its turn comes.
    """
    v, k = 0, 0
    while part[k] == 0:
        k += 1
    v = k * BITS + _ones((part[k] & -part[k]) - 1)
    for unrelated in (False, True):
        if not component(up, down, part, v, unrelated, found[0]):
            for k in range(part.size):
                found[1, k] = part[k] & ~found[0, k]
            return 2, False
    return _prime_children(up, down, part, v, found), True


@kernel
def split_module(Q: Matrix, part: Ints, label: Ints) -> tuple[Int64, bool]:
    """Label the children of a module that is a list of elements. Returns what :func:`split` does."""
    m = part.size
    inner = np.zeros((m, m), np.int8)
    for i in range(m):
        for j in range(m):
            inner[i, j] = Q[part[i], part[j]]
    up, down = rows_of(inner)
    whole, found = np.zeros(up.shape[1], np.int64), np.empty((m + 1, up.shape[1]), np.int64)
    for i in range(m):
        whole[i // BITS] |= np.int64(1) << (i % BITS)
    count, prime = split(up, down, whole, found)
    listed = np.empty(m, np.int64)
    for c in range(count):
        for i in range(members(found[c], listed)):
            label[part[listed[i]]] = c
    return count, prime


@kernel
def _prime_children(up: Ints, down: Ints, part: Ints, v: Int64, found: Ints) -> Int64:
    """The largest proper modules of a prime module.

    The largest modules without v are found by refinement. Such a module A forces another, B, if a module with v and A
    must hold B because B sees v and A differently. Those that force, step by step, everything are children; the rest
    is the child that holds v.
    """
    n, width = up.shape
    label, classes = np.empty(n, np.int64), np.empty((n + 1, width), np.int64)
    count = _refine(up, down, part, v, label, classes)
    listed, some, one = np.empty(n, np.int64), np.zeros(width, np.int64), np.empty(n, np.int64)
    for c in range(1, count):
        members(classes[c], listed)
        one[c] = listed[0]
        some[listed[0] // BITS] |= np.int64(1) << (listed[0] % BITS)
    forcing = np.zeros(width, np.int64)
    # the last root of a search forces, step by step, every class that forces it
    rest, last = some.copy(), 0
    for c in range(1, count):
        if rest[one[c] // BITS] >> (one[c] % BITS) & 1:
            last = one[c]
            _follow(up, down, rest, v, last, True, forcing)
    copied(some, rest)
    forcing[:] = 0
    _follow(up, down, rest, v, last, False, forcing)
    children = 1
    copied(part, found[0])
    for c in range(1, count):
        if forcing[one[c] // BITS] >> (one[c] % BITS) & 1:
            for k in range(width):
                found[children, k] = classes[c, k]
                found[0, k] &= ~classes[c, k]
            children += 1
    return children


@kernel
def _follow(up: Ints, down: Ints, rest: Ints, v: Int64, start: Int64, forward: bool, found: Ints) -> None:
    """Move from ``rest`` to ``found`` what the start forces step by step, or what forces it."""
    n, width = up.shape
    queue, count, done = np.empty(n, np.int64), 1, 0
    queue[0] = start
    rest[start // BITS] &= ~(np.int64(1) << (start % BITS))
    found[start // BITS] |= np.int64(1) << (start % BITS)
    while done < count:
        a = queue[done]
        done += 1
        above, below = up[a, v // BITS] >> (v % BITS) & 1, down[a, v // BITS] >> (v % BITS) & 1
        for k in range(width):
            if forward:  # the b that see v and a differently
                alike = (up[v, k] & up[a, k]) | (down[v, k] & down[a, k])
                alike |= ~(up[v, k] | down[v, k]) & ~(up[a, k] | down[a, k])
            elif above:  # the b that a sees like v
                alike = up[a, k]
            elif below:
                alike = down[a, k]
            else:
                alike = ~(up[a, k] | down[a, k])
            word = rest[k] & ~alike
            rest[k] &= ~word
            found[k] |= word
            while word:
                low = word & -word
                queue[count] = k * BITS + _ones(low - 1)
                count += 1
                word ^= low


@kernel
def _refine(up: Ints, down: Ints, part: Ints, v: Int64, label: Ints, classes: Ints) -> Int64:
    """Class 0 is v, the others are the largest modules without it. Returns their number.

    Every x splits the classes in which it sees the members differently. Then it sees all other classes as one each,
    also when they are split later, until its own class is split.
    """
    n, width = up.shape
    size, waiting, listed = np.empty(n + 1, np.int64), part.copy(), np.empty(n, np.int64)
    for k in range(width):
        classes[0, k], classes[1, k] = 0, part[k]
    classes[0, v // BITS] |= np.int64(1) << (v % BITS)
    classes[1, v // BITS] &= ~(np.int64(1) << (v % BITS))
    for k in range(members(part, listed)):
        label[listed[k]] = 1
    label[v] = 0
    size[0], size[1], count = 1, members(classes[1], listed), 2
    found = True
    while found:
        found = False
        for k in range(width):
            while waiting[k]:
                low = waiting[k] & -waiting[k]
                waiting[k] ^= low
                found = True
                count = _part_all(
                    up, down, k * BITS + _ones(low - 1), label, classes, size, count, waiting, listed
                )
    return count


@kernel
def _part_all(
    up: Ints,
    down: Ints,
    x: Int64,
    label: Ints,
    classes: Ints,
    size: Ints,
    count: Int64,
    waiting: Ints,
    listed: Ints,
) -> Int64:
    """Split every class, but its own, that x sees in more than one way. Returns the new number of classes."""
    before, width = count, waiting.size
    for c in range(before):
        if size[c] < 2 or c == label[x]:
            continue
        above, below, beside = np.int64(0), np.int64(0), np.int64(0)
        for k in range(width):
            word = classes[c, k]
            above |= word & up[x, k]
            below |= word & down[x, k]
            beside |= word & ~(up[x, k] | down[x, k])
        if int(above != 0) + int(below != 0) + int(beside != 0) < 2:
            continue
        for k in range(width):
            waiting[k] |= classes[c, k]
        for upward in (True, False):
            if (above == 0) if upward else (below == 0 or beside == 0):
                continue  # one kind stays: the unrelated, or else those below
            for k in range(width):
                classes[count, k] = classes[c, k] & (up[x, k] if upward else down[x, k])
                classes[c, k] &= ~classes[count, k]
            size[count] = members(classes[count], listed)
            for j in range(size[count]):
                label[listed[j]] = count
            size[c] -= size[count]
            count += 1
    return count
