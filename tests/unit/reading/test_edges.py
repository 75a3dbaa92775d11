"""Values at the edges of bins and steps are in the same one in every engine, and in the right one where floats are exact."""

from __future__ import annotations

import math
from fractions import Fraction

import duckdb
import narwhals as nw
import polars as pl
import pytest

from isotone.reading.columns import ColumnRule, read_columns
from isotone.reading.grids import _bin, _outcome

WHOLE = [(18, 90, 9), (0, 490, 10), (-3, 7, 7), (0, 1000, 999)]
BROKEN = [
    ("0.1", "0.7", 6),
    ("1/3", "100", 33),
    ("0", "1e-300", 3),
    ("-1e299", "9e299", 1000),
    ("0", "1", 10),
]


def places(values: list[float], low: Fraction, high: Fraction, steps: int) -> list[dict[str, list[int]]]:
    """The bin and the nearest step of each value, in DuckDB and in polars."""
    rules = {
        "bin": ColumnRule(_bin, "x", ((low, high), steps)),
        "step": ColumnRule(_outcome, "x", (False, (low, high), steps)),
    }
    table = pl.DataFrame({"x": values})
    frames = [nw.from_native(duckdb.connect().from_arrow(table.to_arrow())), nw.from_native(table.lazy())]
    return [read_columns(frame, rules).collect().to_dict(as_series=False) for frame in frames]


@pytest.mark.parametrize(("low", "high", "steps"), WHOLE)
def test_a_whole_number_at_an_edge_is_in_the_bin_that_begins_there(low, high, steps):
    values = range(low - 1, high + 2)
    exact = [Fraction(min(max(x, low), high) - low) * steps / (high - low) for x in values]
    expected = {
        "bin": [min(math.floor(x), steps - 1) for x in exact],
        "step": [math.floor(x + Fraction(1, 2)) for x in exact],
    }
    ends = Fraction(low), Fraction(high)
    assert places([float(x) for x in values], *ends, steps) == [expected, expected]


@pytest.mark.parametrize(("low", "high", "steps"), BROKEN)
def test_values_around_an_edge_are_in_the_same_bin_in_every_engine(low, high, steps):
    low, high = Fraction(low), Fraction(high)
    edges = [float(low + (high - low) * k / (2 * steps)) for k in range(2 * steps + 1)]
    values = [math.nextafter(x, y) for x in edges for y in (-math.inf, x, math.inf)]
    first, second = places(values, low, high, steps)
    assert first == second
    for name, last in (("bin", steps - 1), ("step", steps)):
        assert first[name] == sorted(first[name])
        assert set(first[name]) == set(range(last + 1))


def test_the_last_value_below_an_edge_is_in_the_bin_before_it():
    values = [math.nextafter(edge, 0) for edge in range(8, 65, 8)]  # whose products with 8 are exact
    found = places(values, Fraction(0), Fraction(64), 8)
    assert [engine["bin"] for engine in found] == [list(range(8))] * 2
