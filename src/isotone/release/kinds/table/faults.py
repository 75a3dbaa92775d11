"""What is published beside the values of a table, computed again from the mechanism of the manifest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from isotone.release.kinds.recomputed import ROUNDING, Columns, Floats
from isotone.tables.published_table import PublishedTable
from isotone.tables.two_stage import TwoStageMechanism

__all__ = ["table_faults"]

LARGEST_TABLE = 1_500
"""Up to this count every possible noisy count is tried for each row of a table."""


def table_faults(columns: Columns, manifest: Mapping[str, Any], mechanism: TwoStageMechanism) -> list[str]:
    """Faults in the categories, bounds, distribution, errors and intervals of a table."""
    if set(columns) != {"category", "value", "sd", "low", "high"}:
        return ["the columns are not those of a table"]
    upper, size = manifest["upper"], len(columns["value"])
    faults: list[str] = []
    if len(set(columns["category"])) < size:
        faults.append("a category stands twice")
    if not upper == mechanism.upper == manifest["rules"]["top code"]:
        faults.append("the largest count is not the mechanism's and that of the rules")
        return faults
    share = np.array(manifest["distribution"], dtype=float)
    if share.shape != (upper + 1,) or np.any(share < 0) or abs(share.sum() - 1) > 1e-8 * (upper + 2):
        return [*faults, "the distribution is not one of counts from 0 to the largest"]
    remap = mechanism.stages(size).remap
    if manifest["method"] not in ("rows", "table") or remap not in ("auto", manifest["method"]):
        faults.append("the method is not the mechanism's")
    whole = [columns[name] for name in ("value", "low", "high")]
    if not all(isinstance(x, int) and 0 <= x <= upper for column in whole for x in column):
        return [*faults, "a value or an end of an interval is no count from 0 to the largest"]
    level = float(manifest["confidence"])
    if not 0 < level < 1:
        return [*faults, "the confidence of the intervals is not between 0 and 1"]
    if upper <= LARGEST_TABLE and size and not _posteriors_fit(columns, share, upper, level, mechanism):
        faults.append("an error or an interval follows from no noisy count")
    return faults


def _posteriors_fit(
    columns: Columns, share: Floats, upper: int, level: float, mechanism: TwoStageMechanism
) -> bool:
    """Whether each row has the error and the interval that some noisy count gives it.

    The noisy counts are not published. But error and interval are functions of the noisy count, the value and the
    distribution, so a row that no noisy count explains is forged.
    """
    size, counts = len(columns["value"]), np.arange(upper + 1)
    step = float(mechanism.unit.per_step(mechanism.stages(size).counts))
    nobody = np.zeros(size, np.int64)
    table = PublishedTable(nobody, upper, "rows", "", share, nobody, nobody, step, mechanism.guarantee)
    posterior = np.array([table.posterior(int(k)) for k in counts])
    mean, square = posterior @ counts, posterior @ counts.astype(float) ** 2
    # the distribution is published to eight places, so an end may fall on the other side of a boundary
    shares = [end + loose for end in ((1 - level) / 2, (1 + level) / 2) for loose in (-1e-5, 1e-5)]
    ends = np.array([np.searchsorted(row, shares) for row in np.cumsum(posterior, axis=1)])
    low_from, low_to, high_from, high_to = np.minimum(ends, upper).T
    for value, sd, low, high in {
        *zip(*(columns[name] for name in ("value", "sd", "low", "high")), strict=True)
    }:
        known = np.sqrt(np.maximum(square - 2 * value * mean + value**2.0, 0.0))
        fits = np.abs(known - sd) <= 2 * ROUNDING + 1e-3 * known
        fits &= (low_from <= low) & (low <= low_to) & (high_from <= high) & (high <= high_to)
        if not fits.any():
            return False
    return True
