"""Sums of the counts of a released table, with intervals. Post-processing of what is published."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotone.errors import InputError
from isotone.privacy.checks import confidence_level, shown

__all__ = ["TableSum", "sum_of", "sums_of"]


@dataclass(frozen=True)
class TableSum:
    """The sum of some counts.

    ``value`` is unbiased for a single sum. The true sum of the top-coded counts lies from ``low`` to ``high`` with the
    stated confidence; the interval uses the noise alone, so it holds for every table.
    """

    value: float
    low: float
    high: float
    sd: float
    categories: int


def sum_of(
    columns: Mapping[str, tuple[Any, ...]], categories: Iterable[Any], confidence: float, upper: int
) -> TableSum:
    """The unbiased sum of the noisy counts of these categories."""
    where = _places(columns["category"], categories)
    return _sum(columns, where, confidence, upper)


def sums_of(
    columns: Mapping[str, tuple[Any, ...]],
    groups: Mapping[str, Iterable[Any]],
    confidence: float,
    upper: int,
) -> dict[str, TableSum]:
    """Sums over public groups, each moved from its unbiased value towards the sum of the estimates.

    How far is decided by how much the groups differ beyond what noise explains (docs/theory/tables-whole.md, section 9).
    """
    places = {name: _places(columns["category"], members) for name, members in groups.items()}
    estimate = np.array(columns["estimate"], np.float64)
    gap = np.array(columns["noisy"], np.float64) - estimate
    noise = float(np.mean(gap**2)) if len(gap) else 0.0
    sizes = np.array([len(where) for where in places.values()], np.float64)
    rests = np.array([float(np.sum(gap[where])) for where in places.values()])
    spread = max(0.0, float(np.sum(rests**2 - sizes * noise))) / max(float(np.sum(sizes**2)), 1.0)
    found: dict[str, TableSum] = {}
    for (name, where), size, rest in zip(places.items(), sizes, rests, strict=True):
        plain = _sum(columns, where, confidence, upper)
        weight = size * spread / (size * spread + noise) if size * spread + noise > 0 else 0.0
        value = float(np.sum(estimate[where])) + weight * float(rest)
        found[name] = TableSum(
            min(max(value, plain.low), plain.high), plain.low, plain.high, plain.sd, plain.categories
        )
    return found


def _sum(
    columns: Mapping[str, tuple[Any, ...]], where: NDArray[np.int64], confidence: float, upper: int
) -> TableSum:
    from scipy.special import ndtri

    level = confidence_level(confidence)
    noisy = np.array(columns["noisy"], np.float64)[where]
    variances = np.array(columns["sd"], np.float64)[where] ** 2
    value, sd = float(np.sum(noisy)), sqrt(float(np.sum(variances)))
    z = float(ndtri((1 + level) / 2))
    # noise of few counts has heavier tails than a normal law: its excess kurtosis is at most 3 for one count
    heavy = 3 * float(np.sum(variances**2)) / max(float(np.sum(variances)) ** 2, 1e-300)
    reach = sd * (z + max(z**3 - 3 * z, 0.0) / 24 * heavy)
    low, high = max(value - reach, 0.0), min(value + reach, float(upper * len(where)))
    return TableSum(value, min(low, high), max(low, high), sd, len(where))


def _places(names: tuple[Any, ...], categories: Iterable[Any]) -> NDArray[np.int64]:
    if isinstance(categories, (str, bytes)):
        raise InputError(f"Give a list of categories, not {shown(categories)}.")
    place = {str(name): at for at, name in enumerate(names)}
    wanted = [str(category) for category in categories]
    for name in wanted:
        if name not in place:
            raise InputError(f"The release has no category {shown(name)}.")
    if len(set(wanted)) < len(wanted):
        raise InputError("A category stands twice in the sum: name each once.")
    return np.array([place[name] for name in wanted], np.int64)
