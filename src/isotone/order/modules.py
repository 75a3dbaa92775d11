"""How one strong module splits: the three kernels behind :mod:`.decomposition`.

Each takes the members of a module and labels them by child, children numbered bottom to top (series) or by
the first member met (parallel, prime). One label for all means: no split of this kind.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from isotone.order.closure import Bits, Ints

__all__ = ["parallel_labels", "prime_labels", "series_labels"]


def series_labels(balance: Ints) -> Ints:
    """Blocks that lie on top of each other, from each member's (number below − number above).

    Summed over a set L of k members out of s, the balance counts pairs from L to the rest with weight +1
    where the rest is below and −1 where it is above. So L lies below all the rest exactly when its sum
    reaches the least possible value, −k (s − k); and then L has the k smallest balances.
    """
    by_balance = np.argsort(balance, kind="stable")
    k = np.arange(1, balance.size + 1)
    block_ends_here = np.cumsum(balance[by_balance]) == -k * (balance.size - k)
    labels = np.empty_like(balance)
    labels[by_balance] = np.cumsum(block_ends_here) - block_ends_here
    return labels


@njit(cache=True)
def parallel_labels(
    members: Ints, place: Ints, first: int, upper_starts: Ints, uppers: Ints, lower_starts: Ints, lowers: Ints
) -> Ints:
    """Connected components; member k is the element ``members[k]``, at ``place[element] == first + k``.

    The covers inside a module are covers of the whole order, because modules are convex.
    """
    labels = np.full(members.size, -1, np.int64)
    waiting = np.empty(members.size, np.int64)
    component = -1
    for root in range(members.size):
        if labels[root] >= 0:
            continue
        component += 1
        labels[root] = component
        waiting[0], count = root, 1
        while count > 0:
            count -= 1
            x = members[waiting[count]]
            for starts, ends in ((upper_starts, uppers), (lower_starts, lowers)):
                for y in ends[starts[x] : starts[x + 1]]:
                    k = place[y] - first
                    if 0 <= k < members.size and labels[k] < 0:
                        labels[k] = component
                        waiting[count] = k
                        count += 1
    return labels


@njit(cache=True)
def _relation(bits: Bits, x: Any, y: Any) -> np.int64:
    """1 where x lies below y, 2 where above, 0 where unrelated."""
    below = bits[x, y >> 6] >> np.uint64(y & 63) & np.uint64(1)
    above = bits[y, x >> 6] >> np.uint64(x & 63) & np.uint64(1)
    return np.int64(below) + 2 * np.int64(above)


@njit(cache=True)
def prime_labels(bits: Bits, members: Ints) -> Ints:
    """The largest proper modules of a module that is neither series nor parallel.

    With v the first member: the others fall into the largest modules without v. Those that force
    everything into any module that holds them and v are children; the rest form v's own child.
    """
    parts = _modules_without_first(bits, members)
    k = parts.max() + 1
    representative = np.empty(k, np.int64)
    for m in range(members.size - 1, 0, -1):
        representative[parts[m]] = members[m]
    apart = _parts_that_force_all(bits, members[0], representative)
    labels = np.empty(members.size, np.int64)
    number = np.full(k, -1, np.int64)
    used = 1
    labels[0] = 0
    for m in range(1, members.size):
        part = parts[m]
        if not apart[part]:
            labels[m] = 0
            continue
        if number[part] < 0:
            number[part] = used
            used += 1
        labels[m] = number[part]
    return labels


@njit(cache=True)
def _modules_without_first(bits: Bits, members: Ints) -> Ints:
    """For each member but the first a label of the largest module that holds it and not the first.

    Partition refinement: when a part falls into groups, every member of a group must in turn see each
    other group alike. Two members are compared once, when they part: O(s²).
    """
    s = members.size
    seat = np.arange(1, s)  # a part is an interval of seats; members move only inside their part
    part = np.zeros(s - 1, np.int64)  # part of each seat
    end = np.empty(s, np.int64)  # last seat + 1 of each part
    end[0] = s - 1
    parts = 1
    task = np.empty((3 * s + 6, 4), np.int64)  # members at seats [0]..[1] must see those at [2]..[3] alike
    tasks = 0
    scratch = np.empty((3, s), np.int64)
    size = np.empty(3, np.int64)
    # The first member is the first splitter, of all seats; then the tasks provide them.
    splitters = np.zeros(1, np.int64)
    left, right = 0, s - 1
    while True:
        for splitter in splitters:
            y = members[splitter]
            p = left
            while p < right:
                old = part[p]
                stop = end[old]
                size[:] = 0
                for q in range(p, stop):
                    group = _relation(bits, y, members[seat[q]])
                    scratch[group, size[group]] = seat[q]
                    size[group] += 1
                if size.max() < stop - p:
                    a = p
                    for group in range(3):
                        if size[group] == 0:
                            continue
                        b = a + size[group]
                        label = old
                        if a > p:
                            label = parts
                            parts += 1
                        end[label] = b
                        part[a:b] = label
                        seat[a:b] = scratch[group, : size[group]]
                        for c, d in ((p, a), (b, stop)):
                            if c < d:
                                task[tasks] = (a, b, c, d)
                                tasks += 1
                        a = b
                p = stop
        if tasks == 0:
            break
        tasks -= 1
        splitters = seat[task[tasks, 0] : task[tasks, 1]].copy()
        left, right = task[tasks, 2], task[tasks, 3]
    labels = np.full(s, -1, np.int64)
    for q in range(s - 1):
        labels[seat[q]] = part[q]
    return labels


@njit(cache=True)
def _parts_that_force_all(bits: Bits, v: np.int64, representative: Ints) -> np.ndarray:
    """Which parts A lie in no proper module with v.

    A module with v and A holds every part B that sees v and A differently; the parts that reach all
    others along A → B are one strong component, which the last fresh start of a search falls into.
    """
    k = representative.size
    sees_v = np.empty(k, np.int64)
    for b in range(k):
        sees_v[b] = _relation(bits, representative[b], v)
    reached = np.zeros(k, np.bool_)
    waiting = np.empty(k, np.int64)
    last = 0
    for root in range(k):
        if reached[root]:
            continue
        last = root
        reached[root] = True
        waiting[0], count = root, 1
        while count > 0:
            count -= 1
            a = representative[waiting[count]]
            for b in range(k):
                if not reached[b] and _relation(bits, representative[b], a) != sees_v[b]:
                    reached[b] = True
                    waiting[count] = b
                    count += 1
    forcing = np.zeros(k, np.bool_)
    forcing[last] = True
    waiting[0], count = last, 1
    while count > 0:
        count -= 1
        b = waiting[count]
        for a in range(k):
            if not forcing[a] and _relation(bits, representative[b], representative[a]) != sees_v[b]:
                forcing[a] = True
                waiting[count] = a
                count += 1
    return forcing
