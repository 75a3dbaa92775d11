"""Bands of a published curve. Which one, and from which published sums."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NotRequired

import numpy as np
from typing_extensions import TypedDict

from isotone.curves.bands import KINDS, MeasuredSums, no_band, why_no_population
from isotone.curves.grids import FINE
from isotone.curves.measure import NoisySums
from isotone.errors import InputError
from isotone.privacy.checks import one_of
from isotone.privacy.guarantee import exact

if TYPE_CHECKING:
    from isotone.curves.cuts import ChainProblem
    from isotone.curves.posterior_fit import Law, PossibleSums

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


def _possible(problem: ChainProblem) -> dict[Law, PossibleSums]:
    from isotone.curves.regression import sums_for  # here: it brings all mechanisms

    return sums_for(problem)


def _no_population(problem: ChainProblem) -> str:
    return why_no_population(problem.budget.whole.unit.contributions, problem.direction_given)


def usual_kind(problem: ChainProblem) -> str | None:
    """The band that fits what the curve estimates, and holds, or None where no band is known."""
    if not _possible(problem):
        return None
    return "population" if problem.output == "population" and not _no_population(problem) else "records"


def band_kind(asked: Any, problem: ChainProblem) -> str | None:
    """The kind of band as asked for, refused where it does not hold, or the usual one."""
    if asked is None:
        return usual_kind(problem)
    kind = one_of(asked, "band (or None)", (*KINDS, "none"))
    if kind == "none":
        return None
    if not _possible(problem):
        raise no_band(problem.method)
    if kind == "population" and (reason := _no_population(problem)):
        raise InputError(reason)
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


def measured_from(manifest: Mapping[str, Any], problem: ChainProblem) -> MeasuredSums:
    """The sums that a manifest publishes, as the estimator that it describes could have measured them."""
    entry = manifest.get("sums")
    possible = _possible(problem)
    if entry is None or not possible:
        raise InputError("The release has no noisy sums, which a band is made of.")
    starts, ones, zeros = (np.array(entry[key], dtype=np.int64) for key in ("starts", "ones", "zeros"))
    points = problem.grid.points
    whole = starts.ndim == 1 and 0 < starts.size == ones.size == zeros.size <= MOST_BINS
    if not whole or starts[0] != 0 or starts[-1] >= points or np.any(np.diff(starts) <= 0):
        raise InputError("the bins of the published sums are not bins of the grid")
    rate, variance = (exact(entry[key], key) if key in entry else None for key in ("rate", "variance"))
    known = possible.get((rate, variance))
    if known is None:
        raise InputError("the rate or the variance of the noise of the sums is not the mechanism's")
    if entry["values"] not in known.values:
        raise InputError("the number of values of the posterior is none that the mechanism has")
    sums = NoisySums(starts, ones, zeros, 1 if problem.labels else FINE, rate, points, variance)
    rising = sums if manifest["increasing"] else sums.mirrored()
    if known.starts is not None and known.starts != tuple(rising.starts.tolist()):
        raise InputError("the bins of the published sums are not those of noise without a coarse look")
    found = manifest["mechanism"].get("increasing", True) != "auto"
    return MeasuredSums(
        sums,
        manifest["increasing"],
        problem.labels,
        entry["values"],
        manifest["rules"]["contributions"],
        found,
    )
