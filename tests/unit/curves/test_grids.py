from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from isotone.curves.problem import FINE, Grid, make_grid, parse_interval
from isotone.errors import InputError

TEN = (Fraction(0), Fraction(10))


def test_values_go_to_the_nearest_point_and_outliers_to_the_ends() -> None:
    grid = make_grid(TEN, 11, 99)
    values = np.array([-np.inf, -1, 0.4, 0.6, 9.9, 11, np.inf, 1e308])
    assert grid.snap(values).tolist() == [0, 0, 0, 1, 10, 10, 10, 10]


def test_listed_points_divide_at_their_midpoints() -> None:
    grid = make_grid(TEN, [1, 2, 8], 99)
    assert grid.snap(np.array([0, 1.4, 1.6, 4.9, 5.1, 10])).tolist() == [0, 0, 1, 1, 2, 2]
    assert grid.positions(np.array([0, 2])).tolist() == [1.0, 8.0]
    assert not grid.even


def test_integers_have_one_point_each() -> None:
    grid = make_grid((Fraction(1), Fraction(5)), "integers", 99)
    assert grid.points == 5
    assert grid.snap(np.array([1, 2, 3, 4, 5])).tolist() == [0, 1, 2, 3, 4]


def test_every_point_is_its_own_nearest() -> None:
    for grid in (Grid(Fraction(-3), Fraction(7), 4096), Grid(Fraction(1, 3), Fraction(10**6), 997)):
        indices = np.arange(grid.points)
        np.testing.assert_array_equal(grid.snap(grid.positions(indices)), indices)


@pytest.mark.parametrize(
    "spec",
    [
        1,
        0,
        -4,
        2.5,
        True,
        "letters",
        [3],
        [3, 2],
        [3, 3],
        [-1, 5],
        [5, 11],
        2**41,
        object(),
        {1, 2},
        {1: 2},
        ["1", "1.00000000000000000001"],
        np.zeros((2, 2)),
    ],
)
def test_unusable_grids_are_refused(spec: Any) -> None:
    with pytest.raises(InputError):
        make_grid(TEN, spec, 99)


def test_integers_need_whole_bounds() -> None:
    with pytest.raises(InputError, match="whole"):
        make_grid((Fraction(1, 2), Fraction(5)), "integers", 99)


@pytest.mark.parametrize(
    "value",
    [
        (1, 0),
        (1, 1),
        (0, 1, 2),
        "01",
        (0, float("nan")),
        (0, float("inf")),
        ("-1e308", "1e309"),
        5,
        {0, 1},
        {0: 1, 1: 2},
        b"01",
        ("1", "1.0000000000001"),
        (0, "1e-300"),
        (2**60 + 100, 2**60 + 200),
    ],
)
def test_unusable_intervals_are_refused(value: Any) -> None:
    with pytest.raises(InputError, match="bounds"):
        parse_interval(value, "bounds", "why")


def test_a_missing_interval_says_why_the_data_must_not_give_it() -> None:
    with pytest.raises(InputError, match="must not be the data's own minimum and maximum"):
        parse_interval(None, "bounds", "why")


def test_integers_have_a_limit() -> None:
    with pytest.raises(InputError, match="2\\*\\*40 is the limit"):
        make_grid((Fraction(0), Fraction(10**30)), "integers", 99)


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (Fraction(2**60 + 100), Fraction(2**60 + 200)),
        (Fraction("1e15") + Fraction(1, 10), Fraction("1e15") + Fraction(1, 5)),
    ],
)
def test_ends_that_floats_round_apart_never_put_a_record_beyond_the_grid(
    low: Fraction, high: Fraction
) -> None:
    """A record beyond the last point would move sums by more than the noise is made for."""
    grid = Grid(low, high, 101)
    values = np.array([-np.inf, float(low), float(high), 1e300])
    assert grid.snap(values).tolist() == [0, 0, 100, 100]


def test_the_narrowest_intervals_keep_all_values_of_y_apart() -> None:
    limits = parse_interval((2**36 - 1, 2**36), "y_range", "why")
    grid = Grid(*limits, FINE + 1)
    indices = np.arange(grid.points)
    np.testing.assert_array_equal(grid.snap(grid.positions(indices)), indices)
