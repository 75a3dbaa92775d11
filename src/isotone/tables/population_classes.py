"""Public classes of categories by their populations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from isotone.privacy.checks import whole_number

__all__ = ["population_bands"]


def population_bands(population: Sequence[float], classes: int = 6) -> list[str]:
    """Classes of about the same number of categories, from the smallest populations to the largest.

    The populations must be public.

    >>> population_bands([5, 80, 7, 900], 2)
    ['band 1', 'band 2', 'band 1', 'band 2']
    """
    values, number = np.asarray(population, np.float64), whole_number(classes, "classes")
    rank = np.empty(len(values), np.int64)
    rank[np.argsort(values, kind="stable")] = np.arange(len(values))
    return [f"band {1 + at * number // max(len(values), 1)}" for at in rank.tolist()]
