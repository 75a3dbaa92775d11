"""Values of a breakdown that could be true: not negative, following the order, and still adding up."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from isotone.array_types import Floats
from isotone.counts.breakdowns.margins import MarginsMechanism
from isotone.counts.consistency import consistent
from isotone.errors import InputError

__all__ = ["consistent_margins"]


def consistent_margins(
    mechanism: MarginsMechanism, values: Sequence[Floats], *, integers: bool
) -> list[Floats]:
    """The cells of the finest margin, each moved to the nearest counts that could be true, and their sums.

    Post-processing. Where many cells are near 0 their sums become too large (docs/theory/breakdowns.md, section 6).
    """
    breakdown, P = mechanism.breakdown, mechanism.base.P
    finest = breakdown.finest
    if finest is None:
        raise InputError(
            "Values that could be true need a margin that contains all others, such as '*': no released margin does."
        )
    place = breakdown.margins.index(finest)
    table, variance = values[place], mechanism.variances()[place]
    moved = np.array(
        [
            consistent(P, row, 1 / spread, integers=integers)
            for row, spread in zip(table.reshape(-1, len(P)), variance.reshape(-1, len(P)), strict=True)
        ],
        dtype=np.float64,
    )
    return [table.astype(np.float64) for table in breakdown.tables(moved.reshape(table.shape))]
