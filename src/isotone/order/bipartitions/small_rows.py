"""Many extended bipartitions of a small order at once, in NumPy, from a seeded generator.

The same steps as in :mod:`.small`, with probabilities in floating point: for planning, never for a release. The
rows of a part are two arrays with a column for each of its elements: whether the element is on side A, and
how many elements of the part stand before it on its side.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from isotone.order.bipartitions.small import Block, Part, Point, Row

__all__ = ["SmallRows"]

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Letters = NDArray[np.int16]

CHUNK = 1 << 13
"""Rows made at a time, so that memory stays small."""


class SmallRows:
    """Simulate extended bipartitions of one part.

    The float tables are made once.
    """

    def __init__(self, part: Part, weights: list[int] | None = None) -> None:
        """Prepare the float tables.

        ``weights`` are those of the sizes of side A. Without them all draws are equally likely.
        """
        self._sizes = _cumulative([weights or part.counts])
        self._maker = _maker(part)

    def draw(self, size: int, rng: np.random.Generator) -> tuple[NDArray[np.int32], Ints]:
        """Simulate ``size`` extended bipartitions.

        Returns positions, side A first and each side ascending, and the sizes of side A.
        """
        elements = np.array(self._maker.elements, np.int32)
        orders, sizes = np.empty((size, elements.size), np.int32), np.empty(size, np.int64)
        for start in range(0, size, CHUNK):
            a = sizes[start : start + CHUNK]
            a[:] = _pick(self._sizes, np.zeros(a.size, np.int64), rng)
            on_a, before = self._maker.rows(a, rng)
            place = np.where(on_a, before, before + a[:, None])
            np.put_along_axis(
                orders[start : start + CHUNK], place, np.broadcast_to(elements, place.shape), axis=1
            )
        return orders, sizes


class _Maker(Protocol):
    elements: list[int]

    def rows(self, a: Ints, rng: np.random.Generator) -> tuple[Bools, Ints]:
        """A row for each entry of ``a``, the number of elements on side A."""
        ...


class _OfPoint:
    def __init__(self, part: Point) -> None:
        self.elements = [part.element]

    def rows(self, a: Ints, rng: np.random.Generator) -> tuple[Bools, Ints]:
        return (a == 1)[:, None], np.zeros((a.size, 1), np.int64)


class _OfRow:
    def __init__(self, part: Row) -> None:
        self.makers = [_maker(child) for child in part.parts]
        self.elements = [x for maker in self.makers for x in maker.elements]
        self.beside = part.beside
        self.splits = [
            _cumulative([part.weights(j, a) for a in range(part.sizes[j + 1] + 1)])
            for j in range(len(part.parts))
        ]

    def rows(self, a: Ints, rng: np.random.Generator) -> tuple[Bools, Ints]:
        shares, left = np.empty((a.size, len(self.makers)), np.int64), a.copy()
        for j in range(len(self.makers) - 1, -1, -1):
            shares[:, j] = _pick(self.splits[j], left, rng)
            left -= shares[:, j]
        word_a, word_b = (self._word(on_side, rng) for on_side in (shares, _others(self.makers, shares)))
        return _filled(self.makers, shares, word_a, word_b, rng)

    def _word(self, counts: Ints, rng: np.random.Generator) -> Letters:
        """For each row the parts place by place, each as often as ``counts`` says."""
        n, parts = len(self.elements), len(self.makers)
        beyond = n - counts.sum(axis=1, keepdims=True)
        letters = np.tile(np.arange(parts + 1, dtype=np.int16), len(counts))
        word = np.repeat(letters, np.concatenate((counts, beyond), axis=1).ravel()).reshape(-1, n)
        if not self.beside:
            return word
        key = rng.random(word.shape)
        key[word == parts] = 2.0  # places beyond the side stay at the end
        return np.take_along_axis(word, np.argsort(key, axis=1), axis=1)


class _OfBlock:
    def __init__(self, part: Block) -> None:
        self.makers = [_maker(child) for child in part.parts]
        self.elements = [x for maker in self.makers for x in maker.elements]
        number = {state: k for k, state in enumerate(part.words)}
        self.states = np.array(list(part.words), np.int64)
        self.by_size = [np.array([number[state] for state in states], np.int64) for states in part.states]
        self.weights = [_cumulative([part.weights(a)]) for a in range(part.size + 1)]
        self.letters = _cumulative([part.last_letters(state) for state in part.words])
        self.strides = np.array(
            [number[tuple(int(i == j) for j in range(len(self.makers)))] for i in range(len(self.makers))]
        )

    def rows(self, a: Ints, rng: np.random.Generator) -> tuple[Bools, Ints]:
        state = np.empty(a.size, np.int64)
        for size in np.unique(a).tolist():
            here = np.flatnonzero(a == size)
            picked = _pick(self.weights[size], np.zeros(here.size, np.int64), rng)
            state[here] = self.by_size[size][picked]
        shares = self.states[state]
        word_a, word_b = (self._word(on_side, rng) for on_side in (state, len(self.states) - 1 - state))
        return _filled(self.makers, shares, word_a, word_b, rng)

    def _word(self, state: Ints, rng: np.random.Generator) -> Letters:
        """A uniform word of each state, spelt from its last letter to its first."""
        word = np.full((state.size, len(self.elements)), len(self.makers), np.int16)
        state, left = state.copy(), self.states[state].sum(axis=1)
        while left.any():
            here = np.flatnonzero(left)
            letter = _pick(self.letters, state[here], rng)
            left[here] -= 1
            word[here, left[here]] = letter
            state[here] -= self.strides[letter]
        return word


def _maker(part: Part) -> _Maker:
    if isinstance(part, Point):
        return _OfPoint(part)
    if isinstance(part, Row):
        return _OfRow(part)
    assert isinstance(part, Block)
    return _OfBlock(part)


def _cumulative(weights: list[list[int]]) -> Floats:
    """The cumulative probabilities of lists of integer weights, which may differ in length."""
    table = np.ones((len(weights), max(map(len, weights))))
    for row, own in zip(table, weights, strict=True):
        total = sum(own) or 1
        row[: len(own)] = np.cumsum(
            [weight / total for weight in own]
        )  # the quotient of integers of any size
        row[len(own) - 1 :] = 1.0
        row[np.flatnonzero(own)[-1] if any(own) else 0 :] = 1.0  # rounding never reaches a weight of 0
    return table


def _pick(table: Floats, which: Ints, rng: np.random.Generator) -> Ints:
    """An index from the row ``which`` of cumulative probabilities, for each entry."""
    uniform = rng.random(which.size)
    return np.sum(table[which, :-1] <= uniform[:, None], axis=1)


def _others(makers: list[_Maker], shares: Ints) -> Ints:
    return np.array([len(maker.elements) for maker in makers]) - shares


def _filled(
    makers: list[_Maker], shares: Ints, word_a: Letters, word_b: Letters, rng: np.random.Generator
) -> tuple[Bools, Ints]:
    """The rows of the whole order, from those of its parts.

    The r-th element of a part on a side stands at the r-th letter of that part.
    """
    sides: list[Bools] = []
    places: list[Ints] = []
    sorted_a, sorted_b = (np.argsort(word, axis=1, kind="stable") for word in (word_a, word_b))
    first_a = np.cumsum(shares, axis=1) - shares
    rest = _others(makers, shares)
    first_b = np.cumsum(rest, axis=1) - rest
    for j, maker in enumerate(makers):
        on_a, before = maker.rows(shares[:, j], rng)
        at_a = np.take_along_axis(sorted_a, np.where(on_a, before + first_a[:, j : j + 1], 0), axis=1)
        at_b = np.take_along_axis(sorted_b, np.where(on_a, 0, before + first_b[:, j : j + 1]), axis=1)
        sides.append(on_a)
        places.append(np.where(on_a, at_a, at_b))
    return np.concatenate(sides, axis=1), np.concatenate(places, axis=1)
