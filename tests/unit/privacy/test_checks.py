"""Public parameters become plain Python values, or a clear error."""

from __future__ import annotations

from decimal import Decimal
from enum import IntEnum
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import isotone as iso
from isotone.errors import InputError, IsotoneError
from isotone.privacy.checks import (
    confidence_level,
    epsilon_or_rho,
    exact,
    frozen,
    one_of,
    plain_text,
    positive,
    require_list,
    share,
    shown,
    truth,
    whole_number,
)

WIDTHS = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]


class Hundred(IntEnum):
    value_ = 100


@pytest.mark.parametrize("width", [*WIDTHS, int, Hundred, np.array])
def test_a_whole_number_of_any_width_is_a_plain_int(width: Any) -> None:
    number = whole_number(width(100), "contributions")
    assert type(number) is int
    assert number == 100


@pytest.mark.parametrize(
    "wrong", [True, np.True_, np.bool_(False), "2", b"2", 2.0, np.float64(2), None, [2], 0, -1, Fraction(2)]
)
def test_what_is_no_whole_number_is_refused_by_name(wrong: Any) -> None:
    with pytest.raises(InputError, match="contributions must be a whole number of at least 1, not"):
        whole_number(wrong, "contributions")


def test_a_number_too_long_to_print_is_refused_with_a_clear_error() -> None:
    with pytest.raises(InputError, match="at most 50, not a int"):
        whole_number(10**10_000, "upper", least=0, most=50)
    with pytest.raises(InputError, match="finite number"):
        positive(10**10_000, "epsilon")


@pytest.mark.parametrize("huge", [2**63, -(2**63), 10**400, -(10**400), 10**5000], ids=lambda _: "huge")
def test_a_whole_number_has_64_bits(huge: int) -> None:
    for least in (0, 1):
        with pytest.raises(InputError, match=r"^contributions must be a whole number") as caught:
            whole_number(huge, "contributions", least)
        assert len(str(caught.value)) < 300
    assert whole_number(2**63 - 1, "contributions") == 2**63 - 1


@pytest.mark.parametrize(
    "huge", [10**5000, -(10**5000), Fraction(1, 10**5000), "1e9999", "1e-9999"], ids=lambda _: "huge"
)
def test_a_number_that_python_cannot_write_is_refused(huge: Any) -> None:
    with pytest.raises(InputError, match="must be a finite number"):
        exact(huge, "upper")


@pytest.mark.parametrize("width", WIDTHS)
def test_a_fraction_of_numpy_integers_is_made_of_plain_ints(width: Any) -> None:
    number = exact(Fraction(width(3), width(7)))
    assert number == Fraction(3, 7)
    assert {type(number.numerator), type(number.denominator)} == {int}


@pytest.mark.parametrize(
    "value",
    ["0.1", 0.1, np.float64(0.1), np.float32(0.1), np.float16(0.1), np.longdouble("0.1"), Decimal("0.1")],
)
def test_a_float_means_what_it_prints(value: Any) -> None:
    assert exact(value) == Fraction(1, 10)


@pytest.mark.parametrize(
    "wrong", [np.nan, np.inf, np.float32("nan"), Decimal("inf"), "x", b"1", True, np.True_, None]
)
def test_what_is_no_number_is_refused(wrong: Any) -> None:
    with pytest.raises(InputError, match="epsilon must be a"):
        exact(wrong, "epsilon")


@pytest.mark.parametrize("endless", ["1e99999", "1E-99999", Decimal("1e99999"), "0." + "1" * 2000])
def test_what_would_take_long_to_read_is_refused(endless: Any) -> None:
    with pytest.raises(InputError, match="epsilon must be a"):
        exact(endless, "epsilon")


@given(st.integers(-(10**30), 10**30), st.integers(1, 10**30))
def test_every_rational_survives(p: int, q: int) -> None:
    assert exact(Fraction(p, q)) == exact(f"{p}/{q}") == Fraction(p, q)


@pytest.mark.parametrize("value", [Fraction(19, 20), Decimal("0.95"), np.float32(0.95), "0.95", 0.95])
def test_a_confidence_is_a_plain_float(value: Any) -> None:
    assert type(confidence_level(value)) is float
    assert confidence_level(value) == 0.95


@pytest.mark.parametrize(
    "wrong", [0, 1, 1.5, -0.1, True, "x", Fraction(10**40 - 1, 10**40), Fraction(1, 10**400)]
)
def test_a_confidence_outside_the_open_interval_is_refused(wrong: Any) -> None:
    with pytest.raises(InputError, match="confidence must be"):
        confidence_level(wrong)
    if not isinstance(wrong, Fraction):
        with pytest.raises(InputError, match="split must be"):
            share(wrong, "split")


