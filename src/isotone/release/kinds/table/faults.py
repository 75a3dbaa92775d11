"""What is published beside the values of a table, computed again from the mechanism of the manifest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from isotone.errors import InputError
from isotone.release.kinds.table.pair_query import pair_faults
from isotone.release.kinds.table.reader import measured_again
from isotone.release.kinds.table.strata import PER
from isotone.release.manifest import FORMAT
from isotone.release.recipes import FORMER_TABLE_ARGUMENTS
from isotone.release.writing.column_texts import ROUNDING, Columns, Floats
from isotone.tables.choosing import TableMechanism
from isotone.tables.estimate.intervals import content, is_shortest, shortest
from isotone.tables.estimate.remap import cuts_of
from isotone.tables.estimate.sum_intervals import from_noise
from isotone.tables.measurement import Measurement
from isotone.tables.thresholds import SMALL

__all__ = ["table_faults"]

LARGEST_TABLE = 1_500
"""Up to this count the posterior of each row is computed again."""

_EXACT = 1e-9
"""How far computers may be apart that compute the same from the same numbers."""
_NAMES = ("category", "value", "estimate", "low", "high", "noisy", "sd")


@dataclass(frozen=True)
class _StratumRows:
    """The rows of one stratum, and what the manifest says of it."""

    rows: list[int]
    share: Floats
    method: str
    thresholds: Measurement


def table_faults(columns: Columns, manifest: Mapping[str, Any], mechanism: TableMechanism) -> list[str]:
    """Faults in the categories, bounds, distribution, errors and intervals of a table."""
    former, strata = bool(FORMER_TABLE_ARGUMENTS & set(manifest["mechanism"])), manifest.get("strata")
    if former and manifest["format"] == FORMAT:  # or a forger could choose what is not computed again
        return ["the mechanism is described as in the version before, and the manifest is of this one"]
    wanted = {*_NAMES, *(["stratum"] if strata is not None else [])}
    if former and set(columns) != {"category", "value", "sd", "low", "high"}:
        return ["the columns are not those of a table of the version before"]
    if not former and set(columns) not in (wanted, wanted | {"population", "rate"}):
        return ["the columns are not those of a table"]
    upper, size = manifest["upper"], len(columns["value"])
    faults: list[str] = []
    if len(set(columns["category"])) < size:
        faults.append("a category stands twice")
    if not upper == mechanism.upper == manifest["rules"]["top code"]:
        faults.append("the largest count is not the mechanism's and that of the rules")
        return faults
    counts = [columns[name] for name in ("value", "low", "high") if size]
    if not all({*map(type, x)} == {int} and min(x) >= 0 and max(x) <= upper for x in counts):
        return [*faults, "a value or an end of an interval is no count from 0 to the largest"]
    if former:
        return faults + _former_faults(columns, manifest)
    level = float(manifest["confidence"])
    if not 0 < level < 1:
        return [*faults, "the confidence of the intervals is not between 0 and 1"]
    if strata is not None and manifest.get("finer") is not None:
        return [*faults, "thresholds measured last are said of the whole table and not of its strata"]
    whole_table = {key: manifest.get(key) for key in ("method", "distribution", "finer")}
    entries = [{"name": None, "size": size, **whole_table}] if strata is None else strata
    try:
        parts = list(_parts(columns, entries, upper, mechanism))
    except InputError as refused:
        return [*faults, str(refused)]
    if sum(len(part.rows) for part in parts) != size or any(
        entry["size"] != len(part.rows) for entry, part in zip(entries, parts, strict=True)
    ):
        return [*faults, "the strata do not hold each category once"]
    joint = manifest.get("joint") is not None
    for part in parts:
        faults += _part_faults(columns, part, upper, level, joint=joint)
    if not faults and not _whole_fits(manifest, parts):
        faults.append("the distribution and the method of the whole table are not those of its strata")
    if joint and not faults:
        faults += pair_faults(
            columns, manifest, [part.rows for part in parts], [part.thresholds for part in parts]
        )
    if "rate" in columns and not _rates_fit(columns):
        faults.append("a rate is not its value for the population")
    return list(dict.fromkeys(faults))


def _former_faults(columns: Columns, manifest: Mapping[str, Any]) -> list[str]:
    """Faults in a table of the version before, whose errors followed from noisy counts that were not published."""
    faults: list[str] = []
    if not _is_distribution(np.array(manifest["distribution"], dtype=float), manifest["upper"]):
        faults.append("the distribution is not one of counts from 0 to the largest")
    turned = any(low > high for low, high in zip(columns["low"], columns["high"], strict=True))
    if turned or any(float(sd) < 0 for sd in columns["sd"]):
        faults.append("an interval or an error is impossible")
    return faults


def _is_distribution(share: Floats, upper: int) -> bool:
    """Whether these are shares of the counts from 0 to the largest. The version before rounded them to eight places."""
    whole = abs(share.sum() - 1) <= 1e-8 * (upper + 2)
    return share.shape == (upper + 1,) and bool(np.all(share >= 0) and whole)


def _parts(
    columns: Columns, entries: list[dict[str, Any]], upper: int, mechanism: TableMechanism
) -> Iterator[_StratumRows]:
    names = columns.get("stratum")
    for entry in entries:
        rows = [at for at in range(len(columns["value"])) if names is None or names[at] == entry["name"]]
        share = np.array(entry["distribution"], dtype=float)
        measured = measured_again(mechanism, len(rows), upper, entry.get("finer"))
        yield _StratumRows(rows, share, entry["method"], measured)


def _part_faults(columns: Columns, part: _StratumRows, upper: int, level: float, *, joint: bool) -> list[str]:
    share, size = part.share, len(part.rows)
    if not _is_distribution(share, upper):
        return ["the distribution is not one of counts from 0 to the largest"]
    faults: list[str] = []
    if part.method != ("noise" if size < SMALL or upper == 0 else "table"):
        faults.append("the method is not the mechanism's")
    sd = part.thresholds.deviation
    if any(abs(float(columns["sd"][at]) - sd) > ROUNDING + 1e-9 * sd for at in part.rows):
        faults.append("an error is not that of the noise")
    if part.method == "table" and not _follows(columns, part, len(part.share) if joint else 1):
        faults.append("the values do not have the private distribution")
    if upper > LARGEST_TABLE:
        return faults
    readings = _readings(columns, part)
    if not _posteriors_fit(columns, part, readings, upper, level, joint=joint):
        faults.append("an estimate or an interval does not follow from its noisy count")
    elif part.method == "table" and not joint and not _in_order(columns, part, readings):
        faults.append("the values are not in the order of the noisy counts")
    return faults


def _whole_fits(manifest: Mapping[str, Any], parts: list[_StratumRows]) -> bool:
    """Whether the whole table has the mean distribution of its strata."""
    sizes = np.array([len(part.rows) for part in parts], np.float64)
    mean = sizes / max(sizes.sum(), 1.0) @ np.array([part.share for part in parts])
    whole = np.array(manifest["distribution"], dtype=float)
    method = "table" if any(part.method == "table" for part in parts) else "noise"
    return (
        manifest["method"] == method
        and whole.shape == mean.shape
        and bool(np.all(np.abs(whole - mean) <= _EXACT))
    )


def _readings(columns: Columns, part: _StratumRows) -> list[list[int]]:
    """For each row what its noisy count may have been, computed once for equal ones."""
    known: dict[float, list[int]] = {}
    for at in part.rows:
        noisy = float(columns["noisy"][at])
        if noisy not in known:
            known[noisy] = part.thresholds.readings(noisy)
    return [known[float(columns["noisy"][at])] for at in part.rows]


def _in_order(columns: Columns, part: _StratumRows, readings: list[list[int]]) -> bool:
    """Whether no value is below that of a row with a smaller noisy count. Every row has a reading."""
    values = np.array([columns["value"][at] for at in part.rows], np.int64)
    least, most = (np.array([end(known) for known in readings], np.int64) for end in (min, max))
    order = np.argsort(most)
    highest = np.maximum.accumulate(np.append(0, values[order]))  # of the rows with the smallest noisy counts
    below = np.searchsorted(most[order], least)
    return bool(np.all(values >= highest[below]))


def _follows(columns: Columns, part: _StratumRows, slack: int) -> bool:
    """Whether as many values are at most each count as the distribution says.

    The second column of a pair is rounded with the first, by at most one for each of its counts.
    """
    size = len(part.rows)
    values = np.array([columns["value"][at] for at in part.rows], np.int64)
    found = np.cumsum(np.bincount(values, minlength=len(part.share)))[:-1]
    return bool(np.all(np.abs(found - cuts_of(part.share * size, size)) <= slack))


def _posteriors_fit(
    columns: Columns, part: _StratumRows, readings: list[list[int]], upper: int, level: float, *, joint: bool
) -> bool:
    """Whether each row has the estimate and the interval that its noisy count gives it."""
    if part.method == "noise":
        return _noise_fits(columns, part, readings, upper, level)
    beliefs = part.thresholds.beliefs(part.share, len(part.rows))
    share = content(level, len(part.rows))
    laws: dict[int, tuple[float, Floats, tuple[int, int]]] = {}
    for at, known in zip(part.rows, readings, strict=True):
        for k in known:
            if k not in laws:
                law = beliefs.posterior(k)
                laws[k] = beliefs.mean(k), law, shortest(law, share)
        # estimates of a pair follow from both noisy counts
        if not any(_row_fits(columns, at, *laws[k], share, own=not joint) for k in known):
            return False
    return True


def _noise_fits(
    columns: Columns, part: _StratumRows, readings: list[list[int]], upper: int, level: float
) -> bool:
    """Whether each row is its noisy count within the bounds, and has the interval of the noise alone."""
    noisy = np.array([float(columns["noisy"][at]) for at in part.rows])
    low, high = from_noise(noisy, part.thresholds, level)
    nearest = np.clip(noisy, 0, upper)
    return all(readings) and all(
        (columns["low"][at], columns["high"][at]) == (a, b)
        and columns["value"][at] == count
        and float(columns["estimate"][at]) == count
        for at, a, b, count in zip(part.rows, low, high, nearest, strict=True)
    )


def _row_fits(
    columns: Columns, at: int, mean: float, law: Floats, wanted: tuple[int, int], share: float, *, own: bool
) -> bool:
    """Whether a row has its estimate, and the shortest interval with this share of its posterior."""
    low, high = columns["low"][at], columns["high"][at]
    return (not own or abs(float(columns["estimate"][at]) - mean) <= ROUNDING + _EXACT * mean) and (
        (low, high) == wanted or (low <= high and is_shortest(law, low, high, share, _EXACT))
    )


def _rates_fit(columns: Columns) -> bool:
    rows = zip(*(columns[name] for name in ("value", "population", "rate")), strict=True)
    return all(
        float(people) > 0
        and abs(PER * value / float(people) - float(rate)) <= ROUNDING + 1e-9 * abs(float(rate))
        for value, people, rate in rows
    )
