"""One public class of categories: measured, and what is made of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from isotone.errors import InputError
from isotone.privacy.draws import Draws
from isotone.tables.estimate.remap import assign, cuts_of
from isotone.tables.measurement import Measurement
from isotone.tables.published_table import Stratum
from isotone.tables.thresholds import SMALL

__all__ = ["checked_strata", "published_stratum"]

Ints = NDArray[np.int64]


def published_stratum(
    members: Ints, table: Ints, measurement: Measurement, draws: Draws
) -> tuple[Ints, Stratum]:
    """The published counts of a stratum, and all that was measured of it.

    Only the measurement reads the table; all the rest is post-processing.
    """
    cumulative, noisy = measurement.measure(table, draws)
    upper, size = measurement.upper, len(members)
    words = draws.words(size)
    if size < SMALL or upper == 0:
        even = np.full(upper + 1, 1 / (upper + 1))
        values = np.clip(noisy, 0, upper)
        return values, Stratum(members, noisy, cumulative, measurement, even, "none", "noise")
    histogram, model = measurement.histogram(cumulative, noisy)
    ranks = np.unique(measurement.seen(noisy), return_inverse=True)[1]
    values = assign(ranks.astype(np.int64), cuts_of(histogram, size), words)
    return values, Stratum(members, noisy, cumulative, measurement, histogram / size, model, "table")


def checked_strata(strata: Sequence[Ints], size: int) -> list[Ints]:
    """The strata, refused unless each category is in exactly one."""
    parts = [np.asarray(part, np.int64).reshape(-1) for part in strata]
    joined = np.sort(np.concatenate(parts)) if parts else np.zeros(0, np.int64)
    if not np.array_equal(joined, np.arange(size)):
        raise InputError("strata must hold each of the categories exactly once.")
    return parts
