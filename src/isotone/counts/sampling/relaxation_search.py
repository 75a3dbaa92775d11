"""Put back as many relations as keep an order within reach.

The compiled part of the relaxation search.

Orders are square matrices: entry [x, y] is 1 where x < y, 2 where x > y, 0 where neither. They are kept
transitively closed. ``reach`` bounds the binary logarithm of the states of every prime block
(:mod:`isotone.order.bipartitions.words`).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotone.kernels import kernel

__all__ = ["fits", "put_back", "try_pairs"]

Ints = NDArray[np.int64]
Matrix = NDArray[np.int8]

Int64 = Any  # an integer in compiled code


@kernel
def put_back(
    P: Matrix, Q: Matrix, placed: NDArray[np.bool_], order: Ints, reach: float, style: Int64
) -> None:
    """Place the elements of ``order`` one after the other, each with as many of its relations as fit.

    All relations to placed elements are tried together, then those to one side (upward first for an even
    ``style``), then one by one: those that skip few elements first, or last for a style above 1.
    """
    n = P.shape[0]
    trial = np.empty_like(Q)
    for w in order:
        placed[w] = True
        for phase in range(3):
            trial[:] = Q
            upward = phase == 0 or (phase == 1) == (style % 2 == 0)
            downward = phase == 0 or not upward
            for z in range(n):
                if placed[z] and ((upward and P[w, z] == 1) or (downward and P[w, z] == 2)):
                    _relate(trial, w, z, P[w, z])
            if fits(trial, w, placed, reach):
                Q[:] = trial
                if phase == 0:
                    break
        candidates = np.array([z for z in range(n) if placed[z] and P[w, z] != Q[w, z]], np.int64)
        skipped = np.array([_between(P, w, z) for z in candidates], np.float64)
        for k in np.argsort(skipped if style < 2 else -skipped):
            _try(P, Q, trial, w, candidates[k], placed, reach)


@kernel
def try_pairs(P: Matrix, Q: Matrix, pairs: Ints, reach: float) -> None:
    """Try to put back each of the pairs, one by one."""
    trial, placed = np.empty_like(Q), np.ones(P.shape[0], np.bool_)
    for k in range(pairs.shape[0]):
        _try(P, Q, trial, pairs[k, 0], pairs[k, 1], placed, reach)


@kernel
def _try(
    P: Matrix, Q: Matrix, trial: Matrix, x: Int64, y: Int64, placed: NDArray[np.bool_], reach: float
) -> None:
    if Q[x, y] == 0 and P[x, y] != 0:
        trial[:] = Q
        _relate(trial, x, y, P[x, y])
        if fits(trial, x, placed, reach):
            Q[:] = trial


@kernel
def _relate(Q: Matrix, x: Int64, y: Int64, relation: Int64) -> None:
    """Add x < y (relation 1) or x > y (relation 2), and what follows by transitivity."""
    low, high = (x, y) if relation == 1 else (y, x)
    if Q[low, high] == 1:
        return
    n = Q.shape[0]
    for u in range(n):
        if u == low or Q[u, low] == 1:
            for v in range(n):
                if v == high or Q[high, v] == 1:
                    Q[u, v], Q[v, u] = 1, 2


@kernel
def _between(P: Matrix, x: Int64, y: Int64) -> Int64:
    count = 0
    for z in range(P.shape[0]):
        if P[x, z] == P[x, y] and P[z, y] == P[x, y]:
            count += 1
    return count


@kernel
def fits(Q: Matrix, w: Int64, placed: NDArray[np.bool_], reach: float) -> bool:
    """Whether every prime block of the connected component of w is within reach."""
    n = Q.shape[0]
    label = np.full(n, -1, np.int64)
    members = _component(Q, w, np.flatnonzero(placed), False, label)
    stack = np.empty((2 * n + 2, 2), np.int64)  # intervals of ``row``, still to be split
    row = np.empty(n, np.int64)
    row[: members.size] = members
    stack[0, 0], stack[0, 1], depth = 0, members.size, 1
    while depth > 0:
        depth -= 1
        start, stop = stack[depth, 0], stack[depth, 1]
        if stop - start < 4:  # the smallest prime order has four elements
            continue
        part = row[start:stop].copy()
        children, prime = _children(Q, part, label)
        sizes = np.zeros(children, np.int64)
        for x in part:
            sizes[label[x]] += 1
        if prime:
            states = 0.0
            for size in sizes:
                states += math.log2(size + 1.0)
            if states > reach or children > 60:
                return False
        free = np.empty(children, np.int64)
        at = start
        for c in range(children):
            free[c] = at
            stack[depth, 0], stack[depth, 1] = at, at + sizes[c]
            at += sizes[c]
            depth += 1
        for x in part:
            row[free[label[x]]] = x
            free[label[x]] += 1
    return True


@kernel
def _component(Q: Matrix, w: Int64, members: Ints, unrelated: bool, label: Ints) -> Ints:
    """The members connected to w by relations (or by their absence), w first."""
    found, count = np.empty(members.size, np.int64), 1
    found[0] = w
    for x in members:
        label[x] = 0
    label[w] = 1
    k = 0
    while k < count < members.size:
        for x in members:
            if label[x] == 0 and (Q[found[k], x] == 0) == unrelated:
                label[x] = 1
                found[count] = x
                count += 1
        k += 1
    return found[:count]


@kernel
def _children(Q: Matrix, part: Ints, label: Ints) -> tuple[Int64, bool]:
    """Label the children of a module.

    Returns how many there are, and whether it is prime.

    One parallel or series component is split off at a time: the rest is split when its turn comes.
    """
    for unrelated in (False, True):
        one = _component(Q, part[0], part, unrelated, label)
        if one.size < part.size:
            return 2, False
    return _prime_children(Q, part, label), True


@kernel
def _prime_children(Q: Matrix, part: Ints, label: Ints) -> Int64:
    """The largest proper modules of a prime module.

    With v = part[0], the largest modules without v are found by refinement. Such a module A forces another, B,
    if a module with v and A must hold B because B sees v and A differently. Those that force, step by step,
    everything are children; the rest is the child that holds v.
    """
    v = part[0]
    classes = _refine(Q, part, label)
    some = np.empty(classes, np.int64)  # one member of each class; class 0 is v alone
    for x in part:
        some[label[x]] = x
    last = _reaches_most(Q, v, some)
    forcing = np.zeros(classes, np.bool_)
    waiting, depth = np.empty(classes, np.int64), 1
    waiting[0], forcing[last] = last, True
    while depth > 0:
        depth -= 1
        b = some[waiting[depth]]
        for a in range(1, classes):
            if not forcing[a] and Q[b, v] != Q[b, some[a]]:
                forcing[a] = True
                waiting[depth] = a
                depth += 1
    number, children = np.zeros(classes, np.int64), 1
    for a in range(1, classes):
        if forcing[a]:
            number[a] = children
            children += 1
    for x in part:
        label[x] = number[label[x]]
    return children


@kernel
def _refine(Q: Matrix, part: Ints, label: Ints) -> Int64:
    """Label part[0] by 0 and the others by the largest module without it.

    Returns the number of labels.
    """
    n = part.size
    for x in part:
        label[x] = 1
    label[part[0]] = 0
    classes = 2
    seen, renamed = np.empty((n + 2, 3), np.int64), np.zeros(n + 2, np.int64)
    changed = True
    while changed:
        changed = False
        for x in part:
            seen[:classes] = 0
            for y in part:
                if label[y] != label[x]:
                    seen[label[y], Q[x, y]] += 1
            before = classes
            for c in range(before):  # the members that x sees otherwise than the first kind move out
                kinds = (seen[c, 0] > 0) + (seen[c, 1] > 0) + (seen[c, 2] > 0)
                renamed[c] = 0
                if c != label[x] and kinds > 1:
                    renamed[c] = 1
                    changed = True
            for c in range(before):
                if renamed[c] == 1:
                    stays = 0 if seen[c, 0] > 0 else 1
                    for kind in range(stays + 1, 3):
                        if seen[c, kind] > 0:
                            for y in part:
                                if label[y] == c and Q[x, y] == kind:
                                    label[y] = classes
                            classes += 1
    return classes


@kernel
def _reaches_most(Q: Matrix, v: Int64, some: Ints) -> Int64:
    """A class that forces, step by step, every class that forces it.

    It is the last root of a depth-first search.
    """
    classes = some.size
    seen, cursor = np.zeros(classes, np.bool_), np.ones(classes, np.int64)
    path, last = np.empty(classes, np.int64), 1
    for root in range(1, classes):
        if seen[root]:
            continue
        last = root
        seen[root] = True
        path[0], depth = root, 1
        while depth > 0:
            a = path[depth - 1]
            b = cursor[a]
            while b < classes and (seen[b] or Q[some[b], v] == Q[some[b], some[a]]):
                b += 1
            cursor[a] = b
            if b == classes:
                depth -= 1
            else:
                seen[b] = True
                path[depth] = b
                depth += 1
    return last
