"""Decompositions of relaxed orders: modules, trees, and what restores the order by rejection."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isotone.array_types import Floats, Ints
from isotone.kernels import kernel
from isotone.order.poset import Poset

# The modules of an order, found so often that all of it is compiled.
#
# Sets of elements are rows of machine words with ``BITS`` bits each. An order is two such rows for each element x: the
# elements above x and those below. It is transitively closed.

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
def members(row: Ints, out: Ints) -> Int64:
    """List the elements of a set. Returns how many there are."""
    count = 0
    for k in range(row.size):
        word = row[k]
        while word:
            low = word & -word
            out[count] = k * BITS + _ones(low - 1)
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
def split(up: Ints, down: Ints, part: Ints, children: Ints) -> tuple[Int64, bool]:
    """Write the children of a module in the rows of ``found``.

    Returns how many there are, and whether it is prime.

    One parallel or series component is split off at a time: the rest is split when its turn comes.
    """
    v, k = 0, 0
    while part[k] == 0:
        k += 1
    v = k * BITS + _ones((part[k] & -part[k]) - 1)
    for unrelated in (False, True):
        if not component(up, down, part, v, unrelated, children[0]):
            for k in range(part.size):
                children[1, k] = part[k] & ~children[0, k]
            return 2, False
    return _prime_children(up, down, part, v, children), True


@kernel
def split_module(Q: Matrix, part: Ints, label: Ints) -> tuple[Int64, bool]:
    """Label the children of a module that is a list of elements. Returns what :func:`split` does."""
    m = part.size
    inner = np.zeros((m, m), np.int8)
    for i in range(m):
        for j in range(m):
            inner[i, j] = Q[part[i], part[j]]
    up, down = rows_of(inner)
    whole, result = np.zeros(up.shape[1], np.int64), np.empty((m + 1, up.shape[1]), np.int64)
    for i in range(m):
        whole[i // BITS] |= np.int64(1) << (i % BITS)
    count, prime = split(up, down, whole, result)
    listed = np.empty(m, np.int64)
    for c in range(count):
        for i in range(members(result[c], listed)):
            label[part[listed[i]]] = c
    return count, prime


@kernel
def _prime_children(up: Ints, down: Ints, part: Ints, v: Int64, rows: Ints) -> Int64:
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
    copied(part, rows[0])
    for c in range(1, count):
        if forcing[one[c] // BITS] >> (one[c] % BITS) & 1:
            for k in range(width):
                rows[children, k] = classes[c, k]
                rows[0, k] &= ~classes[c, k]
            children += 1
    return children


@kernel
def _follow(up: Ints, down: Ints, rest: Ints, v: Int64, start: Int64, forward: bool, reached: Ints) -> None:
    """Move from ``rest`` to ``found`` what the start forces step by step, or what forces it."""
    n, width = up.shape
    queue, count, done = np.empty(n, np.int64), 1, 0
    queue[0] = start
    rest[start // BITS] &= ~(np.int64(1) << (start % BITS))
    reached[start // BITS] |= np.int64(1) << (start % BITS)
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
            reached[k] |= word
            while word:
                low = word & -word
                queue[count] = k * BITS + _ones(low - 1)
                count += 1
                word ^= low


class _Refinement(NamedTuple):
    """Classes with the class of each member and the size of each, members that have yet to split others, and room for a list."""

    label: Ints
    classes: Ints
    size: Ints
    waiting: Ints
    listed: Ints


@kernel
def _refine(up: Ints, down: Ints, part: Ints, v: Int64, label: Ints, classes: Ints) -> Int64:
    """Class 0 is v, the others are the largest modules without it. Returns their number.

    Every x splits the classes in which it sees the members differently. Then it sees all other classes as one each,
    also when they are split later, until its own class is split.
    """
    n, width = up.shape
    size, waiting, listed = np.empty(n + 1, np.int64), part.copy(), np.empty(n, np.int64)
    state = _Refinement(label, classes, size, waiting, listed)
    for k in range(width):
        classes[0, k], classes[1, k] = 0, part[k]
    classes[0, v // BITS] |= np.int64(1) << (v % BITS)
    classes[1, v // BITS] &= ~(np.int64(1) << (v % BITS))
    for k in range(members(part, listed)):
        label[listed[k]] = 1
    label[v] = 0
    size[0], size[1], count = 1, members(classes[1], listed), 2
    result = True
    while result:
        result = False
        for k in range(width):
            while waiting[k]:
                low = waiting[k] & -waiting[k]
                waiting[k] ^= low
                result = True
                count = _part_all(up, down, k * BITS + _ones(low - 1), state, count)
    return count


@kernel
def _part_all(up: Ints, down: Ints, x: Int64, state: _Refinement, count: Int64) -> Int64:
    """Split every class, but its own, that x sees in more than one way. Returns the new number of classes."""
    label, classes, size, waiting, listed = state
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


# Whether an order stays within reach with one more relation, from its tree of modules.
#
# When x < y is added, with all that follows, only relations within a module that holds both change, and every module that
# holds neither stays one: its members see x alike, and y. So each such module may stand for all of its members, and what
# is left to split is much smaller than the order (docs/theory/counts.md, section 9).

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
    stack, result, listed = (
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
        children, _ = split(up, down, part, result)
        for c in range(children):
            copied(result[c], stack[depth])
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
    stack, result = np.empty((2 * n + 2, width), np.int64), np.empty((n + 1, width), np.int64)
    listed, everything = np.empty(n, np.int64), np.full(width, (np.int64(1) << BITS) - 1)
    component(up, down, everything, w, False, stack[0])
    depth = 1
    while depth > 0:
        depth -= 1
        if members(stack[depth], listed) < 4:  # the smallest prime order has four elements
            continue
        children, prime = split(up, down, stack[depth].copy(), result)
        states = 0.0
        for c in range(children):
            copied(result[c], stack[depth])
            count, total = members(result[c], listed), 0
            for k in range(count):
                total += size[listed[k]]
            states += math.log2(total + 1.0)
            depth += 1 if count >= 4 else 0
        if prime and (states > reach or children > MODULES):
            return False
    return True


# A random walk on extended bipartitions.
#
# Take an element out and put it back anywhere it fits.
#
# Each move chooses uniformly among all extended bipartitions that agree on the other elements, so the uniform
# distribution stays put under it (heat bath). Started at a uniform one, every later one is uniform too, though
# not independent; started elsewhere it is nearly so after a while. That is good enough to plan with, where
# independent draws would be too slow, and for nothing else: releases never use it.

CHUNK = 1 << 18
"""Moves that are drawn at a time."""

Orders = NDArray[np.int32]
Relation = NDArray[np.bool_]


def wander(
    leq: Relation,
    order: Orders,
    a: int,
    rows: int,
    sweeps: int,
    rng: np.random.Generator,
    balanced: bool = False,
) -> tuple[Orders, Ints]:
    """Simulate ``rows`` extended bipartitions by a random walk.

    Each is ``sweeps`` · n moves after the one before, and the first that many after ``order``.

    ``leq[x, y]`` says whether x lies below y. An extended bipartition is a row of positions, side A first and ascending, and the size ``a`` of side A. If
    ``balanced``, each has the weight ``1 / (|A|! |B|!)``, and all have the same otherwise.
    """
    n = len(leq)
    orders, sizes = np.empty((rows, n), np.int32), np.empty(rows, np.int64)
    related = leq & ~np.eye(n, dtype=np.bool_)
    below, above = _lists(related.T), _lists(related)
    row, side = order.astype(np.int32), np.array([a], np.int64)
    moves = sweeps * n
    chunk = max(1, CHUNK // max(moves, 1))
    for start in range(0, rows, chunk):
        here = slice(start, start + chunk)
        picks = rng.integers(n, size=(len(sizes[here]), moves), dtype=np.int64)
        draws = picks, rng.random(picks.shape)
        _rows(below, above, row, side, draws, balanced, (orders[here], sizes[here]))
    return orders, sizes


Lists = tuple[Ints, Ints]
"""Where the list of each element starts, and all lists one after the other."""


def _lists(related: Relation) -> Lists:
    """The related elements of each one, from ``starts[x]`` on."""
    starts = np.concatenate(([0], np.cumsum(related.sum(axis=1)))).astype(np.int64)
    return starts, np.nonzero(related)[1].astype(np.int64)


@kernel
def _rows(
    below: Lists,
    above: Lists,
    row: Orders,
    side: Ints,
    draws: tuple[Ints, Floats],
    balanced: bool,
    result: tuple[Orders, Ints],
) -> None:
    """Keep what each row of ``draws``, picks and uniform numbers, makes of the one before."""
    (picks, uniforms), (orders, sizes) = draws, result
    for r in range(sizes.size):
        _move(below, above, row, side, picks[r], uniforms[r], balanced)
        sizes[r] = side[0]
        for k in range(row.size):
            orders[r, k] = row[k]


@kernel
def _move(
    below: Lists, above: Lists, row: Orders, side: Ints, picks: Ints, uniforms: Floats, balanced: bool
) -> None:
    """Take each of ``picks`` out and put it back. ``side[0]`` is the size of side A."""
    (below_starts, lower), (above_starts, upper) = below, above
    n = row.size
    place = np.empty(n, np.int64)
    for k in range(n):
        place[row[k]] = k
    for t in range(picks.size):
        x = picks[t]
        out, before = place[x], side[0]
        a = before - 1 if out < before else before
        # the first and the last place at which x fits on each side, when it is out
        low_a, high_a, low_b, high_b = 0, a, a, n - 1
        for j in range(below_starts[x], below_starts[x + 1]):
            k = place[lower[j]]
            after = k if k > out else k + 1
            if k < before:
                low_a = max(low_a, after)
            else:
                low_b = max(low_b, after)
        for j in range(above_starts[x], above_starts[x + 1]):
            k = place[upper[j]]
            here = k - 1 if k > out else k
            if k < before:
                high_a = min(high_a, here)
            else:
                high_b = min(high_b, here)
        # a place on side A makes it a + 1, one on side B makes that n - a: the weights in the ratio (n - a) : (a + 1)
        on_a, on_b = (n - a, a + 1) if balanced else (1, 1)
        weight_a, weight_b = (high_a - low_a + 1) * on_a, (high_b - low_b + 1) * on_b
        drawn = int(uniforms[t] * (weight_a + weight_b))
        if drawn >= weight_a:
            new = low_b + (drawn - weight_a) // on_b
            side[0] = a
        else:
            new = low_a + drawn // on_a
            side[0] = a + 1
        step = 1 if new > out else -1
        for k in range(out, new, step):
            row[k] = row[k + step]
            place[row[k]] = k
        row[new], place[x] = x, new


# Put relations back into a relaxed order that rejection can still afford.
#
# Draws come from the tables of a relaxed order Q. An order R between Q and the order P itself is drawn from them by
# rejection; the more relations R has, the closer its noise is to that of P, and the fewer draws are kept. The relations
# are put back that save most error for the draws that they cost, a few at a time, as long as the share of draws that is
# kept stays above a given one. Errors and shares come from a random walk on the extended bipartitions of the order so far.
# All of it looks at the order alone, which is public (docs/theory/counts.md, section 9).

Wander = Callable[..., "tuple[Orders, Ints]"]
Given = Callable[[Poset, "Orders", "Ints"], Floats]
"""The expected squares of the noise given the extended bipartition of each row."""

Rank = Callable[[Relation, "Orders", "Ints", "Ints"], Floats]
"""Numbers for the pairs that are missing in an order, from rows of the walk: the smallest are put back first."""

ROWS = 2_000
"""Rows of the walk for each few relations: half of them to sort the relations, half to measure the share."""

FIRST_ROWS, MORE_ROWS = 12_000, 5_000
"""As many where the error counts, for the first few relations and for all others."""

MEASURED = 1_000
"""Rows that measure the share at least."""

STAGE = 0.5
"""About this share of the draws has the next few relations."""


def missing_pairs(P: Poset, Q: Poset) -> Ints:
    """The pairs (lower, upper) of positions that ``P`` relates and ``Q``, on the same elements, does not."""
    return np.argwhere(P.leq_matrix() & ~Q.leq_matrix())


def restore(wander: Wander, given: Given, P: Poset, Q: Poset, share: float) -> Poset:
    """An order between ``Q`` and ``P`` that the given share of draws for ``Q`` fits at least, as far as estimates go.

    ``wander`` has the law of the draws, ``given`` the errors of their noise.
    """
    rank = Worth(given, P)
    return _climb(wander, rank, P, Q, math.log(share), FIRST_ROWS, MORE_ROWS)[0]


def estimated_share(wander: Wander, P: Poset, Q: Poset) -> float:
    """The logarithm of the share of draws for ``Q`` that fit ``P``."""
    return _climb(wander, _broken, P, Q, -math.inf, ROWS, ROWS)[1]


def _climb(
    wander: Wander, rank: Rank, P: Poset, Q: Poset, log_share: float, first: int, more: int
) -> tuple[Poset, float]:
    """The largest order that is reached, and the logarithm of the share of draws for ``Q`` that fit it."""
    rng, n, total, rows = np.random.default_rng(0), len(P), 0.0, first
    goal, result = (order.leq_matrix() & ~np.eye(n, dtype=np.bool_) for order in (P, Q))
    # an extended bipartition of P, and so of all orders between
    burnt, sizes = wander(Q.leq_matrix(), P.linear_order.astype(np.int32), n, 1, 200, rng)
    row, a = burnt[0], int(sizes[0])
    while np.any(goal & ~result):
        orders, sizes = wander(result, row, a, rows, 1, rng)
        ranked, missing = max(rows * 3 // 4, rows - MEASURED), np.argwhere(goal & ~result)
        missing = missing[np.argsort(rank(result, orders[:ranked], sizes[:ranked], missing), kind="stable")]
        least = math.exp(min(0.0, log_share - total))
        larger, fits = _most(result, missing, orders[ranked:], sizes[ranked:], least)
        if np.array_equal(larger, result):
            break
        result, total, rows = larger, total + math.log(float(np.mean(fits))), more
        last = ranked + int(np.flatnonzero(fits)[-1])
        row, a = orders[last], int(sizes[last])
    return _poset(P, result), total


def _broken(relation: Relation, orders: Orders, sizes: Ints, missing: Ints) -> Floats:
    """How often draws break each pair."""
    return 1 - fitting(orders, sizes, missing).mean(axis=1)


class Worth:
    """How much error each relation saves, for each unit of the logarithm of the share that it costs.

    Both are means over all rows so far, which belong to smaller and larger orders: one stage alone has too few.
    """

    def __init__(self, given: Given, P: Poset) -> None:
        self.given, self.P = given, P
        self.saved, self.spent = np.zeros((len(P), len(P))), np.zeros((len(P), len(P)))

    def __call__(self, relation: Relation, orders: Orders, sizes: Ints, missing: Ints) -> Floats:
        """The negative of it for each pair that is missing in ``found``."""
        squares, rows = self.given(_poset(self.P, relation), orders, sizes).sum(axis=1), len(orders)
        kept, total = _kept_sums(_places(orders), sizes, squares / squares.mean() - 1, relation, missing)
        kept = np.clip(kept, 0.5, rows - 0.5)  # a pair that is never broken, or always, has some price
        lower, upper = missing[:, 0], missing[:, 1]
        self.saved[lower, upper] -= rows * total / kept
        self.spent[lower, upper] -= rows * np.log(kept / rows)
        return -self.saved[lower, upper] / self.spent[lower, upper]


def _most(
    relation: Relation, missing: Ints, orders: Orders, sizes: Ints, least: float
) -> tuple[Relation, NDArray[np.bool_]]:
    """As many of the missing relations, in their order, as a good share of the rows has.

    At least the share ``least`` has them, and at least ``STAGE`` unless there is only one relation with its
    consequences. Returns the larger order, and which rows fit it.
    """
    low, high = 0, len(missing)
    best, best_fits = relation, np.ones(len(orders), np.bool_)
    each, number = fitting(orders, sizes, missing), np.zeros(relation.shape, np.int64)
    number[missing[:, 0], missing[:, 1]] = np.arange(len(missing))
    while low < high:
        middle = (low + high + 1) // 2
        larger = _closed(relation, missing[:middle])  # what follows is among the missing relations too
        fits: Relation = np.asarray(each[number[larger & ~relation]].all(axis=0))
        if np.any(fits) and np.mean(fits) >= (least if middle == 1 else max(least, STAGE)):
            low, best, best_fits = middle, larger, fits
        else:
            high = middle - 1
    return best, best_fits


def _places(orders: Orders) -> Orders:
    """The place of each element in each row."""
    place, ranks = np.empty_like(orders), np.arange(orders.shape[1], dtype=np.int32)
    np.put_along_axis(place, orders.astype(np.int64), ranks[None, :], axis=1)
    return place


def fitting(orders: Orders, sizes: Ints, pairs: Ints) -> NDArray[np.bool_]:
    """For each pair (lower, upper) and each row, whether it is on two sides or in order on one."""
    place = np.ascontiguousarray(_places(orders).T)
    first = place < sizes
    lower, upper = pairs[:, 0], pairs[:, 1]
    return (place[lower] < place[upper]) | (first[lower] != first[upper])


def _closed(relation: Relation, pairs: Ints) -> Relation:
    """The relations with more pairs, and all that follows by transitivity."""
    result = relation.copy()
    _relate(result, pairs)
    return result


@kernel(steps=lambda related, pairs: len(pairs) * len(related))
def _relate(related: Relation, pairs: Ints) -> None:
    n = related.shape[0]
    for k in range(pairs.shape[0]):
        x, y = pairs[k, 0], pairs[k, 1]
        if related[x, y]:
            continue
        for u in range(n):
            if u == x or related[u, x]:
                for v in range(n):
                    if v == y or related[y, v]:
                        related[u, v] = True


@kernel
def _kept_sums(
    place: Orders, sizes: Ints, squares: Floats, related: Relation, pairs: Ints
) -> tuple[Floats, Floats]:
    """For each pair the number of rows that have it and all that follows from it, and the sum of their squares."""
    n, count = place.shape[1], pairs.shape[0]
    kept, total = np.zeros(count), np.zeros(count)
    lower, upper = np.empty(n * n, np.int64), np.empty(n * n, np.int64)
    for i in range(count):
        x, y = pairs[i, 0], pairs[i, 1]
        follow = 0
        for u in range(n):
            if u == x or related[u, x]:
                for v in range(n):
                    if (v == y or related[y, v]) and not related[u, v]:
                        lower[follow], upper[follow] = u, v
                        follow += 1
        for r in range(sizes.size):
            whole, a = True, sizes[r]
            for k in range(follow):
                one, other = place[r, lower[k]], place[r, upper[k]]
                if one > other and (one < a) == (other < a):
                    whole = False
                    break
            if whole:
                kept[i] += 1
                total[i] += squares[r]
    return kept, total


def _poset(P: Poset, matrix: Relation) -> Poset:
    return Poset(P.elements, [(P.elements[x], P.elements[y]) for x, y in np.argwhere(matrix)])
