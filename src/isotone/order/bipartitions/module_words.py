"""Words over the modules of prime blocks, and the weights of their splits.

In a prime block with modules of sizes m_1, …, m_k, the order of one side is a word that says, place by place,
which module the element comes from. A *state* is a vector (a_1, …, a_k), 0 <= a_i <= m_i, kept as one number;
``g(state)`` is the number of words with a_i letters i in which all letters i precede all letters j wherever
module i lies below module j. The last letter may be any i with no module above i left. A split of the
block that puts a_i elements of module i on side A has the weight ``g(a) g(m - a) · f_1(a_1) ⋯ f_k(a_k)``
(docs/theory/counts.md, section 5).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from isotone.array_types import Ints
from isotone.kernels import kernel
from isotone.order.bipartitions.counting_steps import Steps
from isotone.order.bipartitions.upward import (
    ONE,
    Int64,
    Numbers,
    exponent,
    mantissa,
    product_up,
    share,
    sum_up,
    terms_unit,
)

__all__ = ["Words", "last_letters", "split_weight", "words_of_blocks"]


@dataclass(frozen=True, eq=False)
class Words:
    """For all prime blocks the table ``g`` (rounded up), and the states sorted by size of side A.

    ``last`` has a bit for each letter that can be last in the words of a state. In each block the states with
    a elements on side A are those from ``first[a]`` to ``first[a + 1]``; ``weight`` is cumulative within them,
    in the unit of the block's entry a. ``Steps.blocks`` says where a block starts in these arrays.
    """

    words: Numbers = field(repr=False)
    last: NDArray[np.int32] = field(repr=False)
    first: Ints = field(repr=False)
    state: NDArray[np.int32] = field(repr=False)
    weight: Ints = field(repr=False)

    def weigh(self, steps: Steps, step: int, numbers: Numbers) -> None:
        """Weigh the splits of the block of a PRIME step, and write the step's table in ``numbers``."""
        _, size, b, _, start = steps.tree[step]
        (first, states, at, classes), (stop, _, _, classes_stop) = steps.blocks[b], steps.blocks[b + 1]
        modules = steps.modules[first:stop]
        words = self.words[at : at + states]
        weights, sides = _weights(modules[:, 1].copy(), steps.tree[modules[:, 0], 4], numbers, words)
        here = slice(at, at + states)
        starts = self.first[classes:classes_stop]
        table = numbers[start : start + size + 1]
        _sort_by_side(weights, sides, starts, self.state[here], self.weight[here], table)
        starts += at


def words_of_blocks(steps: Steps) -> Words:
    """The words of all prime blocks.

    Their splits are weighed later, when the modules have tables.
    """
    states, classes = steps.blocks[-1, 2:]
    words, last = np.empty(states, np.int64), np.empty(states, np.int32)
    for b in range(len(steps.blocks) - 1):
        first, count, at, _ = steps.blocks[b]
        here = slice(at, at + count)
        _count_words(steps.modules[first : steps.blocks[b + 1, 0]], words[here], last[here])
    first, state, weight = np.zeros(classes, np.int64), np.empty(states, np.int32), np.empty(states, np.int64)
    return Words(words, last, first, state, weight)


@kernel
def last_letters(used: Int64, module: Ints, first: Int64) -> Int64:
    """The letters that can be last in a word with the letters ``used``.

    They are bits, and letter 0 is row ``first``.
    """
    possible, rest, i = np.int64(0), used, 0
    while rest > 0:
        if rest & 1 and module[first + i, 2] & used == 0:
            possible |= np.int64(1) << i
        rest >>= 1
        i += 1
    return possible


