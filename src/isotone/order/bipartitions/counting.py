"""Numbers of extended bipartitions, exact by residues and rounded up as tables, and uniform draws from them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from isotone.array_types import Ints
from isotone.errors import InputError
from isotone.kernels import kernel
from isotone.order.bipartitions import steps as upward
from isotone.order.bipartitions.small import is_small, part_of
from isotone.order.bipartitions.steps import (
    BESIDE,
    CHAIN,
    LOOSEN,
    POINTS,
    PRIME,
    SHUFFLE,
    STACK,
    Int64,
    Numbers,
    Steps,
    Words,
    exponent,
    last_letters,
    mantissa,
    product_up,
    share,
    split_weight,
    steps,
    sum_up,
    terms_unit,
    value,
    words_of_blocks,
)
from isotone.order.bipartitions.walk import (
    NEEDS_ANSWER,
    NEEDS_WORDS,
    QUESTION,
    SLICE,
    START,
    STATUS,
    BipartitionRows,
    WalkTables,
    reader_of,
    walks,
)

if TYPE_CHECKING:
    from isotone.order.poset import Poset

# Tables of the numbers of extended bipartitions, rounded up so that one can draw from them exactly.
#
# Every entry bounds from above the exact sum of products of the entries that it is made of. A walk from the
# last table down to the elements, choosing at each step with the entries below as weights and starting over
# in the rounded-away excess, therefore visits every extended bipartition with the same probability: the bounds
# cancel along the way (docs/theory/counts.md, section 6). An entry takes eight bytes whatever its size;
# building is O(n²) for series-parallel orders, and O(states · modules) for each prime block.

REACH = 1 << 22
"""The largest table of words that is built for a prime block unless more is asked for: 140 MB."""


@dataclass(frozen=True, eq=False)
class Tables:
    """The tables of all steps of an order, and the cumulative weights of the last in units of ``2^unit``."""

    steps: Steps
    numbers: Numbers = field(repr=False)
    words: Words
    top: Ints = field(repr=False)
    unit: int

    @property
    def log_count(self) -> float:
        """The logarithm of the number of extended bipartitions, at most ``8n · 2^-30`` too large."""
        return math.log(int(self.top[-1])) + self.unit * math.log(2)

    @property
    def sizes(self) -> NDArray[np.float64]:
        """The probability that side A of a uniform extended bipartition has 0, 1, …, n elements."""
        return np.diff(self.top, prepend=0) / self.top[-1]

    @property
    def arrays(self) -> WalkTables:
        """Everything that the walk needs."""
        s, w = self.steps, self.words
        steps, words = (
            (s.tree, s.elements, s.blocks, s.modules),
            (w.words, w.last, w.first, w.state, w.weight),
        )
        return WalkTables(*steps, self.numbers, *words, self.top, self.unit)


def within_reach(P: Poset, reach: int = REACH) -> bool:
    """Whether the tables of ``P`` can be built.

    They can if no prime block has more than ``reach`` states.

    >>> from isotone.order import Poset
    >>> within_reach(Poset.chain("abc"))
    True
    """
    return steps(P).within(reach)


def tables(P: Poset, reach: int = REACH) -> Tables:
    """The tables of ``P``. Raises an error if a prime block has more than ``reach`` states."""
    program = steps(P)
    if not program.within(reach):
        raise InputError(
            f"A prime block of this order has {max(program.states)} states or more, above the reach of {reach}. "
            "Raise reach, or relax the order first (counts.relax)."
        )
    numbers = np.empty(program.tree[-1, 4] + program.total + 1, np.int64)
    words = words_of_blocks(program)
    n = program.total
    factors = {True: upward.factorials(n), False: upward.inverse_factorials(n)}
    for v, (kind, size, left, right, start) in enumerate(program.tree.tolist()):
        if kind in (POINTS, CHAIN):
            numbers[start : start + size + 1] = upward.binomials(size)
        elif kind in (BESIDE, STACK):
            _convolve(numbers, program.tree[left], program.tree[right], start)
        elif kind == PRIME:
            words.weigh(program, v, numbers)
        else:
            _rescale(numbers, program.tree[left, 4], start, size, factors[kind == SHUFFLE])
    top, unit = _cumulate(numbers[program.tree[-1, 4] :])
    return Tables(program, numbers, words, top, int(unit))


def loosened(table: Tables) -> Tables:
    """The same tables with one more step, which takes out the orders of the places on both sides.

    A draw then has an extended bipartition with ``a`` elements on side A with a probability in proportion to
    ``1 / (a! (n - a)!)``, that is, to the number ``C(n, a)`` of interleavings of its sides. The total weight is
    the volume of the difference body (docs/theory/difference.md, section 3).
    """
    n, last = table.steps.total, len(table.steps) - 1
    start = int(table.steps.tree[last, 4])
    numbers = np.append(table.numbers, np.empty(n + 1, np.int64))
    _rescale(numbers, start, start + n + 1, n, upward.inverse_factorials(n))
    row = np.array([[LOOSEN, n, last, -1, start + n + 1]], np.int64)
    top, unit = _cumulate(numbers[start + n + 1 :])
    program = replace(table.steps, tree=np.append(table.steps.tree, row, axis=0))
    return Tables(program, numbers, table.words, top, int(unit))


@kernel(steps=lambda numbers, left, right, out: int(left[1] + 1) * int(right[1] + 1))
def _convolve(numbers: Numbers, left: Ints, right: Ints, out: Int64) -> None:
    """Convolve two tables.

    Entry a is the sum over k of entry k of the left and entry a - k of the right table.
    """
    i, ni, j, nj = left[4], left[1], right[4], right[1]
    for a in range(ni + nj + 1):
        low, high = max(0, a - nj), min(a, ni)
        highest = np.int64(-(2**40))
        for k in range(low, high + 1):
            highest = max(highest, exponent(numbers[i + k]) + exponent(numbers[j + a - k]))
        unit = terms_unit(highest, 62, high - low + 1)
        total = np.int64(0)
        for k in range(low, high + 1):
            one, other = numbers[i + k], numbers[j + a - k]
            total += share(mantissa(one) * mantissa(other), unit - exponent(one) - exponent(other))
        numbers[out + a] = sum_up(total, unit)


@kernel(steps=lambda numbers, source, out, n, factor: n)
def _rescale(numbers: Numbers, source: Int64, out: Int64, n: Int64, factor: Numbers) -> None:
    """Rescale a table by factors.

    Entry a is entry a of the source times factor a times factor n - a.
    """
    for a in range(n + 1):
        numbers[out + a] = product_up(product_up(numbers[source + a], factor[a]), factor[n - a])


@kernel(steps=lambda table: table.size)
def _cumulate(table: Numbers) -> tuple[Ints, Int64]:
    """The cumulative weights of a table, each rounded up to the unit returned, together below 2^62."""
    highest = np.int64(-(2**40))
    for number in table:
        highest = max(highest, exponent(number))
    unit = terms_unit(highest, 31, table.size)
    cumulative, total = np.empty(table.size, np.int64), np.int64(0)
    for a in range(table.size):
        total += share(mantissa(table[a]), unit - exponent(table[a]))
        cumulative[a] = total
    return cumulative, unit


# Exact numbers of extended bipartitions, by counting modulo primes.
#
# Modulo a prime above n all the steps of :mod:`isotone.order.bipartitions.steps` are integer arithmetic in 64 bits, the
# divisions by factorials too. Enough primes determine the number.

COUNTING_REACH = 1 << 25
"""The largest prime block that is counted: its table takes 256 MB."""


def exact_total(program: Steps, bound: int) -> int:
    """The number of extended bipartitions, known to be at most ``bound``."""
    number, modulus = 0, 1
    for p in _primes():
        residue = int(_total(program.tree, program.elements.size, program.blocks, program.modules, p))
        # the number in the class of both: move by multiples of the old modulus
        number += modulus * ((residue - number) * pow(modulus, -1, p) % p)
        modulus *= p
        if modulus > bound:
            return number
    raise AssertionError("there are enough primes below 2^31 for every order that fits in memory")


def _primes() -> Iterator[int]:
    """The primes below 2^31, from the largest down."""
    yield from (k for k in range(2**31 - 1, 2**30, -2) if _is_prime(k))


def _is_prime(k: int) -> bool:
    """Miller and Rabin's test, which has no exceptions below 3.2e9 for these bases."""
    odd, twos = k - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    for base in (2, 3, 5, 7):
        power = pow(base, odd, k)
        if power not in (1, k - 1) and all(pow(power, 2**s, k) != k - 1 for s in range(1, twos)):
            return False
    return True


