"""Uniform extended bipartitions, for releases and for simulations, on any order.

A :class:`Sampler` knows its *method*: ``exact`` draws from the order's own tables; ``rejection`` draws from those
of a relaxed order until the draw is one of the order itself; ``relaxed`` draws for the relaxed order, whose
ball contains the order's own: as private, and a little noisier. The choice depends on the order alone.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from isotone import noise
from isotone.order.bipartitions import Tables, draw, tables

if TYPE_CHECKING:
    from isotone.order import Poset

__all__ = ["Sampler", "sample_extended_bipartition"]

Ints = NDArray[np.int64]
Orders = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Sampler:
    """Draws uniform extended bipartitions of ``P``: from ``tables``, which may lack the relations ``dropped``."""

    P: Poset
    tables: Tables = field(repr=False)
    dropped: Ints = field(repr=False, default_factory=lambda: np.empty((0, 2), np.int64))

    def draw(self) -> tuple[Orders, int]:
        """One exactly uniform extended bipartition, from cryptographic bits: positions, and the size of side A."""
        orders, sizes = draw(self.tables, 1, noise.random_words, noise.bernoulli, self.dropped)
        return orders[0], int(sizes[0])

    def simulate(self, size: int, rng: np.random.Generator) -> tuple[Orders, Ints]:
        """``size`` draws from a seeded generator, for planning only; see :func:`isotone.order.bipartitions.draw`."""

        def words(count: int) -> NDArray[np.uint64]:
            return rng.integers(0, 2**64, size=count, dtype=np.uint64)

        def settle(p: Fraction) -> bool:
            return bool(rng.random() < p)

        return draw(self.tables, size, words, settle, self.dropped)


_recent: OrderedDict[Hashable, Sampler] = OrderedDict()


def sampler(P: Poset) -> Sampler:
    """The sampler of ``P``; the last few are kept."""
    key = (P.elements, P.covers)
    if key not in _recent:
        _recent[key] = Sampler(P, tables(P))
    _recent.move_to_end(key)
    while len(_recent) > 4:
        _recent.popitem(last=False)
    return _recent[key]


def sample_extended_bipartition(P: Poset) -> tuple[tuple[Hashable, ...], tuple[Hashable, ...]]:
    """A uniform extended bipartition of ``P``: the sides A and B, each ascending, from cryptographic bits.

    Exactly uniform: the tables that guide the draw are rounded up, and the draw starts over whenever it falls
    in what was rounded away, decided by integer arithmetic (docs/theory/counts.md, section 6).

    >>> from isotone.order import Poset
    >>> A, B = sample_extended_bipartition(Poset.chain("ab"))
    >>> sorted(A + B), list(A) == sorted(A), list(B) == sorted(B)
    (['a', 'b'], True, True)
    """
    order, a = sampler(P).draw()
    names = [P.elements[x] for x in order]
    return tuple(names[:a]), tuple(names[a:])
