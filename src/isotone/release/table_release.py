"""Releasing a table: one count for each category of a public list, so that the distribution of counts survives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from isotone.counts.mechanisms.additive import check_confidence
from isotone.errors import InputError
from isotone.ledger.ledger import Ledger, require_ledger
from isotone.mechanism import Progress, no_progress
from isotone.privacy.guarantee import Guarantee, Neighbours, Number
from isotone.reading.categories import CategorySource, count_categories
from isotone.reading.engine import watching
from isotone.reading.texts import label
from isotone.release.manifest import guarantee_to, now, versions
from isotone.release.recipes import recipe_of
from isotone.release.result import Release, seal
from isotone.tables.two_stage import TwoStageMechanism

__all__ = ["release_table"]


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
    spec: str = "",
    title: str | None = None,
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
        The largest count that is told apart; larger ones are top-coded. Public, and not chosen by the data.
    count
        The column of counts, for rows that are already aggregated.
    unit, contributions
        The column of the privacy unit, and in how many categories one unit may count.
    split, remap
        As for :class:`~isotone.tables.TwoStageMechanism`.

    Returns
    -------
    Release
        One value per category with a typical error and an interval, and the private distribution.
    """
    require_ledger(ledger)
    mechanism = TwoStageMechanism(
        upper, epsilon, split, remap, contributions=contributions, neighbours=neighbours
    )
    names = tuple(label(name) for name in categories)
    source = CategorySource(data, category, names, upper, count, unit, contributions)
    level = check_confidence(confidence)
    if not names:
        raise InputError("categories is empty: give the public list of categories.")
    promise = Guarantee.pure(epsilon, neighbours=neighbours, unit=unit_name or unit or "record")
    frame = source.open()
    # A table of zeros, thrown away: what only a release finds impossible fails before the charge.
    mechanism.release_in_full(np.zeros(len(names), np.int64))
    ledger.check(promise)
    progress(0.1, "charging the ledger")
    charge = ledger.charge(
        promise, f"table of {len(names)} categories", mechanism=type(mechanism).__name__, spec=spec
    )
    with watching(progress, 0.2, 0.7, "counting where the data is"):
        counts = count_categories(source, frame)
    progress(0.7, "adding noise")
    published = mechanism.release_in_full(counts)
    low, high = published.interval(level)
    columns: dict[str, tuple[Any, ...]] = {
        "category": names,
        "value": tuple(published.values.tolist()),
        "sd": tuple(np.round(published.deviation(), 4).tolist()),
        "low": tuple(low.tolist()),
        "high": tuple(high.tolist()),
    }
    manifest: dict[str, Any] = {
        "kind": "table",
        "title": title or "Table of counts",
        "category": category,
        "upper": published.upper,
        "mechanism": recipe_of(mechanism),
        "method": published.method,
        "distribution": np.round(published.probabilities, 8).tolist(),
        "guarantee": guarantee_to(promise),
        "rules": {
            "unit": unit,
            "contributions": contributions,
            "form": "one row for each unit" if count is None else "rows that are already counts",
            "top code": upper,
        },
        "confidence": level,
        "spec": spec,
        "versions": versions(),
        "time": now(),
        "charge": charge.number,
        "dataset": ledger.dataset,
    }
    release = seal(columns, manifest)
    charge.finish(release.manifest["content_hash"])
    progress(1.0, "done")
    return release
