"""The section of a spec that asks for counts with margins."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from isotone.release.kinds.counts.section import OrderSection
from isotone.release.sections import Amount, Text

__all__ = ["BreakdownSection"]


class BreakdownSection(OrderSection):
    """``[breakdown]``: counts over a partial order, as in ``[order]``, in the cells of several margins, which add up."""

    by: list[Text] = Field(min_length=1)
    """The columns of the attributes. A finer level stands after its coarser one; the column of the finest is read."""
    groups: dict[str, list[str] | dict[str, str]]
    """For each name of by the public list of its values; for a finer level a table of its values to the coarser ones."""
    margins: list[str | list[str]] | None = None
    """The tables to release: "" for the total, a name of by, a list of names, or "*" for all. By default the total, each alone, and all together."""
    importance: Literal["margins", "cells"] | list[tuple[str | list[str], Amount]] | None = None
    """Which error is to be small: that of all "margins" alike (default), of all "cells", or pairs [margin, weight]. Public, so never from these data."""
    unlisted: Literal["drop", "other"] = "drop"
    """Whether a row with a value in no list is left out of all margins, or counted as "other"."""

    @model_validator(mode="before")
    @classmethod
    def _weights(cls, given: Any) -> Any:
        """Lists of a TOML file as pairs."""
        if isinstance(given, dict) and isinstance(given.get("importance"), list):
            pairs = [tuple(pair) if isinstance(pair, list) else pair for pair in given["importance"]]
            return {**given, "importance": pairs}
        return given
