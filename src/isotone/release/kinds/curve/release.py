"""A curve, y as a monotone function of x."""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping
from typing import Any

import isotone.curves as curves
from isotone.curves.cuts import point_source
from isotone.errors import InputError
from isotone.ledger.ledger import Ledger, require_ledger
from isotone.mechanism import Progress, no_progress
from isotone.privacy.checks import confidence_level, did_you_mean, frozen
from isotone.privacy.guarantee import Guarantee, Neighbours, Number, Unit, budget_of
from isotone.reading.contributions import UnitKey, check_contributions
from isotone.release import pipeline
from isotone.release.kinds.curve.bands import band_kind
from isotone.release.kinds.curve.query import CurveQuery
from isotone.release.kinds.fits import kept
from isotone.release.kinds.parameters import (
    column_name,
    stated_texts,
    unit_in_words,
    unit_key,
)
from isotone.release.manifest import Stated
from isotone.release.result import Release

__all__ = ["curve_query", "release_curve"]

_NO_OPTIONS = {"unit", "ledger", "rho", "max_weight"}
"""Parameters of the estimator that a release says otherwise, or has no use for: its records have no weights."""


def release_curve(
    data: Any,
    *,
    x: str,
    y: str,
    bounds: tuple[Number, Number],
    y_range: tuple[Number, Number] | None = None,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    ledger: Ledger,
    unit: UnitKey = None,
    contributions: int = 1,
    neighbours: Neighbours = "add-remove",
    band: str | None = None,
    confidence: float = 0.95,
    unit_name: str | None = None,
    title: str | None = None,
    request: str | None = None,
    again: bool = False,
    folder: str | os.PathLike[str] | None = None,
    progress: Progress = no_progress,
    **options: Any,
) -> Release:
    """Release a monotone curve fitted to the columns ``x`` and ``y``.

    Parameters
    ----------
    data
        A path or a table, as for :func:`release_counts`.
    x, y, bounds, y_range
        The columns and their public ranges. Values outside go to the ends; rows where either is missing are
        dropped. The ranges must not come from the data.
    epsilon, delta, rho
        ``epsilon``, or ``rho`` for zCDP. With ``delta`` the curve is made, and charged, with ``epsilon`` alone: noise of sums and
        choices grows in proportion to contributions either way, so that δ buys nothing.
    unit, contributions
        The column of the privacy unit, and how many of its rows count.
    band, confidence
        The band beside the curve, from the same noisy sums: "population" (the mean in the population, at all points at once), "records" (the
        fit to the same records in the same bins), "credible" (what a model believes, without a guarantee) or "none"; see
        :meth:`PrivateIsotonicRegression.band <isotone.curves.PrivateIsotonicRegression.band>`. By default the first of the two
        guaranteed ones that fits ``output`` and holds; none for curves of other losses, methods and shapes.
    title, request, again, folder
        As for :func:`release_counts`.
    options
        Everything else that :class:`~isotone.curves.PrivateIsotonicRegression` takes: ``increasing``, ``loss``,
        ``y_values`` (in place of ``y_range``), ``output``, ``method``, ``shape``, ``levels``, ``public_n``, ``x_grid`` …

    Returns
    -------
    Release
        The corners of the curve and of its band: columns ``x``, ``value``, ``low`` and ``high``. Between two rows the ends of
        a band keep their value; those of a credible band are linear, as the curve is.
    """
    require_ledger(ledger)
    guarantee = Unit(1, neighbours, unit_in_words(unit, unit_name)).guarantee(epsilon, delta, rho)
    options = {"bounds": bounds, "y_range": y_range, **options}
    query = curve_query(
        data, x, y, guarantee, unit, contributions, Stated(title=title), options, band, confidence
    )
    return pipeline.released(query, ledger, request, again, folder, progress)


def curve_query(
    data: Any,
    x: str,
    y: str,
    guarantee: Guarantee,
    unit: UnitKey,
    contributions: int,
    stated: Stated,
    options: Mapping[str, Any],
    band: str | None = None,
    confidence: float = 0.95,
) -> CurveQuery:
    """The query that :func:`release_curve` runs, with every public parameter checked."""
    known = set(inspect.signature(curves.PrivateIsotonicRegression).parameters) - _NO_OPTIONS
    for name in options:
        if name not in known:
            near = did_you_mean(name, known) or f"; there are: {', '.join(sorted(known))}."
            raise InputError(f"A curve has no option {name!r}{near}")
    x, y = column_name(x, "x"), column_name(y, "y")
    unit = unit_key(unit)
    guarantee = kept(guarantee)
    settings: dict[str, Any] = {
        **budget_of(guarantee),
        "neighbours": guarantee.neighbours,
        "contributions": check_contributions(contributions, unit),
        **{key: frozen(value) for key, value in options.items()},
    }
    problem = curves.PrivateIsotonicRegression(unit=guarantee.unit, **settings).check()
    source = point_source(data, x, y, problem, unit)
    kind, level = band_kind(band, problem), confidence_level(confidence)
    shown = stated_texts(stated, f"{y} by {x}")
    return CurveQuery(source, settings, problem, guarantee, shown, kind, level)
