"""The attributes and margins of a breakdown, from public parameters of any type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from isotone.counts.breakdowns.cells import Breakdown, read_breakdown
from isotone.errors import InputError
from isotone.privacy.checks import shown
from isotone.reading.columns.texts import name_text
from isotone.release.kinds.breakdown.query import RESERVED
from isotone.release.kinds.parameters import column_name, public_names, require_writable

__all__ = ["public_breakdown"]


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
    if len({name_text(value) for value in values}) < len(values):
        raise InputError(f"groups[{name!r}] must be a public list of distinct values.")
    return found