@kernel(steps=lambda module, words, last: words.size * module.shape[0])
def _count_words(module: Ints, words: Numbers, last: NDArray[np.int32]) -> None:
    """Fill ``g`` with the number of words of each state, rounded up.

    It is a sum over the letters that can be last.
    """
    count = np.zeros(module.shape[0], np.int64)
    used = np.int64(0)
    words[0], last[0] = ONE, 0
    for state in range(1, words.size):
        i = 0
        while count[i] == module[i, 1]:
            count[i] = 0
            used &= ~(np.int64(1) << i)
            i += 1
        count[i] += 1
        used |= np.int64(1) << i
        letters = last_letters(used, module, 0)
        last[state] = letters
        highest = np.int64(-(2**40))
        for i in range(count.size):
            if letters >> i & 1:
                highest = max(highest, exponent(words[state - module[i, 3]]))
        total = np.int64(0)
        for i in range(count.size):
            if letters >> i & 1:
                fewer = words[state - module[i, 3]]
                total += share(mantissa(fewer), highest - 25 - exponent(fewer))
        words[state] = sum_up(total, highest - 25)


@kernel(leaf=True)
def split_weight(
    tree: Ints, blocks: Ints, b: Int64, module: Ints, numbers: Numbers, g: Numbers, state: Int64
) -> Int64:
    """The rounded-up weight of one split of block b. See :func:`_weights`."""
    product, rest = np.int64(ONE), state
    for i in range(blocks[b + 1, 0] - 1, blocks[b, 0] - 1, -1):
        product = product_up(product, numbers[tree[module[i, 0], 4] + rest // module[i, 3]])
        rest %= module[i, 3]
    product = product_up(product, g[blocks[b, 2] + state])
    return product_up(product, g[blocks[b, 2] + blocks[b, 1] - 1 - state])


@kernel(steps=lambda size, starts, numbers, words: words.size * size.size)
def _weights(size: Ints, starts: Ints, numbers: Numbers, words: Numbers) -> tuple[Numbers, NDArray[np.int32]]:
    """The weight of each split and its number of elements on side A.

    The factors are multiplied in a fixed order, rounding up each time: the modules' from the last to the
    first, then the words of side A, then those of side B.
    """
    k = size.size
    weights, sides = np.empty(words.size, np.int64), np.empty(words.size, np.int32)
    count = np.zeros(k, np.int64)
    product = np.empty(k + 1, np.int64)  # entry i: over the modules k-1, …, i; few change from split to split
    product[k] = ONE
    changed, a = k - 1, 0
    for state in range(words.size):
        if state > 0:
            changed = 0
            while count[changed] == size[changed]:
                a -= count[changed]
                count[changed] = 0
                changed += 1
            count[changed] += 1
            a += 1
        for i in range(changed, -1, -1):
            product[i] = product_up(product[i + 1], numbers[starts[i] + count[i]])
        weight = product_up(product[0], words[state])
        weights[state], sides[state] = product_up(weight, words[words.size - 1 - state]), a
    return weights, sides


@kernel(steps=lambda weights, *_: weights.size)
def _sort_by_side(
    weights: Numbers,
    sides: NDArray[np.int32],
    first: Ints,
    by_side: NDArray[np.int32],
    cumulative: Ints,
    table: Numbers,
) -> None:
    """Sort the states by their number of elements on side A, cumulate their weights, and sum them up."""
    highest = np.full(table.size, -(2**40), np.int64)
    for state in range(sides.size):
        a = sides[state]
        highest[a] = max(highest[a], exponent(weights[state]))
        first[a + 1] += 1
    unit = np.empty(table.size, np.int64)
    for a in range(table.size):
        unit[a] = terms_unit(highest[a], 31, first[a + 1])
        first[a + 1] += first[a]
    free = first[:-1].copy()
    total = np.zeros(table.size, np.int64)
    for state in range(sides.size):
        a = sides[state]
        total[a] += share(mantissa(weights[state]), unit[a] - exponent(weights[state]))
        by_side[free[a]], cumulative[free[a]] = state, total[a]
        free[a] += 1
    for a in range(table.size):
        table[a] = sum_up(total[a], unit[a])
