"""Steps of the compiled walk over a decomposition, and how they are counted."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from isotone.array_types import Ints
from isotone.kernels import kernel
from isotone.order.decomposition import Leaf, Node, Parallel, Prime, Series

if TYPE_CHECKING:
    from isotone.order.poset import Poset

# Numbers rounded up, in one 64-bit integer each.
#
# A positive number is kept as ``m · 2^e`` with ``2^30 <= m < 2^31``: at least the true value, and at most
# 2^-30 above it for each rounding. Products of two mantissas fit 64-bit integers exactly, so that whoever
# draws with such numbers as weights knows to the last bit what was rounded away (docs/theory/counts.md,
# section 6). The bits are: 31 of mantissa, 5 of *shift*, 28 of exponent. A sum remembers by its shift the unit
# ``2^(e - shift)`` in which its terms were added.

Numbers = NDArray[np.int64]
Int64: TypeAlias = Any
"""An integer in compiled code, where Python's int and numpy's int64 are one type."""

_MANTISSA = 2**31 - 1
_LEAST = 2**30


@kernel(leaf=True)
def pack(m: Int64, e: Int64, shift: Int64) -> Int64:
    """The number ``m · 2^e`` whose terms were added in units of ``2^(e - shift)``."""
    return np.int64(m) | (np.int64(shift) << 31) | (np.int64(e) << 36)


@kernel(leaf=True)
def mantissa(number: Int64) -> Int64:
    """Its mantissa."""
    return np.int64(number) & _MANTISSA


@kernel(leaf=True)
def exponent(number: Int64) -> Int64:
    """Its exponent."""
    return np.int64(number) >> 36


@kernel(leaf=True)
def shift(number: Int64) -> Int64:
    """The shift with which it was packed."""
    return (np.int64(number) >> 31) & 31


def logarithms(numbers: Numbers) -> NDArray[np.float64]:
    """The logarithms of several numbers to base 2."""
    result: NDArray[np.float64] = np.log2((numbers & _MANTISSA).astype(np.float64))
    return result + (numbers >> 36).astype(np.float64)


ONE = (-30 << 36) | _LEAST
"""The number 1."""


@kernel(leaf=True)
def sum_up(total: Int64, unit: Int64) -> Int64:
    """``total · 2^unit`` as a rounded-up number, for a total from 2^30 up to 2^62 - 2^32."""
    shift, rest = 0, total >> 31
    while rest > 0:
        rest >>= 1
        shift += 1
    m = (total + (np.int64(1) << shift) - 1) >> shift
    if m > _MANTISSA:  # the carry went through
        m >>= 1
        shift += 1
    return pack(m, unit + shift, shift)


@kernel(leaf=True)
def product_up(a: Int64, b: Int64) -> Int64:
    """The product of two rounded-up numbers, rounded up."""
    exact = mantissa(a) * mantissa(b)
    gap = 30 if exact < np.int64(1) << 61 else 31
    m = (exact + (np.int64(1) << gap) - 1) >> gap
    if m > _MANTISSA:
        m >>= 1
        gap += 1
    return pack(m, exponent(a) + exponent(b) + gap, 0)


@kernel(leaf=True)
def share(exact: Int64, gap: Int64) -> Int64:
    """How many units of ``2^gap`` cover ``exact``, a positive integer below 2^62."""
    if gap <= 0:
        return np.int64(exact) << -gap
    if gap > 61:
        return np.int64(1)
    return (np.int64(exact) + (np.int64(1) << gap) - 1) >> gap


@kernel(leaf=True)
def terms_unit(highest: Int64, width: Int64, terms: Int64) -> Int64:
    """A unit in which ``terms`` shares of at most ``2^(highest + width)`` add up to between 2^30 and 2^62."""
    unit = np.int64(highest) + width - 61
    while terms > 1:
        unit += 1
        terms = (terms + 1) >> 1
    return unit


def value(number: Int64) -> Fraction:
    """The number, exactly."""
    return Fraction(int(number) & _MANTISSA) * Fraction(2) ** (int(number) >> 36)


def _up(integer: int, unit: int = 0) -> int:
    shift = integer.bit_length() - 31
    m = integer << -shift if shift <= 0 else -(-integer >> shift)
    if m > _MANTISSA:
        m, shift = m >> 1, shift + 1
    return m | (unit + shift) << 36


@lru_cache(maxsize=256)
def binomials(n: int) -> Numbers:
    """``C(n, 0), …, C(n, n)``, rounded up. Exact for n up to :data:`EXACT_BINOMIALS`."""
    binomial, half = 1, [_up(1)]
    for k in range(n // 2):
        binomial = binomial * (n - k) // (k + 1)
        half.append(_up(binomial))
    return np.array(half + half[(n - 1) // 2 :: -1] if n else half, np.int64)


EXACT_BINOMIALS = 33
"""The largest n whose binomials all have at most 31 bits."""


def _factorial_table(n: int, rounded: Callable[[int], int]) -> Numbers:
    factorial, numbers = 1, [rounded(1)]
    for k in range(1, n + 1):
        factorial *= k
        numbers.append(rounded(factorial))
    return np.array(numbers, np.int64)


@lru_cache(maxsize=4)
def factorials(n: int) -> Numbers:
    """``0!, …, n!``, rounded up."""
    return _factorial_table(n, _up)


@lru_cache(maxsize=4)
def inverse_factorials(n: int) -> Numbers:
    """``1/0!, …, 1/n!``, rounded up."""

    def inverse(factorial: int) -> int:
        cut = max(factorial.bit_length() - 64, 0)  # the divisor rounded down, the quotient up
        return _up(-(-(1 << 128) // (factorial >> cut)), -128 - cut)

    return _factorial_table(n, inverse)


# The decomposition of an order, written out as steps that count extended bipartitions.
#
# An *extended bipartition* of P is a split of its elements in two sides, A and B, with a linear extension of
# each side. Through the decomposition tree they are counted by the number a of elements on side A, in one of two
# ways (docs/theory/counts.md, section 5):
#
# * a *counted* table ``f(a)``: their number;
# * a *loose* table ``h(a) = f(a) / (a! (n - a)!)``: what is left when the interleaving is taken out.
#
# Loose tables of independent parts multiply like polynomials, and so do counted tables of stacked parts. Each
# step makes one table of one or more earlier ones:
#
# ========  =======  =====================================================================
# POINTS    loose    k unrelated elements: ``C(k, a)``
# CHAIN     counted  k elements in a chain: ``C(k, a)``
# BESIDE    loose    two loose tables, convolved
# STACK     counted  two counted tables, convolved (the left part below the right one)
# LOOSEN    loose    a counted table over ``a! (n - a)!``
# SHUFFLE   counted  a loose table times ``a! (n - a)!``
# PRIME     counted  a block without series or parallel split, through its table of words
# ========  =======  =====================================================================
#
# Wide nodes are cut in halves, so that all convolutions together cost O(n²).

POINTS, CHAIN, BESIDE, STACK, LOOSEN, SHUFFLE, PRIME = range(7)

_MANY = 2**62


@dataclass(frozen=True, eq=False)
class Steps:
    """The steps that build the tables, earlier ones first.

    The last makes the counted table of the whole order.

    ``tree`` has a row (kind, size, left, right, start) for each step: the entries of its table take the
    places ``start … start + size`` of one array; ``left`` and ``right`` are earlier steps. For POINTS and
    CHAIN ``left`` is where its elements start in ``elements`` (a chain's bottom up), for PRIME it is a row of
    ``blocks``.

    ``blocks`` has a row (first, states, words, classes) for each prime block, and one more: its modules are
    the rows of ``modules`` from ``first`` up to the next block's; its tables of words start at ``words``, and
    its classes by size of side A at ``classes``, in arrays for all blocks. ``modules`` has a row (step, size,
    above, stride) for each module: ``above`` has a bit for each module of the block above it. How many
    elements of each module are on a side is one number, the sum of the counts times ``stride``.
    """

    tree: Ints
    elements: Ints
    blocks: Ints
    modules: Ints

    def __len__(self) -> int:
        return len(self.tree)

    @property
    def total(self) -> int:
        """The number of elements of the order."""
        return int(self.tree[-1, 1])

    @property
    def states(self) -> list[int]:
        """The number of states of each prime block (2^62 if there are more)."""
        return self.blocks[:-1, 1].tolist()

    def within(self, reach: int) -> bool:
        """Whether no prime block has more than ``reach`` states."""
        return max(self.states, default=0) <= reach and bool(np.all(np.diff(self.blocks[:, 0]) < 63))


def steps(P: Poset) -> Steps:
    """The steps that count the extended bipartitions of ``P``, from its decomposition tree."""
    draft = _StepWriter()
    result: dict[Node, int] = {}  # nodes compare by identity
    tree = P.decomposition()
    for node in tree.walk():
        if isinstance(node, Series):
            result[node] = draft.series(node, result)
        elif isinstance(node, Parallel):
            result[node] = draft.parallel(node, result)
        elif isinstance(node, Prime):
            result[node] = draft.prime(node, [draft.counted(child, result) for child in node.children])
    if isinstance(tree, Leaf):
        draft.chain([tree.index])
    return draft.finish()


@dataclass
class _StepWriter:
    """Steps being written."""

    rows: list[tuple[int, int, int, int]] = field(default_factory=lambda: [])
    elements: list[int] = field(default_factory=lambda: [])
    blocks: list[tuple[int, int, int]] = field(default_factory=lambda: [])
    modules: list[tuple[int, int, int, int]] = field(default_factory=lambda: [])

    def add(self, kind: int, size: int, left: int, right: int = -1) -> int:
        self.rows.append((kind, size, left, right))
        return len(self.rows) - 1

    def size(self, step: int) -> int:
        return self.rows[step][1]

    def points(self, indices: list[int]) -> int:
        self.elements.extend(indices)
        return self.add(POINTS, len(indices), len(self.elements) - len(indices))

    def chain(self, indices: list[int]) -> int:
        self.elements.extend(indices)
        return self.add(CHAIN, len(indices), len(self.elements) - len(indices))

    def counted(self, node: Node, step_of: dict[Node, int]) -> int:
        return self.chain([node.index]) if isinstance(node, Leaf) else step_of[node]

    def join(self, kind: int, left: int, right: int) -> int:
        return self.add(kind, self.size(left) + self.size(right), left, right)

    def series(self, node: Series, step_of: dict[Node, int]) -> int:
        """Stack the parts by halves. Neighbouring single elements first become one chain."""
        parts: list[int] = []
        run: list[int] = []
        for child in node.children:
            if isinstance(child, Leaf):
                run.append(child.index)
                continue
            if run:
                parts.append(self.chain(run))
                run = []
            parts.append(step_of[child])
        if run:
            parts.append(self.chain(run))
        return self._stack(parts)

    def _stack(self, parts: list[int]) -> int:
        if len(parts) == 1:
            return parts[0]
        half = len(parts) // 2
        return self.join(STACK, self._stack(parts[:half]), self._stack(parts[half:]))

    def parallel(self, node: Parallel, step_of: dict[Node, int]) -> int:
        """Join the two smallest parts repeatedly.
        Single elements first become one set of points.
        """
        loose = [child.index for child in node.children if isinstance(child, Leaf)]
        parts = [self.points(loose)] if loose else []
        inner = [child for child in node.children if not isinstance(child, Leaf)]
        parts.extend(self.add(LOOSEN, child.size, step_of[child]) for child in inner)
        heap = [(self.size(part), part) for part in parts]
        heapq.heapify(heap)
        while len(heap) > 1:
            (_, a), (_, b) = heapq.heappop(heap), heapq.heappop(heap)
            joined = self.join(BESIDE, a, b)
            heapq.heappush(heap, (self.size(joined), joined))
        return self.add(SHUFFLE, node.size, heap[0][1])

    def prime(self, node: Prime, parts: list[int]) -> int:
        above = node.quotient.leq_matrix() & ~np.eye(len(parts), dtype=np.bool_)
        first, states = len(self.modules), 1
        for i, part in enumerate(parts):
            letters = sum(1 << int(j) for j in np.flatnonzero(above[i])) if len(parts) < 63 else 0
            self.modules.append((part, self.size(part), letters, min(states, _MANY)))
            states *= self.size(part) + 1
        self.blocks.append((first, min(states, _MANY), node.size + 2))
        return self.add(PRIME, node.size, len(self.blocks) - 1)

    def finish(self) -> Steps:
        rows = np.array(self.rows, np.int64).reshape(-1, 4)
        start = np.cumsum(rows[:, 1] + 1) - rows[:, 1] - 1
        shapes = [*self.blocks, (len(self.modules), 0, 0)]
        words = accumulate([states for _, states, _ in shapes], initial=0)
        classes = accumulate([width for _, _, width in shapes], initial=0)
        blocks = [
            (first, states, min(at, _MANY), c)
            for (first, states, _), at, c in zip(shapes, words, classes, strict=False)
        ]
        return Steps(
            np.column_stack((rows, start)),
            np.array(self.elements, np.int64),
            np.array(blocks, np.int64),
            np.array(self.modules, np.int64).reshape(-1, 4),
        )


# Words over the modules of prime blocks, and the weights of their splits.
#
# In a prime block with modules of sizes m_1, …, m_k, the order of one side is a word that says, place by place,
# which module the element comes from. A *state* is a vector (a_1, …, a_k), 0 <= a_i <= m_i, kept as one number;
# ``g(state)`` is the number of words with a_i letters i in which all letters i precede all letters j wherever
# module i lies below module j. The last letter may be any i with no module above i left. A split of the
# block that puts a_i elements of module i on side A has the weight ``g(a) g(m - a) · f_1(a_1) ⋯ f_k(a_k)``
# (docs/theory/counts.md, section 5).


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
