"""A breakdown whose values were moved to the nearest that could be true. Nothing is read but published numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotone.counts.consistency import consistent_margins
from isotone.counts.margins import MarginsMechanism
from isotone.errors import InputError
from isotone.release.kinds.breakdown.query import DECIMALS, BreakdownManifest, breakdown_columns, known_errors
from isotone.release.result import Release, seal

__all__ = ["as_drawn", "consistent_columns", "made_consistent", "measured_tables"]

Tables = list[NDArray[np.int64] | None]


def made_consistent(release: Release, mechanism: MarginsMechanism, *, integers: bool) -> Release:
    """Values that are not negative and follow the order, and still add up. See :meth:`Release.consistent`."""
    manifest = release.manifest
    assert isinstance(manifest, BreakdownManifest)
    if manifest.consistent:
        return release
    columns = consistent_columns(mechanism, measured_tables(manifest, mechanism), release.columns, integers)
    derived = {"how": "consistent", "integers": integers}
    return seal(columns, replace(manifest, derived=derived, consistent=True, content_hash=None, files=None))


def consistent_columns(
    mechanism: MarginsMechanism, tables: Tables, columns: Mapping[str, Sequence[Any]], integers: bool
) -> dict[str, tuple[Any, ...]]:
    """The columns of a release with values that could be true, and those as estimated in the column raw."""
    moved = consistent_margins(mechanism, mechanism.estimate(tables), integers=integers)
    value = np.round(np.concatenate([table.ravel() for table in moved]), DECIMALS) + 0.0
    changed = {**columns, "value": tuple(value.tolist()), "raw": tuple(columns["value"])}
    return {name: tuple(column) for name, column in changed.items()}


def as_drawn(manifest: BreakdownManifest, mechanism: MarginsMechanism) -> BreakdownManifest:
    """The manifest of the release before anything was derived from it, with its own hash."""
    if manifest.derived is None:
        return manifest
    tables = measured_tables(manifest, mechanism)
    known = known_errors(mechanism, manifest.confidence)
    columns = breakdown_columns(mechanism, mechanism.estimate(tables), known)
    return replace(manifest, derived=None, consistent=None, content_hash=None, files=None).sealed(columns)


def measured_tables(manifest: BreakdownManifest, mechanism: MarginsMechanism) -> Tables:
    """The noisy integers as tables, or an error if they are not those of the mechanism."""
    breakdown, n = mechanism.breakdown, len(mechanism.base.P)
    sizes = [breakdown.sizes(margin) for margin in breakdown.margins]
    wanted = [math.prod(s) * n if share else 0 for s, share in zip(sizes, mechanism.shares, strict=True)]
    if [len(numbers) for numbers in manifest.measured] != wanted:
        raise InputError("the noisy integers are not one for each cell of a measured margin and each element")
    return [
        np.array(numbers, np.int64).reshape(*size, n) if share else None
        for size, share, numbers in zip(sizes, mechanism.shares, manifest.measured, strict=True)
    ]
