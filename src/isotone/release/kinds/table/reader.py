"""Sums of the counts of a released table, with intervals. Post-processing of what is published."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotone.errors import InputError
from isotone.inference.estimates import Estimate
from isotone.privacy.checks import confidence_level, shown
from isotone.release.kinds.reader import Reader
from isotone.release.recipes import rebuild_table_mechanism
from isotone.release.writing.column_texts import Columns
from isotone.tables.published_table import Measurement, reach
from isotone.tables.two_stage import TableMechanism

__all__ = ["TableReader", "measured_again", "sum_of", "sums_of"]


class TableReader(Reader):
    """Sums of the top-coded counts of categories.

    A single sum is unbiased. Every interval uses the noise alone and not the estimates.
    """

    def sum(self, what: Any, confidence: float | None) -> Estimate:
        """The sum of the unbiased noisy counts of some categories, of all where none are named."""
        columns = self.release.columns
        names = columns["category"] if what is None else what
        return sum_of(columns, names, self._level(confidence), self.measured)

    def sums(self, groups: Mapping[str, Iterable[Any]], confidence: float | None) -> dict[str, Estimate]:
        """Sums over public groups."""
        return sums_of(self.release.columns, groups, self._level(confidence), self.measured)

    @cached_property
    def measured(self) -> dict[Any, Measurement]:
        """How the categories of each stratum were measured. Without strata its name is None."""
        columns, manifest = self.release.columns, self.release.manifest
        if "noisy" not in columns:
            self.refuse("sums over categories: its noisy counts were not published")
        mechanism = rebuild_table_mechanism(manifest["mechanism"])
        sizes = Counter(columns.get("stratum", (None,) * len(columns["category"])))
        finer = {entry["name"]: entry.get("finer") for entry in manifest.get("strata") or ()} or {
            None: manifest.get("finer")
        }
        return {
            name: measured_again(mechanism, size, manifest["description"]["upper"], finer[name])
            for name, size in sizes.items()
        }

    def _level(self, confidence: float | None) -> float:
        return confidence_level(
            self.release.manifest["description"]["confidence"] if confidence is None else confidence
        )


def measured_again(mechanism: TableMechanism, size: int, upper: int, finer: list[int] | None) -> Measurement:
    """How a stratum of this size was measured, with the thresholds that its entry says were measured last."""
    if not all(type(place) is int for place in finer or ()):
        raise InputError("The thresholds that were measured last are no whole numbers.")
    return mechanism.measurement(size, upper).with_finer(tuple(finer or ()))


def sum_of(
    columns: Columns, categories: Iterable[Any], confidence: float, measured: Mapping[Any, Measurement]
) -> Estimate:
    """The unbiased sum of the noisy counts of these categories."""
    return _sum(columns, _places(columns["category"], categories), confidence, measured)


def sums_of(
    columns: Columns,
    groups: Mapping[str, Iterable[Any]],
    confidence: float,
    measured: Mapping[Any, Measurement],
) -> dict[str, Estimate]:
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
    found: dict[str, Estimate] = {}
    for (name, where), size, rest in zip(places.items(), sizes, rests, strict=True):
        plain = _sum(columns, where, confidence, measured)
        weight = size * spread / (size * spread + noise) if size * spread + noise > 0 else 0.0
        value = float(np.sum(estimate[where])) + weight * float(rest)
        found[name] = replace(plain, value=min(max(value, plain.low), plain.high))
    return found


def _sum(
    columns: Columns, where: NDArray[np.int64], confidence: float, measured: Mapping[Any, Measurement]
) -> Estimate:
    value = float(np.sum(np.array(columns["noisy"], np.float64)[where]))
    strata = columns.get("stratum")
    numbers = Counter(None if strata is None else strata[at] for at in where.tolist())
    away = reach([(measured[name], number) for name, number in sorted(numbers.items(), key=str)], confidence)
    most = sum(measured[name].upper * number for name, number in numbers.items())
    low, high = max(value - away, 0.0), min(value + away, float(most))
    return Estimate(value, min(low, high), max(low, high), confidence)


def _places(names: Sequence[Any], categories: Iterable[Any]) -> NDArray[np.int64]:
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
