"""The section of a spec that asks for counts with margins, and these from public parameters of any type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from isotone.counts.breakdown import Breakdown, read_breakdown
from isotone.errors import InputError
from isotone.privacy.checks import shown
from isotone.reading.columns import public_texts
from isotone.release.kinds.breakdown.query import RESERVED
from isotone.release.kinds.counts.section import OrderSection
from isotone.release.kinds.parameters import column_name, public_names, require_writable
from isotone.release.sections import Amount, Listed, Text

__all__ = ["BreakdownSection", "public_breakdown"]


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


def public_breakdown(by: Any, groups: Any, margins: Any, unlisted: Any = "drop") -> Breakdown:
    """The breakdown that is asked for, from public parameters of any type."""
    named = [by] if isinstance(by, str) else by
    if not isinstance(named, Sequence) or isinstance(named, bytes):
        raise InputError(f"by must be a column, or a list of columns, not {shown(by)}.")
    columns = [column_name(name, "by") for name in named]  # pyright: ignore[reportUnknownVariableType]
    for name in columns:
        require_writable(name, "by")
        if name in RESERVED:
            raise InputError(
                f"An attribute may not be called {name!r}, like a column of the release. Rename it."
            )
    if not isinstance(groups, Mapping) and len(columns) == 1:
        groups = {columns[0]: groups}
    if not isinstance(groups, Mapping):
        raise InputError("groups must have a public list for each name of by, as a mapping.")
    lists = {str(name): _list(name, said) for name, said in groups.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return read_breakdown(columns, lists, margins, unlisted)


def _list(name: Any, said: Any) -> Any:
    """A public list, or a mapping of its values to those of a coarser level, as texts."""
    if isinstance(said, Mapping):
        values = public_names(list(said), f"groups[{name!r}]")  # pyright: ignore[reportUnknownArgumentType]
        parents = public_names(list(said.values()), f"groups[{name!r}]")  # pyright: ignore[reportUnknownArgumentType]
        found: Any = dict(zip(values, parents, strict=True))
    else:
        found = values = public_names(() if said is None else said, f"groups[{name!r}]")
    public_texts(values, f"groups[{name!r}]")
    return found
