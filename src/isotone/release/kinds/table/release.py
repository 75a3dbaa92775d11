"""A table, one count for each category of a public list, made so that the distribution of counts survives."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Literal

from isotone.errors import InputError
from isotone.ledger.ledger import Ledger, require_ledger
from isotone.mechanism import Progress, no_progress
from isotone.privacy.checks import confidence_level
from isotone.privacy.guarantee import Guarantee, Neighbours, Number
from isotone.reading.categories import CategorySource
from isotone.release import pipeline
from isotone.release.kinds.parameters import (
    column_name,
    contribution_bound,
    public_names,
    title_text,
    unit_in_words,
)
from isotone.release.kinds.table.query import TableQuery
from isotone.release.result import Release
from isotone.tables.two_stage import TwoStageMechanism

__all__ = ["release_table", "table_query"]


def release_table(
    data: Any,
    *,
    category: str,
    categories: Sequence[str | int | bool],
    upper: int,
    epsilon: Number,
    ledger: Ledger,
    count: str | None = None,
    unit: str | None = None,
    contributions: int = 1,
    neighbours: Neighbours = "add-remove",
    split: Number | None = None,
    remap: Literal["auto", "rows", "table"] = "auto",
    confidence: float = 0.95,
    unit_name: str | None = None,
    title: str | None = None,
    request: str | None = None,
    again: bool = False,
    folder: str | os.PathLike[str] | None = None,
    progress: Progress = no_progress,
) -> Release:
    """Release how many units fall in each category.

    Parameters
    ----------
    data
        A path or a table, as for :func:`release_counts`: a row for each unit and category, or, with ``count``,
        a row for each category and how many units it has.
    category, categories
        The column, and the public list of its values. Others are ignored; absent ones count 0. The list must not
        come from the data.
    upper
        The largest count. Counts above it are clipped to it. Public, and not chosen by the data.
    count
        The column of counts, for rows that are already aggregated.
    unit, contributions
        The column of the privacy unit, and in how many categories one unit may count.
    split, remap
        As for :class:`~isotone.tables.TwoStageMechanism`.
    title, request, again, folder
        As for :func:`release_counts`.

    Returns
    -------
    Release
        One value per category with a typical error and an interval, and the private distribution.
    """
    require_ledger(ledger)
    promise = Guarantee.pure(epsilon, neighbours=neighbours, unit=unit_in_words(unit, unit_name))
    options: dict[str, Any] = {"split": split, "remap": remap, "confidence": confidence, "title": title}
    query = table_query(data, category, categories, upper, promise, count, unit, contributions, **options)
    return pipeline.released(query, ledger, request, again, folder, progress)


def table_query(
    data: Any,
    category: str,
    categories: Sequence[str | int | bool],
    upper: int,
    promise: Guarantee,
    count: str | None,
    unit: str | None,
    contributions: int,
    *,
    split: Number | None,
    remap: Literal["auto", "rows", "table"],
    confidence: float,
    title: str | None,
) -> TableQuery:
    """The query that :func:`release_table` runs, with every public parameter checked."""
    named = {"category": category, "count": count, "unit": unit}
    category, count, unit = (None if c is None else column_name(c, n) for n, c in named.items())  # type: ignore
    units = (
        contribution_bound(contributions, unit) if count is None else contribution_bound(contributions, "")
    )
    mechanism = TwoStageMechanism(
        upper, promise.epsilon, split, remap, contributions=units, neighbours=promise.neighbours
    )
    names = public_names(categories, "categories")
    if not names:
        raise InputError("categories is empty: give the public list of categories.")
    source = CategorySource(data, category, names, mechanism.upper, count, unit, units)
    return TableQuery(
        source, mechanism, promise, confidence_level(confidence), title_text(title, "Table of counts")
    )
