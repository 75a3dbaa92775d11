"""Columns of a table for OpenDP's own transformations, and as lists for the estimators."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import narwhals as nw
from opendp.domains import atom_domain, vector_domain
from opendp.transformations import make_user_transformation

from isotone.errors import InputError
from isotone.interop.opendp.spaces import require_rows
from isotone.reading.columns import ColumnRule, as_real, as_text, read_columns
from isotone.reading.contributions import UnitRows
from isotone.reading.sources import collect, open_source

__all__ = ["bounded_rows", "make_column"]


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
        lambda data: [row[0] for row in _read_rows(data, numbers=[column])],
        lambda distance: distance,
    )


def _read_rows(data: Any, *, numbers: Sequence[str]) -> list[tuple[float, ...]]:
    """The rows of some columns of numbers, NaN where there is none."""
    frame = open_source(data, {"number": numbers})
    found = collect(
        read_columns(frame, {f"isotone_{i}": ColumnRule(as_real, name) for i, name in enumerate(numbers)})
    )
    columns = [[math.nan if value is None else float(value) for value in column] for column in found.values()]
    return list(zip(*columns, strict=True))


def bounded_rows(
    data: Any, unit: str | None, contributions: int, *, texts: Sequence[str] = (), numbers: Sequence[str] = ()
) -> list[tuple[Any, ...]]:
    """The complete rows of some columns, the first of which are texts.

    Of a unit with more than ``contributions`` rows that many count, chosen with equal probability.
    """
    of_units = UnitRows(unit, contributions)
    frame = open_source(data, {"category": texts, "number": numbers, "unit": of_units.unit_columns})
    read = [ColumnRule(as_text, name) for name in texts] + [ColumnRule(as_real, name) for name in numbers]
    columns = {f"isotone_{i}": rule for i, rule in enumerate(read)}
    rows = read_columns(frame, {**columns, **of_units.unit_keys()})
    rows = rows.filter(*(~nw.col(name).is_null() for name in columns))
    names = list(columns)
    found = collect(of_units.bounded(rows, names, None).select(*names))
    return sorted(zip(*(found[name] for name in names), strict=True))  # engines return rows in any order