@kernel
def _total(tree: Ints, n: Int64, blocks: Ints, modules: Ints, p: Int64) -> Int64:
    """The sum of the last table, modulo p."""
    factorial, inverse = np.ones(n + 1, np.int64), np.ones(n + 1, np.int64)
    for k in range(1, n + 1):
        factorial[k] = factorial[k - 1] * k % p
    inverse[n] = _power(factorial[n], p - 2, p)
    for k in range(n, 0, -1):
        inverse[k - 1] = inverse[k] * k % p
    table = np.zeros(tree[-1, 4] + n + 1, np.int64)
    for v in range(tree.shape[0]):
        kind, size, left, right, start = tree[v, 0], tree[v, 1], tree[v, 2], tree[v, 3], tree[v, 4]
        if kind in (POINTS, CHAIN):
            for a in range(size + 1):
                table[start + a] = factorial[size] * inverse[a] % p * inverse[size - a] % p
        elif kind in (BESIDE, STACK):
            _convolve_residues(table, tree[left, 4], tree[left, 1], tree[right, 4], tree[right, 1], start, p)
        elif kind == PRIME:
            first, stop = blocks[left, 0], blocks[left + 1, 0]
            _weigh(table, tree, modules[first:stop], blocks[left, 1], start, p)
        else:
            factor = factorial if kind == SHUFFLE else inverse
            for a in range(size + 1):
                table[start + a] = table[tree[left, 4] + a] * factor[a] % p * factor[size - a] % p
    return table[tree[-1, 4] :].sum() % p


