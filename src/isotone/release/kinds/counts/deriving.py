"""Releases derived from a release, given a public number of records, or made consistent.

A derived release carries what it was derived from, so anyone can compute it again from its folder, and can tell
which draws are in it. Nothing is read but published values: the guarantee stays that of the draws.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotone.counts import consistent
from isotone.errors import InputError
from isotone.inference.population import Measured
from isotone.order import project_covariance
from isotone.order.building import is_hierarchy
from isotone.privacy.checks import one_of, shown, truth, whole_number
from isotone.privacy.guarantee import Guarantee
from isotone.release.kinds.counts.measuring import groups_of, measured, mechanism_of, origins
from isotone.release.kinds.counts.query import CountManifest
from isotone.release.manifest import Manifest
from isotone.release.result import Release, seal

__all__ = [
    "derived_release",
    "given",
    "guarantee_given_records",
    "made_consistent",
    "number_of_records",
    "packed",
    "public_records",
    "require_all_counted",
]

Floats = NDArray[np.float64]

_MOST_RECORDS = 10**12


def given(release: Release, records: Any, after_rules: bool) -> Release:
    """The release adjusted by a public number of records. See :meth:`Release.given`."""
    manifest = release.manifest
    if manifest.get("derived"):
        raise InputError("State the number of records for the release itself: call given() first.")
    if "catch_all" in manifest.mechanism:
        raise InputError(
            f"The root of this release is fixed to {manifest.mechanism['records']:,} records already."
        )
    if manifest.get("total") is None and is_hierarchy(release.order):
        raise InputError(
            "The root of a hierarchy is not fixed to a public number of records afterwards. All its counts add up exactly, so "
            "the number of records that the rules count would be published without noise, and a record that is dropped, "
            "not listed or without a leaf would show in it. Release with records= and catch_all=, or state the number "
            "beside the release."
        )
    if manifest.get("total") is None:
        raise InputError("This release has no number of records to compare with: release with total=True.")
    stated = truth(after_rules, "after_rules")
    if not stated:
        require_all_counted(manifest)
    numbers = public_records(records, groups_of(manifest))
    derived = {
        "how": "given",
        "records": numbers if manifest.get("groups") else numbers[0],
        "after_rules": stated,
        "promise": guarantee_given_records(release.guarantee),
        "covariance_error": _slope_error(manifest),
        "of": [packed(release)],
    }
    return derived_release(manifest, derived)


def _slope_error(manifest: Manifest) -> float:
    """The largest standard error of a covariance with the number of records, relative to it, or 0 if all are exact."""
    mechanism: Any = mechanism_of(manifest)
    found = mechanism.total_covariance()
    if not found.standard_error.size:
        return 0.0
    return round(float(np.max(found.standard_error / np.maximum(np.abs(found.variance), 1e-12))), 6)


def require_all_counted(manifest: Manifest) -> None:
    """Refuse a public number of records where the rules may leave units out, unless the caller counts by the rules."""
    rules = manifest["rules"]
    reasons = {
        "records that break the order are dropped": rules["on_violation"] == "drop",
        "records with several options are dropped": rules.get("on_conflict") == "drop",
        "rows without a unit are left out": rules["unit"] is not None,
        "rows of groups that are not listed are left out": bool(manifest.get("groups"))
        or (manifest.get("breakdown") or {}).get("unlisted") == "drop",
        "a unit may give several records": rules["contributions"] > 1,
    }
    for reason, applies in reasons.items():
        if applies:
            raise InputError(
                f"A public number of records must count them as the rules do, and here {reason}. If your number is that "
                "of records after the rules, say so with after_rules=True."
            )


def public_records(records: Any, groups: Sequence[str] | None) -> list[int]:
    """The number of records of each group, as the caller states it."""
    if groups is None:
        return [number_of_records(records)]
    if not isinstance(records, Mapping) or set(map(str, records)) != set(groups):
        raise InputError(
            f"records must give one number for each group, {', '.join(groups)}: a mapping by name."
        )
    by_name = {str(name): number for name, number in records.items()}
    return [number_of_records(by_name[name], f"records of {shown(name)}") for name in groups]


def number_of_records(value: Any, name: str = "records") -> int:
    """A public number of records, checked, and no larger than arithmetic on it is exact."""
    return whole_number(value, name, least=0, most=_MOST_RECORDS)


def guarantee_given_records(guarantee: Guarantee) -> str:
    """What a guarantee becomes for a reader who knows the number of records."""
    if guarantee.adjacency.exchanges:
        return f"given N public: {guarantee}; the mechanism for differences of records needs less noise"
    return f"given N public: {guarantee.replacing() if guarantee.adjacency.units == 1 else guarantee}"


def made_consistent(release: Release, integers: bool, weights: str) -> Release:
    """Values that are not negative and follow the order. See :meth:`Release.consistent`."""
    if release.manifest.get("consistent"):
        return release
    derived = {
        "how": "consistent",
        "integers": truth(integers, "integers"),
        "weights": one_of(weights, "weights", ("variance", "covariance")),
        "of": [packed(release)],
    }
    return derived_release(release.manifest, derived)


def derived_release(manifest: Manifest, derived: dict[str, Any]) -> Release:
    """The release that follows from ``derived``, which names its origins, described as ``manifest`` does otherwise."""
    assert isinstance(manifest, CountManifest)
    how = derived["how"]
    made = replace(manifest, derived=derived, law=None, content_hash=None, files=None)
    found = measured(made, ())
    columns = _columns(made, found, derived)
    if how == "consistent":
        made = replace(made, consistent=True)
    if how == "given":
        made = replace(made, total=None, total_sd=None)
    if how == "combined" and found[0].has_total:
        totals = [round(float(one.values[-1]), 4) for one in found]
        sd = round(float(np.sqrt(found[0].variance[-1])), 4)
        made = replace(made, total=totals if made.groups else totals[0], total_sd=sd)
    return seal(columns, made)


def _columns(
    manifest: Manifest, found: Sequence[Measured], derived: Mapping[str, Any]
) -> dict[str, tuple[Any, ...]]:
    P, groups, level = found[0].P, groups_of(manifest), float(manifest["confidence"])
    rows = [
        _consistent_row(one, derived, level) if derived["how"] == "consistent" else _row(one, level)
        for one in found
    ]
    columns: dict[str, tuple[Any, ...]] = {}
    if groups is not None:
        columns["group"] = tuple(group for group in groups for _ in P.elements)
    columns["element"] = tuple(str(x) for x in P.elements) * len(found)
    names = ("value", "sd", "low", "high", "low_all", "high_all", "raw")
    for name in names if derived["how"] != "combined" else names[:-1]:
        columns[name] = tuple(number for row in rows for number in row[name])
    if derived["how"] == "given":
        columns["raw"] = tuple(origins(manifest)[0][1])
    return columns


def _row(found: Measured, level: float) -> dict[str, list[Any]]:
    n = len(found.P)
    value, most = found.values[:n], np.inf if found.records is None else found.records
    alone = found.law.half_widths(level)[:n]
    together = float(found.law.upper(np.max(np.abs(found.law.draws[:, :n]), axis=1), level))
    low, high = _whole_ends(value, alone, most)
    low_all, high_all = _whole_ends(value, np.full(n, together), most)
    return {
        "value": np.round(value, 4).tolist(),
        "sd": np.round(np.sqrt(found.variance[:n]), 4).tolist(),
        "low": low,
        "high": high,
        "low_all": low_all,
        "high_all": high_all,
        "raw": [],
    }


def _whole_ends(value: Floats, half: Floats, most: float) -> tuple[list[int], list[int]]:
    """The whole numbers within the interval, as a count is one, or the nearest where there is none."""
    near = 1e-9 + 1e-12 * np.abs(value)  # of rounding
    low, high = np.ceil(value - half - near), np.floor(value + half + near)
    near = np.rint(value)
    low, high = np.where(low > high, near, low), np.where(low > high, near, high)
    ends = np.clip([low, high], 0, most)
    return ends[0].astype(np.int64).tolist(), ends[1].astype(np.int64).tolist()


def _consistent_row(found: Measured, derived: Mapping[str, Any], level: float) -> dict[str, list[Any]]:
    n = len(found.P)
    raw, region = found.values[:n], found.region(level)
    value = _projected(found, derived["weights"], derived["integers"])
    low, high = (ends[:n] for ends in region.counts)
    low, high = np.ceil(low - 1e-9).astype(np.int64), np.floor(high + 1e-9).astype(np.int64)
    return {
        "value": (value.astype(np.int64) if derived["integers"] else np.round(value, 4)).tolist(),
        "sd": np.round(np.sqrt(found.variance[:n]), 4).tolist(),
        "low": low.tolist(),
        "high": high.tolist(),
        "low_all": low.tolist(),
        "high_all": high.tolist(),
        "raw": (raw.astype(np.int64) if found.whole else np.round(raw, 4)).tolist(),
    }


def _projected(found: Measured, weights: str, integers: bool) -> Floats:
    """The nearest counts that are possible, by the variances of the noise or by its covariance. Options add up."""
    n, upper = len(found.P), found.records
    raw, variance = found.values[:n], found.variance[:n]
    if weights == "covariance":
        if found.P.choices:
            raise InputError("By covariances options would not add up: leave out weights='covariance'.")
        fitted = project_covariance(found.P, raw, found.covariance()[:n, :n], lower=0.0, upper=upper)
        return np.rint(fitted) if integers else fitted
    # what has no noise, as a fixed root, hardly moves
    inverse = 1 / np.maximum(variance, 1e-9 * variance.max()) if np.any(variance > 0) else None
    return np.asarray(consistent(found.P, raw, inverse, upper, integers), dtype=np.float64)


def packed(release: Release) -> dict[str, Any]:
    """A release as its manifest and its values, from which all columns follow."""
    return {
        "manifest": replace(release.manifest, files=None).plain(),
        "values": list(release.columns["value"]),
    }
