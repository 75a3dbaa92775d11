"""Tables of counts, and private distributions of counts, as OpenDP measurements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from opendp.measurements import make_user_measurement

from isotone.errors import InputError
from isotone.interop.opendp.columns import InputMetric, measure_and_map, require_rows
from isotone.privacy.checks import Number, exact, plain_text, positive, require_list, whole_number
from isotone.privacy.guarantee import Guarantee, Unit
from isotone.reading.categories import CategorySource, count_categories
from isotone.reading.columns import label
from isotone.tables import CountMechanism, TwoStageMechanism, privatize_distribution
from isotone.tables.distribution import Method

__all__ = ["make_distribution", "make_table", "table_measurement"]


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
    return table_measurement(
        input_domain,
        input_metric,
        mechanism.guarantee,
        mechanism.release,
        contributions=mechanism.unit.contributions,
        upper=mechanism.upper,
        category=category,
        categories=categories,
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
    unit = Unit(contributions, neighbours)
    upper, epsilon = whole_number(upper, "upper"), positive(epsilon, "epsilon")
    delta = None if delta is None else exact(delta, "delta")
    settings: dict[str, Any] = {"contributions": unit.contributions, "neighbours": neighbours, "delta": delta}
    trial = privatize_distribution([0], upper, epsilon, method, **settings)  # refuses what cannot be

    def release(counts: NDArray[np.int64]) -> Any:
        return privatize_distribution(counts, upper, epsilon, method, **settings)

    return table_measurement(
        input_domain,
        input_metric,
        trial.guarantee,
        release,
        contributions=unit.contributions,
        upper=upper,
        category=category,
        categories=categories,
    )


def table_measurement(
    input_domain: Any,
    input_metric: Any,
    guarantee: Guarantee,
    release: Callable[[NDArray[np.int64]], Any],
    *,
    contributions: int,
    upper: int,
    category: str,
    categories: Sequence[str],
) -> Any:
    """A measurement that counts rows by category and releases the counts by a mechanism with this guarantee."""
    require_rows(input_domain)
    adjacency = InputMetric.of(input_metric)
    adjacency.check(guarantee, contributions)
    require_list(categories, "categories")
    names, category = tuple(label(name) for name in categories), plain_text(category, "category")
    _ = CategorySource(None, category, names, upper)  # refuses what cannot be

    def measure(data: Any) -> Any:
        here = CategorySource(data, category, names, upper, None, adjacency.unit, contributions)
        return release(count_categories(here, here.open()))

    measure_of_loss, privacy_map = measure_and_map(guarantee)
    return make_user_measurement(input_domain, input_metric, measure_of_loss, measure, privacy_map)
