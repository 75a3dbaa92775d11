"""From rows to cells of a public line: which cell a value falls in, on every kind of grid and engine."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest

from isotone.errors import InputError
from isotone.reading.contributions import Groups
from isotone.reading.lines import CellLine, LineSource, count_line
from isotone.reading.questions import Codes

SALT = b"0123456789abcdef"


def counted(rows: Any, line: CellLine, **more: Any) -> np.ndarray:
    source = LineSource(rows, "x", line, **more)
    return count_line(source, source.open(), SALT)


def cells_of(values: list[Any], line: CellLine) -> list[int]:
    """The cell of each value, one after the other."""
    found = []
    for value in values:
        counts = counted(pd.DataFrame({"x": [value]}), line)[0, 0]
        found.append(int(np.flatnonzero(counts)[0]) if counts.any() else -1)
    return found


def test_an_even_cell_has_its_upper_end_and_the_first_both() -> None:
    line = CellLine.of(Fraction(0), Fraction(10), "even", 5)
    values = [-7, 0, 0.1, 2, 2.0001, 4, 9.99, 10, 1e300, float("inf"), float("-inf"), None, float("nan")]
    assert cells_of(values, line) == [0, 0, 0, 0, 1, 1, 4, 4, 4, 4, 0, -1, -1]
    np.testing.assert_allclose(line.ends()[1], [2, 4, 6, 8, 10])


def test_values_at_the_low_end_are_counted_with_the_first_cell() -> None:
    """And one that is above it by its last digits alone, which is in a cell before the first one."""
    line = CellLine.of(Fraction(0), Fraction(10), "even", 5)
    assert counted(pd.DataFrame({"x": [-7, 0, 0, 1e-17, 0.1, 1, 10, 11]}), line)[0, 0].tolist() == [
        6,
        0,
        0,
        0,
        2,
    ]


def test_round_values_lie_at_the_upper_end_of_a_usual_cell() -> None:
    """Heaps at round numbers are in the cell that ends there, whatever floats do."""
    line = CellLine.of(Fraction(0), Fraction(10**6))
    values = [20 * k for k in (1, 2, 3, 7, 999, 12_345, 49_999, 50_000)]
    stop = line.ends()[1]
    assert [stop[cell] for cell in cells_of(values, line)] == values


@pytest.mark.parametrize(
    ("low", "high", "cells", "grid"),
    [
        (0, 1, 10, "even"),
        (0, 60, None, "even"),
        (0, 7, 49, "even"),
        (0, "1/3", 7, "even"),
        (-1, "0.3", 13, "even"),
        (-5, 5, None, "even"),
        (10**6, 10**6 + 1, 1000, "even"),
        (1, 1000, 30, "log"),
        ("0.1", 100, 4000, "log"),
        (3, 700, 17, "log"),
    ],
)
def test_decimals_at_the_end_of_a_cell_are_in_it_whatever_their_last_digits(low, high, cells, grid) -> None:
    """As people type them, as a computer has them, and one float above and below: all of them say the end of one cell."""
    line = CellLine.of(Fraction(low), Fraction(high), grid, cells)
    start, stop = line.ends()
    typed = stop
    if grid == "even":
        width = (line.high - line.low) / line.cells
        typed = np.array([float(line.low + k * width) for k in range(1, line.cells + 1)])
        np.testing.assert_array_equal(stop, typed)
    values = np.concatenate([typed, np.nextafter(typed, np.inf), np.nextafter(typed, -np.inf)])
    np.testing.assert_array_equal(counted(pd.DataFrame({"x": values}), line)[0, 0], 3)
    apart = 4 * line.last_digits * (stop - start)  # what is above by more is in the next cell
    beyond = counted(pd.DataFrame({"x": (stop + apart)[:-1]}), line)[0, 0]
    np.testing.assert_array_equal(beyond, [0] + [1] * (line.cells - 1))


@pytest.mark.parametrize(
    ("low", "high", "cells", "grid"),
    [
        (0, 10**6, 50_000, "even"),
        (-7, "1/3", 1000, "even"),
        (-90, -18, 360, "even"),
        ("0.1", 100, 999, "log"),
    ],
)
def test_cells_are_those_of_a_walk_over_the_values_one_by_one(low, high, cells, grid) -> None:
    """Against fractions (or logarithms of many digits), for values that are nothing, infinite, at ends, or between them."""
    line, rng = CellLine.of(Fraction(low), Fraction(high), grid, cells), np.random.default_rng(3)
    first, last = float(line.low), float(line.high)
    inside = rng.choice(line.ends()[1], 300)
    apart = (last - first) * rng.choice([1e-4, 1e-9], 300)
    values = np.concatenate([
        rng.uniform(first - 1, last + 1, 500), inside, inside + apart, inside - apart, [first, last, 0.0, -0.0, 1e-310, 1e308, -1e308],
        [np.inf, -np.inf, np.nan, np.nextafter(first, last), np.nextafter(last, first)],
    ])  # fmt: skip

    def slow(value: float) -> int | None:
        if math.isnan(value):
            return None
        moved = min(max(value, first), last)
        if grid == "log":
            part = Fraction((math.log(moved) - math.log(first)) / (math.log(last) - math.log(first)))
        else:
            part = (Fraction(moved) - Fraction(first)) / (Fraction(last) - Fraction(first))
        return min(max(math.ceil(part * cells - Fraction(line.last_digits)) - 1, 0), cells - 1)

    expected = np.bincount([cell for cell in map(slow, values.tolist()) if cell is not None], minlength=cells)
    for rows in (pd.DataFrame({"x": values}), pl.DataFrame({"x": values}).lazy()):
        np.testing.assert_array_equal(counted(rows, line)[0, 0], expected)


def test_a_row_without_a_number_takes_no_place_of_its_unit() -> None:
    rows = pd.DataFrame({"x": [None, float("nan"), 4.0] * 40, "u": np.repeat(range(40), 3)})
    line = CellLine.of(Fraction(0), Fraction(10), "even", 5)
    assert counted(rows, line, unit="u")[0, 0].tolist() == [0, 40, 0, 0, 0]


@pytest.mark.parametrize(
    ("low", "high", "cells"),
    [
        (0, 10**6, 50_000),
        (0, 120, 60_000),
        (-50, 50, 50_000),
        (0, "1/3", 65_536),
        (0, 65_536, 65_536),
        (18, 90, 36_000),
    ],
)
def test_the_usual_number_of_cells_has_round_steps(low, high, cells) -> None:
    assert CellLine.of(Fraction(low), Fraction(high)).cells == cells


def test_other_grids_take_the_nearest_value_or_one_ratio() -> None:
    whole = CellLine.of(Fraction(1), Fraction(4), "integers")
    assert cells_of([-3, 1.4, 1.6, 4, 99], whole) == [0, 0, 1, 3, 3]
    listed = CellLine.of(Fraction(0), Fraction(100), (Fraction(0), Fraction(10), Fraction(100)))
    assert cells_of([-1, 4.9, 5.1, 54, 56, 1000], listed) == [0, 0, 1, 1, 2, 2]
    log = CellLine.of(Fraction(1), Fraction(1000), "log", 3)
    assert cells_of([-5, 0, 1, 9.9, 10.1, 99, 101, 1000, 10**9], log) == [0, 0, 0, 0, 1, 1, 2, 2, 2]
    np.testing.assert_allclose(log.ends()[1], [10, 100, 1000])


@pytest.mark.parametrize(
    ("low", "high", "grid", "message"),
    [
        (5, 5, "even", "low below high"),
        (9, 5, "even", "low below high"),
        (0, 5, "log", "above 0"),
        (0, "5/2", "integers", "whole bounds"),
        (10**12, 10**12 + 1, "even", "too near"),
        (0, "1e-400", "even", "too near"),
        ("1e-400", "2e-400", "log", "too near"),
        (0, 10**400, "even", "read as infinite"),
        (-(10**400), 0, "integers", "read as infinite"),
        (2**53, 2**53 + 5, "integers", "is told from the next"),
        (-(10**18), 5 - 10**18, "integers", "is told from the next"),
        (0, 9, (Fraction(1),), "2 to 1,000 values"),
        (0, 9, (Fraction(1), Fraction(1)), "must rise"),
        (0, 9, (Fraction(1), Fraction(10)), "lie in bounds"),
    ],
)
def test_grids_that_mean_nothing_are_refused(low, high, grid, message) -> None:
    with pytest.raises(InputError, match=message):
        CellLine.of(Fraction(low), Fraction(high), grid)


def test_cells_that_are_finer_than_numbers_are_told_from_each_other_are_refused() -> None:
    for low, grid in ((10**6, "even"), (10**6, "log")):
        with pytest.raises(InputError, match="fewer cells"):
            CellLine.of(Fraction(low), low + Fraction(1, 500), grid, 10**6)
        assert CellLine.of(Fraction(low), low + Fraction(1, 500), grid, 100).cells == 100


def test_engines_agree_and_groups_share_the_rows_of_a_unit(tmp_path) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"x": rng.normal(50, 30, 400), "g": rng.choice(["a", "b", "z"], 400), "who": np.arange(400) // 4}
    )
    line = CellLine.of(Fraction(0), Fraction(100), "even", 7)
    groups = Groups((("g", ("a", "b")),))
    found = counted(frame, line, groups=groups)
    assert found.shape == (2, 1, 7)
    assert found.sum() == np.isin(frame.g, ["a", "b"]).sum()
    pl.from_pandas(frame).write_parquet(tmp_path / "rows.parquet")
    for other in (pl.from_pandas(frame), tmp_path / "rows.parquet"):
        np.testing.assert_array_equal(counted(other, line, groups=groups), found)
        log = CellLine.of(Fraction(1), Fraction(100), "log", 50)
        np.testing.assert_array_equal(counted(other, log), counted(frame, log))
    for most in (1, 2):
        few = frame[frame.who < 15]
        of_units = counted(few, line, groups=groups, unit="who", contributions=most)
        alone = [
            counted(few[few.who == who], line, groups=groups, unit="who", contributions=most)
            for who in range(15)
        ]
        assert max(one.sum() for one in alone) == most  # over both groups together
        np.testing.assert_array_equal(sum(alone), of_units)  # one unit changes nothing for others


def ended(rows: Any, words: Codes | None = None, **more: Any) -> np.ndarray:
    """Records by status and cell: 10 cells up to 5, and one beyond."""
    line = CellLine.of(Fraction(0), Fraction(5), "even", 10)
    source = LineSource(rows, "x", line, event="e", words=words, **more)
    return count_line(source, source.open(), SALT)


EVENTS = {
    "x": [1.0, 1.0, 5.0, 5.0001, 9.0, -2.0, None, float("inf"), 2.0, 2.0, float("nan")],
    "e": [True, False, True, True, False, True, True, True, None, None, True],
}
ENDED = {(0, 0): 1, (0, 1): 1, (0, 9): 1, (1, 1): 1, (1, 10): 3}
"""By status (ended, censored) and cell. Beyond the line everybody is censored, and who says neither is left out."""


@pytest.mark.parametrize("kind", ["pandas", "polars", "lazy", "duckdb", "arrow", "parquet", "csv", "words"])
def test_a_time_has_a_status_and_beyond_the_line_it_is_censored(kind, tmp_path) -> None:
    frame, words = pl.DataFrame(EVENTS), None
    rows: Any = frame
    if kind == "pandas":
        rows = pd.DataFrame(EVENTS)
    elif kind == "lazy":
        rows = frame.lazy()
    elif kind == "arrow":
        rows = frame.to_arrow()
    elif kind == "duckdb":
        rows = duckdb.connect().from_arrow(frame.to_arrow())
    elif kind == "parquet":
        rows = tmp_path / "a.parquet"
        frame.with_columns(pl.col("e").cast(pl.Int8)).write_parquet(rows)
    elif kind == "csv":
        rows = tmp_path / "a.csv"
        frame.with_columns(pl.col("e").cast(pl.String).fill_null("maybe")).write_csv(rows)
    elif kind == "words":
        said = pl.col("e").replace_strict({True: "Dead ", False: "alive"}, default="lost")
        rows, words = frame.with_columns(said), Codes.listed(["dead"], ["alive"])
    counts = ended(rows, words)
    assert counts.shape == (1, 2, 11)
    assert {
        (int(s), int(c)): int(counts[0, s, c]) for s, c in zip(*np.nonzero(counts[0]), strict=True)
    } == ENDED


def test_a_unit_has_one_status_in_one_group() -> None:
    rows = pd.DataFrame(
        {"x": [1.0, 2.0, 9.0] * 30, "e": [1, 0, 1] * 30, "u": np.repeat(range(30), 3), "g": list("abz") * 30}
    )
    counts = ended(rows, unit="u", groups=Groups((("g", ("a", "b")),)))
    assert counts.shape == (2, 2, 11)
    assert counts.sum() == 30
    assert counts[0].sum() == counts[0, 0, 1] > 0
    assert counts[1].sum() == counts[1, 1, 3] > 0


def test_a_row_that_does_not_say_whether_there_was_an_event_takes_no_place_of_its_unit() -> None:
    rows = pd.DataFrame({"x": [1.0, 2.0, 3.0] * 40, "e": [None, None, 1] * 40, "u": np.repeat(range(40), 3)})
    assert ended(rows, unit="u")[0, 0].tolist() == [0] * 5 + [40] + [0] * 5


def test_an_event_in_text_needs_words_where_formats_have_types(tmp_path) -> None:
    rows = tmp_path / "a.parquet"
    pl.DataFrame({"x": [1.0], "e": ["1"]}).write_parquet(rows)
    with pytest.raises(InputError, match="event"):
        ended(rows)
    assert ended(rows, Codes.listed(["1"], ["0"])).sum() == 1
