"""Pairs of counts: two columns for each category, with their joint distribution."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotone.errors import InputError
from isotone.privacy.checks import confidence_level
from isotone.privacy.guarantee import Guarantee
from isotone.reading.pairs import PairSource, count_pairs
from isotone.reading.sources.opening import Frame
from isotone.release.kinds.kind import Query, Stamp
from isotone.release.kinds.parameters import column_name, contribution_bound, public_names, title_text
from isotone.release.kinds.recomputed import ROUNDING, Columns
from isotone.release.kinds.table.query import MICRODATA, TableManifest, TableQuery, TableRules
from isotone.release.manifest import guarantee_to
from isotone.release.recipes import recipe_of
from isotone.release.result import Release
from isotone.tables.choosing import TableMechanism, table_mechanism
from isotone.tables.measurement import Measurement
from isotone.tables.pairs import LARGEST_PAIR, PublishedPair, is_matched, pair_means, release_pair
from isotone.tables.thresholds import Preset

__all__ = ["PairQuery", "pair_faults", "pair_query"]

BETWEEN = " | "
"""Between the name of a category and that of its column, in the names of rows."""


@dataclass(frozen=True)
class PairQuery(Query[NDArray[np.int64], PublishedPair]):
    """A release of two columns of counts as asked for, made and checked by :func:`pair_query`."""

    source: PairSource
    mechanism: TableMechanism
    guarantee: Guarantee
    confidence: float
    title: str

    @property
    def description(self) -> str:
        """How many categories there are."""
        return f"two columns of {len(self.source.categories)} categories"

    @property
    def mechanism_name(self) -> str:
        """The class of the mechanism."""
        return type(self.mechanism).__name__

    def parameters(self) -> dict[str, Any]:
        """Columns, categories, mechanism, guarantee and rules."""
        return {
            "kind": TableManifest.name,
            "category": self.source.category,
            "categories": list(self.source.categories),
            "pair": list(self.source.names),
            "of": self.source.kind,
            "mechanism": recipe_of(self.mechanism),
            "guarantee": guarantee_to(self.guarantee),
            "rules": _rules(self.source),
            "confidence": self.confidence,
        }

    def open(self) -> Frame:
        """The columns of category, counts or kind, and unit."""
        return self.source.open()

    def read(self, frame: Frame) -> NDArray[np.int64]:
        """The counts of the first column, then those of the second."""
        return count_pairs(self.source, frame)

    def draw(self, statistic: NDArray[np.int64]) -> PublishedPair:
        """Both columns measured, and the pairs that are estimated from them."""
        return release_pair(self.mechanism, *np.split(statistic, 2))

    def publish(self, drawn: PublishedPair, stamp: Stamp) -> Release:
        """One row for each category and column; the columns are strata, and the joint distribution is in the manifest."""
        size = len(self.source.categories)
        strata = tuple(
            (name, tuple(range(side * size, (side + 1) * size)))
            for side, name in enumerate(self.source.names)
        )
        table = _Rows(self.source, self.mechanism, self.guarantee, self.confidence, self.title, strata)  # type: ignore[arg-type]
        return table.sealed(
            drawn.table, drawn.values.T.ravel(), drawn.estimates.T.ravel(), stamp, drawn.joint.tolist()
        )


class _Rows(TableQuery):
    """The rows of both columns as those of one table."""

    source: Any

    @property
    def labels(self) -> tuple[str, ...]:
        return _labels(self.source)

    def _rules(self) -> TableRules:
        return _rules(self.source)


def _labels(source: PairSource) -> tuple[str, ...]:
    return tuple(f"{name}{BETWEEN}{column}" for column in source.names for name in source.categories)


def _rules(source: PairSource) -> TableRules:
    """How rows became counts."""
    return {
        "unit": source.unit,
        "contributions": source.contributions,
        "form": "rows that are already counts" if source.kind is None else MICRODATA,
        "top code": source.upper,
    }


def pair_query(
    data: Any,
    category: str,
    categories: Any,
    upper: int,
    guarantee: Guarantee,
    counts: Any,
    kind: str | None,
    unit: str | None,
    contributions: int | None,
    *,
    preset: Preset | None,
    confidence: float,
    title: str | None,
) -> PairQuery:
    """The query that ``release_table`` runs for two columns, with every public parameter checked."""
    names = public_names(counts, "counts")
    if len(names) != 2:
        raise InputError(f"counts must name two columns, not {len(names)}.")
    category = column_name(category, "category")
    kind, unit = (None if c is None else column_name(c, n) for n, c in (("kind", kind), ("unit", unit)))
    if kind is None and contributions is None:
        raise InputError(
            "contributions must be declared for two columns of counts: how often one unit may count in both together. Nothing in "
            "such rows could tell or bound it."
        )
    units = contribution_bound(1 if contributions is None else contributions, "" if kind is None else unit)
    mechanism = table_mechanism(upper, guarantee, preset, contributions=units, once=kind is not None)
    if mechanism.upper > LARGEST_PAIR:
        raise InputError(f"upper must be at most {LARGEST_PAIR} for pairs of counts, not {mechanism.upper}.")
    listed = public_names(categories, "categories")
    if not listed:
        raise InputError("categories is empty: give the public list of categories.")
    source = PairSource(data, category, listed, mechanism.upper, (names[0], names[1]), kind, unit, units)
    if len(set(_labels(source))) < 2 * len(listed):
        raise InputError(
            f"Two rows would have one name: rename the column or the categories with {BETWEEN!r} in them."
        )
    guarantee = replace(mechanism.guarantee, unit=guarantee.unit)
    return PairQuery(
        source, mechanism, guarantee, confidence_level(confidence), title_text(title, "Pairs of counts")
    )


def _names(columns: Columns, rows: list[int]) -> list[str]:
    """The categories of one column, or their whole labels where they do not end with the name of the column."""
    return [str(columns["category"][at]).removesuffix(f"{BETWEEN}{columns['stratum'][at]}") for at in rows]


def pair_faults(
    columns: Columns, manifest: Mapping[str, Any], parts: list[list[int]], made: list[Measurement]
) -> list[str]:
    """Faults in what both columns say together: names of rows, the joint distribution, values and estimates."""
    joint = np.array(manifest["joint"], dtype=float)
    n = manifest["upper"] + 1
    if joint.shape != (n, n) or np.any(joint < 0) or abs(joint.sum() - 1) > 1e-7 * n * n:
        return ["the joint distribution is not one of pairs of counts from 0 to the largest"]
    if len(parts) != 2 or len(parts[0]) != len(parts[1]):
        return ["the two columns do not have the same categories"]
    if _names(columns, parts[0]) != _names(columns, parts[1]):
        return ["the two columns do not have the same categories"]
    if manifest["method"] == "noise":
        apart = np.outer(*(entry["distribution"] for entry in manifest["strata"]))
        fits = bool(np.all(np.abs(joint - apart) <= 2e-8))
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
        if not np.any(np.all(np.abs(means - estimate) <= 2 * ROUNDING + 1e-5 * means, axis=1)):
            return [*faults, "an estimate does not follow from its noisy counts"]
    if not is_matched(stated, values, ROUNDING):
        faults.append("the values are not as near to the estimates as they can be")
    return faults