@kernel
def _power(base: Int64, exponent: Int64, p: Int64) -> Int64:
    result = np.int64(1)
    while exponent > 0:
        if exponent & 1:
            result = result * base % p
        base = base * base % p
        exponent >>= 1
    return result


@kernel
def _convolve_residues(table: Ints, i: Int64, ni: Int64, j: Int64, nj: Int64, out: Int64, p: Int64) -> None:
    for a in range(ni + nj + 1):
        total = np.int64(0)
        for k in range(max(0, a - nj), min(a, ni) + 1):
            total += table[i + k] * table[j + a - k]
            if total >= p * p:  # cheaper than a remainder each time; p * p is below 2^62
                total -= p * p
        table[out + a] = total % p


@kernel
def _weigh(table: Ints, tree: Ints, modules: Ints, states: Int64, out: Int64, p: Int64) -> None:
    """The table of a prime block.

    Words by their last letter, then splits. See :mod:`isotone.order.bipartitions.steps`.
    """
    k = modules.shape[0]
    words, count = np.zeros(states, np.int64), np.zeros(k, np.int64)
    words[0], used = 1, np.int64(0)
    for state in range(1, states):
        i = 0
        while count[i] == modules[i, 1]:
            count[i] = 0
            used &= ~(np.int64(1) << i)
            i += 1
        count[i] += 1
        used |= np.int64(1) << i
        letters, i = last_letters(used, modules, 0), 0
        total = np.int64(0)
        while letters > 0:
            if letters & 1:
                total += words[state - modules[i, 3]]
            letters >>= 1
            i += 1
        words[state] = total % p
    product = np.ones(k + 1, np.int64)
    count[:] = 0
    changed, a = k - 1, 0
    for state in range(states):
        if state > 0:
            changed = 0
            while count[changed] == modules[changed, 1]:
                a -= count[changed]
                count[changed] = 0
                changed += 1
            count[changed] += 1
            a += 1
        for i in range(changed, -1, -1):
            product[i] = product[i + 1] * table[tree[modules[i, 0], 4] + count[i]] % p
        weight = product[0] * words[state] % p * words[states - 1 - state]
        table[out + a] = (table[out + a] + weight) % p


