"""What a manifest says about the law of half-widths."""

from __future__ import annotations

from typing_extensions import TypedDict

from isotone.counts.fixed_root import FixedRootMechanism
from isotone.counts.knorm import KNormMechanism
from isotone.counts.mechanism import AdditiveMechanism
from isotone.linear.law import FALSE_CONFIDENCE, LAW_STREAM, rank

__all__ = ["LawEntry", "closed_form", "law_entry"]


class LawEntry(TypedDict):
    """How the half-widths of intervals were found where they have no closed form."""

    stream: str
    draws: int
    rank: int
    false_confidence: float


def law_entry(mechanism: AdditiveMechanism, confidence: float) -> LawEntry | None:
    """How the half-widths were found, or None if all are in closed form."""
    if closed_form(mechanism):
        return None
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
    together = own.unrounded_simultaneous_half_width is not common.unrounded_simultaneous_half_width
    return own.unrounded_half_widths is not common.unrounded_half_widths and together