def test_text_is_plain_and_bytes_are_refused() -> None:
    assert type(plain_text(np.str_("person"), "unit")) is str
    for wrong in (b"person", 1, None, ""):
        with pytest.raises(InputError, match="unit must be non-empty text"):
            plain_text(wrong, "unit")


def test_only_booleans_are_true_or_false() -> None:
    assert truth(np.True_, "total") is True
    for wrong in (1, "yes", None):
        with pytest.raises(InputError, match="total must be True or False"):
            truth(wrong, "total")


def test_an_unknown_name_gets_the_nearest_known_one() -> None:
    assert type(one_of(np.str_("squared"), "loss", ["absolute", "squared"])) is str
    with pytest.raises(InputError, match=r"not 'squard'; did you mean 'squared'\?"):
        one_of("squard", "loss", ["absolute", "squared"])
    for wrong in (3, b"squared", ["squared"], np.array(["squared", "absolute"])):
        with pytest.raises(InputError, match="loss must be 'absolute' or 'squared'"):
            one_of(wrong, "loss", ["absolute", "squared"])


@pytest.mark.parametrize("wrong", ["ab", b"ab", np.array("ab"), np.array(3), 3, None])
def test_what_is_no_list_is_refused_by_name(wrong: Any) -> None:
    with pytest.raises(InputError, match="groups must be a list of names, not"):
        require_list(wrong, "groups")


def test_a_frozen_value_cannot_be_changed_later() -> None:
    class Changing:
        said = 0

        def __index__(self) -> int:
            self.said += 1
            return self.said

    bounds, points = [0, np.float64(1.5)], np.array([1, 2], dtype=np.uint8)
    kept = frozen({"bounds": bounds}["bounds"]), frozen(points), frozen(Changing())
    bounds[0], points[0] = 9, 9
    assert kept == ((0, 1.5), (1, 2), 1)
    assert [type(part) for part in (*kept[0], *kept[1])] == [int, float, int, int]
    assert frozen(np.array(3)) == 3
    assert frozen(None) is None
    assert frozen(True) is True


def test_a_budget_has_one_of_two_forms() -> None:
    assert epsilon_or_rho(None, None, "1/2")[0] == "zcdp"
    assert epsilon_or_rho(1, "1e-6", None)[0] == "approximate"
    assert epsilon_or_rho(1, 0, None)[0] == "pure"
    assert epsilon_or_rho(None, 0, "1/2") == epsilon_or_rho(None, None, "1/2")
    for wrong in (
        (None, None, None),
        (1, None, 1),
        (None, "1e-6", 1),
        (None, "1e-6", None),
        (1, 1, None),
        (1, -1, None),
    ):
        with pytest.raises(InputError):
            epsilon_or_rho(*wrong)


@pytest.mark.parametrize(
    "wrong", [0, -1, Fraction(1, 10**101), Fraction(10**101), "1e-101", "1e101", 10**400]
)
def test_a_number_beyond_what_can_be_computed_with_is_refused(wrong: Any) -> None:
    with pytest.raises(InputError, match="epsilon"):
        positive(wrong, "epsilon")
    assert positive("1e-100", "epsilon") * positive(10**100, "epsilon") == 1


@pytest.mark.parametrize("wrapped", [lambda x: x, lambda x: [x], lambda x: {"a": (x,)}])
def test_data_given_for_a_parameter_are_never_quoted(wrapped):
    """What a message says of an object that may hold data is its type."""
    secret = "zz4711"
    for data in (
        pd.DataFrame({"a": [secret]}),
        pd.Series([secret]),
        pl.Series([secret]),
        pa.table({"a": [secret]}),
    ):
        given = wrapped(data)
        for call in (
            lambda given=given: positive(given, "epsilon"),
            lambda given=given: whole_number(given, "upper"),
            lambda given=given: iso.Counts(iso.Poset("ab"), unit=given),
            lambda given=given: iso.Poset([given]),
        ):
            with pytest.raises(IsotoneError) as caught:
                call()
            assert secret not in str(caught.value)


@pytest.mark.parametrize(("value", "text"), [(None, "None"), (..., "Ellipsis"), ([None, 1], "[None, 1]")])
def test_what_is_nothing_is_shown_as_it_is(value, text):
    assert shown(value) == text
