"""Make noisy counts nonnegative and monotone along the order.

No data is read, so nothing is spent. The result is the closest such vector in least squares. Weights inverse
to the mechanism's variances measured best, which is what ``mechanism.consistent`` uses; its whole covariance
can do harm (docs/theory/consistency.md, section 2).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isotone.array_types import Floats
from isotone.errors import InputError
from isotone.order import Poset, project

if TYPE_CHECKING:
    from isotone.counts.margins import MarginsMechanism


def consistent(
    P: Poset,
    values: ArrayLike,
    weights: ArrayLike | None = None,
    upper: float | None = None,
    integers: bool = False,
) -> NDArray[np.float64] | NDArray[np.int64]:
    """The monotone, non-negative vector closest to released ``values``.

    ``values`` holds one number per element, in the order of ``P.elements``. ``weights`` are the weights of
    the squares (default: equal). ``upper`` is a public bound on every count, such as a known number of
    records. With ``integers`` the result is rounded; rounding keeps the order, because it is the same for
    every element. Counts of exclusive options add up to at most that of their parent, and those of a partition to
    just that: in a hierarchy the result is the closest such vector, in other orders the closest in running totals.

    Applied to a release it is post-processing: it never weakens the guarantee. Before rounding it never moves
    the vector further, in weighted squares, from *any* consistent vector that keeps ``upper``, so in particular
    not from the true one; rounding may, by at most a half for each count (docs/theory/consistency.md, section 1).

    >>> from isotone.order import Poset
    >>> P = Poset(["hyp", "twice", "meds"], [("twice", "hyp"), ("meds", "hyp")])
    >>> consistent(P, [10, 17, -2], integers=True)
    array([14, 14,  0])
    """
    if P.choices:
        return _with_choices(P, values, weights, upper, integers)
    fitted = project(P, values, weights, lower=0.0, upper=upper)
    if not integers:
        return fitted
    rounded = np.rint(fitted) if upper is None else np.minimum(np.rint(fitted), np.floor(upper))
    return rounded.astype(np.int64)


def _with_choices(
    P: Poset, values: ArrayLike, weights: ArrayLike | None, upper: float | None, integers: bool
) -> NDArray[np.float64] | NDArray[np.int64]:
    """The same where options exclude each other."""
    from isotone.counts.hierarchy import consistent_hierarchy
    from isotone.order.building import is_hierarchy

    if is_hierarchy(P):
        return consistent_hierarchy(P, values, weights, upper, integers=integers)
    totals = P.coding.encode(np.asarray(values, dtype=float))
    fitted = P.coding.decode(
        np.asarray(consistent(P.coding.order, totals, None, upper, integers), dtype=float)
    )
    return fitted.astype(np.int64) if integers else fitted


def consistent_margins(
    mechanism: MarginsMechanism, values: Sequence[Floats], *, integers: bool
) -> list[Floats]:
    """The cells of the finest margin of a breakdown, each moved to the nearest counts that could be true, and their sums.

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
