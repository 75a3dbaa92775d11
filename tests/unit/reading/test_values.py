"""Single values of any type mean what columns of any type mean, and none of them is heard of."""

import datetime
import math
import uuid
import warnings
import zoneinfo
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.hostile import ARRAYS, HOSTILE

from isotone.errors import InputError
from isotone.reading.columns import ColumnRule, as_integer, as_real, as_text, as_unit, read_columns
from isotone.reading.contributions import UnitRows
from isotone.reading.sources import collect, open_source
from isotone.reading.values import real_of, reals, text_of, texts, unit_of, units, values_of


class Word(str):
    """A text with code of its own, which must not run."""

    def __str__(self) -> str:
        raise AssertionError("code of a value was run")


@pytest.mark.parametrize("value", HOSTILE, ids=lambda value: type(value).__name__)
def test_no_value_is_heard_of(value, capfd):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        text, number, unit = text_of(value), real_of(value), unit_of(value)
        assert text is None or type(text) is str
        assert type(number) is float
        assert math.isnan(number) or abs(number) <= 1e300
        assert unit is None or unit == text
        assert texts([value, 7])[1] == units([value, 7])[1] == "7"
        assert reals([value, 7])[1] == 7.0
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("column", ARRAYS, ids=lambda column: type(column).__name__)
def test_no_column_is_heard_of(column, capfd):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(values_of(column)) == len(texts(column)) == len(units(column)) == len(reals(column)) == 3
    assert capfd.readouterr() == ("", "")


def test_good_values_beside_bad_ones_are_read():
    for column in ARRAYS:
        assert reals(column)[0] == 1.0, column
        assert units(column)[0] == "1", column


@pytest.mark.parametrize(
    ("values", "text", "number", "unit"),
    [
        (
            [
                1,
                1.0,
                "1",
                " 1.0\t",
                Decimal("1.00"),
                np.int8(1),
                np.longdouble(1),
                np.str_("1"),
                b"1",
                1 + 0j,
            ],
            "1",
            1.0,
            "1",
        ),
        ([True, np.True_, "true"], "true", 1.0, "true"),
        ([0.1, "0.1", Decimal("0.10"), np.float64(0.1)], "0.1", 0.1, "0.1"),
        ([10**17, 1e17, np.uint64(10**17), Decimal(10**17)], str(10**17), 1e17, str(10**17)),
        ([1e200, "1e+200"], "1e+200", 1e200, "1e+200"),
        (["", " ", "\n"], None, math.nan, None),
        (["NA"], "NA", math.nan, None),
        (
            [None, math.nan, Decimal("sNaN"), pd.NA, pd.NaT, "\ud800", 1j],
            None,
            math.nan,
            None,
        ),
        (
            [
                [1],
                {},
                np.arange(2),
                datetime.timedelta(1),
                np.timedelta64(1, "s"),
                object(),
                Fraction(1, 2),
                datetime.time(1),
                b"\xff",
                Word("1"),
            ],
            None,
            math.nan,
            None,
        ),
        ([b"a", np.bytes_(b"a")], "a", math.nan, "a"),
        (
            [math.inf, "Infinity", "+inf", Decimal("Infinity"), Decimal("1e300"), np.float32("inf"), 1e300],
            None,
            1e300,
            None,
        ),
        ([-math.inf, "-inf", -2e301], None, -1e300, None),
        ([datetime.date(2020, 2, 1), "2020-02-01"], "2020-02-01", math.nan, "2020-02-01"),
        (
            [
                datetime.datetime(2020, 2, 1, 3),
                pd.Timestamp("2020-02-01 03:00"),
                np.datetime64("2020-02-01T03"),
            ],
            "2020-02-01 03:00:00",
            math.nan,
            "2020-02-01 03:00:00",
        ),
        (
            [
                datetime.datetime(2020, 2, 1, 3, tzinfo=datetime.UTC),
                datetime.datetime(2020, 2, 1, 5, 30, tzinfo=datetime.timezone(datetime.timedelta(hours=2.5))),
                datetime.datetime(2020, 1, 31, 22, tzinfo=zoneinfo.ZoneInfo("America/New_York")),
                pd.Timestamp("2020-02-01 12:00", tz="Asia/Tokyo"),
            ],
            "2020-02-01 03:00:00+00:00",
            math.nan,
            "2020-02-01 03:00:00+00:00",
        ),
        ([uuid.UUID(int=7)], "00000000-0000-0000-0000-000000000007", math.nan, str(uuid.UUID(int=7))),
    ],
)
def test_what_values_mean(values, text, number, unit):
    for value in values:
        assert (text_of(value), unit_of(value)) == (text, unit)
        np.testing.assert_equal(real_of(value), number)


