"""Bands of a published curve: which one, from which published sums."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NotRequired

import numpy as np
from typing_extensions import TypedDict

from isotone.curves.bands.measured import KINDS, MeasuredSums, no_band
from isotone.curves.grids import FINE
from isotone.curves.measure import NoisySums
from isotone.errors import InputError
from isotone.privacy.checks import one_of
from isotone.privacy.guarantee import exact

if TYPE_CHECKING:
    from isotone.curves.chain.regression import Setup

__all__ = ["SumsEntry", "band_kind", "measured_from", "sums_to", "usual_kind"]

MOST_BINS = 1024


class SumsEntry(TypedDict):
    """The noisy sums of y and 1 − y in bins of the grid of x, in whole numbers, and the rate or the variance of their noise."""

    starts: list[int]
    ones: list[int]
    zeros: list[int]
    values: int
    rate: NotRequired[str]
    variance: NotRequired[str]


def usual_kind(setup: Setup, output: str) -> str | None:
    """The band that fits what the curve estimates, and holds; None where no band is known."""
    if not setup.possible:
        return None
    return "population" if output == "population" and not setup.why_no_population else "records"


def band_kind(asked: Any, setup: Setup, output: str, method: str) -> str | None:
    """The kind of band as asked for, refused where it does not hold, or the usual one."""
    if asked is None:
        return usual_kind(setup, output)
    kind = one_of(asked, "band (or None)", (*KINDS, "none"))
    if kind == "none":
        return None
    if not setup.possible:
        raise no_band(method)
    if kind == "population" and setup.why_no_population:
        raise InputError(setup.why_no_population)
    return kind


def sums_to(measured: MeasuredSums) -> SumsEntry:
    """The sums as plain values."""
    sums = measured.sums
    entry: SumsEntry = {
        "starts": sums.starts.tolist(),
        "ones": sums.ones.tolist(),
        "zeros": sums.zeros.tolist(),
        "values": measured.levels,
    }
    if sums.rate is not None:
        return {**entry, "rate": str(sums.rate)}
    return {**entry, "variance": str(sums.variance)}


def measured_from(manifest: Mapping[str, Any], setup: Setup) -> MeasuredSums:
    """The sums that a manifest publishes, as the estimator that it describes could have measured them."""
    entry = manifest.get("sums")
    if entry is None or not setup.possible:
        raise InputError("The release has no noisy sums, which a band is made of.")
    starts, ones, zeros = (np.array(entry[key], dtype=np.int64) for key in ("starts", "ones", "zeros"))
    points = setup.grid.points
    whole = starts.ndim == 1 and 0 < starts.size == ones.size == zeros.size <= MOST_BINS
    if not whole or starts[0] != 0 or starts[-1] >= points or np.any(np.diff(starts) <= 0):
        raise InputError("the bins of the published sums are not bins of the grid")
    rate, variance = (exact(entry[key], key) if key in entry else None for key in ("rate", "variance"))
    known = setup.possible.get((rate, variance))
    if known is None:
        raise InputError("the rate or the variance of the noise of the sums is not the mechanism's")
    if entry["values"] not in known.values:
        raise InputError("the number of values of the posterior is none that the mechanism has")
    sums = NoisySums(starts, ones, zeros, 1 if setup.labels else FINE, rate, points, variance)
    rising = sums if manifest["increasing"] else sums.mirrored()
    if known.starts is not None and known.starts != tuple(rising.starts.tolist()):
        raise InputError("the bins of the published sums are not those of noise without a coarse look")
    found = manifest["mechanism"].get("increasing", True) != "auto"
    return MeasuredSums(
        sums, manifest["increasing"], setup.labels, entry["values"], manifest["rules"]["contributions"], found
    )
