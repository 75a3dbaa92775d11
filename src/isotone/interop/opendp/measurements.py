"""Counts, curves and tables as OpenDP measurements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from opendp.measurements import make_user_measurement

from isotone.counts.fixed_root import FixedRootMechanism
from isotone.counts.mechanism import AdditiveMechanism
from isotone.curves import PrivateIsotonicRegression, PrivatePosetRegression
from isotone.curves.cuts import fit_counted, point_source
from isotone.curves.problem import fit_guarantee
from isotone.curves.surface import FeatureOrder
from isotone.errors import InputError
from isotone.interop.opendp.columns import InputMetric, bounded_rows, measure_and_map, quiet, require_rows
from isotone.mechanism import HasTotal
from isotone.order import Poset
from isotone.privacy.checks import Number, frozen, plain_text, require_list, share, whole_number
from isotone.privacy.guarantee import Guarantee, Unit
from isotone.reading.categories import CategorySource, count_categories
from isotone.reading.columns import labels
from isotone.reading.grids import count_points
from isotone.reading.questions import Answers
from isotone.reading.records import RecordRules, RecordSource, count_records
from isotone.tables import CountMechanism, TwoStageMechanism, privatize_distribution
from isotone.tables.distribution import Method

# Counts over an order as an OpenDP measurement. It takes rows and returns noisy counts.


@dataclass(frozen=True)
class RowRules:
    """How the rows of a table are read as records, as by :class:`isotone.Answers`."""

    element: str | None = None
    """Long data: the column that names the element which the unit has."""
    columns: Mapping[Any, str] = field(default_factory=dict[Any, str])
    """Wide data: the column of each element that is not called like the element."""
    answers: Answers = field(default_factory=Answers)
    on_violation: Literal["close", "drop"] = "close"


def make_counts(
    input_domain: Any,
    input_metric: Any,
    mechanism: AdditiveMechanism,
    rules: RowRules | None = None,
    *,
    total: bool = False,
) -> Any:
    """Any mechanism of ``isotone.counts`` as a measurement on the rows of a table.

    Rows become records as in :class:`isotone.Counts`: combined by unit if the metric has an identifier,
    read as yes or no, closed upward (or dropped), cut to the mechanism's ``max_size``, and counted. All of that
    looks at one unit at a time, so d units move the counts by d records, and the map is that of ``maps.py``.

    Guarantee: that of ``mechanism``, for one unit of the metric; its neighbours must be those of the metric.
    The output is an integer array in the order of ``P.elements``; with ``total``, where the mechanism has it, a pair of that
    and the noisy number of records.
    An example is in docs/how-to/opendp.md.
    """
    if isinstance(mechanism, FixedRootMechanism):
        raise InputError("No metric says that a public number of records is kept. Release with iso.Counts.")
    mechanism.release(np.zeros(len(mechanism.P), dtype=np.int64))  # refuses here what could never be drawn
    release = _with_total(mechanism) if total else lambda counts, _: mechanism.release(counts)
    return counts_measurement(input_domain, input_metric, mechanism, mechanism.guarantee, release, rules)


def _with_total(mechanism: Any) -> Callable[[NDArray[np.int64], int], Any]:
    if not (isinstance(mechanism, HasTotal) and mechanism.has_total):
        raise InputError(
            f"{type(mechanism).__name__} does not give the number of records for free. Leave out total=True."
        )
    return mechanism.release_with_total


def counts_measurement(
    input_domain: Any,
    input_metric: Any,
    like: AdditiveMechanism,
    guarantee: Guarantee,
    release: Callable[[NDArray[np.int64], int], Any],
    read: RowRules | None,
) -> Any:
    """A measurement that counts rows and releases the counts by a mechanism ``like`` this, with this guarantee."""
    require_rows(input_domain)
    read = read or RowRules()
    source = RecordSource(
        None, read.element, dict(read.columns)
    )  # what happens to the lists later changes nothing
    P, contributions, max_size = like.P, like.contributions, like.max_size
    adjacency = InputMetric.of(input_metric)
    adjacency.check(guarantee, contributions)
    rules = RecordRules(adjacency.unit, contributions, read.on_violation, max_size, read.answers)
    if source.element is not None and adjacency.unit is None:
        raise InputError(
            "Long data (element=) belongs to units: take a metric with an identifier, dp.symmetric_id_distance(...)."
        )

    def measure(data: Any) -> Any:
        here = RecordSource(data, source.element, source.columns)
        counts, records = count_records(here, here.open(P, rules, None), P, rules)
        return release(counts[0], int(records[0]))

    measure_of_loss, privacy_map = measure_and_map(guarantee)
    return make_user_measurement(input_domain, input_metric, measure_of_loss, quiet(measure), privacy_map)


# Monotone curves as OpenDP measurements. They take rows and return a fitted estimator.

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
    _check_columns(estimator, x)
    estimator.check()
    guarantee = fit_guarantee(estimator.epsilon)
    if guarantee.kind != "pure":
        raise InputError(f"A measurement of a curve guarantees ε here, not {guarantee}.")
    if epsilon is not None:
        guarantee = replace(guarantee, epsilon=epsilon)
    adjacency = InputMetric.of(input_metric)
    adjacency.check(guarantee, estimator.contributions)

    def measure(data: Any) -> Any:
        copy = _copy(build())
        if isinstance(copy, PrivateIsotonicRegression):
            return _fit_chain(copy, data, x, y, adjacency.unit)
        return _fit_order(copy, data, x, y, adjacency.unit)

    measure_of_loss, privacy_map = measure_and_map(guarantee)
    return make_user_measurement(input_domain, input_metric, measure_of_loss, quiet(measure), privacy_map)


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


# Tables of counts, and private distributions of counts, as OpenDP measurements.


def make_table(
    input_domain: Any,
    input_metric: Any,
    mechanism: TwoStageMechanism | CountMechanism,
    *,
    category: str,
    categories: Sequence[str],
) -> Any:
    """Any mechanism of ``isotone.tables`` as a measurement on the rows of a table.

    ``categories`` is the public list: rows of other categories are ignored, absent categories count 0. A row, or a
    unit in up to ``contributions`` categories, moves as many counts by one, which is what the mechanism is built
    for. A mechanism that was built on a private distribution covers the counts only: release the distribution by
    :func:`make_distribution` from the same budget.

    Guarantee: that of ``mechanism``, for one unit of the metric; its neighbours must be those of the metric.
    The output is one integer for each category, in the order of ``categories``.

    >>> import opendp.prelude as dp
    >>> import pandas as pd
    >>> from isotone.interop.opendp import table_domain
    >>> dp.enable_features("contrib", "honest-but-curious")
    >>> m = make_table(
    ...     table_domain(), dp.symmetric_distance(), TwoStageMechanism(upper=9, epsilon=1),
    ...     category="county", categories=["a", "b", "c"],
    ... )
    >>> m.map(1)
    1.0
    >>> m(pd.DataFrame({"county": ["a", "a", "b", "elsewhere"]})).shape
    (3,)
    """
    if isinstance(mechanism, CountMechanism) and mechanism.simulated:
        raise InputError("This mechanism was built on a simulated distribution, which is not private.")
    if mechanism.upper is None:
        raise InputError("A measurement of a table needs a mechanism with upper, the largest count.")
    return table_measurement(
        input_domain,
        input_metric,
        mechanism.guarantee,
        mechanism.release,
        _source(category, categories, mechanism.upper),
        mechanism.unit.contributions,
    )


def make_distribution(
    input_domain: Any,
    input_metric: Any,
    epsilon: Number,
    *,
    category: str,
    categories: Sequence[str],
    upper: int,
    method: Method = "cumulative",
    delta: Number | None = None,
    contributions: int = 1,
) -> Any:
    """A private distribution of counts as a measurement.

    See :func:`isotone.tables.privatize_distribution`.

    Guarantee: (epsilon, delta)-DP for ``cyclic-gaussian``, epsilon-DP otherwise (docs/theory/tables.md, section 2).
    The output is a :class:`~isotone.tables.Distribution`, on which a mechanism can be built.
    """
    neighbours = InputMetric.of(input_metric).neighbours
    unit, upper = Unit(contributions, neighbours), whole_number(upper, "upper")
    guarantee = unit.pure(epsilon) if delta is None else unit.approximate(epsilon, share(delta, "delta"))

    def release(counts: Any) -> Any:
        return privatize_distribution(counts, upper, guarantee, method, contributions=unit.contributions)

    trial = release([0])  # refuses what cannot be

    return table_measurement(
        input_domain,
        input_metric,
        trial.guarantee,
        release,
        _source(category, categories, upper),
        unit.contributions,
    )


def _source(category: str, categories: Sequence[str], upper: int) -> CategorySource:
    """The rows that count, refused where they cannot be."""
    require_list(categories, "categories")
    return CategorySource(None, plain_text(category, "category"), labels(categories), upper)


def table_measurement(
    input_domain: Any,
    input_metric: Any,
    guarantee: Guarantee,
    release: Callable[[NDArray[np.int64]], Any],
    source: CategorySource,
    contributions: int,
) -> Any:
    """A measurement that counts rows by category and releases the counts by a mechanism with this guarantee."""
    require_rows(input_domain)
    adjacency = InputMetric.of(input_metric)
    adjacency.check(guarantee, contributions)

    def measure(data: Any) -> Any:
        here = replace(source, data=data, unit=adjacency.unit, contributions=contributions)
        return release(count_categories(here, here.open()))

    measure_of_loss, privacy_map = measure_and_map(guarantee)
    return make_user_measurement(input_domain, input_metric, measure_of_loss, quiet(measure), privacy_map)