def test_a_row_of_one_is_its_value_and_other_rows_are_none():
    assert reals([[1], [1, 2], [], (2.5,), np.array([3])]).tolist()[0::3] == [1.0, 2.5]
    assert units(np.array([["a"], ["b"]])) == ["a", "b"]
    ragged: list[Any] = [[1], [1, 2], []]
    assert np.isnan(reals(ragged)).tolist() == [False, True, True]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.lists(
        st.one_of(st.none(), st.integers(-(10**18), 10**18), st.floats(), st.booleans(), st.text(max_size=6)),
        max_size=6,
    )
)
def test_the_container_changes_no_value(values):
    expected = units(values)
    assert units(pd.Series(values, dtype=object)) == expected
    assert units(np.array([*values, None], dtype=object)[:-1]) == expected
    assert units(tuple(values)) == expected


def test_units_of_one_number_are_one_in_every_kind_of_column():
    for column in (
        pd.Series([1, 2]),
        pd.Series([1.0, 2.0]),
        pd.Categorical([1, 2]),
        pl.Series([1, 2]),
        pa.array([1, 2]),
        np.array(["1", "2"]),
        np.ma.array([1, 2]),
    ):
        assert units(column) == ["1", "2"]


@pytest.mark.parametrize("sign", [1, -1])
def test_a_number_is_infinite_from_1e300_on_whatever_its_type(sign):
    def read(size: float) -> list[float]:
        forms = [size, np.float64(size), np.longdouble(size), Decimal(size)]
        columns = [reals(np.array([size])), reals([np.float64(size)]), reals(pa.array([size]))]
        return [*(real_of(form) for form in forms), *(float(column[0]) for column in columns)]

    assert read(sign * 1e300) == read(sign * 1e305) == [sign * 1e300] * 7
    assert read(sign * 9.5e299)[3] == sign * 1e300  # a decimal of more than 250 digits
    assert read(sign * 9.5e249) == [sign * 9.5e249] * 7
    assert [*read(sign * 9.5e299)[:3], *read(sign * 9.5e299)[4:]] == [sign * 9.5e299] * 6


