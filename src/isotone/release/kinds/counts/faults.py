"""Recomputes errors and intervals of counts from the mechanism that a manifest describes.

Each function returns what is wrong, a phrase each; nothing if all is as the mechanism says. Intervals come from a public
stream and are compared exactly. Errors that were simulated are compared within eight of their own standard errors, so that another version of the random numbers would pass (false
alarm below 1e-7 for each element), and one tenth more or less would not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotone.counts.knorm import PosetMechanism
from isotone.counts.mechanism import AdditiveMechanism
from isotone.counts.sampler import mean_of_rows
from isotone.errors import InputError
from isotone.noise.public_stream import public_stream
from isotone.release.kinds.counts.asked import question_faults
from isotone.release.kinds.counts.combining import combine_counts
from isotone.release.kinds.counts.deriving import given, made_consistent
from isotone.release.kinds.counts.law_entry import closed_form, law_entry
from isotone.release.kinds.counts.measuring import groups_of, mechanism_of, origins
from isotone.release.kinds.counts.query import CountManifest, count_columns, original_columns
from isotone.release.manifest import FORMAT, Manifest
from isotone.release.result import Release
from isotone.release.waves import wave_faults
from isotone.release.writing.column_texts import ROUNDING, Columns, Floats

__all__ = ["count_faults", "derived_faults"]

WALKED = 4_000
"""Rows of a random walk that show whether noise stays within intervals."""

SPREADS = 8.0
"""So many standard errors a simulated number may be off."""


def count_faults(columns: Columns, manifest: Manifest, mechanism: AdditiveMechanism) -> list[str]:
    """Faults in the labels, errors and intervals of counts."""
    groups = groups_of(manifest)
    names = [str(name) for name in mechanism.P.elements]
    repeat = len(groups) if groups else 1
    expected = {"element", "value", "sd", "low", "high", "low_all", "high_all"}
    if set(columns) != (expected | {"group"} if groups else expected):
        return ["the columns are not those of a release of counts"]
    if list(columns["element"]) != names * repeat:
        return ["the elements are not those of the order, in its sequence"]
    if groups and list(columns["group"]) != [value for value in groups for _ in names]:
        return ["the groups are not those that the manifest lists"]
    level = float(manifest["confidence"])
    if not 0 < level < 1:
        return ["the confidence of the intervals is not between 0 and 1"]
    if manifest.get("consistent"):
        return ["the manifest does not say what was made consistent"]
    faults = _value_faults(columns) + question_faults(manifest) + wave_faults(manifest)
    possible = getattr(mechanism, "possible_outputs", None)
    if possible is not None and not faults:
        rows = np.array(columns["value"], dtype=np.float64).reshape(repeat, -1)
        if not np.array_equal(possible(rows), rows):
            faults.append("the values do not add up")
    error = mechanism.error()
    sd = np.tile(error.sd, repeat)
    if not _near(columns["sd"], sd, np.tile(_spread(error.sd, error.standard_error), repeat)):
        faults.append("the standard deviations are not the mechanism's")
    if "total" in manifest or "total_sd" in manifest:
        faults += _total_faults(manifest, mechanism, repeat)
    if manifest["format"] != FORMAT and not closed_form(mechanism):
        return faults + _faults_before(columns, mechanism, level, repeat)
    if manifest.get("law") != law_entry(mechanism, level):
        faults.append("the law of the noise is not described as this version draws it")
    widths = count_columns(mechanism, level)
    values = np.array(columns["value"], dtype=np.int64).reshape(repeat, -1)
    wanted = original_columns(mechanism.P, groups, values, widths)
    if any(tuple(columns[name]) != wanted[name] for name in ("low", "high", "low_all", "high_all")):
        faults.append("the intervals are not the mechanism's")
    elif isinstance(mechanism, PosetMechanism) and not _keeps_within(mechanism, widths, level):
        faults.append("the noise leaves the intervals more often than stated")
    return faults


def _keeps_within(mechanism: PosetMechanism, widths: Mapping[str, NDArray[Any]], level: float) -> bool:
    """Whether noise stays within intervals whose draws the manifest told, by a simulation that needs none of them."""
    relaxation = mechanism.sampler.relaxation
    if relaxation is None or not relaxation.draws:
        return True
    rows = np.abs(np.asarray(mechanism.simulate(WALKED, public_stream("isotone check 1")), dtype=np.float64))
    slack = (
        1.5 if mechanism.P.choices else 0.5
    )  # from rounding, of both running totals where there are choices
    wide = np.append(widths["alone"], widths["together"][:1]) + slack
    outside = np.concatenate((rows, rows.max(axis=1, keepdims=True)), axis=1) > wide
    share = mean_of_rows(outside.astype(np.float64))
    return bool(np.all(share.variance <= 1 - level + SPREADS * share.standard_error))


def _faults_before(columns: Columns, mechanism: AdditiveMechanism, level: float, repeat: int) -> list[str]:
    """Faults in intervals of the version before, which had draws of numpy, as near as their number lets one expect."""
    slack = SPREADS * math.sqrt(level * (1 - level) / _draws(len(mechanism.P)))
    around = max(level - slack, level / 2), min(level + slack, (1 + level) / 2)
    narrow, wide = (count_columns(mechanism, end) for end in around)
    fit = _intervals_between(columns, narrow, wide, repeat)
    return [] if fit else ["the intervals are not the mechanism's"]


def derived_faults(release: Release) -> list[str]:
    """Faults in what was derived. It is computed again from the releases that it was derived from."""
    manifest = release.manifest
    assert isinstance(manifest, CountManifest)
    for origin, values in origins(manifest):
        again = _restored(origin, values)
        if again.manifest.content_hash != origin.content_hash:
            return ["a release that this one was derived from was changed"]
        if not origin.derived:
            faults = count_faults(again.columns, origin, mechanism_of(origin))
        else:
            faults = derived_faults(again)
        if faults:
            return faults
    again = _rederived(manifest)
    stated, found = (replace(one, content_hash=None, files=None) for one in (manifest, again.manifest))
    if stated != found or set(again.columns) != set(release.columns):
        return ["the manifest is not that of what was derived"]
    same = _same_columns(again.columns, release.columns)
    return [] if same else ["the values are not those that were derived"]


def _restored(manifest: CountManifest, values: Sequence[Any]) -> Release:
    """A release again, from its manifest and its values. The hash is that of what comes out."""
    if manifest.derived:
        again = _rederived(manifest)
        return Release(again.columns, replace(manifest, content_hash=again.manifest.content_hash))
    mechanism = mechanism_of(manifest)
    known = count_columns(mechanism, float(manifest.confidence))
    rows = np.array(values, dtype=np.int64).reshape(-1, len(mechanism.P))
    columns = original_columns(mechanism.P, groups_of(manifest), rows, known)
    return Release(columns, replace(manifest, content_hash=manifest.hash_with(columns)))


def _rederived(manifest: CountManifest) -> Release:
    """What a derived release should be, by the same steps and with the same refusals."""
    derived, parts = manifest.derived, [_restored(*origin) for origin in origins(manifest)]
    if not derived or not parts:
        raise InputError("the manifest does not say what was derived from what")
    how = derived["how"]
    if how == "combined" and len(parts) > 1:
        return combine_counts(parts, derived["follows_order"])
    if how == "given" and len(parts) == 1:
        groups, records = groups_of(manifest), derived["records"]
        stated = records if groups is None else dict(zip(groups, records, strict=True))
        return given(parts[0], stated, derived["after_rules"])
    if how == "consistent" and len(parts) == 1:
        return made_consistent(parts[0], derived["integers"], derived["weights"])
    raise InputError(f"the manifest derives counts in an unknown way, {str(how)[:40]!r}")


def _same_columns(first: Columns, second: Columns) -> bool:
    """Whether two releases agree, in whole numbers and names exactly, elsewhere up to the last digit published."""
    for name, column in first.items():
        other = second[name]
        if len(column) != len(other):
            return False
        for a, b in zip(column, other, strict=True):
            near = isinstance(a, float) and isinstance(b, float) and abs(a - b) <= 2 * ROUNDING
            if type(a) is not type(b) or not (a == b or near):
                return False
    return True


def _value_faults(columns: Columns) -> list[str]:
    whole = all(isinstance(x, int) for x in columns["value"])
    return [] if whole else ["the values are not whole numbers"]


def _spread(sd: Floats, standard_error: Floats) -> Floats:
    """The standard error of each standard deviation, given that of each variance."""
    if not standard_error.size:
        return np.zeros_like(sd)
    return np.divide(standard_error, 2 * sd, out=np.zeros_like(sd), where=sd > 0)


def _near(published: Sequence[Any], known: Floats, spread: Floats) -> bool:
    off = np.abs(np.array(published, dtype=float) - known)
    return bool(np.all(off <= SPREADS * spread + ROUNDING + 1e-9 * known))


def _total_faults(manifest: Mapping[str, Any], mechanism: AdditiveMechanism, repeat: int) -> list[str]:
    total, stated = manifest.get("total"), manifest.get("total_sd")
    totals = total if isinstance(total, list) else [total]
    whole = all(isinstance(x, int) and not isinstance(x, bool) for x in totals)
    if not whole or len(totals) != repeat or isinstance(total, list) != bool(manifest.get("groups")):
        return ["the numbers of records are not one for each group"]
    variance = getattr(mechanism, "total_variance", None)
    if variance is None:
        return ["the mechanism does not release the number of records"]
    known, error = math.sqrt(variance()), mechanism.error()
    # simulated like the errors of the elements, from the same draws: no better known than the worst of them
    relative = float(np.max(_spread(error.sd, error.standard_error) / np.maximum(error.sd, 1e-9)))
    near = stated is not None and abs(float(stated) - known) <= SPREADS * relative * known + ROUNDING
    return [] if near else ["the standard deviation of the number of records is not the mechanism's"]


def _intervals_between(
    columns: Columns,
    narrow: Mapping[str, NDArray[Any]],
    wide: Mapping[str, NDArray[Any]],
    repeat: int,
) -> bool:
    """Whether each half-width is between the narrow and the wide one, and the same below as above its value."""
    value = np.array(columns["value"], dtype=np.int64).reshape(repeat, -1)
    for kind, names in (("alone", ("low", "high")), ("together", ("low_all", "high_all"))):
        low, high = (np.array(columns[name]).reshape(repeat, -1) for name in names)
        shown = high > 0  # elsewhere the whole interval is below 0, and both ends are 0
        half = np.where(shown, high - value, narrow[kind])
        within = np.all((narrow[kind] <= half) & (half <= wide[kind]))
        if not within or np.any(low != np.where(shown, np.maximum(value - half, 0), 0)):
            return False
        # one half-width for an element in all groups, and one for all elements together
        seen = [half[:, x][shown[:, x]] for x in range(half.shape[1])] if kind == "alone" else [half[shown]]
        if any(len(set(part.tolist())) > 1 for part in seen):
            return False
    return True


def _draws(size: int) -> int:
    """How many draws the half-widths of an order of this size came from in the version before."""
    return min(50_000, max(2_000, 1_000_000 // size))