# The number of extended bipartitions, and uniform draws from random words.
#
# An *extended bipartition* of P is a split of its elements in two sides, A and B, with a linear extension of
# each side. The cones that tile the noise of :class:`isotone.counts.PosetMechanism` correspond to them one to
# one (docs/theory/counts.md, section 3). Everything goes through the decomposition tree: see
# :mod:`isotone.order.bipartitions.steps` for the steps, :mod:`isotone.order.bipartitions.counting` for the numbers, :mod:`.walk` for the draws.

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
        result = tables(P)
        bound = math.ceil(int(result.top[-1]) * Fraction(2) ** result.unit)
    else:
        bound = math.factorial(len(P) + 1)  # that of an antichain, which has the most
    return exact_total(program, bound)


def draw(
    table: Tables,
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
        table, size, lambda _, count: words(count), lambda _, __, p: settle(p), dropped=dropped
    )
    return orders, sizes


def draw_at(
    table: Tables,
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
    n, at = table.steps.total, start
    orders, sizes, begun = np.empty((size, n), np.int32), np.empty(size, np.int64), np.empty(size, np.int64)
    stream, answers, done = np.empty(0, np.uint64), np.empty(0, np.int8), 0
    status, tries = NEEDS_WORDS, 1
    while done < size:
        if status == NEEDS_WORDS:
            few = min((size - done) * tries * (n + 16), _CHUNK) + 64
            tries *= 4 if len(dropped) else 1  # most walks may come to nothing: ask less and less often
            stream = np.concatenate((stream, words(at + stream.size, max(few, stream.size))))
        reader, before = reader_of(stream), done
        done += walks(
            table.arrays, reader, answers, dropped, BipartitionRows(orders[done:], sizes[done:], begun[done:])
        )
        begun[before:done] += at
        status, settled = int(reader.cursor[STATUS]), int(reader.cursor[START])
        if settled:  # the answers were about the first walk, which is over
            answers = answers[:0]
        stream, at = stream[settled:], at + settled
        if status == NEEDS_ANSWER:
            p = _answer_probability(table, *reader.cursor[QUESTION : QUESTION + 3].tolist())
            answers = np.append(answers, np.int8(settle(at, answers.size, p)))
    return orders, sizes, begun, at


def _answer_probability(table: Tables, step: int, a: int, state: int) -> Fraction:
    """With which probability a question of the walk is answered yes, given that it was asked.

    The step is kept with probability exact / rounded; it is asked with probability 2^-SLICE and kept
    without a question otherwise.
    """
    kind, size, left, _, start = table.steps.tree[step].tolist()
    rounded = table.numbers[start + a]
    if kind in (POINTS, CHAIN):
        exact = Fraction(math.comb(size, a))
    elif kind == PRIME:
        exact, rounded = _split_weights(table, left, state)
    else:
        source = value(table.numbers[table.steps.tree[left, 4] + a])
        interleavings = math.factorial(a) * math.factorial(size - a)
        exact = source / interleavings if kind == LOOSEN else source * interleavings
    return 1 - (1 - exact / value(rounded)) * 2**SLICE


def _split_weights(table: Tables, b: int, state: int) -> tuple[Fraction, int]:
    """The exact product of the numbers that make the weight of a split, and the rounded-up one."""
    s, g = table.steps, table.words.words
    (first, states, at, _), stop = s.blocks[b].tolist(), int(s.blocks[b + 1, 0])
    rounded = split_weight(s.tree, s.blocks, b, s.modules, table.numbers, g, state)
    exact, rest = value(g[at + state]) * value(g[at + states - 1 - state]), state
    for step, _, _, stride in s.modules[first:stop][::-1].tolist():
        exact *= value(table.numbers[s.tree[step, 4] + rest // stride])
        rest %= stride
    return exact, rounded
