from __future__ import annotations

import warnings
from dataclasses import astuple
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from isotone.curves import PrivateIsotonicRegression
from isotone.curves.cuts import ChainProblem
from isotone.curves.losses import Squared
from isotone.curves.problem import (
    FINE,
    CurveSetting,
    FitBudget,
    Grid,
    Records,
    check_columns,
    counted_records,
    numbers_of,
    only_column,
    read_records,
    shape_of,
)
from isotone.errors import InputError
from isotone.noise import Simulated
from isotone.privacy.guarantee import Unit

X = Grid(Fraction(0), Fraction(10), 11)


def located(x: Any) -> Any:
    numbers = numbers_of(only_column(x, "X"))
    return np.where(np.isnan(numbers), -1, X.snap(np.nan_to_num(numbers)))


def prepared(
    x: Any, y: Any, weight: Any = None, groups: Any = None, contributions: int = 1, most: float = 2.0
) -> Records:
    check_columns(shape_of(x, "X")[0], y, weight, groups)
    setting = CurveSetting(Fraction(1), Unit(contributions), 1 if weight is None else 4)
    problem = ChainProblem(
        Squared(), (Fraction(0), Fraction(1)), X, budget=FitBudget(setting, max_weight=most)
    )
    return read_records(located(x), y, weight, groups, problem)


def test_missing_and_unreadable_values_drop_their_record_silently() -> None:
    records = prepared([1, None, 3, "4", "five", [6, 6], 7], [0, 1, float("nan"), "1", 1, 1, "x"])
    assert records.cells.tolist() == [1, 4]
    assert records.levels.tolist() == [0, FINE]


