from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas
import pytest

from isotone.counts.mechanism import check_counts, check_records
from isotone.errors import InputError, OrderError
from isotone.noise.simulate import Simulated
from isotone.order import Poset


@pytest.fixture
def survey() -> Poset:
    return Poset(["hyp", "twice", "meds"], [("twice", "hyp"), ("meds", "hyp")])


def test_a_mapping_is_put_in_the_order_of_the_elements(survey):
    assert check_counts(survey, {"meds": 33, "hyp": 120, "twice": 80}).tolist() == [120, 80, 33]


@pytest.mark.parametrize(
    "counts",
    [
        [120, 80, 33],
        (120, 80, 33),
        np.array([120, 80, 33], dtype=np.uint8),
        np.array([120, 80, 33], dtype=np.uint64),
        np.array([120.0, 80.0, 33.0]),
        [Fraction(120), Decimal(80), np.int16(33)],
        range(33, 30, -1),
    ],
)
def test_whole_numbers_of_any_type_are_counts(survey, counts):
    values = check_counts(survey, counts)
    assert values.dtype == np.int64
    assert values.tolist() == [int(count) for count in counts]


def test_a_named_column_is_read_by_name_and_not_by_position(survey):
    column = pandas.Series([33, 80, 120], index=["meds", "twice", "hyp"])
    assert check_counts(survey, column).tolist() == [120, 80, 33]


def test_counts_that_break_the_order_are_refused_by_the_pair_and_without_the_counts(survey):
    with pytest.raises(OrderError, match="'twice' implies 'hyp'") as caught:
        check_counts(survey, [7919, 7927, 0])
    assert "7919" not in str(caught.value)
    assert "7927" not in str(caught.value)


def test_a_negative_count_is_refused_without_the_count(survey):
    with pytest.raises(InputError, match="'meds' is below 0") as caught:
        check_counts(survey, [1, 1, -7919])
    assert "7919" not in str(caught.value)


@pytest.mark.parametrize("records", [7907, -7907, 7907.5, 2**62 + 7907, "7907", None])
def test_a_number_of_records_that_cannot_be_is_refused_without_a_number(records):
    with pytest.raises(InputError) as caught:
        check_records(records, np.array([7919, 7927]))
    assert not set("7") & set(str(caught.value))


@pytest.mark.parametrize("bad", [0.5, float("nan"), float("inf"), "3", None, True, 2**62, Fraction(1, 3)])
def test_what_is_not_a_whole_number_is_refused_by_the_name_of_its_element(survey, bad):
    with pytest.raises(InputError, match="'twice' is not a whole number"):
        check_counts(survey, np.array([2**61, bad, 0], dtype=object))


def test_an_unknown_name_is_refused_with_the_nearest_one(survey):
    with pytest.raises(InputError, match=r"'twise' is not an element of the order\. Did you mean 'twice'"):
        check_counts(survey, {"hyp": 3, "twise": 2, "meds": 1})


def test_a_missing_name_is_refused(survey):
    with pytest.raises(InputError, match="No count is given for 'twice'"):
        check_counts(survey, {"hyp": 3, "meds": 1})


@pytest.mark.parametrize("bad", [[1, 2], [[1], [2], [3]], 7, "123", None, [[1, 2], [3], []]])
def test_other_shapes_are_refused(survey, bad):
    with pytest.raises(InputError):
        check_counts(survey, bad)


def test_simulated_counts_are_refused(survey):
    noisy = Simulated.wrap(np.array([3, 2, 1]))
    for form in (noisy, {"hyp": noisy[:1], "twice": 1, "meds": 1}, [noisy[:1], 2, 1]):
        with pytest.raises(InputError, match="simulate"):
            check_counts(survey, form)
