"""What the steward should know about the contents of the data of a breakdown. Nothing here is private."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isotone.release.checking.findings import unlisted
from isotone.release.kinds.breakdown.release import public_breakdown
from isotone.release.kinds.breakdown.section import BreakdownSection
from isotone.release.kinds.counts.check import check_counts

if TYPE_CHECKING:
    from isotone.release.spec import Spec

__all__ = ["check_breakdown"]


def check_breakdown(spec: Spec, source: Any) -> list[str]:
    """What a check of counts finds, and values of attributes that are in no list."""
    asked = spec.said(BreakdownSection)
    found = public_breakdown(asked.by, asked.groups, asked.margins)
    lines = check_counts(spec, source)
    fate = "counted as other" if asked.unlisted == "other" else "left out of all margins"
    for attribute in found.attributes:
        lines += unlisted(source, attribute.column, attribute.finest, "a value", fate)
    return lines
