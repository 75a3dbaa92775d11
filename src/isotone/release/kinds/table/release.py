"""A table, one count for each category of a public list, made so that the distribution of counts survives."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from isotone.errors import InputError
from isotone.ledger.ledger import Ledger, require_ledger
from isotone.mechanism import Progress, no_progress
from isotone.privacy.checks import confidence_level
from isotone.privacy.guarantee import Guarantee, Neighbours, Number, Unit
from isotone.reading.categories import CategorySource, PairSource
from isotone.reading.contributions import UnitKey, check_contributions
from isotone.release import pipeline
from isotone.release.kinds.parameters import (
    column_name,
    public_names,
    stated_texts,
    unit_in_words,
    unit_key,
)
from isotone.release.kinds.table.pair_query import pair_query, two_columns
from isotone.release.kinds.table.query import TableQuery
from isotone.release.kinds.table.strata import checked_population, checked_strata
from isotone.release.manifest import Stated
from isotone.release.result import Release
from isotone.tables.choosing import table_mechanism
from isotone.tables.emphasis import Emphasis

__all__ = ["release_table", "table_query"]

_NOTHING = Stated()


def release_table(
    data: Any,
    *,
    category: str,
    categories: Sequence[str | int | bool],
    upper: int,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    ledger: Ledger,
    count: str | None = None,
    counts: Sequence[str] | None = None,
    kind: str | None = None,
    unit: UnitKey = None,
    contributions: int | None = None,
    neighbours: Neighbours = "add-remove",
    emphasis: Number | Emphasis | None = None,
    strata: Mapping[str, Sequence[str]] | Sequence[str] | None = None,
    population: Mapping[str, Number] | Sequence[Number] | None = None,
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
    epsilon, delta, rho
        ``epsilon``, ``epsilon`` and ``delta``, or ``rho`` (zCDP). With ``delta`` the noise is Gaussian where that is less: from
        about ten contributions on.
    count
        The column of counts, for rows that are already aggregated.
    counts, kind
        Two columns for each category, released with their joint distribution: the names of two columns of counts, or, with ``kind``, two
        values of that column, which says to which of the two a row belongs. ``upper`` is then at most 63.
    unit, contributions
        The column of the privacy unit, and in how many categories one unit may count (1 unless given). Of two columns it is in how
        many of both together; for two columns of counts it must be given.
    emphasis
        From 0 (counts) to 1 (distribution), or ``counts``, ``both`` or ``distribution``, as for :class:`~isotone.tables.TwoStageMechanism`.
        At an ε below 1 the default is ``counts`` for two columns.
    strata
        Public classes of categories, such as bands of population: the class of each category in their order, or a mapping
        from each class to its categories. A unit's step touches one category and so one class, so each class is measured
        with all of epsilon. The classes must follow from the public category alone.
    population
        The public population of each category, for a column of rates per 100,000.
    title, request, again, folder
        As for :func:`release_counts`.

    Returns
    -------
    Release
        For each category a ``value`` (integers whose distribution is right, for histograms), an ``estimate`` (the smallest
        expected error, for maps and lists) with ``low`` and ``high``, and ``noisy`` (unbiased, for adding up) with ``sd``.
    """
    require_ledger(ledger)
    guarantee = Unit(1, neighbours, unit_in_words(unit, unit_name)).guarantee(epsilon, delta, rho)
    query = table_query(
        data,
        category,
        categories,
        upper,
        guarantee,
        count=count,
        counts=counts,
        kind=kind,
        unit=unit,
        contributions=contributions,
        emphasis=emphasis,
        strata=strata,
        population=population,
        confidence=confidence,
        stated=Stated(title=title),
    )
    return pipeline.released(query, ledger, request, again, folder, progress)


def table_query(
    data: Any,
    category: Any,
    categories: Sequence[str | int | bool],
    upper: int,
    guarantee: Guarantee,
    *,
    count: str | None = None,
    counts: Any = None,
    kind: str | None = None,
    unit: UnitKey = None,
    contributions: int | None = None,
    emphasis: Number | Emphasis | None = None,
    strata: Any = None,
    population: Any = None,
    confidence: float = 0.95,
    stated: Stated = _NOTHING,
) -> TableQuery:
    """The query that :func:`release_table` runs, with every public parameter checked."""
    if counts is not None and not (count is None and strata is None and population is None):
        raise InputError("Two columns (counts=) take no count, strata or population.")
    if kind is not None and counts is None:
        raise InputError("kind= goes with counts=, the two values of that column.")
    named = {"category": category, "count": count, "kind": kind}
    category, count, kind = (None if c is None else column_name(c, n) for n, c in named.items())
    unit = unit_key(unit)
    pair = None if counts is None else two_columns(counts, kind, contributions)
    aggregated = count is not None if pair is None else kind is None
    units = check_contributions(1 if contributions is None else contributions, "" if aggregated else unit)
    # at a small ε the other column says much of the distribution (docs/theory/tables-whole.md, section 6)
    small = None if pair is None else "counts"
    # rows of a unit are counted once in a category; of aggregated rows nothing is known but their number
    mechanism = table_mechanism(
        upper, guarantee, emphasis, contributions=units, once=not aggregated, small=small
    )
    guarantee = replace(mechanism.guarantee, unit=guarantee.unit)  # ε alone, where δ buys nothing
    names, level = public_names(categories, "categories"), confidence_level(confidence)
    if not names:
        raise InputError("categories is empty: give the public list of categories.")
    if pair is not None:
        both = PairSource(data, category, names, mechanism.upper, pair, kind, unit, units)
        return pair_query(both, mechanism, guarantee, level, stated_texts(stated, "Pairs of counts"))
    source = CategorySource(data, category, names, mechanism.upper, count, unit, units)
    shown = stated_texts(stated, "Table of counts")
    classes, people = checked_strata(strata, names), checked_population(population, names)
    return TableQuery(source, mechanism, guarantee, level, shown, classes, people)
