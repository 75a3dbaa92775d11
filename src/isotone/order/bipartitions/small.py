"""Extended bipartitions of small orders, counted and drawn with Python's integers.

The decomposition tree taken at its word: nothing is rounded and nothing is drawn twice. It needs no compiled
code, serves orders of up to about a hundred elements, and is what the compiled walk is tested against.
``counts[a]`` is the number of extended bipartitions of a part with ``a`` elements on side A
(docs/theory/counts.md, section 5).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from itertools import product
from math import comb, prod
from typing import TYPE_CHECKING

from isotone.order.decomposition import Leaf, Parallel, Prime

if TYPE_CHECKING:
    from isotone.order.poset import Poset

__all__ = [
    "ELEMENTS",
    "STATES",
    "Block",
    "Choose",
    "Composite",
    "Part",
    "Point",
    "is_small",
    "part_of",
]

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
    made: dict[int, Part] = {}
    tree = P.decomposition()
    for node in tree.walk():
        parts = [made[id(child)] for child in node.children]
        if isinstance(node, Leaf):
            made[id(node)] = Point(node.index)
        elif isinstance(node, Prime):
            leq = node.quotient.leq_matrix()
            k = range(len(parts))
            made[id(node)] = Block(parts, [[j for j in k if j != i and leq[i, j]] for i in k])
        else:
            made[id(node)] = Composite(parts, beside=isinstance(node, Parallel))
    return made[id(tree)]