def test_values_outside_are_moved_to_the_ends() -> None:
    records = prepared([-5.0, 1e299, -1e299, 10.5], [7.0, -9.0, 0.5, 1e299])
    assert records.cells.tolist() == [0, 0, 10, 10]
    assert records.levels.tolist() == [FINE, FINE // 2, FINE, 0]


def test_infinite_values_are_moved_to_the_ends_as_in_a_release() -> None:
    for beyond in (np.inf, 1e308):
        for column in ([beyond, 3.0], np.array([beyond, 3.0]), ["inf", 3], pd.Series([beyond, 3.0])):
            assert prepared(column, [1.0, 1.0]).cells.tolist() == [3, 10]
            assert prepared([1.0, 3.0], column).levels.tolist() == [FINE, FINE]
    assert prepared([-np.inf, 3.0], [1.0, 1.0]).cells.tolist() == [0, 3]


def test_records_are_sorted_by_x_and_then_by_falling_y() -> None:
    records = prepared([3, 1, 3, 1, 3], [0.0, 0.0, 1.0, 1.0, 0.5])
    assert records.cells.tolist() == [1, 1, 3, 3, 3]
    assert records.levels.tolist() == [FINE, 0, FINE, FINE // 2, 0]


def test_sorting_does_not_depend_on_how_it_is_done() -> None:
    rng = np.random.default_rng(3)
    cells, levels, weights = rng.integers(0, 50, 500), rng.integers(0, 9, 500), rng.integers(0, 5, 500)
    small = Records(cells, levels, weights).sorted()
    huge = Records(cells + (1 << 60), levels, weights).sorted()
    np.testing.assert_array_equal(small.cells, huge.cells - (1 << 60))
    np.testing.assert_array_equal(small.levels, huge.levels)
    assert sorted(
        zip(*(a.tolist() for a in (small.cells, small.levels, small.weights)), strict=True)
    ) == sorted(zip(*(a.tolist() for a in (cells, levels, weights)), strict=True))


def test_weights_are_cut_off_and_rounded_to_the_public_grid() -> None:
    records = prepared([1, 2, 3, 4, 5, 6], [0] * 6, weight=[1, 2, 100, -3, np.nan, 0.6])
    assert records.cells.tolist() == [1, 2, 3, 4, 6]
    assert records.weights.tolist() == [2, 4, 4, 0, 1]


def test_numbers_of_any_size_are_read_without_a_word() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        long = np.array(["1e4000", "-1e4000", "2", "3"], dtype=np.longdouble)
        records = prepared(long, [1, 1, 1, 1], [1e299, -1e299, 1, -1e299], most=1e-20)
    assert records.cells.tolist() == [0, 2, 3, 10]


def test_the_first_records_of_every_unit_count() -> None:
    groups = ["a", "b", "a", None, "a", "b"]
    records = prepared([0, 1, 2, 3, 4, 5], [0] * 6, groups=groups, contributions=2)
    assert records.cells.tolist() == [0, 1, 2, 5]


def test_a_unit_is_cut_without_regard_to_other_units() -> None:
    rng = np.random.default_rng(5)
    ids = rng.integers(0, 6, 40)
    x = rng.integers(0, 11, 40)
    everyone = prepared(x, x / 10, groups=ids, contributions=3)
    without = prepared(x[ids != 2], x[ids != 2] / 10, groups=ids[ids != 2], contributions=3)
    only = prepared(x[ids == 2], x[ids == 2] / 10, groups=ids[ids == 2], contributions=3)
    assert sorted(everyone.cells.tolist()) == sorted(without.cells.tolist() + only.cells.tolist())


def test_units_may_have_any_name() -> None:
    ids = np.empty(5, dtype=object)
    ids[:] = [1, "1", 2.5, float("nan"), [2, 3]]
    assert prepared(range(5), [0] * 5, groups=ids).cells.tolist() == [0, 2]  # 1 and "1" are one unit


def test_true_and_one_are_two_units() -> None:
    for ids in ([True, 1], np.array([True, 1], dtype=object), ["true", 1.0]):
        assert prepared([1, 2], [0, 0], groups=ids).cells.tolist() == [1, 2]


def test_records_that_are_missing_use_up_no_contribution() -> None:
    records = prepared([np.nan, 4], [0, 0], groups=["a", "a"])
    assert records.cells.tolist() == [4]


def test_mirrored_records_run_the_other_way() -> None:
    records = prepared([1, 2], [0.0, 1.0]).mirrored(11)
    assert records.cells.tolist() == [8, 9]
    assert records.levels.tolist() == [FINE, 0]


def test_empty_data_are_records_like_any_other() -> None:
    assert prepared([], []).cells.size == 0


@pytest.mark.parametrize(
    ("x", "y", "weight", "groups"),
    [
        ([1, 2], [1], None, None),
        ([1, 2], [1, 2], [1], None),
        ([1, 2], [1, 2], None, ["a"]),
        ([1, 2], np.zeros((2, 2)), None, None),
        ([1, 2], pd.DataFrame({"a": [1, 2], "b": [1, 2]}), None, None),
        (np.zeros(2), np.zeros((2, 1, 1)), None, None),
        (3.0, [1], None, None),
        ([1, 2], 3.0, None, None),
        ([1, 2], "ab", None, None),
        ([1], None, None, None),
    ],
)
def test_wrong_shapes_are_refused(x: Any, y: Any, weight: Any, groups: Any) -> None:
    with pytest.raises(InputError):
        prepared(x, y, weight, groups)


@pytest.mark.parametrize("rows", [[[1, 2], [3, 4]], [[1, 2], [3]], [[1, 2], 3], [(1, 2), [3, 4, [5]]]])
def test_the_lengths_of_rows_in_a_list_are_contents(rows: Any) -> None:
    """Whether rows are of equal length depends on each of them, so it must not decide about an error."""
    assert prepared(rows, [1, 1]).cells.tolist() == [3] * (rows[1] in (3, [3]))


def test_a_list_in_place_of_a_number_is_missing_and_a_row_of_one_is_its_value() -> None:
    assert prepared([[1], [2, 98765.25], 3], [1, 1, 1]).cells.tolist() == [1, 3]
    assert prepared([[1], [2]], [1, 1]).cells.tolist() == [1, 2]


INTRUDERS: list[Any] = [
    "?",
    "x" * 100_000,
    b"?",
    None,
    float("nan"),
    1j,
    np.complex128(1j),
    np.timedelta64(1, "s"),
    np.datetime64("2020-01-01"),
    [1, 2],
    np.zeros((2, 3)),
    10**400,
    {},
    Ellipsis,
]


@pytest.mark.parametrize("intruder", INTRUDERS, ids=lambda value: type(value).__name__)
def test_one_record_never_changes_how_another_is_read(intruder: Any) -> None:
    """Whatever joins a list of x, of y, of weights or of units: the records that were there stay what they were."""
    flags, plain, large = [True, False, True], [1, 2.5, "3"], [2**53, 2**53 + 1, 2**53 + 2]
    rows = [[1.0], [2.0], [3.0]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for column in (flags, plain, rows):
            alone = prepared(column, column, column)
            joined: Any = [*column, intruder]
            beside = prepared(joined, joined, joined)
            assert alone.cells.size == 3
            rest = list(
                zip(beside.cells.tolist(), beside.levels.tolist(), beside.weights.tolist(), strict=True)
            )
            for row in zip(alone.cells.tolist(), alone.levels.tolist(), alone.weights.tolist(), strict=True):
                rest.remove(row)
            assert len(rest) <= 1
        for column in (large, ["1", 2, "a"], [["a"], ["b"], ["c"]]):
            assert {1, 2, 3} <= set(prepared([*plain, 9], [0] * 4, None, [*column, intruder]).cells.tolist())


def test_the_words_of_booleans_are_the_numbers_that_booleans_are() -> None:
    for column in (np.array([True, False]), np.array([True, False, "?"]), ["true", "FALSE", None]):
        assert prepared(column, [0] * len(column)).cells.tolist() == [0, 1]


def test_missing_values_of_every_table_are_missing() -> None:
    masked = np.ma.masked_array([1.0, 2.0, 3.0], mask=[False, True, False])
    columns = [
        masked,
        pa.array([1.0, None, 3.0]),
        pl.Series([1.0, None, 3.0]),
        pd.Series([1, None, 3], dtype="Int64"),
    ]
    for column in columns:
        assert prepared(column, [0, 0, 0]).cells.tolist() == [1, 3]
        assert prepared([1, 2, 3], [0, 0, 0], weight=column).cells.tolist() == [1, 3]
        assert prepared([1, 2, 3], [0, 0, 0], groups=column).cells.tolist() == [1, 3]


def test_a_missing_unit_does_not_make_two_large_ones_the_same() -> None:
    ids = [2**53, 2**53 + 1, None]
    for column in (ids, pa.array(ids), pl.Series(ids), pd.Series(ids, dtype="Int64")):
        assert prepared([1, 2, 3], [0, 0, 0], groups=column).cells.tolist() == [1, 2]


def test_simulated_arrays_are_refused() -> None:
    for columns in ((Simulated.wrap([1.0]), [1.0]), ([1.0], Simulated.wrap([1.0]))):
        with pytest.raises(InputError, match="simulate"):
            prepared(*columns)


def test_records_do_not_show_what_they_hold() -> None:
    held = prepared([7.25], [0.5])
    assert "7" not in repr(held)
    assert "[" not in repr(held)


@pytest.mark.parametrize(
    "given",
    [
        {"bounds": (0, 100), "y_range": (0, 1)},
        {"bounds": (-1, 2), "y_range": (-0.1, 7), "contributions": 3, "epsilon": 2},
        {"bounds": (18, 90), "y_values": (-1, 3), "x_grid": [18, 20.5, 40, 90], "increasing": "auto"},
    ],
)
def test_counted_points_are_the_records_that_they_count(given):
    rng = np.random.default_rng(4)
    problem = PrivateIsotonicRegression(**given).check()
    places = rng.integers(0, problem.grid.points, 40)
    levels = rng.integers(0, 2, 40) * FINE if "y_values" in given else rng.integers(0, FINE + 1, 40)
    count = rng.integers(0, 5, 40)
    low, high = map(float, problem.y_range)
    x = np.repeat(problem.grid.positions(places), count)
    y = np.repeat((1 - levels / FINE) * low + levels / FINE * high, count)
    read = read_records(problem.grid.snap(x), y, None, np.arange(x.size), problem)
    counted = counted_records(places, levels, count, problem)
    assert all(np.array_equal(*pair) for pair in zip(astuple(read), astuple(counted), strict=True))
    assert counted.cells.size == count.sum()
