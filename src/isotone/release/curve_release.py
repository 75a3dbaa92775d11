"""Releasing a curve: y as a monotone function of x."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np

from isotone.curves import PrivateIsotonicRegression
from isotone.errors import InputError
from isotone.ledger.ledger import Ledger, require_ledger
from isotone.mechanism import Progress, no_progress
from isotone.privacy.guarantee import Guarantee, Neighbours, Number
from isotone.reading.engine import watching
from isotone.reading.points import PointSource, count_points
from isotone.reading.sources import did_you_mean
from isotone.release.manifest import guarantee_to, now, versions
from isotone.release.result import Release, seal

__all__ = ["release_curve"]

_Y_STEPS = 1 << 16


def release_curve(
    data: Any,
    *,
    x: str,
    y: str,
    bounds: tuple[Number, Number],
    y_range: tuple[Number, Number],
    epsilon: Number,
    ledger: Ledger,
    unit: str | None = None,
    contributions: int = 1,
    neighbours: Neighbours = "add-remove",
    unit_name: str | None = None,
    spec: str = "",
    title: str | None = None,
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
    unit, contributions
        The column of the privacy unit, and how many of its rows count.
    options
        Everything else that :class:`~isotone.curves.PrivateIsotonicRegression` takes: ``increasing``, ``loss``,
        ``method``, ``shape``, ``levels``, ``public_n``, ``x_grid`` …

    Returns
    -------
    Release
        The corners of the curve: columns ``x`` and ``value``.
    """
    require_ledger(ledger)
    _require_known(options)
    name = unit_name or unit or "record"
    settings: dict[str, Any] = {
        "epsilon": epsilon,
        "bounds": bounds,
        "y_range": y_range,
        "neighbours": neighbours,
        "contributions": contributions,
        **options,
    }
    estimator = PrivateIsotonicRegression(unit=name, **settings)
    public = estimator.check()
    promise = Guarantee.pure(epsilon, neighbours=neighbours, unit=name)
    grid = public.grid
    limits = (grid.low, grid.high), public.y_range
    source = PointSource(data, x, y, *limits, grid.points - 1, _Y_STEPS, unit, contributions, grid.listed)
    frame = source.open()
    # A fit to nobody, thrown away: what only a fit finds impossible fails before the charge.
    PrivateIsotonicRegression(unit=name, **settings).fit(np.zeros(0), np.zeros(0), groups=np.arange(0))
    ledger.check(promise)
    progress(0.1, "charging the ledger")
    charge = ledger.charge(promise, f"curve of {y} over {x}", mechanism=type(estimator).__name__, spec=spec)
    with watching(progress, 0.2, 0.6, "reading where the data is"):
        points = count_points(source, frame)
    progress(0.6, "fitting")
    low, high = map(float, public.y_range)
    xs = np.repeat(grid.positions(points.x), points.count)
    ys = np.repeat(low + (high - low) * points.y / _Y_STEPS, points.count)
    # The engine has already bounded each unit; rows of their own keep the noise for `contributions` rows.
    estimator.fit(xs, ys, groups=np.arange(len(xs)))
    columns: dict[str, tuple[Any, ...]] = {
        "x": tuple(np.round(estimator.X_thresholds_, 12).tolist()),
        "value": tuple(np.round(estimator.y_thresholds_, 12).tolist()),
    }
    recipe = {key: _plain(value) for key, value in settings.items() if value is not None}
    manifest: dict[str, Any] = {
        "kind": "curve",
        "title": title or f"{y} by {x}",
        "x": x,
        "y": y,
        "y_range": [str(end) for end in public.y_range],
        "increasing": bool(estimator.increasing_),
        "mechanism": {"name": type(estimator).__name__, **recipe},
        "guarantee": guarantee_to(promise),
        "rules": {"unit": unit, "contributions": contributions, "bounds": [str(end) for end in limits[0]]},
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


def _plain(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return [_plain(part) for part in value]
    return value if isinstance(value, (bool, int, str)) else str(value)


def _require_known(options: Mapping[str, Any]) -> None:
    known = set(inspect.signature(PrivateIsotonicRegression).parameters) - {"unit", "ledger"}
    for name in options:
        if name not in known:
            near = did_you_mean(name, known) or f"; there are: {', '.join(sorted(known))}."
            raise InputError(f"A curve has no option {name!r}{near}")
