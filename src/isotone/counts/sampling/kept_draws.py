"""Independent draws by rejection from a public stream, and where in it those begin that were kept.

A reader draws the law of the noise again. Where one walk of thousands is kept, nearly all the time goes to walks
that are not. Each walk depends on the words from its first one on alone, so whoever knows the first words of
those that were kept draws the same rows at once. What was found is thus kept with the relaxation of an order.

Rows are the same with it or without it. That a word named there begins a walk that is kept is seen when it is drawn
again; that none between was left out is seen only by :meth:`KeptDraws.draw` without it (docs/theory/inference.md,
section 1).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from isotone.array_types import Ints
from isotone.errors import InputError
from isotone.noise.public_stream import PublicStream
from isotone.order.bipartitions.extended import draw_at

if TYPE_CHECKING:
    from isotone.counts.sampling.sources import TableSource

__all__ = ["KEPT_STREAM", "KeptDraws", "Starts"]

Orders = NDArray[np.int32]
Starts = tuple[tuple[str, tuple[int, ...]], ...]
"""For each stream, by the end of its label, the words that the walks began with that were kept, ascending."""

KEPT_STREAM = "isotone kept 1"
"""The beginning of the labels of these streams, with their version."""


@dataclass(eq=False)
class KeptDraws:
    """Independent draws of a source that rejects, remembered by where they begin."""

    source: TableSource
    known: dict[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])

    def draw(self, size: int, stream: str) -> tuple[Orders, Ints]:
        """The first ``size`` draws of a public stream that are kept."""
        starts, end = self.known.get(stream, ())[:size], 0
        orders, sizes = np.empty((size, self.source.tables.steps.total), np.int32), np.empty(size, np.int64)
        for r, start in enumerate(starts):
            orders[r : r + 1], sizes[r : r + 1], begun, after = self._walk(stream, start, 1)
            if start < end or begun[0] != start:
                raise InputError(
                    f"The relaxation says that a draw begins with word {start} of a public stream. None that fits does. "
                    "It belongs to another order or version: relax this order again."
                )
            end = after
        rest = len(starts)
        if rest < size:
            orders[rest:], sizes[rest:], begun, _ = self._walk(stream, end, size - rest)
            self.known[stream] = (*starts, *begun.tolist())
        return orders, sizes

    def _walk(self, stream: str, start: int, size: int) -> tuple[Orders, Ints, Ints, int]:
        """The first draws from a word on that are kept, the words that they begin with, and the next word."""
        label, source = f"{KEPT_STREAM} {stream}", self.source

        def words(at: int, count: int) -> NDArray[np.uint64]:
            return PublicStream(label, at).words(count)

        def settle(at: int, question: int, p: Fraction) -> bool:
            return bool(PublicStream(f"{label} question {at}", question).random() < p)

        return draw_at(source.tables, size, words, settle, start, source.dropped)
