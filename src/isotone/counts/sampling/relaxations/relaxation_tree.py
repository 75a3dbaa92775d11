"""Whether an order stays within reach with one more relation, from its tree of modules.

When x < y is added, with all that follows, only relations within a module that holds both change, and every module that
holds neither stays one: its members see x alike, and y. So each such module may stand for all of its members, and what
is left to split is much smaller than the order (docs/theory/counts.md, section 9).
"""

from __future__ import annotations

import math

import numpy as np

from isotone.counts.sampling.relaxations.relaxation_modules import (
    BITS,
    Int64,
    Ints,
    component,
    copied,
    members,
    split,
)
from isotone.kernels import kernel

__all__ = ["fits", "fits_with", "grow", "new_tree"]

MODULES = 60
"""The most modules of a prime block."""

PARENT, DEPTH, SOME, SIZE, FIRST, NEXT = range(6)
"""Columns of a tree: parent, depth, one member, number of members, first child and next sibling, or -1 for none."""


@kernel
def new_tree(n: Int64) -> Ints:
    """A tree of modules to be written. Row x is element x, the other modules follow."""
    return np.empty((2 * n, 6), np.int64)


@kernel
def grow(up: Ints, down: Ints, tree: Ints) -> None:
    """Write the modules of the order, each split as :func:`split` does it."""
    n, width = up.shape
    stack, found, listed = (
        np.zeros((2 * n + 2, width), np.int64),
        np.empty((n + 1, width), np.int64),
        np.empty(n, np.int64),
    )
    parents = np.full(2 * n + 2, -1)
    for x in range(n):
        stack[0, x // BITS] |= np.int64(1) << (x % BITS)
    depth, inner = 1, n
    while depth > 0:
        depth -= 1
        part, parent = stack[depth].copy(), parents[depth]
        size = members(part, listed)
        node = listed[0] if size == 1 else inner
        inner += 1 if size > 1 else 0
        tree[node, PARENT], tree[node, SOME], tree[node, SIZE] = parent, listed[0], size
        tree[node, DEPTH], tree[node, FIRST], tree[node, NEXT] = 0, -1, -1
        if parent >= 0:
            tree[node, DEPTH], tree[node, NEXT] = tree[parent, DEPTH] + 1, tree[parent, FIRST]
            tree[parent, FIRST] = node
        if size == 1:
            continue
        children, _ = split(up, down, part, found)
        for c in range(children):
            copied(found[c], stack[depth])
            parents[depth] = node
            depth += 1


@kernel
def fits_with(up: Ints, down: Ints, tree: Ints, x: Int64, y: Int64, reach: float) -> bool:
    """Whether every prime block is within reach with x < y, given that all are without it."""
    chosen, count = np.empty(up.shape[0], np.int64), 2
    chosen[0], chosen[1] = x, y
    one, other = x, y
    while tree[one, PARENT] != tree[other, PARENT]:
        if tree[one, DEPTH] >= tree[other, DEPTH]:
            count = _siblings(tree, one, one, chosen, count)
            one = tree[one, PARENT]
        else:
            count = _siblings(tree, other, other, chosen, count)
            other = tree[other, PARENT]
    count = _siblings(tree, one, other, chosen, count)
    width = (count + BITS - 1) // BITS
    above, below = np.zeros((count, width), np.int64), np.zeros((count, width), np.int64)
    size = np.empty(count, np.int64)
    for i in range(count):
        u, size[i] = tree[chosen[i], SOME], tree[chosen[i], SIZE]
        joined = i == 0 or _has(up, u, x)
        for j in range(count):
            v = tree[chosen[j], SOME]
            if _has(up, u, v) or (joined and (j == 1 or _has(up, y, v))):
                above[i, j // BITS] |= np.int64(1) << (j % BITS)
                below[j, i // BITS] |= np.int64(1) << (i % BITS)
    return _within(above, below, size, 0, reach)


@kernel(leaf=True)
def _has(up: Ints, x: Int64, y: Int64) -> bool:
    return up[x, y // BITS] >> (y % BITS) & 1 == 1


@kernel(leaf=True)
def _siblings(tree: Ints, node: Int64, other: Int64, chosen: Ints, count: Int64) -> Int64:
    """Add the siblings of a node, but not the other one. Returns how many there are in all."""
    child = tree[tree[node, PARENT], FIRST]
    while child >= 0:
        if child not in (node, other):
            chosen[count] = child
            count += 1
        child = tree[child, NEXT]
    return count


@kernel
def fits(up: Ints, down: Ints, w: Int64, reach: float) -> bool:
    """Whether every prime block of the connected component of w is within reach."""
    return _within(up, down, np.ones(up.shape[0], np.int64), w, reach)


@kernel
def _within(up: Ints, down: Ints, size: Ints, w: Int64, reach: float) -> bool:
    """The same for elements that stand for modules of such sizes."""
    n, width = up.shape
    stack, found = np.empty((2 * n + 2, width), np.int64), np.empty((n + 1, width), np.int64)
    listed, everything = np.empty(n, np.int64), np.full(width, (np.int64(1) << BITS) - 1)
    component(up, down, everything, w, False, stack[0])
    depth = 1
    while depth > 0:
        depth -= 1
        if members(stack[depth], listed) < 4:  # the smallest prime order has four elements
            continue
        children, prime = split(up, down, stack[depth].copy(), found)
        states = 0.0
        for c in range(children):
            copied(found[c], stack[depth])
            count, total = members(found[c], listed), 0
            for k in range(count):
                total += size[listed[k]]
            states += math.log2(total + 1.0)
            depth += 1 if count >= 4 else 0
        if prime and (states > reach or children > MODULES):
            return False
    return True
