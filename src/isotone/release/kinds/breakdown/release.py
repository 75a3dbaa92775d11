"""Counts over a partial order in the cells of several margins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from isotone.counts.breakdowns.cells import Breakdown, read_breakdown
from isotone.counts.breakdowns.choosing import margins_mechanism
from isotone.counts.breakdowns.shares import importance_of
from isotone.counts.caring import Care, care_of
from isotone.counts.mechanisms.additive import AdditiveMechanism
from isotone.counts.sampling.relaxation import Relaxation
from isotone.errors import InputError
from isotone.order import Poset
from isotone.privacy.checks import shown
from isotone.privacy.guarantee import Guarantee
from isotone.reading.columns.texts import name_text
from isotone.reading.records import RecordRules, RecordSource
from isotone.release.kinds.breakdown.query import RESERVED, BreakdownQuery, known_errors
from isotone.release.kinds.parameters import column_name, public_names, require_writable

__all__ = ["breakdown_query", "public_breakdown"]


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


def breakdown_query(
    source: RecordSource,
    P: Poset,
    rules: RecordRules,
    guarantee: Guarantee,
    breakdown: Breakdown,
    *,
    importance: Any,
    mechanism: str | AdditiveMechanism | None,
    care: Care | None,
    relaxation: Relaxation | None,
    total: bool,
    confidence: float,
    title: str,
    waves: int,
) -> BreakdownQuery:
    """The query of a breakdown, with every public parameter checked."""
    if total:
        raise InputError(
            "A breakdown has no total=True: add an element above all others to the order, and count all records there."
        )
    noise = margins_mechanism(
        P,
        breakdown,
        guarantee,
        contributions=rules.contributions,
        max_size=rules.max_size,
        mechanism=mechanism,
        care=care,
        relaxation=relaxation,
        importance=importance,
    )
    asked = None
    if not isinstance(mechanism, AdditiveMechanism):
        said: dict[str, Any] = {} if care is None else {"care": care_of(P, care)}
        asked = {"name": mechanism or "best", **said}
        asked["importance"] = importance_of(breakdown, importance).tolist()
    if (
        noise.guarantee.neighbours == guarantee.neighbours
    ):  # the noise may guarantee more: only that is charged
        guarantee = replace(noise.guarantee, unit=guarantee.unit)
    return BreakdownQuery(
        source,
        P,
        rules,
        noise,
        asked,
        guarantee,
        confidence,
        title,
        known_errors(noise, confidence),
        relaxation,
        waves,
    )
