"""Pairs of counts, two columns for each category, with their joint distribution."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotone.errors import InputError
from isotone.privacy.guarantee import Guarantee
from isotone.reading.categories import PairSource, count_pairs
from isotone.reading.sources import Frame
from isotone.release.kinds.kind import Stamp
from isotone.release.kinds.parameters import public_names
from isotone.release.kinds.table.query import TableQuery
from isotone.release.manifest import Stated
from isotone.release.result import Release
from isotone.release.writing.column_texts import ROUNDING, Columns
from isotone.tables.choosing import TableMechanism
from isotone.tables.measurement import Measurement
from isotone.tables.pairs import LARGEST_PAIR, is_matched, pair_means, release_pair

__all__ = ["PairQuery", "pair_faults", "pair_query", "two_columns"]

BETWEEN = " | "
"""Between the name of a category and that of its column, in the names of rows."""


@dataclass(frozen=True)
class PairQuery(TableQuery):
    """A release of two columns of counts, which are the strata of one table, made by :func:`pair_query`."""

    source: Any

    @property
    def description(self) -> str:
        """How many categories there are."""
        return f"two columns of {len(self.source.categories)} categories"

    @property
    def labels(self) -> tuple[str, ...]:
        """One row for each category and column."""
        return _labels(self.source)

    @property
    def aggregated(self) -> bool:
        """Whether the rows are already counts."""
        return self.source.kind is None

    def _own(self) -> dict[str, Any]:
        return {"pair": list(self.source.names), "of": self.source.kind}

    def read(self, frame: Frame) -> NDArray[np.int64]:
        """The counts of the first column, then those of the second."""
        return count_pairs(self.source, frame)

    def draw(self, statistic: NDArray[np.int64]) -> Any:
        """Both columns measured, and the pairs that are estimated from them."""
        return release_pair(self.mechanism, *np.split(statistic, 2))

    def publish(self, drawn: Any, stamp: Stamp) -> Release:
        """The rows of both columns. The joint distribution is in the manifest."""
        values, estimates = drawn.values.T.ravel(), drawn.estimates.T.ravel()
        return self.sealed(drawn.table, values, estimates, stamp, drawn.joint.tolist())


def _labels(source: PairSource) -> tuple[str, ...]:
    return tuple(f"{name}{BETWEEN}{column}" for column in source.names for name in source.categories)


def two_columns(counts: Any, kind: str | None, contributions: int | None) -> tuple[str, str]:
    """The names of the two columns, whose contributions must be declared if they are counts."""
    names = public_names(counts, "counts")
    if len(names) != 2:
        raise InputError(f"counts must name two columns, not {len(names)}.")
    if kind is None and contributions is None:
        raise InputError(
            "contributions must be declared for two columns of counts: how often one unit may count in both together. Nothing in "
            "such rows could tell or bound it."
        )
    return names[0], names[1]


def pair_query(
    source: PairSource, mechanism: TableMechanism, guarantee: Guarantee, confidence: float, stated: Stated
) -> PairQuery:
    """The query of two columns, with what only pairs must keep checked."""
    if mechanism.upper > LARGEST_PAIR:
        raise InputError(f"upper must be at most {LARGEST_PAIR} for pairs of counts, not {mechanism.upper}.")
    size = len(source.categories)
    if len(set(_labels(source))) < 2 * size:
        raise InputError(
            f"Two rows would have one name: rename the column or the categories with {BETWEEN!r} in them."
        )
    strata = tuple((name, tuple(range(k * size, (k + 1) * size))) for k, name in enumerate(source.names))
    return PairQuery(source, mechanism, guarantee, confidence, stated, strata)


def _names(columns: Columns, rows: list[int]) -> list[str]:
    """The categories of one column, or their whole labels where they do not end with the name of the column."""
    return [str(columns["category"][at]).removesuffix(f"{BETWEEN}{columns['stratum'][at]}") for at in rows]


def pair_faults(
    columns: Columns, manifest: Mapping[str, Any], parts: list[list[int]], made: list[Measurement]
) -> list[str]:
    """Faults in what both columns say together, names of rows, the joint distribution, values and estimates."""
    joint = np.array(manifest["joint"], dtype=float)
    n = manifest["upper"] + 1
    if joint.shape != (n, n) or np.any(joint < 0) or abs(joint.sum() - 1) > 1e-7:
        return ["the joint distribution is not one of pairs of counts from 0 to the largest"]
    if len(parts) != 2 or len(parts[0]) != len(parts[1]):
        return ["the two columns do not have the same categories"]
    if _names(columns, parts[0]) != _names(columns, parts[1]):
        return ["the two columns do not have the same categories"]
    if manifest["method"] == "noise":
        apart = np.outer(*(entry["distribution"] for entry in manifest["strata"]))
        fits = bool(np.all(np.abs(joint - apart) <= 1e-9))
        return [] if fits else ["the joint distribution is not that of two columns apart"]
    faults: list[str] = []
    size = len(parts[0])
    values = np.column_stack([[columns["value"][at] for at in rows] for rows in parts])
    found = np.zeros((n, n))
    np.add.at(found, (values[:, 0], values[:, 1]), 1.0)
    gap = np.abs((found - size * joint).cumsum(axis=0).cumsum(axis=1))
    if np.max(gap, initial=0.0) > n + 1:
        faults.append("the values do not have the joint distribution")
    channels = made[0].channel(), made[1].channel()
    readings = [
        [made[side].readings(float(columns["noisy"][at])) for at in rows] for side, rows in enumerate(parts)
    ]
    stated = np.column_stack([[float(columns["estimate"][at]) for at in rows] for rows in parts])
    top = manifest["upper"]
    for first, second, estimate in zip(*readings, stated, strict=True):
        pairs = np.array(
            [[min(max(a, 0), top), min(max(b, 0), top)] for a in first for b in second], np.int64
        )
        means = pair_means(joint, channels, pairs.reshape(-1, 2))
        if not np.any(np.all(np.abs(means - estimate) <= ROUNDING + 1e-9 * means, axis=1)):
            return [*faults, "an estimate does not follow from its noisy counts"]
    if not is_matched(stated, values, ROUNDING):
        faults.append("the values are not as near to the estimates as they can be")
    return faults
