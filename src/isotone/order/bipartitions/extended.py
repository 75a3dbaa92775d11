"""The number of extended bipartitions, and uniform draws from random words.

An *extended bipartition* of P is a split of its elements in two sides, A and B, with a linear extension of
each side. The cones that tile the noise of :class:`isotone.counts.PosetMechanism` correspond to them one to
one (docs/theory/counts.md, section 3). Everything goes through the decomposition tree: see
:mod:`isotone.order.bipartitions.steps` for the steps, :mod:`isotone.order.bipartitions.counting` for the numbers, :mod:`.walk` for the draws.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from isotone.errors import InputError
from isotone.order.bipartitions.counting import (
    COUNTING_REACH,
    REACH,
    Tables,
    exact_total,
    loosened,
    tables,
    within_reach,
)
from isotone.order.bipartitions.small import is_small, part_of
from isotone.order.bipartitions.steps import CHAIN, LOOSEN, POINTS, PRIME, split_weight, steps, value
from isotone.order.bipartitions.walk import (
    NEEDS_ANSWER,
    NEEDS_WORDS,
    QUESTION,
    SLICE,
    START,
    STATUS,
    kept,
    new_cursor,
    walks,
)

if TYPE_CHECKING:
    from isotone.order.poset import Poset

__all__ = ["REACH", "Tables", "count", "draw", "draw_at", "kept", "loosened", "tables", "within_reach"]

_NO_PAIRS = np.empty((0, 2), np.int64)
_CHUNK = 1 << 17
"""Random words that are asked for at once, at most."""


def count(P: Poset) -> int:
    """The number of extended bipartitions of ``P``, exactly.

    Counted modulo many primes, up to a bound from the rounded-up tables, and put together (Chinese
    remainders). O(n²) operations for each 31 bits of the result on series-parallel orders, O(states ·
    modules) on prime blocks.

    >>> from isotone.order import Poset
    >>> count(Poset.chain("abc")), count(Poset.antichain("abc")), count(Poset("xvy", [("x", "v")]))
    (8, 24, 16)
    """
    if is_small(P):
        return sum(part_of(P).counts)
    program = steps(P)
    if not program.within(COUNTING_REACH):
        raise InputError(
            f"A prime block of this order has {max(program.states)} states or more: too many to count. "
            f"Exact counting reaches {COUNTING_REACH}."
        )
    if program.within(REACH):
        made = tables(P)
        bound = math.ceil(int(made.top[-1]) * Fraction(2) ** made.unit)
    else:
        bound = math.factorial(len(P) + 1)  # that of an antichain, which has the most
    return exact_total(program, bound)


def draw(
    made: Tables,
    size: int,
    words: Callable[[int], NDArray[np.uint64]],
    settle: Callable[[Fraction], bool],
    dropped: NDArray[np.int64] = _NO_PAIRS,
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """``size`` extended bipartitions, uniform and independent if the words are.

    ``words(k)`` gives k further random words, ``settle(p)`` is yes with probability p. The result is
    (orders, sizes): row r has side A, ascending, in its first ``sizes[r]`` places, then side B, as positions.
    Draws that break a pair (lower, upper) of ``dropped`` are not kept, so that the rest is uniform for the
    order that has these relations too.
    """
    orders, sizes, _, _ = draw_at(
        made, size, lambda _, count: words(count), lambda _, __, p: settle(p), dropped=dropped
    )
    return orders, sizes


def draw_at(
    made: Tables,
    size: int,
    words: Callable[[int, int], NDArray[np.uint64]],
    settle: Callable[[int, int, Fraction], bool],
    start: int = 0,
    dropped: NDArray[np.int64] = _NO_PAIRS,
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64], int]:
    """Draw like :func:`draw`, and say with which word the walk of each row began, and which one is next.

    ``words(i, k)`` gives k words from number i on; each is read once, from ``start`` on. ``settle(i, k, p)`` answers question
    k of the walk that begins with word i. A walk that begins with a word depends on nothing before it: so each row can
    be drawn again alone.
    """
    n, at = made.steps.total, start
    orders, sizes, begun = np.empty((size, n), np.int32), np.empty(size, np.int64), np.empty(size, np.int64)
    stream, answers, done = np.empty(0, np.uint64), np.empty(0, np.int8), 0
    status, tries = NEEDS_WORDS, 1
    while done < size:
        if status == NEEDS_WORDS:
            few = min((size - done) * tries * (n + 16), _CHUNK) + 64
            tries *= 4 if len(dropped) else 1  # most walks may come to nothing: ask less and less often
            stream = np.concatenate((stream, words(at + stream.size, max(few, stream.size))))
        cursor, before = new_cursor(), done
        done += walks(
            made.arrays, stream, cursor, answers, dropped, orders[done:], sizes[done:], begun[done:]
        )
        begun[before:done] += at
        status, settled = int(cursor[STATUS]), int(cursor[START])
        if settled:  # the answers were about the first walk, which is over
            answers = answers[:0]
        stream, at = stream[settled:], at + settled
        if status == NEEDS_ANSWER:
            p = _answer_probability(made, *cursor[QUESTION : QUESTION + 3].tolist())
            answers = np.append(answers, np.int8(settle(at, answers.size, p)))
    return orders, sizes, begun, at


def _answer_probability(made: Tables, step: int, a: int, state: int) -> Fraction:
    """With which probability a question of the walk is answered yes, given that it was asked.

    The step is kept with probability exact / rounded; it is asked with probability 2^-SLICE and kept
    without a question otherwise.
    """
    kind, size, left, _, start = made.steps.tree[step].tolist()
    rounded = made.numbers[start + a]
    if kind in (POINTS, CHAIN):
        exact = Fraction(math.comb(size, a))
    elif kind == PRIME:
        exact, rounded = _split_weights(made, left, state)
    else:
        source = value(made.numbers[made.steps.tree[left, 4] + a])
        interleavings = math.factorial(a) * math.factorial(size - a)
        exact = source / interleavings if kind == LOOSEN else source * interleavings
    return 1 - (1 - exact / value(rounded)) * 2**SLICE


def _split_weights(made: Tables, b: int, state: int) -> tuple[Fraction, int]:
    """The exact product of the numbers that make the weight of a split, and the rounded-up one."""
    s, g = made.steps, made.words.words
    (first, states, at, _), stop = s.blocks[b].tolist(), int(s.blocks[b + 1, 0])
    rounded = split_weight(s.tree, s.blocks, b, s.modules, made.numbers, g, state)
    exact, rest = value(g[at + state]) * value(g[at + states - 1 - state]), state
    for step, _, _, stride in s.modules[first:stop][::-1].tolist():
        exact *= value(made.numbers[s.tree[step, 4] + rest // stride])
        rest %= stride
    return exact, rounded
