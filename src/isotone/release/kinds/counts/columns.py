"""The columns of counts and of breakdowns, and what is known of their errors before any data is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import TypedDict

from isotone.counts.breakdown import Breakdown, Margin
from isotone.counts.fixed_root import FixedRootMechanism
from isotone.counts.knorm import KNormMechanism
from isotone.counts.margins import MarginsMechanism, draws_of_margins
from isotone.counts.mechanism import AdditiveMechanism
from isotone.errors import InputError
from isotone.linear.mechanism import FALSE_CONFIDENCE, LAW_STREAM, LinearMechanism, rank
from isotone.linear.strategy import Identity
from isotone.order import Poset
from isotone.privacy.checks import whole_number
from isotone.privacy.guarantee import Guarantee
from isotone.release.manifest import (
    GuaranteeEntry,
    Manifest,
    guarantee_from,
    guarantee_to,
    rebuild_count_mechanism,
    recipe_of,
)

Floats = NDArray[np.float64]

WIDEST = 2.0**40
"""The largest standard deviation: far enough below 2**62 that a count and its noise never leave 64 bits."""
TOO_WIDE = "The noise would be too wide for 64 bits. Take a larger epsilon or rho, or fewer contributions."


DECIMALS = 4
_RECIPE = {"name", "base", "shares", "importance", "rho"}


class LawEntry(TypedDict):
    """How the half-widths of intervals were found where they have no closed form."""

    stream: str
    draws: int
    rank: int
    false_confidence: float


def law_entry(mechanism: AdditiveMechanism, confidence: float) -> LawEntry | None:
    """How the half-widths were found, or None if all are in closed form."""
    if isinstance(mechanism, MarginsMechanism):
        draws = draws_of_margins(mechanism, confidence)
        if not draws:
            return None
    elif closed_form(mechanism):
        return None
    else:
        draws = mechanism.law_draws
    return {
        "stream": LAW_STREAM,
        "draws": draws,
        "rank": rank(draws, confidence),
        "false_confidence": FALSE_CONFIDENCE,
    }


def closed_form(mechanism: AdditiveMechanism) -> bool:
    """Whether no half-width of the mechanism comes from draws."""
    if isinstance(mechanism, FixedRootMechanism):
        return closed_form(mechanism.within)
    own, common = type(mechanism), AdditiveMechanism
    if issubclass(own, KNormMechanism):  # its widths are those of draws at rate 1
        return False
    if isinstance(mechanism, LinearMechanism):  # all at once, only where the counts themselves are measured
        return isinstance(mechanism.strategy, Identity)
    together = own.unrounded_simultaneous_half_width is not common.unrounded_simultaneous_half_width
    return own.unrounded_half_widths is not common.unrounded_half_widths and together


def count_columns(mechanism: Any, confidence: float) -> dict[str, NDArray[Any]]:
    """Standard deviation and half-widths of each value, known before any data is read."""
    law_entry(mechanism, confidence)  # what cannot be known is refused before anything is drawn
    try:
        sd = mechanism.error().sd
    except ArithmeticError:  # beyond the range of floats
        raise InputError(TOO_WIDE) from None
    if not np.all(sd <= WIDEST):
        raise InputError(TOO_WIDE)
    alone = mechanism.half_widths(confidence).astype(np.int64)
    together = int(mechanism.simultaneous_half_width(confidence))
    return {
        "sd": np.round(sd, 4),
        "alone": alone,
        "together": np.where(sd > 0, together, 0),  # a fixed root has no noise
    }


def original_columns(
    P: Poset, groups: Sequence[str] | None, values: NDArray[np.int64], known: dict[str, NDArray[Any]]
) -> dict[str, tuple[Any, ...]]:
    """The columns of a release as drawn, which all follow from the values and the mechanism."""
    repeat, value = len(values), values.reshape(-1)
    alone, together = np.tile(known["alone"], repeat), np.tile(known["together"], repeat)
    columns: dict[str, tuple[Any, ...]] = {}
    if groups is not None:
        columns["group"] = tuple(group for group in groups for _ in P.elements)
    columns["element"] = tuple(str(x) for x in P.elements) * repeat
    numbers: dict[str, NDArray[Any]] = {"value": value, "sd": np.tile(known["sd"], repeat)}
    for half, ends in ((alone, ("low", "high")), (together, ("low_all", "high_all"))):
        numbers |= {ends[0]: np.maximum(value - half, 0), ends[1]: np.maximum(value + half, 0)}
    return {**columns, **{name: tuple(column.tolist()) for name, column in numbers.items()}}


@dataclass(frozen=True)
class Known:
    """Standard deviations and half-widths, a table for each margin, known before any data is read."""

    sd: list[Floats]
    half: list[Floats]


def margins_recipe(mechanism: MarginsMechanism) -> dict[str, Any]:
    """The mechanism as plain values, the noise of a cell, and the share of each margin."""
    plain: dict[str, Any] = {"name": type(mechanism).__name__, "base": recipe_of(mechanism.base)}
    plain["shares"] = [str(share) for share in mechanism.shares]
    plain["importance"] = list(mechanism.importance)
    if mechanism.guarantee.kind == "zcdp" and mechanism.base.guarantee.kind == "pure":
        plain["rho"] = str(mechanism.guarantee.rho)
    return plain


def rebuild_margins(P: Poset, recipe: Mapping[str, Any], breakdown: Breakdown) -> MarginsMechanism:
    """The mechanism that a recipe describes."""
    if recipe.get("name") != MarginsMechanism.__name__ or not set(recipe) <= _RECIPE:
        raise InputError(f"There is no mechanism {str(recipe.get('name'))[:60]!r} for breakdowns.")
    # without shares the best would be searched for, and taken for those used
    if not isinstance(recipe["shares"], list):
        raise InputError("the manifest does not say how the budget was shared")
    base = rebuild_count_mechanism(P, recipe["base"])
    names = [list(breakdown.names(margin)) for margin in breakdown.margins]
    importance = list(zip(names, recipe["importance"], strict=True))
    return MarginsMechanism(base, breakdown, importance, recipe["shares"], recipe.get("rho"))


def known_errors(mechanism: MarginsMechanism, confidence: float) -> Known:
    """Standard deviations and half-widths of all values."""
    try:
        sd = [np.sqrt(table) for table in mechanism.variances()]
        half = mechanism.tables(mechanism.half_widths(confidence))
    except ArithmeticError:  # beyond the range of floats
        raise InputError(TOO_WIDE) from None
    if not all(np.all(table <= WIDEST) for table in sd):
        raise InputError(TOO_WIDE)
    return Known(sd, half)


def breakdown_columns(
    mechanism: MarginsMechanism, values: Sequence[Floats], known: Known
) -> dict[str, tuple[Any, ...]]:
    """The columns of a release, which all follow from the values and the mechanism."""
    breakdown, elements = mechanism.breakdown, [str(x) for x in mechanism.base.P.elements]
    columns: dict[str, list[Any]] = {name: [] for name in ("margin", *breakdown.columns, "element")}
    for margin, sizes, label in zip(breakdown.margins, breakdown.shapes, breakdown.labels, strict=True):
        cells = int(np.prod(sizes))
        columns["margin"] += [label] * (cells * len(elements))
        for name, labels in _labels(breakdown, margin, sizes).items():
            columns[name] += np.repeat(labels, len(elements)).tolist()
        columns["element"] += elements * cells
    value = _flat(values)
    half = _flat(known.half)
    numbers = {
        "value": np.round(value, DECIMALS),
        "sd": np.round(_flat(known.sd), DECIMALS),
        "low": np.round(np.maximum(value - half, 0), DECIMALS),
        "high": np.round(np.maximum(value + half, 0), DECIMALS),
    }
    plain = {name: tuple((column + 0.0).tolist()) for name, column in numbers.items()}
    return {**{name: tuple(column) for name, column in columns.items()}, **plain}


def _flat(tables: Sequence[Floats]) -> Floats:
    return np.concatenate([np.ravel(table) for table in tables])


def _labels(breakdown: Breakdown, margin: Margin, sizes: Sequence[int]) -> dict[str, NDArray[Any]]:
    """The value of each attribute in each cell of a margin, empty where it is not broken down by it."""
    result: dict[str, NDArray[Any]] = {}
    for axis, (attribute, level) in enumerate(zip(breakdown.attributes, margin, strict=True)):
        place = np.arange(sizes[axis])
        along = [1] * axis + [-1] + [1] * (len(sizes) - axis - 1)
        for k in range(len(attribute.names), 0, -1):
            if k > level:
                names = np.array([""] * sizes[axis], dtype=object)
            else:
                names = np.array(attribute.values[k - 1], dtype=object)[place]
                place = np.array(attribute.parents[k - 2], np.int64)[place] if k > 1 else place
            result[attribute.names[k - 1]] = np.broadcast_to(names.reshape(along), sizes).ravel()
    return result


def has_margins(manifest: Manifest) -> bool:
    """Whether there are margins that add up, and not one table for each group."""
    return manifest.get("measured") is not None


# Releases that are planned as several waves of one data set, such as one a year. What all of them cost together is public
# before the first, and stands in the manifest of each.

MOST_WAVES = 1_000


class WavesEntry(TypedDict):
    """How many releases are planned, and what all of them guarantee together."""

    planned: int
    together: GuaranteeEntry


def planned_waves(waves: Any) -> int:
    """A number of waves, checked."""
    number = whole_number(waves, "waves")
    if number > MOST_WAVES:
        raise InputError(f"At most {MOST_WAVES:,} waves are planned, not {number:,}.")
    return number


def waves_entry(guarantee: Guarantee, waves: int) -> WavesEntry | None:
    """What a manifest says about a release that is one of several, or None if it stands alone."""
    return None if waves == 1 else {"planned": waves, "together": guarantee_to(guarantee.times(waves))}


def wave_faults(manifest: Manifest) -> list[str]:
    """What is wrong with what a manifest says about its waves, a phrase each."""
    expected = waves_entry(guarantee_from(manifest.guarantee), planned_waves(manifest.description["waves"]))
    same = manifest.get("waves") == expected
    return [] if same else ["what all waves cost together is not that many times what this one cost"]
