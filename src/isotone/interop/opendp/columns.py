"""Columns of a table for OpenDP's own transformations, and as lists for the estimators."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from opendp.domains import atom_domain, vector_domain
from opendp.transformations import make_user_transformation

from isotone.errors import InputError
from isotone.interop.opendp.spaces import require_rows
from isotone.reading.numbers import as_real
from isotone.reading.sources import collect, open_source
from isotone.reading.texts import as_text

__all__ = ["make_column", "read_rows"]


def make_column(input_domain: Any, input_metric: Any, column: str) -> Any:
    """One column as a vector of floats, for OpenDP's own mechanisms on the same rows and the same budget.

    Row by row: a row more or less is a number more or less, so distances stay as they are. What is missing or not a
    number is NaN; ``dp.t.then_impute_constant`` takes it from there.

    >>> import opendp.prelude as dp
    >>> import pandas as pd
    >>> from isotone.interop.opendp import table_domain
    >>> dp.enable_features("contrib", "honest-but-curious")
    >>> ages = make_column(table_domain(), dp.symmetric_distance(), "age")
    >>> ages(pd.DataFrame({"age": [30, 41]}))
    [30.0, 41.0]
    >>> total = ages >> dp.t.then_impute_constant(0.0) >> dp.t.then_clamp((0.0, 100.0)) >> dp.t.then_sum()
    >>> total.map(1) >= 100.0
    True
    """
    require_rows(input_domain)
    if str(input_metric.type) not in ("SymmetricDistance", "ChangeOneDistance"):
        raise InputError(
            f"A column is taken from rows in no particular order, one unit each: the metric must be "
            f"symmetric_distance() or change_one_distance(), not {input_metric}."
        )
    return make_user_transformation(
        input_domain,
        input_metric,
        vector_domain(atom_domain(T=float, nan=True)),
        input_metric,
        lambda data: [row[0] for row in read_rows(data, numbers=[column])],
        lambda distance: distance,
    )


def read_rows(data: Any, *, texts: Sequence[str] = (), numbers: Sequence[str] = ()) -> list[tuple[Any, ...]]:
    """The rows of some columns.

    The first column is text or None, the others are floats or NaN.
    """
    frame = open_source(data, [*texts, *numbers])
    schema = frame.collect_schema()
    exact = [as_text(name, schema[name]).alias(f"isotone_{i}") for i, name in enumerate(texts)]
    first = len(exact)
    exact += [as_real(name, schema[name]).alias(f"isotone_{first + i}") for i, name in enumerate(numbers)]
    found = collect(frame.select(*exact))
    columns = [found[f"isotone_{i}"] for i in range(len(exact))]
    for i in range(first, len(columns)):
        columns[i] = [math.nan if value is None else float(value) for value in columns[i]]
    return list(zip(*columns, strict=True))
