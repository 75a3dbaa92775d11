"""Parts of an order that can be cut exactly. The interface, and parts whose ideals are listed.

A region is a convex set of elements (with two elements it holds all between them). Cutting it draws one of the
ideals of the order on it, with weight ``exp(−rate · sum of the weights in the ideal)``, and leaves two regions: the
ideal and the rest. Both are convex again (docs/theory/curves-posets.md, section 2).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from isotone.array_types import Ints
from isotone.curves.circuits.selection import CurveDraws
from isotone.curves.poset.ideals import MOST_IDEALS, MOST_WORDS, IdealList, list_ideals
from isotone.errors import InputError

__all__ = ["Cut", "ListedRegion", "Region"]


class Region(Protocol):
    """A part of an order."""

    @property
    def members(self) -> Ints:
        """The elements."""
        ...

    def log_ideals(self) -> float:
        """The logarithm of the number of ideals."""
        ...

    def cut(self, weights: Ints, rate: Fraction, draws: CurveDraws) -> Cut:
        """Draw an ideal. ``weights`` has one entry for each element of the whole order."""
        ...


@dataclass(frozen=True)
class Cut:
    """The two sides of a cut. A side without elements is None."""

    below: Region | None
    above: Region | None


@dataclass(frozen=True)
class ListedRegion:
    """A region with few ideals, all listed.

    ``covers`` are those of the whole order, ``order`` a linear extension of it: between elements of a convex set there
    are no others.
    """

    elements: Ints = field(repr=False)
    covers: Ints = field(repr=False)

    @property
    def members(self) -> Ints:
        """The elements, along a linear extension."""
        return self.elements

    @cached_property
    def ideals(self) -> IdealList:
        """All ideals. Element ``k`` in them is ``members[k]``."""
        found = self.count_up_to(MOST_IDEALS)
        if found is None:
            raise InputError(
                f"This order has too many ideals to list: {MOST_IDEALS:,}, or {MOST_WORDS >> 17} MB of them, is the "
                "limit. Use method='additive'."
            )
        return found

    def count_up_to(self, most: int) -> IdealList | None:
        """The ideals, or None if there are more than ``most``."""
        size = self.elements.size
        return list_ideals(size, self._own_covers(), np.arange(size), most)

    def _own_covers(self) -> Ints:
        """The covers between members, by their places."""
        place = np.full(int(max(self.elements.max(), self.covers.max(initial=0))) + 1, -1, np.int64)
        place[self.elements] = np.arange(self.elements.size)
        pairs = place[self.covers]
        return pairs[(pairs >= 0).all(axis=1)]

    def log_ideals(self) -> float:
        """The logarithm of the number of ideals."""
        return math.log(self.ideals.count)

    def cut(self, weights: Ints, rate: Fraction, draws: CurveDraws) -> Cut:
        """Draw an ideal by its weight."""
        return self.choose(self.ideals.sums(weights[self.elements]), rate, draws)

    def choose(self, scores: Ints, rate: Fraction, draws: CurveDraws) -> Cut:
        """Draw an ideal by its score, one for each of the list."""
        one = np.ones(scores.size, np.int64)
        chosen = draws.segments(scores, np.array([0, scores.size]), [rate], one)
        inside = self.ideals.ideal(int(chosen[0]))
        return Cut(self._part(inside), self._part(~inside))

    def _part(self, inside: NDArray[np.bool_]) -> ListedRegion | None:
        return ListedRegion(self.elements[inside], self.covers) if inside.any() else None
