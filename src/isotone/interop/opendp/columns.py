"""Domains, metrics and maps of OpenDP."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import narwhals as nw
from opendp.domains import atom_domain, user_domain, vector_domain
from opendp.measures import fixed_smoothed_max_divergence, max_divergence, zero_concentrated_divergence
from opendp.transformations import make_user_transformation

from isotone.errors import InputError
from isotone.privacy.guarantee import Guarantee, Neighbours
from isotone.process import unheard
from isotone.reading.columns import ColumnRule, as_real, as_text, read_columns
from isotone.reading.contributions import UnitRows
from isotone.reading.sources import collect, open_source

# OpenDP's domains and metrics for rows of a table.
#
# The counts over an order have no metric of their own in OpenDP, and need none. A record, once closed, moves the
# counts by the indicator of a filter; the mechanisms are built for exactly these moves. So the bridge starts at
# the records: the input is a table, the distance is how many rows (or units) differ, and closing, cutting and
# counting are part of the measurement.

_NEIGHBOURS: dict[str, Neighbours] = {
    "SymmetricDistance": "add-remove",
    "InsertDeleteDistance": "add-remove",
    "SymmetricIdDistance": "add-remove",
    "ChangeOneDistance": "replace",
    "HammingDistance": "replace",
    "ChangeOneIdDistance": "replace",
}


def table_domain() -> Any:
    """The domain of all tables that isotone opens.

    pandas, polars, Arrow, DuckDB, ibis, PySpark, and paths of files.

    >>> import opendp.prelude as dp
    >>> dp.enable_features("contrib", "honest-but-curious")
    >>> table_domain()
    isotone.table
    """
    return user_domain("isotone.table", _is_table)


def _is_table(data: Any) -> bool:
    if isinstance(data, (str, os.PathLike)):
        return True
    try:
        nw.from_native(data)
    except TypeError:
        return False
    return True


def require_rows(domain: Any) -> None:
    """Refuse domains whose members are not rows of a table."""
    kind = str(domain.type)
    if domain != table_domain() and not kind.startswith("LazyFrameDomain"):
        raise InputError(
            f"The input domain must be table_domain() or OpenDP's lazyframe_domain(...), not {domain}: a distance "
            "between rows is what the privacy map is proved for."
        )


@dataclass(frozen=True)
class InputMetric:
    """The neighbours and the unit that OpenDP's metric means.

    Without a column of the unit (None), each row is a unit.
    """

    neighbours: Neighbours
    unit: str | None

    @classmethod
    def of(cls, metric: Any) -> InputMetric:
        """The adjacency of a metric on rows.

        The ordered metrics are larger, so what holds for the others holds for them.
        """
        kind = str(metric.type)
        if kind not in _NEIGHBOURS:
            raise InputError(
                f"The input metric must count rows or identifiers ({', '.join(_NEIGHBOURS)}), not {metric}."
            )
        return cls(_NEIGHBOURS[kind], _identifier(metric) if "Id" in kind else None)

    def check(self, guarantee: Guarantee, contributions: int) -> None:
        """Refuse a mechanism that was built for other neighbours, or for several rows of a unit without a unit."""
        if guarantee.neighbours != self.neighbours:
            raise InputError(
                f"The mechanism guarantees something about {guarantee.neighbours} neighbours, and the input metric is "
                f"about {self.neighbours}. Build it with neighbours={self.neighbours!r}."
            )
        if self.unit is None and contributions != 1:
            raise InputError(
                f"The mechanism was built for contributions={contributions}, and the input metric counts rows. "
                "Build it with contributions=1, and say dp.unit_of(contributions=...): the privacy map multiplies."
            )


def _identifier(metric: Any) -> str:
    """The column that identifies the unit."""
    import polars  # OpenDP has it in hand whenever there is an identifier

    expression = metric.identifier
    names = expression.meta.root_names()
    if len(names) != 1 or not expression.meta.eq(polars.col(names[0])):
        raise InputError(f"The identifier must be one column, not the expression {expression}.")
    return str(names[0])


# Columns of a table for OpenDP's own transformations, and as lists for the estimators.


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
        quiet(lambda data: [row[0] for row in _read_rows(data, numbers=[column])]),
        lambda distance: distance,
    )


def quiet(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The same function of private data, without a word of what libraries say about it."""

    def quietly(data: Any) -> Any:
        with unheard():
            return read(data)

    return quietly


