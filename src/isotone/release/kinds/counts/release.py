"""Counts of yes answers over a partial order, one number for each element and for each public group."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from isotone.counts.mechanism import AdditiveMechanism
from isotone.counts.objective import Care
from isotone.counts.relaxation import Relaxation
from isotone.errors import InputError
from isotone.ledger.ledger import Ledger, require_ledger
from isotone.mechanism import Progress, no_progress
from isotone.order import Poset
from isotone.privacy.guarantee import Neighbours, Number, Unit
from isotone.reading.contributions import UnitKey
from isotone.reading.questions import Answers, Question
from isotone.release import pipeline
from isotone.release.kinds.counts.request import CountRequest
from isotone.release.kinds.parameters import unit_in_words
from isotone.release.manifest import Stated
from isotone.release.result import Release

__all__ = ["release_counts"]


def release_counts(
    data: Any,
    P: Poset,
    *,
    ledger: Ledger,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    unit: UnitKey = None,
    element: str | None = None,
    columns: Mapping[Any, str] | None = None,
    answers: Answers | None = None,
    on_violation: Literal["close", "drop"] = "close",
    on_conflict: Literal["first", "drop"] = "first",
    contributions: int = 1,
    max_size: int | None = None,
    neighbours: Neighbours = "add-remove",
    by: str | Sequence[str] | None = None,
    groups: Sequence[str | int | bool] | Mapping[str, Any] | None = None,
    margins: Sequence[Any] | None = None,
    importance: Any = None,
    unlisted: Literal["drop", "other"] | None = None,
    mechanism: str | AdditiveMechanism | None = None,
    care: Care | None = None,
    relaxation: Relaxation | None = None,
    total: bool = False,
    confidence: float = 0.95,
    weights: str | None = None,
    unit_name: str | None = None,
    title: str | None = None,
    request: str | None = None,
    again: bool = False,
    folder: str | os.PathLike[str] | None = None,
    progress: Progress = no_progress,
    questions: Iterable[Question] | None = None,
    waves: int = 1,
    records: int | None = None,
    catch_all: Any = None,
) -> Release:
    """Release how many units say yes to each element of ``P``.

    Parameters
    ----------
    data
        A path (CSV, Parquet, JSON lines, Arrow; globs) or a table (pandas, polars, Arrow, DuckDB, ibis, Spark).
    P
        The order: a yes to the lower element of a relation implies a yes to the upper one.
    ledger
        Pays for the release. The charge is durable before the data is read.
    epsilon, delta, rho
        The guarantee: pure ``epsilon``, ``epsilon`` with ``delta``, or ``rho``-zCDP.
    unit
        The column that says whose row it is; without it every row is one unit. Rows without a unit are dropped.
    element
        For long data: the column that names the element that the unit has.
    columns
        For wide data: the column of each element, where it is not called like the element.
    answers
        Which values mean yes, and what a missing answer means (default: no).
    on_violation
        What happens to a record that breaks the order: "close" it upward (default), or "drop" it.
    on_conflict
        What happens to a record that breaks a choice of the order: it keeps the "first" option in the sequence of
        ``P.elements`` (default; a yes whose partition has no option is taken back), or "drop" it.
    contributions
        How many records a unit may give; the noise grows with it. 1 combines a unit's rows into one record.
    max_size
        Records keep at most this many yeses (from the top of the order); the guarantee may then be cheaper.
    by, groups
        A column and the public list of its values: one release for each group. For a breakdown several columns, and
        a list for each; a finer level, which stands after its coarser one, has a mapping of its values to those.
    margins
        The tables of a breakdown, which add up: "" for the total, a name of ``by``, several, or "*" for all. By
        default the total, each alone, and all together.
    importance
        Which margins matter: all "margins" alike (default), all "cells" alike, or weights by margin. Public, so never
        from these data.
    unlisted
        What happens in a breakdown to a row with a value in no list: "drop" leaves it out of all margins (default),
        "other" counts it under one more value.
    mechanism
        A name, a mechanism over ``P``, or None for the plan's best.
    care
        Which error of many counts is to be small: that of all "nodes", of all "levels", of the "worst", or weights
        by element. They are public and stand in the manifest: never take them from these data, though an earlier
        private release may fill them in. For a hierarchy the noise follows it.
    relaxation
        What :func:`isotone.counts.relax`, or an earlier release, found for an order out of reach. Without it the
        search is made here.
    total
        Also release the number of records, where the mechanism gives it for free.
    weights
        Survey weights are refused: the error says why.
    title
        The title of the report. It is presentation, and no part of the request.
    request
        A name for this request. A second call with the same name and parameters takes over a charge whose process
        ended before anything was drawn, instead of paying again. Data in memory has no identity without it.
    again
        Draw and charge anew although the request was released before.
    folder
        Where the release is written before this returns; the same as what ``isotone release`` does with a spec. A
        request that was released there before is read back, and nothing is charged.
    waves
        How many releases like this one are planned, such as one a year. What all cost together stands in the manifest, and
        nothing is released if the ledger's total cannot pay it (:func:`isotone.plan_waves`).
    records, catch_all
        For a hierarchy, under replace: the public number of records, as you state it, to which the root is fixed, and the
        leaf below the root for every row that is in no other. Every row is then a unit (no ``unit``) with one code
        (``element``), and nothing is dropped.
    questions
        What counts as a yes to an element, and its label, where it is not as ``answers`` says for all. The order of
        questions, with what follows from their definitions, is :func:`isotone.order_of`.

    Returns
    -------
    Release
        Values with standard deviations and intervals; ``confidence`` is theirs.
    """
    _refuse_weights(weights)
    require_ledger(ledger)
    asked = CountRequest(
        data,
        P,
        Unit(1, neighbours, unit_in_words(unit, unit_name)).guarantee(epsilon, delta, rho),
        unit=unit,
        element=element,
        columns=columns,
        answers=answers,
        on_violation=on_violation,
        on_conflict=on_conflict,
        contributions=contributions,
        max_size=max_size,
        by=by,
        groups=groups,
        margins=margins,
        importance=importance,
        unlisted=unlisted,
        mechanism=mechanism,
        care=care,
        relaxation=relaxation,
        total=total,
        confidence=confidence,
        stated=Stated(title=title),
        questions=questions,
        waves=waves,
        records=records,
        catch_all=catch_all,
    )
    return pipeline.released(asked.query(), ledger, request, again, folder, progress)


def _refuse_weights(weights: Any) -> None:
    if weights is not None:
        raise InputError(
            "Survey weights are refused: a weight multiplies what one person reveals, and weights are computed from the "
            "data. Release unweighted counts, and weight them afterwards with public totals."
        )
