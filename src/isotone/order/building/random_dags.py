"""Random acyclic digraphs, uniform over all labelled ones.

The Markov chain of Melançon, Dutour and Bousquet-Mélou (2001): pick an ordered pair of vertices at random;
if it is an arc, remove it; if not, and adding it closes no circuit, add it; else do nothing. Steps can be
undone with the same probability, any digraph can be emptied and filled again, and a pair of equal vertices
leaves things as they are: the chain converges to the uniform distribution.
"""

from __future__ import annotations

import numpy as np

from isotone.array_types import Ints
from isotone.errors import InputError
from isotone.kernels import kernel
from isotone.order.closure import Bits, lowest_bit, unpack

__all__ = ["default_steps", "random_dag"]

_BLOCK = 1 << 20


def default_steps(n: int) -> int:
    """The default number of steps, 20 n² (1 + ln n).

    The chain starts from the empty digraph.

    Every pair is then picked about 20 (1 + ln n) times. Starting from no arcs at all, every labelling is
    equally likely at every step, so only the shape has to converge; measured against exact counts (all
    digraphs with 3 and 4 vertices, the numbers of arcs and of sources with up to 80) a tenth is enough.
    """
    return int(np.ceil(20 * n * n * (1 + np.log(n))))


def random_dag(n: int, rng: np.random.Generator, steps: int | None = None) -> Ints:
    """The arcs of a random acyclic digraph on ``0..n-1``, an ``(m, 2)`` array.

    A step is O(n / 64) word operations for each vertex searched, at most O(n² / 64).
    """
    if n < 1:
        raise InputError(f"A random order needs at least one element, not n = {n!r}.")
    left = default_steps(n) if steps is None else steps
    if left < 0:
        raise InputError(f"steps must be at least 0, not {steps!r}.")
    arcs = np.zeros((n, (n + 63) >> 6), np.uint64)
    while left > 0:
        block = min(left, _BLOCK)
        _walk(arcs, rng.integers(n, size=(block, 2)))
        left -= block
    return np.argwhere(unpack(arcs, n))


@kernel
def _walk(arcs: Bits, pairs: Ints) -> None:
    """One step of the chain for each pair, in place. Bit j of row i is the arc i → j."""
    n, words = arcs.shape
    reached = np.empty(words, np.uint64)
    waiting = np.empty(n, np.int64)
    for step in range(pairs.shape[0]):
        i, j = pairs[step]
        bit = np.uint64(1) << np.uint64(j & 63)
        if arcs[i, j >> 6] & bit:
            arcs[i, j >> 6] ^= bit
        elif i != j and not _leads_to(arcs, j, i, reached, waiting):
            arcs[i, j >> 6] |= bit


@kernel
def _leads_to(arcs: Bits, start: int, goal: int, reached: Bits, waiting: Ints) -> bool:
    """Whether a path leads from ``start`` to ``goal``.

    ``reached`` and ``waiting`` are scratch space.
    """
    goal_word, goal_bit = goal >> 6, np.uint64(1) << np.uint64(goal & 63)
    reached[:] = np.uint64(0)
    waiting[0], count = start, 1
    while count > 0:
        count -= 1
        x = waiting[count]
        if arcs[x, goal_word] & goal_bit:
            return True
        for w in range(arcs.shape[1]):
            new = arcs[x, w] & ~reached[w]
            reached[w] |= new
            while new:
                waiting[count] = (w << 6) + lowest_bit(new)
                count += 1
                new &= new - np.uint64(1)
    return False