def _read_rows(data: Any, *, numbers: Sequence[str]) -> list[tuple[float, ...]]:
    """The rows of some columns of numbers, NaN where there is none."""
    frame = open_source(data, {"number": numbers})
    result = collect(
        read_columns(frame, {f"isotone_{i}": ColumnRule(as_real, name) for i, name in enumerate(numbers)})
    )
    columns = [
        [math.nan if value is None else float(value) for value in column] for column in result.values()
    ]
    return list(zip(*columns, strict=True))


def bounded_rows(
    data: Any, unit: str | None, contributions: int, *, texts: Sequence[str] = (), numbers: Sequence[str] = ()
) -> list[tuple[Any, ...]]:
    """The complete rows of some columns, the first of which are texts.

    Of a unit with more than ``contributions`` rows that many count, chosen with equal probability.
    """
    of_units = UnitRows(unit, contributions)
    frame = open_source(data, {"category": texts, "number": numbers, **of_units.unit_roles})
    read = [ColumnRule(as_text, name) for name in texts] + [ColumnRule(as_real, name) for name in numbers]
    columns = {f"isotone_{i}": rule for i, rule in enumerate(read)}
    rows = read_columns(frame, {**columns, **of_units.unit_keys()})
    rows = rows.filter(*(~nw.col(name).is_null() for name in columns))
    names = list(columns)
    result = collect(of_units.bounded(rows, names, None).select(*names))
    return sorted(zip(*(result[name] for name in names), strict=True))  # engines return rows in any order


# OpenDP's measure and privacy map for a guarantee.
#
# The map says what follows from it for d units instead of one.
#
# | guarantee | measure | d units |
# |---|---|---|
# | ε-DP | max_divergence | d·ε |
# | ρ-zCDP | zero_concentrated_divergence | d²·ρ (Bun and Steinke 2016, Proposition 1.9) |
# | (ε, δ)-DP | fixed_smoothed_max_divergence | (d·ε, δ·(1 + e^ε + … + e^((d-1)ε))) |
#
# Guarantees are exact rationals and OpenDP's distances are floats: every map rounds up. A float given to a mechanism
# means what it prints, so ε = 0.3 is 3/10, which is a little more than the float 0.3: its map gives the next float.
# The constructors of ``context.py`` take OpenDP's floats at their binary value, and so meet a budget exactly.

_SLACK = 1 + 1e-12
"""Above the rounding errors of a few exponentials, each below 1e-15."""


def measure_and_map(guarantee: Guarantee) -> tuple[Any, Callable[[int], Any]]:
    """The output measure and the privacy map of a mechanism with this guarantee for one unit.

    >>> _, pure = measure_and_map(Guarantee.pure("1/2"))
    >>> pure(1), pure(3)
    (0.5, 1.5)
    >>> _, concentrated = measure_and_map(Guarantee.zcdp("1/2"))
    >>> concentrated(3)
    4.5
    """
    if guarantee.kind == "zcdp":
        return zero_concentrated_divergence(), lambda d: round_up(guarantee.rho * int(d) ** 2)
    if guarantee.kind == "pure":
        return max_divergence(), lambda d: round_up(guarantee.epsilon * int(d))
    return fixed_smoothed_max_divergence(), lambda d: _group(guarantee, int(d))


def _group(guarantee: Guarantee, d: int) -> tuple[float, float]:
    epsilon, delta = round_up(guarantee.epsilon), round_up(guarantee.delta)
    if d <= 1:
        return epsilon * d, delta * d
    try:
        factor = math.expm1(d * epsilon) / math.expm1(epsilon) * _SLACK
    except OverflowError:
        factor = math.inf
    return round_up(guarantee.epsilon * d), min(1.0, delta * factor)


def round_up(value: Fraction) -> float:
    """The smallest float that is not below ``value``.

    >>> round_up(Fraction(1, 3)) >= Fraction(1, 3) > Fraction(math.nextafter(round_up(Fraction(1, 3)), 0))
    True
    """
    try:
        nearest = float(value)
    except OverflowError:
        return math.inf
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)
