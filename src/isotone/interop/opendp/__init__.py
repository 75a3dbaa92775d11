"""isotone's mechanisms as OpenDP measurements.

They work in its compositors, odometers, filters and ``Context``.

Tested with OpenDP 0.16; the extra asks for 0.14 or newer, without any of OpenDP's own extras. OpenDP calls
measurements that are written in Python *honest-but-curious*, and its users say that they accept that:

>>> import opendp.prelude as dp
>>> dp.enable_features("contrib", "honest-but-curious")

Data are rows of a table (pandas, polars, Arrow, DuckDB, a path …): the domain is :func:`table_domain`, and the
distance between two tables is the number of rows, or of the units that own rows, in which they differ. The
distance is *not* one between vectors of counts: what makes the noise of an order small is that a record moves
the counts along the order, and no ℓp distance of counts knows that.

OpenDP's own Polars contexts work as well, with the version of polars that OpenDP asks for (1.36.1 for OpenDP 0.16, seen to
work by hand): ``context(make_counts(*context.accountant.input_space, mechanism))``.

An example of ``Context`` is in docs/how-to/opendp.md.
"""

from isotone.interop.opendp.columns import make_column, table_domain
from isotone.interop.opendp.context import (
    make_isotone_column,
    make_isotone_counts,
    make_isotone_curve,
    make_isotone_table,
    register,
)
from isotone.interop.opendp.measurements import (
    RowRules,
    make_counts,
    make_curve,
    make_distribution,
    make_table,
)

__all__ = [
    "RowRules",
    "make_column",
    "make_counts",
    "make_curve",
    "make_distribution",
    "make_isotone_column",
    "make_isotone_counts",
    "make_isotone_curve",
    "make_isotone_table",
    "make_table",
    "register",
    "table_domain",
]
