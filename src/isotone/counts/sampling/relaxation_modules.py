"""The modules of an order that is a matrix, found so often that all of it is compiled.

Entry [x, y] of a matrix is 1 where x < y, 2 where x > y, 0 where neither; it is transitively closed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotone.kernels import kernel

__all__ = ["Int64", "Ints", "Matrix", "component", "split_module"]

Ints = NDArray[np.int64]
Matrix = NDArray[np.int8]

Int64 = Any  # an integer in compiled code


@kernel
def component(Q: Matrix, w: Int64, members: Ints, unrelated: bool, label: Ints) -> Ints:
    """The members connected to w by relations (or by their absence), w first. They are labelled 1, the others 0."""
    found, rest = np.empty(members.size, np.int64), np.empty(members.size, np.int64)
    left = 0
    for x in members:
        label[x] = 0
        if x != w:
            rest[left] = x
            left += 1
    found[0], label[w], count = w, 1, 1
    k = 0
    while k < count and left > 0:
        row, still = Q[found[k]], 0
        for j in range(left):
            x = rest[j]
            if (row[x] == 0) == unrelated:
                label[x] = 1
                found[count] = x
                count += 1
            else:
                rest[still] = x
                still += 1
        left = still
        k += 1
    return found[:count]


@kernel
def split_module(Q: Matrix, part: Ints, label: Ints) -> tuple[Int64, bool]:
    """Label the children of a module.

    Returns how many there are, and whether it is prime.

    One parallel or series component is split off at a time: the rest is split when its turn comes.
    """
    for unrelated in (False, True):
        one = component(Q, part[0], part, unrelated, label)
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

    Every x splits the classes in which it sees the members differently. Then it sees all other classes as one each,
    also when they are split later, until its own class is split.
    """
    n = part.size
    waiting = np.zeros(label.size, np.bool_)
    for x in part:
        label[x], waiting[x] = 1, True
    label[part[0]] = 0
    classes, turn = 2, 0
    met, kind = np.zeros(n + 2, np.int64), np.zeros(n + 2, np.int64)  # when a class was met, and seen as what
    parted, fresh = np.zeros(n + 2, np.int64), np.zeros((n + 2, 3), np.int64)
    found = True
    while found:
        found = False
        for x in part:
            if not waiting[x]:
                continue
            waiting[x], found, differ = False, True, False
            turn += 1
            for y in part:
                c = label[y]
                if c == label[x]:
                    continue
                if met[c] != turn:
                    met[c], kind[c] = turn, Q[x, y]
                elif Q[x, y] != kind[c]:
                    differ = True
            if not differ:
                continue
            before = classes
            for y in part:  # the members that x sees otherwise than the first one move out
                c = label[y]
                if c != label[x] and c < before and Q[x, y] != kind[c]:
                    if parted[c] != turn:
                        parted[c] = turn
                        fresh[c, :] = -1
                    if fresh[c, Q[x, y]] < 0:
                        fresh[c, Q[x, y]] = classes
                        classes += 1
                    label[y] = fresh[c, Q[x, y]]
                    waiting[y] = True
            for y in part:
                if parted[label[y]] == turn:
                    waiting[y] = True
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
