"""What is published beside the values, computed again from the mechanism that a manifest describes.

Each function returns what is wrong, a phrase each; nothing if all is as the mechanism says. Errors that were simulated
are compared within eight of their own standard errors, so that another version of the random numbers would pass (false
alarm below 1e-7 for each element), and one tenth more or less would not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotone.counts.mechanisms.additive import AdditiveMechanism
from isotone.release.kinds.recomputed import ROUNDING, Columns, Floats

__all__ = ["count_faults"]

Known = Callable[[Any, float], Mapping[str, NDArray[Any]]]

SPREADS = 8.0
"""So many standard errors a simulated number may be off."""


def count_faults(
    columns: Columns, manifest: Mapping[str, Any], mechanism: AdditiveMechanism, known: Known
) -> list[str]:
    """Faults in the labels, errors and intervals of counts. ``known`` says what the mechanism publishes."""
    groups = manifest.get("groups")
    names = [str(name) for name in mechanism.P.elements]
    repeat = len(groups["values"]) if groups else 1
    expected = {"group"} if groups else set[str]()
    expected |= {"element", "value", "sd", "low", "high", "low_all", "high_all"}
    if set(columns) != expected:
        return ["the columns are not those of a release of counts"]
    if list(columns["element"]) != names * repeat:
        return ["the elements are not those of the order, in its sequence"]
    if groups and list(columns["group"]) != [value for value in groups["values"] for _ in names]:
        return ["the groups are not those that the manifest lists"]
    level = float(manifest["confidence"])
    if not 0 < level < 1:
        return ["the confidence of the intervals is not between 0 and 1"]
    faults = _value_faults(columns, bool(manifest.get("consistent")), mechanism, repeat)
    error = mechanism.error()
    sd = np.tile(error.sd, repeat)
    if not _near(columns["sd"], sd, np.tile(_spread(error.sd, error.standard_error), repeat)):
        faults.append("the standard deviations are not the mechanism's")
    if "total" in manifest or "total_sd" in manifest:
        faults += _total_faults(manifest, mechanism, repeat)
    if not _intervals_fit(columns, manifest, known(mechanism, level), repeat):
        # draws by another version of the random numbers: as near as their number lets one expect
        slack = SPREADS * math.sqrt(level * (1 - level) / _draws(len(names)))
        around = max(level - slack, level / 2), min(level + slack, (1 + level) / 2)
        narrow, wide = (known(mechanism, end) for end in around)
        if _closed_form(mechanism) or not _intervals_between(columns, manifest, narrow, wide, repeat):
            faults.append("the intervals are not the mechanism's")
    return faults


def _value_faults(columns: Columns, consistent: bool, mechanism: AdditiveMechanism, repeat: int) -> list[str]:
    values = columns["value"]
    if not consistent:
        return [] if all(isinstance(x, int) for x in values) else ["the values are not whole numbers"]
    rows = np.array(values, dtype=float).reshape(repeat, -1)
    pairs = mechanism.P.cover_pairs
    follows = np.all(rows >= 0) and np.all(rows[:, pairs[:, 0]] <= rows[:, pairs[:, 1]])
    return [] if follows else ["the values do not follow the order, although the manifest says so"]


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


def _drawn(columns: Columns, consistent: bool, alone: NDArray[Any], together: NDArray[Any]) -> NDArray[Any]:
    """The values as first drawn, which the intervals are about."""
    if not consistent:
        return np.array(columns["value"], dtype=np.int64)
    high, high_all = (np.array(columns[name], dtype=np.int64) for name in ("high", "high_all"))
    # an interval from 0 to 0 hides its centre, which then shows in the wider interval, if at all
    hidden = np.where(high_all > 0, high_all - together, -np.maximum(alone, together))
    return np.where(high > 0, high - alone, hidden)


def _intervals_fit(
    columns: Columns, manifest: Mapping[str, Any], known: Mapping[str, NDArray[Any]], repeat: int
) -> bool:
    alone, together = np.tile(known["alone"], repeat), np.tile(known["together"], repeat)
    drawn = _drawn(columns, bool(manifest.get("consistent")), alone, together)
    wanted = {
        "low": drawn - alone,
        "high": drawn + alone,
        "low_all": drawn - together,
        "high_all": drawn + together,
    }
    return all(np.array_equal(np.array(columns[name]), np.maximum(ends, 0)) for name, ends in wanted.items())


def _intervals_between(
    columns: Columns,
    manifest: Mapping[str, Any],
    narrow: Mapping[str, NDArray[Any]],
    wide: Mapping[str, NDArray[Any]],
    repeat: int,
) -> bool:
    """Whether each half-width is between the narrow and the wide one, and the same below as above its value."""
    if manifest.get("consistent"):
        return False
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
    """How many draws the half-widths of an order of this size come from."""
    return min(50_000, max(2_000, 1_000_000 // size))


def _closed_form(mechanism: AdditiveMechanism) -> bool:
    """Whether no half-width of the mechanism is simulated."""
    own = type(mechanism)
    common = AdditiveMechanism
    together = own.unrounded_simultaneous_half_width is not common.unrounded_simultaneous_half_width
    return own.unrounded_half_widths is not common.unrounded_half_widths and together
