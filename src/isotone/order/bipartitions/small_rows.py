"""Many extended bipartitions of a small order at once, in NumPy, from a seeded generator.

The same steps as in :mod:`.small`, with probabilities in floating point: for planning, never for a release. Every
element gets a key, and one sort of the keys puts each side in order. The keys of a part with k elements on a side lie
as k independent uniform numbers do of which the largest is the end of the part's span. So parts beside each other are
interleaved uniformly without being looked at together, and parts on top of each other divide a span as sums of
exponentials do.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from isotone.array_types import Floats, Ints
from isotone.order.bipartitions.small import Block, Composite, Part, Point

__all__ = ["SmallRows"]

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
