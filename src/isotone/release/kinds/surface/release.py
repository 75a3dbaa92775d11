"""A surface, y as a function of two columns that rises or falls with each."""

from __future__ import annotations

import os
from typing import Any

from isotone.curves.grids import FINE
from isotone.errors import InputError
from isotone.ledger.ledger import Ledger, require_ledger
from isotone.mechanism import Progress, no_progress
from isotone.privacy.checks import frozen, shown, truth, whole_number
from isotone.privacy.guarantee import Guarantee, Neighbours, Number, Unit, budget_of, exact
from isotone.reading.contributions import UnitKey, check_contributions
from isotone.reading.grids import CellSource
from isotone.release import pipeline
from isotone.release.kinds.fits import kept
from isotone.release.kinds.parameters import column_name, stated_texts, unit_in_words, unit_key
from isotone.release.kinds.surface.query import ESTIMATOR, SurfaceQuery
from isotone.release.manifest import Stated
from isotone.release.recipes import surface_estimator
from isotone.release.result import Release

__all__ = ["release_surface", "surface_query"]

MOST_BINS = 64


def release_surface(
    data: Any,
    *,
    x: tuple[str, str],
    y: str,
    bounds: tuple[tuple[Number, Number], tuple[Number, Number]],
    y_range: tuple[Number, Number],
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    ledger: Ledger,
    bins: int | tuple[int, int] = 16,
    increasing: bool | tuple[bool, bool] = True,
    loss: Any = "squared",
    public_n: int | None = None,
    unit: UnitKey = None,
    contributions: int = 1,
    neighbours: Neighbours = "add-remove",
    unit_name: str | None = None,
    title: str | None = None,
    request: str | None = None,
    again: bool = False,
    folder: str | os.PathLike[str] | None = None,
    progress: Progress = no_progress,
) -> Release:
    """Release ``y`` as a function of two columns, monotone in each.

    Parameters
    ----------
    data
        A path or a table, as for :func:`release_counts`.
    x, y, bounds, y_range
        The columns and their public ranges. Values outside go to the ends; rows where one is missing are dropped. The ranges must
        not come from the data.
    epsilon, delta, rho
        As for :func:`release_curve`: with ``delta`` the surface is made, and charged, with ``epsilon`` alone.
    bins, increasing
        Into how many equal bins each column is cut, and whether ``y`` rises with it: one for both, or one for each.
    loss, public_n
        As for :class:`~isotone.curves.PrivatePosetRegression`, which fits the surface.
    unit, contributions, title, request, again, folder
        As for :func:`release_counts`.

    Returns
    -------
    Release
        A row for each cell: ``x1`` and ``x2``, the middles of its bins, and ``value``. The report shows it as a heat map.
    """
    require_ledger(ledger)
    guarantee = Unit(1, neighbours, unit_in_words(unit, unit_name)).guarantee(epsilon, delta, rho)
    options = {"bounds": bounds, "y_range": y_range, "bins": bins, "increasing": increasing, "loss": loss}
    query = surface_query(
        data, x, y, guarantee, unit, contributions, Stated(title=title), {**options, "public_n": public_n}
    )
    return pipeline.released(query, ledger, request, again, folder, progress)


def surface_query(
    data: Any,
    x: Any,
    y: Any,
    guarantee: Guarantee,
    unit: UnitKey,
    contributions: int,
    stated: Stated,
    options: dict[str, Any],
) -> SurfaceQuery:
    """The query that :func:`release_surface` runs, with every public parameter checked."""
    guarantee = kept(guarantee)
    names = [column_name(name, "each of x") for name in _two(x, "x")]
    y = column_name(y, "y")
    unit = unit_key(unit)
    units = check_contributions(contributions, unit)
    bins = [
        whole_number(size, "bins", 1, MOST_BINS) for size in _two(options.get("bins", 16), "bins", one=True)
    ]
    rising = [truth(up, "increasing") for up in _two(options.get("increasing", True), "increasing", one=True)]
    bounds = [_interval(pair, "bounds") for pair in _two(options["bounds"], "bounds")]
    y_range = _interval(options["y_range"], "y_range")
    loss: Any = options.get("loss", "squared")
    recipe: dict[str, Any] = {
        "name": ESTIMATOR,
        "bounds": [[str(end) for end in pair] for pair in bounds],
        "bins": bins,
        "directions": rising,
        "y_range": [str(end) for end in y_range],
        **{name: str(amount) for name, amount in budget_of(guarantee).items()},
        "neighbours": guarantee.neighbours,
        "contributions": units,
        "loss": [str(part) for part in loss] if isinstance(loss, (tuple, list)) else loss,
    }
    if options.get("public_n") is not None:
        recipe["public_n"] = whole_number(options["public_n"], "public_n (or None)")
    surface_estimator(recipe, guarantee.unit).check()
    source = CellSource(data, (names[0], names[1]), y, tuple(bounds), tuple(bins), y_range, FINE, unit, units)
    return SurfaceQuery(source, recipe, guarantee, stated_texts(stated, f"{y} by {names[0]} and {names[1]}"))


def _two(value: Any, name: str, *, one: bool = False) -> list[Any]:
    """Two entries, one for each column, or one for both where that makes sense."""
    plain = frozen(value)
    if isinstance(plain, tuple):
        entries: tuple[Any, ...] = plain
        if len(entries) == 2:
            return list(entries)
    elif one:
        return [plain, plain]
    raise InputError(f"{name} must have two entries, one for each column of a surface, not {shown(value)}.")


def _interval(value: Any, name: str) -> tuple[Any, Any]:
    low, high = (exact(end, f"an end of {name}") for end in _two(value, name))
    return low, high
