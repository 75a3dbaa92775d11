"""The section of a spec that asks for counts with margins."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from isotone.release.kinds.counts.section import OrderSection
from isotone.release.sections import Amount, Listed, Text

__all__ = ["BreakdownSection"]


class BreakdownSection(OrderSection):
    """``[breakdown]``: counts over a partial order, as in ``[order]``, in the cells of several margins, which add up."""

    by: list[Text] = Field(min_length=1)
    """The columns of the attributes. A finer level stands after its coarser one; the column of the finest is read."""
    groups: dict[str, list[str] | dict[str, str]]
    """For each name of by the public list of its values; for a finer level a table of its values to the coarser ones."""
    margins: list[str | list[str]] | None = None
    """The tables to release: "" for the total, a name of by, a list of names, or "*" for all. By default the total, each alone, and all together."""
    importance: (
        Literal["margins", "cells"] | list[Annotated[tuple[str | list[str], Amount], Listed]] | None
    ) = None
    """Which error is to be small: that of all "margins" alike (default), of all "cells", or pairs [margin, weight]. Public, so never from these data."""
    unlisted: Literal["drop", "other"] = "drop"
    """Whether a row with a value in no list is left out of all margins, or counted as "other"."""
