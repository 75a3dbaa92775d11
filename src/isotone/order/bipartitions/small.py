"""Extended bipartitions of small orders, counted and drawn with Python's integers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from itertools import product
from math import comb, prod
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from isotone.array_types import Floats, Ints
from isotone.order.decomposition import Leaf, Parallel, Prime

if TYPE_CHECKING:
    from isotone.order.poset import Poset

# Extended bipartitions of small orders, counted and drawn with Python's integers.
#
# The decomposition tree taken at its word: nothing is rounded and nothing is drawn twice. It needs no compiled
# code, serves orders of up to about a hundred elements, and is what the compiled walk is tested against.
# ``counts[a]`` is the number of extended bipartitions of a part with ``a`` elements on side A
# (docs/theory/counts.md, section 5).

ELEMENTS = 100
"""The largest order that is small …"""

STATES = 1 << 12
"""… if its prime blocks have so many states at most, together."""

Choose = Callable[[Sequence[int]], int]
"""Chooses an index with probability proportional to the integer weights."""

Sides = tuple[list[int], list[int]]


def is_small(P: Poset) -> bool:
    """Whether the order is small.

    Only its elements and relations decide.

    >>> from isotone.order import Poset
    >>> is_small(Poset.chain(range(100))), is_small(Poset.chain(range(101)))
    (True, False)
    """
    if len(P) > ELEMENTS:
        return False
    blocks = (node for node in P.decomposition().walk() if isinstance(node, Prime))
    return sum(prod(child.size + 1 for child in block.children) for block in blocks) <= STATES


class Part(ABC):
    """A part of an order."""

    size: int
    counts: list[int]

    @abstractmethod
    def draw(self, a: int, choose: Choose) -> Sides:
        """A uniform extended bipartition with ``a`` elements on side A.

        Returns both sides, ascending.
        """


class Point(Part):
    """One element."""

    def __init__(self, element: int) -> None:
        self.element, self.size, self.counts = element, 1, [1, 1]

    def draw(self, a: int, choose: Choose) -> Sides:
        """The element on its side."""
        return ([self.element], []) if a else ([], [self.element])


class Composite(Part):
    """Parts on top of each other, bottom up, or beside each other.

    ``prefixes[j]`` counts the extended bipartitions of the first ``j`` parts. A split that gives ``k`` of ``a``
    places on side A to the next part has the product of their counts as its weight, and beside each other the
    number of interleavings of the two sides as well.
    """

    def __init__(self, parts: Sequence[Part], *, beside: bool) -> None:
        self.parts, self.beside = parts, beside
        self.sizes, self.prefixes = [0], [[1]]
        for j, part in enumerate(parts):
            self.sizes.append(self.sizes[-1] + part.size)
            self.prefixes.append([sum(self.weights(j, a)) for a in range(self.sizes[-1] + 1)])
        self.size, self.counts = self.sizes[-1], self.prefixes[-1]

    def weights(self, j: int, a: int) -> list[int]:
        """The weights of giving 0, 1, … of ``a`` places on side A to part ``j``, the others to those before."""
        before, own = self.prefixes[j], self.parts[j].counts
        total, n = self.sizes[j] + len(own) - 1, len(own) - 1
        weights = [0] * (n + 1)
        for k in range(max(0, a - self.sizes[j]), min(a, n) + 1):
            shuffles = comb(a, k) * comb(total - a, n - k) if self.beside else 1
            weights[k] = before[a - k] * own[k] * shuffles
        return weights

    def draw(self, a: int, choose: Choose) -> Sides:
        """Split side A between the parts from the last to the first, draw each, put them together."""
        drawn: list[Sides] = []
        for j in range(len(self.parts) - 1, -1, -1):
            k = choose(self.weights(j, a))
            drawn.append(self.parts[j].draw(k, choose))
            a -= k
        drawn.reverse()
        put_together = _shuffled if self.beside else _stacked
        return put_together([one for one, _ in drawn], choose), put_together(
            [two for _, two in drawn], choose
        )


class Block(Part):
    """A prime block, drawn through words over its parts.

    The parts are related as ``above`` says.

    A state says how many letters of each part a word has. ``words[state]`` counts the words in which all
    letters of a part come before all letters of any part above it.
    """

    def __init__(self, parts: Sequence[Part], above: Sequence[Iterable[int]]) -> None:
        self.parts, self.above = parts, [frozenset(uppers) for uppers in above]
        self.size = sum(part.size for part in parts)
        self.full = tuple(part.size for part in parts)
        self.words: dict[tuple[int, ...], int] = {}
        self.states: list[list[tuple[int, ...]]] = [[] for _ in range(self.size + 1)]
        for state in product(*(range(part.size + 1) for part in parts)):
            self.words[state] = sum(self.last_letters(state)) if any(state) else 1
            self.states[sum(state)].append(state)
        self.counts = [sum(self.weights(a)) for a in range(self.size + 1)]

    def last_letters(self, state: tuple[int, ...]) -> list[int]:
        """For each letter the number of words of this state that end in it."""
        used = {i for i, count in enumerate(state) if count}
        return [
            self.words[_without(state, i)] if i in used and used.isdisjoint(self.above[i]) else 0
            for i in range(len(state))
        ]

    def weights(self, a: int) -> list[int]:
        """The number of extended bipartitions with each state of ``states[a]`` on side A."""
        return [
            self.words[state]
            * self.words[tuple(m - k for m, k in zip(self.full, state, strict=True))]
            * prod(part.counts[k] for part, k in zip(self.parts, state, strict=True))
            for state in self.states[a]
        ]

    def draw(self, a: int, choose: Choose) -> Sides:
        """Choose how many elements of each part are on side A, spell both sides, fill in the parts."""
        state = self.states[a][choose(self.weights(a))]
        rest = tuple(m - k for m, k in zip(self.full, state, strict=True))
        words = self._spell(state, choose), self._spell(rest, choose)
        drawn = [part.draw(k, choose) for part, k in zip(self.parts, state, strict=True)]
        return _filled(words[0], [one for one, _ in drawn]), _filled(words[1], [two for _, two in drawn])

    def _spell(self, state: tuple[int, ...], choose: Choose) -> list[int]:
        """A uniform word of this state, from its last letter to its first."""
        word: list[int] = []
        while any(state):
            word.append(choose(self.last_letters(state)))
            state = _without(state, word[-1])
        return word[::-1]


def _without(state: tuple[int, ...], i: int) -> tuple[int, ...]:
    return (*state[:i], state[i] - 1, *state[i + 1 :])


def _stacked(lists: list[list[int]], choose: Choose) -> list[int]:
    return [x for one in lists for x in one]


def _shuffled(lists: list[list[int]], choose: Choose) -> list[int]:
    """The lists in a uniformly random interleaving."""
    left = [len(one) for one in lists]
    word: list[int] = []
    while any(left):
        word.append(choose(left))
        left[word[-1]] -= 1
    return _filled(word, lists)


def _filled(word: list[int], lists: list[list[int]]) -> list[int]:
    """The word with each letter replaced by the next entry of its list."""
    following = [iter(one) for one in lists]
    return [next(following[i]) for i in word]


def part_of(P: Poset) -> Part:
    """The whole order as a part."""
    result: dict[int, Part] = {}
    tree = P.decomposition()
    for node in tree.walk():
        parts = [result[id(child)] for child in node.children]
        if isinstance(node, Leaf):
            result[id(node)] = Point(node.index)
        elif isinstance(node, Prime):
            leq = node.quotient.leq_matrix()
            k = range(len(parts))
            result[id(node)] = Block(parts, [[j for j in k if j != i and leq[i, j]] for i in k])
        else:
            result[id(node)] = Composite(parts, beside=isinstance(node, Parallel))
    return result[id(tree)]


# Many extended bipartitions of a small order at once, in NumPy, from a seeded generator.
#
# The same steps as in :mod:`.small`, with probabilities in floating point: for planning, never for a release. Every
# element gets a key, and one sort of the keys puts each side in order. The keys of a part with k elements on a side lie
# as k independent uniform numbers do of which the largest is the end of the part's span. So parts beside each other are
# interleaved uniformly without being looked at together, and parts on top of each other divide a span as sums of
# exponentials do.

Span = tuple[Floats, Floats]
"""Where the keys of a part begin, and how far its largest key is from there. One entry for each draw."""

CHUNK = 1 << 12
"""Draws made at a time, so that memory stays small."""

_BELOW_ONE = 1 - 2.0**-40


class SmallRows:
    """Simulate extended bipartitions of one part. The float tables are made once."""

    def __init__(self, part: Part, weights: list[int] | None = None) -> None:
        """Prepare the float tables.

        ``weights`` are those of the sizes of side A. Without them all draws are equally likely.
        """
        self._sizes = _Choices([weights or part.counts])
        self._maker = _maker(part, shuffled=False)
        self._elements = part.size

    def draw(self, size: int, rng: np.random.Generator) -> tuple[NDArray[np.int32], Ints]:
        """Simulate ``size`` extended bipartitions.

        Returns positions, side A first and each side ascending, and the sizes of side A.
        """
        orders, sizes = np.empty((size, self._elements), np.int32), np.empty(size, np.int64)
        for start in range(0, size, CHUNK):
            rows = slice(start, min(start + CHUNK, size))
            sizes[rows] = self._sizes.pick(np.zeros(rows.stop - start, np.int64), rng)
            one, keys = np.ones(rows.stop - start), np.empty((self._elements, rows.stop - start))
            self._maker.fill(sizes[rows], (0 * one, one), (2 * one, one), keys, rng)
            orders[rows] = np.argsort(np.ascontiguousarray(keys.T), axis=1)
        return orders, sizes


class _Maker(Protocol):
    size: int

    def fill(self, a: Ints, span_a: Span, span_b: Span, keys: Floats, rng: np.random.Generator) -> None:
        """The keys of all elements of a part, given how many are on side A and the spans of both sides."""
        ...


class _OfPoint:
    size = 1

    def __init__(self, part: Point) -> None:
        self.element = part.element

    def fill(self, a: Ints, span_a: Span, span_b: Span, keys: Floats, rng: np.random.Generator) -> None:
        keys[self.element] = np.where(a == 1, span_a[0] + span_a[1], span_b[0] + span_b[1])


class _OfRow:
    """Parts on top of each other, or beside each other.

    ``shuffled`` says that the row is interleaved with others. Otherwise only the sequence of its keys matters, and
    less need be drawn.
    """

    def __init__(self, part: Composite, shuffled: bool) -> None:
        self.beside, self.shuffled = part.beside, shuffled
        self.makers = [_maker(child, shuffled or part.beside) for child in part.parts]
        self.sizes = np.array([maker.size for maker in self.makers])
        self.size = part.size
        self.points = np.flatnonzero(self.sizes == 1)
        self.elements = [child.element for child in part.parts if isinstance(child, Point)]
        self.larger = np.flatnonzero(self.sizes > 1)
        self.splits = [
            _Choices([part.weights(j, a) for a in range(part.sizes[j + 1] + 1)])
            for j in range(len(part.parts))
        ]

    def fill(self, a: Ints, span_a: Span, span_b: Span, keys: Floats, rng: np.random.Generator) -> None:
        shares, left = np.empty((len(self.makers), a.size), np.int64), a.copy()
        for j in range(len(self.makers) - 1, -1, -1):
            shares[j] = self.splits[j].pick(left, rng)
            left -= shares[j]
        divide = self._beside if self.beside else self._stacked
        (low_a, long_a), (low_b, long_b) = (
            divide(counts, *span, rng)
            for counts, span in ((shares, span_a), (self.sizes[:, None] - shares, span_b))
        )
        p = self.points
        keys[self.elements] = np.where(shares[p] == 1, low_a[p] + long_a[p], low_b[p] + long_b[p])
        for j in self.larger:
            self.makers[j].fill(shares[j], (low_a[j], long_a[j]), (low_b[j], long_b[j]), keys, rng)

    def _stacked(self, counts: Ints, low: Floats, length: Floats, rng: np.random.Generator) -> Span:
        """The spans of parts that follow each other: a span with k keys is a sum of k exponentials."""
        if not self.shuffled:
            part = length / len(counts)
            return low + np.arange(len(counts))[:, None] * part, np.broadcast_to(part, counts.shape)
        weights = counts.astype(np.float64)
        weights[self.points] *= rng.standard_exponential((self.points.size, low.size))
        weights[self.larger] = rng.standard_gamma(weights[self.larger])
        ends = _running_sums(weights)
        scale = length / np.maximum(ends[-1], 1e-300)
        return low + (ends - weights) * scale, weights * scale

    def _beside(self, counts: Ints, low: Floats, length: Floats, rng: np.random.Generator) -> Span:
        """The spans of parts that are interleaved: the largest of k uniform numbers is a k-th root of one."""
        tops = rng.random(counts.shape)
        tops[self.larger] **= 1 / np.maximum(counts[self.larger], 1)
        if self.shuffled:
            tops /= np.max(np.where(counts > 0, tops, 1e-300), axis=0)
        return np.broadcast_to(low, tops.shape), length * tops


class _OfBlock:
    """A prime block: a word over its parts says whose turn it is."""

    def __init__(self, part: Block, shuffled: bool) -> None:
        self.shuffled, self.size = shuffled, part.size
        self.makers = [_maker(child, shuffled=False) for child in part.parts]
        self.elements = [_elements(child) for child in part.parts]
        self.offsets = np.cumsum([0, *(maker.size for maker in self.makers[:-1])])
        number = {state: k for k, state in enumerate(part.words)}
        self.states = np.array(list(part.words), np.int64)
        self.by_size = [np.array([number[state] for state in states], np.int64) for states in part.states]
        self.weights = _Choices([part.weights(a) for a in range(part.size + 1)])
        self.letters = _Choices([part.last_letters(state) for state in part.words])
        self.strides = np.array(
            [number[tuple(int(i == j) for j in range(len(self.makers)))] for i in range(len(self.makers))]
        )
        self.listed = np.concatenate(self.by_size)
        self.starts = np.cumsum([0, *(len(choices) for choices in self.by_size[:-1])])

    def fill(self, a: Ints, span_a: Span, span_b: Span, keys: Floats, rng: np.random.Generator) -> None:
        state = self.listed[self.starts[a] + self.weights.pick(a, rng)]
        turns_a = self._turns(state, *span_a, rng)
        turns_b = self._turns(len(self.states) - 1 - state, *span_b, rng)
        shares, one = self.states[state].T, np.ones(a.size)
        for j, (maker, own) in enumerate(zip(self.makers, self.elements, strict=True)):
            rank = np.zeros((1, a.size), np.int64)
            if maker.size > 1:
                maker.fill(shares[j], (0 * one, one), (2 * one, one), keys, rng)
                rank = np.argsort(np.argsort(keys[own], axis=0), axis=0)
            on_a, first = rank < shares[j], self.offsets[j]
            one_side = np.take_along_axis(turns_a, np.where(on_a, rank, 0) + first, axis=0)
            other = np.take_along_axis(turns_b, np.where(on_a, 0, rank - shares[j]) + first, axis=0)
            keys[own] = np.where(on_a, one_side, other)

    def _turns(self, state: Ints, low: Floats, length: Floats, rng: np.random.Generator) -> Floats:
        """The keys of the turns of each part in a uniform word of the state, spelt from its last letter."""
        counts = self.states[state].T.copy()
        state, left = state.copy(), counts.sum(axis=0)
        shape = (self.size, state.size)
        steps = rng.standard_exponential(shape) if self.shuffled else np.ones(shape)
        steps[np.arange(self.size)[:, None] >= left] = 0.0
        ends = _running_sums(steps)
        ends = low + ends * (length / np.maximum(ends[-1], 1e-300))
        turns = np.zeros(shape)
        for place in range(int(left.max(initial=0)) - 1, -1, -1):
            here = np.flatnonzero(left > place)
            letter = self.letters.pick(state[here], rng)
            state[here] -= self.strides[letter]
            counts[letter, here] -= 1
            turns[self.offsets[letter] + counts[letter, here], here] = ends[place, here]
        return turns


def _maker(part: Part, shuffled: bool) -> _Maker:
    if isinstance(part, Point):
        return _OfPoint(part)
    if isinstance(part, Composite):
        return _OfRow(part, shuffled)
    assert isinstance(part, Block)
    return _OfBlock(part, shuffled)


def _elements(part: Part) -> list[int]:
    if isinstance(part, Point):
        return [part.element]
    assert isinstance(part, (Composite, Block))
    return [x for child in part.parts for x in _elements(child)]


def _running_sums(terms: Floats) -> Floats:
    """Sums down the first axis: row by row, which is faster than ``np.cumsum`` across rows."""
    sums = terms.copy()
    for j in range(1, len(sums)):
        sums[j] += sums[j - 1]
    return sums


class _Choices:
    """Indices with probabilities proportional to integer weights, from lists that may differ in length."""

    def __init__(self, weights: list[list[int]]) -> None:
        self.width = max(map(len, weights))
        table = np.ones((len(weights), self.width))
        for row, own in zip(table, weights, strict=True):
            total = sum(own) or 1
            row[: len(own)] = np.cumsum([weight / total for weight in own])  # integers of any size
            row[np.flatnonzero(own)[-1] if any(own) else 0 :] = 1.0  # rounding never reaches a weight of 0
        self.first = table[:, 0].copy()
        self.steps = (table + np.arange(len(weights))[:, None]).ravel()

    def pick(self, which: Ints, rng: np.random.Generator) -> Ints:
        """An index from the list ``which``, for each entry."""
        uniform = rng.random(which.size) * _BELOW_ONE
        if self.width == 2:
            return (self.first[which] <= uniform).astype(np.int64)
        return np.searchsorted(self.steps, uniform + which, side="right") - which * self.width
