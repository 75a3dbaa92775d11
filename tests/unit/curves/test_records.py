from __future__ import annotations

import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from isotone.curves.grids import FINE, Grid
from isotone.curves.records import Records, check_shapes
from isotone.errors import InputError
from isotone.noise import Simulated

X = Grid(Fraction(0), Fraction(10), 11)
Y = Grid(Fraction(0), Fraction(1), FINE + 1)


def prepared(x: Any, y: Any, weight: Any = None, groups: Any = None, contributions: int = 1) -> Records:
    columns = check_shapes(x, y, weight, groups).read(contributions)
    return columns.records(X, Y, 1 if weight is None else 4, 2.0)


def test_missing_and_unreadable_values_drop_their_record_silently() -> None:
    records = prepared([1, None, 3, "4", "five", [6, 6], 7], [0, 1, float("nan"), "1", 1, 1, "x"])
    assert records.cells.tolist() == [1, 4]
    assert records.levels.tolist() == [0, FINE]


def test_values_outside_are_moved_to_the_ends() -> None:
    records = prepared([-5.0, np.inf, -np.inf, 1e300], [7.0, -np.inf, 0.5, np.inf])
    assert records.cells.tolist() == [0, 0, 10, 10]
    assert records.levels.tolist() == [FINE, FINE // 2, FINE, 0]


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
        columns = check_shapes(
            np.array(["1e4000", "-1e4000", "2"], dtype=np.longdouble), [1, 1, 1], [1e300, -1e300, 1], None
        )
        records = columns.read(1).records(X, Y, 4, 1e-20)
    assert records.cells.tolist() == [0, 2, 10]
    assert records.weights.tolist() == [0, 4, 4]


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
    ids[:] = [1, "1", 1, float("nan"), [2, 3]]
    assert prepared(range(5), [0] * 5, groups=ids).cells.tolist() == [0, 1]


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
        ([[1, 2], [3, 4]], [1, 2], None, None),
        (np.zeros((2, 1, 1)), [1, 2], None, None),
        (3.0, [1], None, None),
    ],
)
def test_wrong_shapes_are_refused(x: Any, y: Any, weight: Any, groups: Any) -> None:
    with pytest.raises(InputError):
        check_shapes(x, y, weight, groups)


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
            alone = check_shapes(column, column, column, None).read(1)
            joined: Any = [*column, intruder]
            beside = check_shapes(joined, joined, joined, None).read(1)
            assert alone.kept.all()
            for name in ("x", "y", "weight", "kept"):
                assert getattr(beside, name)[:3].tolist() == getattr(alone, name).tolist()
        for column in (large, ["1", 1, "a"], [["a"], ["b"], ["c"]]):
            assert check_shapes([*plain, 1], [*plain, 1], None, [*column, intruder]).read(1).kept[:3].all()


def test_the_words_of_booleans_are_the_numbers_that_booleans_are() -> None:
    alone = check_shapes(np.array([True, False]), [0, 0], None, None).read(1)
    beside = check_shapes(np.array([True, False, "?"]), [0, 0, 0], None, None).read(1)
    assert alone.x.tolist() == beside.x[:2].tolist() == [1.0, 0.0]
    assert beside.kept.tolist() == [True, True, False]


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


def test_too_many_rows_and_simulated_arrays_are_refused() -> None:
    with pytest.raises(InputError, match="At most 3 rows"):
        check_shapes(range(4), range(4), None, None, 3)
    with pytest.raises(InputError, match="simulate"):
        check_shapes(Simulated.wrap([1.0]), [1.0], None, None)


def test_records_do_not_show_what_they_hold() -> None:
    columns = check_shapes([7.25], [0.5], None, None).read(1)
    for held in (columns, columns.records(X, Y, 1, 1.0)):
        assert "7.25" not in repr(held)
        assert "[" not in repr(held)
