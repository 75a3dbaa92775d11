"""Check and top-code tables of counts.

Whole numbers, at least 0, clipped to a public bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotone.errors import InputError
from isotone.noise import refuse_simulated

__all__ = ["Counts", "histogram", "top_coded"]

Counts = Sequence[int] | NDArray[Any]
"""One count for each category, in a fixed public order of the categories."""


def top_coded(counts: Counts, upper: int) -> NDArray[np.int64]:
    """``counts`` as integers, those above ``upper`` replaced by ``upper``.

    Counts are private: the message of a refusal never quotes one.

    >>> top_coded([0, 7, 3], upper=5)
    array([0, 5, 3])
    """
    refuse_simulated(counts)
    try:
        values = np.asarray(counts)
    except (ValueError, OverflowError):
        values = np.asarray([None])
    if values.ndim != 1:
        raise InputError(
            "counts must be one number for each category: a list, or an array with one dimension."
        )
    if values.size == 0:
        return np.zeros(0, np.int64)
    if values.dtype == object:  # whole numbers beyond 64 bits, or things that are no numbers
        if not all(isinstance(v, (int, np.integer)) for v in values):
            raise _not_counts()
        values = np.asarray([min(max(int(v), -1), upper) for v in values])
    if values.dtype.kind == "f":
        if not bool(np.all(np.isfinite(values) & (values == np.floor(values)))):
            raise _not_counts()
    elif values.dtype.kind not in "iub":
        raise _not_counts()
    if bool(np.any(values < 0)):
        raise _not_counts()
    return np.minimum(values, upper).astype(np.int64)


def histogram(counts: NDArray[np.int64], upper: int) -> NDArray[np.int64]:
    """How many categories have each of the counts ``0..upper``."""
    return np.bincount(counts, minlength=upper + 1).astype(np.int64)


def _not_counts() -> InputError:
    return InputError(
        "counts must be whole numbers of at least 0, one for each category. Round, drop or repair the others "
        "by a rule that was fixed before the data were seen."
    )