def _typed() -> dict[str, tuple[Any, list[Any]]]:
    """Columns of a type whose values are drawn bit by bit, with those that engines take for something else, and the values one by one."""
    rng = np.random.default_rng(5)
    size, end = 500, 2**63 - 1
    found: dict[str, tuple[Any, list[Any]]] = {}
    floats = rng.integers(-(2**63), end, size).view(np.float64)
    floats[:100] = rng.normal(size=100) * 10.0 ** rng.integers(-20, 25, 100)
    floats[100:112] = [
        0.0,
        -0.0,
        np.inf,
        -np.inf,
        np.nan,
        1e300,
        -1e300,
        1e17,
        2.0**62,
        2.0**63,
        5e-324,
        1e22,
    ]
    whole = np.r_[
        rng.integers(-(2**63), end, size), [end, -end - 1, 10**17, 10**17 + 1, -(10**17), 2**53 + 1, 0]
    ]
    found["float"] = pd.DataFrame({"u": floats}), floats.tolist()
    found["short float"] = pa.table({"u": floats.astype(np.float32)}), list(floats.astype(np.float32))
    found["whole"] = pd.DataFrame({"u": whole}), whole.tolist()
    for unit, per_second in (("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 10**9)):
        seconds = np.r_[rng.integers(-9 * 10**9, 9 * 10**9, size), [0, 1, -1]]
        stamps = np.r_[seconds * per_second + rng.integers(0, per_second, seconds.size), [end, -end, 5, -5]]
        if unit != "ns":
            first, last = -62_135_596_800 * per_second, 253_402_300_800 * per_second
            stamps = np.r_[stamps, [first, first - 1, last, last - 1]]
        moments = stamps.view(f"M8[{unit}]")
        found[f"moments in {unit}"] = pd.DataFrame({"u": moments}), list(moments)
        if unit == "us" or unit == "ns":
            kept = stamps[np.abs(stamps) < 9 * 10**9 * per_second]
            zoned = [pd.Timestamp(int(x), unit=unit, tz="UTC") for x in kept]
            column = pl.Series(kept).cast(pl.Datetime(unit, "Asia/Tokyo"))
            found[f"zoned moments in {unit}"] = pl.DataFrame({"u": column}), zoned
    return found


TYPED = _typed()


@pytest.mark.parametrize("kind", TYPED)
def test_a_value_is_the_same_in_a_column_of_its_type_and_in_one_of_objects(kind):
    """One odd value makes a frame's column one of objects: that must change nothing for the others."""
    typed, values = TYPED[kind]
    rules = {rule.__name__: ColumnRule(rule, "u") for rule in (as_text, as_real, as_integer, as_unit)}
    seen = []
    for data in (typed, pd.DataFrame({"u": pd.Series(values, dtype=object)})):
        read = collect(read_columns(open_source(data, {"unit": ["u"]}), rules))
        seen.append({**read, "as_unit": [text_of(name) for name in read["as_unit"]]})
    for rule in rules:
        assert [x for x in zip(values, seen[0][rule], seen[1][rule], strict=True) if x[1] != x[2]] == []


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "arrow"])
def test_no_number_that_is_none_names_a_unit(make):
    """They would be one unit for many people: a function of everybody's rows."""
    column = np.array([7.0, math.nan, math.inf, -math.inf, 1e300, 8.5])
    read = collect(
        read_columns(open_source(make({"u": column}), {"unit": ["u"]}), {"unit": ColumnRule(as_unit, "u")})
    )
    assert [text_of(name) for name in read["unit"]] == ["7", None, None, None, None, "8.5"]
    source = open_source(make({"u": column}), {"unit": ["u"]})
    held = collect(UnitRows("u", 1).of_somebody(read_columns(source, UnitRows("u", 1).unit_keys())))
    assert len(held["isotone_unit"]) == 2


def test_a_type_of_another_library_than_pandas_is_refused_by_its_name():
    """Its own code would run on every value, and one value could make it fail."""

    def refuse(*_: Any) -> Any:
        raise AssertionError("a value was looked at")

    dtypes: Any = type("Foreign", (pd.api.extensions.ExtensionDtype,), {"name": "foreign", "type": float, "kind": "f", "na_value": math.nan})  # fmt: skip
    methods = {
        "dtype": dtypes(),
        "nbytes": 0,
        "__init__": lambda self, values: None,
        "__len__": lambda self: 2,
        "copy": lambda self: self,
    }
    arrays: Any = type(
        "Numbers", (pd.api.extensions.ExtensionArray,), {**methods, "__getitem__": refuse, "isna": refuse}
    )
    dtypes.construct_array_type = classmethod(lambda cls: arrays)
    frame = pd.DataFrame({"a": [1, 2]})
    frame["u"] = pd.Series(arrays([1.0, "x"]))
    with pytest.raises(InputError, match="type Foreign of a column comes from another library"):
        open_source(frame, {"unit": ["u"], "answer": ["a"]})
