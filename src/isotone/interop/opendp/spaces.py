"""OpenDP's domains and metrics for rows of a table.

The counts over an order have no metric of their own in OpenDP, and need none. A record, once closed, moves the
counts by the indicator of a filter; the mechanisms are built for exactly these moves. So the bridge starts at
the records: the input is a table, the distance is how many rows (or units) differ, and closing, cutting and
counting are part of the measurement.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import narwhals as nw
from opendp.domains import user_domain

from isotone.errors import InputError
from isotone.privacy.guarantee import Guarantee, Neighbours

__all__ = ["InputMetric", "require_rows", "table_domain"]

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
