"""The exact law of the noise of :class:`~isotone.counts.TreeFieldMechanism` on every node.

Noise ``h`` on the leaves has probability proportional to ``exp(-rate · Σ share(v)·|h(v)|)``, where ``h(v)`` is the
sum of the leaves below v. Messages up the tree (what a subtree says about its root) and down (what the rest says)
give the exact law of each node; sums of independent numbers are products of Fourier transforms on a grid that is
so wide that what wraps around is negligible (docs/theory/hierarchies.md, section 5).
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from isotone.array_types import Floats, Ints
from isotone.linear.least_squares import Hierarchy
from isotone.noise.laplace import LEAST_SUM_RATE, MOST_TERMS

__all__ = ["FieldLaw", "FieldTypes", "leaf_sums"]

_WIDEST = 1 << 14
"""The largest grid. Noise that needs more is that of a larger rate, spread out: to about one part in a thousand."""

_NEGLIGIBLE = 1e-13


@dataclass(frozen=True, eq=False)
class FieldTypes:
    """The different subtrees, with their shares, their children as pairs (type, number), and how many leaves they have.

    Types are numbered from the leaves up; ``of`` is the type of each node.
    """

    tree: Hierarchy
    of: Ints
    shares: tuple[Fraction, ...]
    children: tuple[tuple[tuple[int, int], ...], ...]
    leaves: Ints

    @classmethod
    def find(cls, tree: Hierarchy, shares: list[Fraction]) -> FieldTypes:
        """The subtrees of a tree with these shares by node."""
        below: list[Counter[int]] = [Counter() for _ in range(len(tree))]
        known: dict[tuple[Fraction, tuple[tuple[int, int], ...]], int] = {}
        of = np.zeros(len(tree), np.int64)
        for x in range(len(tree) - 1, -1, -1):
            key = shares[x], tuple(sorted(below[x].items()))
            of[x] = known.setdefault(key, len(known))
            if tree.parent[x] >= 0:
                below[tree.parent[x]][int(of[x])] += 1
        leaves: list[int] = []
        for _, children in known:
            leaves.append(sum(leaves[t] * k for t, k in children) if children else 1)
        return cls(
            tree, of, tuple(s for s, _ in known), tuple(c for _, c in known), np.array(leaves, np.int64)
        )

    @cached_property
    def rejects(self) -> bool:
        """Whether a node above leaves has a share, so that draws may be made in vain."""
        return any(share and below for share, below in zip(self.shares, self.children, strict=True))

    @cached_property
    def contexts(self) -> tuple[Ints, Ints, Ints]:
        """Nodes that are alike, seen from below and from above.

        The context of each node, and for each context its type and the context of its parent, or -1.
        """
        known: dict[tuple[int, int], int] = {}
        of = np.zeros(len(self.tree), np.int64)
        for x, above in enumerate(self.tree.parent.tolist()):
            key = (int(of[above]) if above >= 0 else -1), int(self.of[x])
            of[x] = known.setdefault(key, len(known))
        return of, np.array([t for _, t in known], np.int64), np.array([up for up, _ in known], np.int64)


def leaf_sums(types: FieldTypes, rate: float, t: int, number: int) -> list[int]:
    """The numbers of leaves, of so many of one type below one node, whose sums are drawn in place of the leaves.

    None where only leaves have shares, since nothing is drawn in vain there, and none at small rates. Public numbers decide.
    """
    leaf = not types.children[t] and number > 1
    if not leaf or not types.rejects or rate * float(types.shares[t]) < 1.001 * LEAST_SUM_RATE:
        return []
    return [min(MOST_TERMS, number - start) for start in range(0, number, MOST_TERMS)]


class FieldLaw:
    """The law of every node at one rate."""

    def __init__(self, types: FieldTypes, rate: float) -> None:
        self.types = types
        spread = self._largest_spread()
        wanted = spread / rate
        self.scale = max(1.0, wanted / (_WIDEST / 2))
        """How many times wider the noise is than on the grid."""
        self.rate = rate * self.scale
        self.size = 1 << max(6, math.ceil(math.log2(2 * wanted / self.scale)))
        place = np.arange(self.size)
        self.distance = np.minimum(place, self.size - place).astype(float)
        self._climb()

    def _largest_spread(self) -> float:
        """A half-width at rate 1 that hardly any sum of leaves leaves, even where nothing but leaves has a share."""
        types = self.types
        squares, longest = np.zeros(len(types.shares)), 0.0
        for t, children in enumerate(types.children):
            own = float(types.shares[t])
            squares[t] = sum(squares[c] * k for c, k in children) if children else 2 / own**2
            longest = longest if children else max(longest, 33 / own)
        roots = types.of[: types.tree.roots]
        return max(7 * math.sqrt(float(squares[roots].max())), longest)

    def _climb(self) -> None:
        """Messages up, and how often the sums of the children are kept."""
        types, size = self.types, self.size
        count = len(types.shares)
        self.messages = np.empty((count, size))
        self.transforms = np.empty((count, size // 2 + 1))
        self.acceptance = np.ones(count)
        self.log_total = np.zeros(count)
        for t, children in enumerate(types.children):
            weight = self._weight(t)
            if children:
                product = np.ones(size // 2 + 1)
                for c, k in children:
                    product *= self.transforms[c] ** k
                sums = np.maximum(np.fft.irfft(product, size), 0)
                self.log_total[t] = sum(self.log_total[c] * k for c, k in children)
                weight = weight * (sums / sums.sum())
                self.acceptance[t] = weight.sum()
            total = float(weight.sum())
            self.log_total[t] += math.log(total)
            self.messages[t] = weight / total
            self.transforms[t] = np.fft.rfft(self.messages[t]).real

    def _weight(self, t: int) -> Floats:
        return np.exp(-self.rate * float(self.types.shares[t]) * self.distance)

    @cached_property
    def draws(self) -> float:
        """The expected number of draws of leaves, or of sums of them, for one draw of the field by rejection."""
        needed, rate = np.ones(len(self.types.shares)), self.rate / self.scale
        for t, children in enumerate(self.types.children):
            if children:
                each = (2 * len(leaf_sums(self.types, rate, c, k)) or needed[c] * k for c, k in children)
                needed[t] = sum(each) / self.acceptance[t]
        return float(needed[self.types.of[: self.types.tree.roots]].sum())

    @property
    def log_normaliser(self) -> float:
        """The logarithm of the sum of all weights."""
        return float(self.log_total[self.types.of[: self.types.tree.roots]].sum())

    @cached_property
    def _laws(self) -> tuple[Floats, list[Floats]]:
        """For each context the variance, and the probabilities that the noise is beyond 0, 1, 2, …"""
        _, kinds, above = self.types.contexts
        below: list[list[int]] = [[] for _ in kinds]
        waiting: list[tuple[int, Floats | None]] = []
        for context, up in enumerate(above.tolist()):
            if up >= 0:
                below[up].append(context)
            else:
                waiting.append((context, None))
        variances, tails = np.empty(len(kinds)), [np.zeros(0)] * len(kinds)
        while waiting:
            context, outside = waiting.pop()
            t = int(kinds[context])
            law = self.messages[t] if outside is None else self.messages[t] * outside
            law = law / law.sum()
            variances[context] = law @ self.distance**2
            tails[context] = _tail(law)
            if below[context]:
                waiting += self._descend(t, outside, {int(kinds[c]): c for c in below[context]})
        return variances, tails

    def _descend(self, t: int, outside: Floats | None, contexts: dict[int, int]) -> list[tuple[int, Floats]]:
        """What the rest of the tree says about each kind of child."""
        weight = self._weight(t) if outside is None else self._weight(t) * outside
        given = np.fft.rfft(weight / weight.sum()).real
        children = self.types.children[t]
        powers = [self.transforms[c] ** k for c, k in children]
        after = [np.ones_like(given)]
        for power in reversed(powers):
            after.append(after[-1] * power)
        before, found = given, list[tuple[int, Floats]]()
        for place, (c, k) in enumerate(children):
            rest = before * self.transforms[c] ** (k - 1) * after[len(children) - 1 - place]
            message = np.maximum(np.fft.irfft(rest, self.size), 0)
            found.append((contexts[c], message / message.max()))
            before = before * powers[place]
        return found

    @cached_property
    def variance(self) -> Floats:
        """The variance of each node."""
        of, _, _ = self.types.contexts
        return self._laws[0][of] * self.scale**2

    def half_widths(self, level: float) -> Floats:
        """For each node the least number that its noise stays within with this probability."""
        of, _, _ = self.types.contexts
        found = [int(np.argmax(tail <= 1 - level)) for tail in self._laws[1]]
        return np.ceil(np.array(found, float) * self.scale)[of]

    def quantiles(self, probability: float) -> Floats:
        """For each node the quantile of its noise, which is symmetric."""
        if probability == 0.5:
            return np.zeros(len(self.types.of))
        beyond = 2 * min(probability, 1 - probability)
        of, _, _ = self.types.contexts
        found = np.array([int(np.argmax(tail <= beyond)) for tail in self._laws[1]], float)
        return math.copysign(1, probability - 0.5) * np.ceil(found * self.scale)[of]

    def common_half_width(self, level: float, nodes: Ints) -> float:
        """A number that all these nodes stay within at once with at least this probability.

        The probabilities that one leaves it are added up.
        """
        of, kinds, _ = self.types.contexts
        number = np.bincount(of[nodes], minlength=len(kinds))
        total = np.zeros(max(tail.size for tail in self._laws[1]) + 1)
        for tail, k in zip(self._laws[1], number, strict=True):
            total[: tail.size] += k * tail
            total[tail.size :] += k * _NEGLIGIBLE
        return float(np.ceil(int(np.argmax(total <= 1 - level)) * self.scale))


def _tail(law: Floats) -> Floats:
    """The probabilities that symmetric noise is beyond 0, 1, 2, …, down to a negligible one."""
    half = law[: law.size // 2].copy()
    half[1:] *= 2
    beyond = np.append(np.cumsum(half[::-1])[::-1][1:], 0.0)
    return beyond[: int(np.argmax(beyond <= _NEGLIGIBLE)) + 1]
