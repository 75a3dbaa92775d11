"""What is published beside the noisy integers, computed again from them and the mechanism that a manifest describes."""

from __future__ import annotations

from typing import Any

import numpy as np

from isotone.counts.margins import MarginsMechanism
from isotone.release.kinds.breakdown.deriving import consistent_columns, measured_tables
from isotone.release.kinds.breakdown.query import DECIMALS, BreakdownManifest, breakdown_columns, known_errors
from isotone.release.kinds.counts.asked import question_faults
from isotone.release.result import Release
from isotone.release.waves import wave_faults
from isotone.release.writing.column_texts import Columns

__all__ = ["breakdown_faults"]

SEARCHED = 1e-3
"""Searches of different versions for the best shares differ less than this in the error."""

_WORDS = {
    "raw": "the values as estimated do not follow from the noisy integers",
    "value": "the values are not the least-squares estimates of the noisy integers",
    "sd": "the standard deviations are not the mechanism's",
    "low": "the intervals are not the mechanism's",
    "high": "the intervals are not the mechanism's",
}


def breakdown_faults(release: Release, mechanism: MarginsMechanism) -> list[str]:
    """Faults in the labels, values, errors and intervals of a breakdown."""
    manifest = release.manifest
    assert isinstance(manifest, BreakdownManifest)
    level = float(manifest.confidence)
    if not 0 < level < 1:
        return ["the confidence of the intervals is not between 0 and 1"]
    tables = measured_tables(manifest, mechanism)
    wanted = breakdown_columns(mechanism, mechanism.estimate(tables), known_errors(mechanism, level))
    if manifest.derived is not None or manifest.consistent is not None:
        if (
            manifest.derived is None
            or not manifest.consistent
            or set(manifest.derived) != {"how", "integers"}
            or not isinstance(manifest.derived["integers"], bool)
        ):
            return ["the manifest does not say how the values were derived"]
        wanted = consistent_columns(mechanism, tables, wanted, manifest.derived["integers"])
    said = question_faults(manifest) + wave_faults(manifest) + _share_faults(mechanism)
    return said + _differences(release.columns, wanted, list(manifest.breakdown["by"]))


def _share_faults(mechanism: MarginsMechanism) -> list[str]:
    """Whether the shares are as good for the importance stated as those that a search gives."""
    weights = np.array(mechanism.importance)
    rho = mechanism.guarantee.rho if mechanism.guarantee.kind != mechanism.base.guarantee.kind else None
    best = MarginsMechanism(mechanism.base, mechanism.breakdown, _pairs(mechanism), rho=rho)
    found, least = (float(weights @ one.mean_variances()) for one in (mechanism, best))
    return (
        []
        if abs(found - least) <= SEARCHED * least
        else ["the budget is not shared by the importance stated"]
    )


def _pairs(mechanism: MarginsMechanism) -> list[tuple[Any, float]]:
    breakdown = mechanism.breakdown
    return list(zip(map(breakdown.names, breakdown.margins), mechanism.importance, strict=True))


def _differences(columns: Columns, wanted: Columns, by: list[str]) -> list[str]:
    if list(columns) != list(wanted):
        return ["the columns are not those of a breakdown"]
    for name in ("margin", *by, "element"):
        if columns[name] != wanted[name]:
            return [f"the column {name!r} is not that of the margins and lists of the manifest"]
    found: dict[str, None] = {}
    for name, words in _WORDS.items():
        if name not in wanted:
            continue
        published, known = np.array(columns[name], dtype=float), np.array(wanted[name], dtype=float)
        # floats may be added up in another sequence elsewhere
        if not np.all(np.abs(published - known) <= 2 * 10.0**-DECIMALS + 1e-9 * np.abs(known)):
            found[words] = None
    return list(found)
