"""Monotone curves as OpenDP measurements. They take rows and return a fitted estimator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from opendp.measurements import make_user_measurement

from isotone.curves import PrivateIsotonicRegression, PrivatePosetRegression
from isotone.curves.cuts import fit_counted, point_source
from isotone.curves.surface import FeatureOrder
from isotone.errors import InputError
from isotone.interop.opendp.columns import InputMetric, bounded_rows, measure_and_map, require_rows
from isotone.order import Poset
from isotone.privacy.checks import frozen
from isotone.privacy.guarantee import Guarantee
from isotone.reading.grids import count_points

__all__ = ["curve_measurement", "make_curve"]

Estimator = PrivateIsotonicRegression | PrivatePosetRegression


def make_curve(
    input_domain: Any, input_metric: Any, estimator: Estimator, *, x: str | Sequence[str], y: str
) -> Any:
    """A regression of ``isotone.curves`` as a measurement on the rows of a table.

    ``x`` is the column of x, of the elements, or the columns of the features; ``y`` that of the values. OpenDP keeps
    the account, so the estimator must have no ledger. With an identifier in the metric
    ``estimator.contributions`` rows of each unit count, chosen with equal probability.

    Guarantee: epsilon-DP for one unit of the metric; the estimator's neighbours must be those of the metric.
    The output is a fitted copy of the estimator. It holds no data.

    >>> import opendp.prelude as dp
    >>> import pandas as pd
    >>> from isotone.interop.opendp import table_domain
    >>> dp.enable_features("contrib", "honest-but-curious")
    >>> model = PrivateIsotonicRegression(epsilon=1, bounds=(0, 100), y_range=(0, 1))
    >>> m = make_curve(table_domain(), dp.symmetric_distance(), model, x="age", y="risk")
    >>> m.map(2)
    2.0
    >>> fitted = m(pd.DataFrame({"age": [20, 80] * 500, "risk": [0, 1] * 500}))
    >>> bool(fitted.predict([20])[0] <= fitted.predict([80])[0])
    True
    """
    held = _copy(estimator)  # what happens to the caller's estimator later is no part of the measurement
    return curve_measurement(input_domain, input_metric, held, lambda: held, x=x, y=y)


def curve_measurement(
    input_domain: Any,
    input_metric: Any,
    estimator: Estimator,
    build: Callable[[], Estimator],
    *,
    x: str | Sequence[str],
    y: str,
    epsilon: Any = None,
) -> Any:
    """A measurement that fits ``build()``. ``estimator`` is like it, but for ``epsilon`` if that is given."""
    require_rows(input_domain)
    if estimator.ledger is not None:
        raise InputError("OpenDP keeps the account here: leave out the estimator's ledger.")
    if estimator.rho is not None:
        raise InputError("A measurement of a curve guarantees epsilon here: leave out the estimator's rho.")
    _check_columns(estimator, x)
    estimator.check()
    guarantee = Guarantee.pure(
        estimator.epsilon if epsilon is None else epsilon,
        neighbours=estimator.neighbours,
        unit=estimator.unit,
    )
    adjacency = InputMetric.of(input_metric)
    adjacency.check(guarantee, estimator.contributions)

    def measure(data: Any) -> Any:
        copy = _copy(build())
        if isinstance(copy, PrivateIsotonicRegression):
            return _fit_chain(copy, data, x, y, adjacency.unit)
        return _fit_order(copy, data, x, y, adjacency.unit)

    measure_of_loss, privacy_map = measure_and_map(guarantee)
    return make_user_measurement(input_domain, input_metric, measure_of_loss, measure, privacy_map)


def _check_columns(estimator: Estimator, x: str | Sequence[str]) -> None:
    """Refuse names of columns that do not fit what the estimator is about."""
    if isinstance(estimator, PrivateIsotonicRegression) or isinstance(estimator.P, Poset):
        if not isinstance(x, str):
            raise InputError(f"x must name one column, not {x!r}. Several are for from_features().")
    elif not isinstance(estimator.P, FeatureOrder):
        raise InputError("A product of orders is not in a column: use from_features(), or a Poset.")
    elif isinstance(x, str):
        raise InputError(f"x must name the columns of the features, [...], not {x!r}.")


def _copy(estimator: Estimator) -> Estimator:
    """An estimator with the same parameters that was not fitted."""
    return type(estimator)(
        **{name: frozen(value) for name, value in estimator.get_params(deep=False).items()}
    )


def _fit_chain(
    estimator: PrivateIsotonicRegression, data: Any, x: Any, y: str, unit: str | None
) -> PrivateIsotonicRegression:
    """Fit to the points of the public grid, bounded by unit where the data are."""
    problem = estimator.check()
    source = point_source(data, x, y, problem, unit)
    points = count_points(source, source.open())
    at = problem.grid.positions(points.x)
    return fit_counted(estimator, at, points.y, points.count, problem.y_range)


def _fit_order(
    estimator: PrivatePosetRegression, data: Any, x: str | Sequence[str], y: str, unit: str | None
) -> PrivatePosetRegression:
    """Fit to rows that are bounded by unit where the data are."""
    texts, numbers = ([x], [y]) if isinstance(x, str) else ([], [*x, y])
    rows = bounded_rows(data, unit, estimator.contributions, texts=texts, numbers=numbers)
    places: Any = [row[0] if isinstance(x, str) else list(row[:-1]) for row in rows]
    # units are bounded already: the noise is still that for `contributions` rows
    return estimator.fit(places, [row[-1] for row in rows], groups=np.arange(len(rows)))
