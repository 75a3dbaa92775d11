"""What parameters and names mean to the estimators, and which are refused before the charge."""

from __future__ import annotations

import warnings
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from isotone.curves import (
    FitMethod,
    PrivateIsotonicRegression,
    PrivatePosetRegression,
    ProductOrder,
    regression,
)
from isotone.curves.cuts import METHODS
from isotone.curves.losses import ROWS, parse_loss
from isotone.curves.regression import ComparisonWarning, PrivacyWarning
from isotone.errors import InputError
from isotone.ledger import Ledger
from isotone.order import Poset
from isotone.privacy.guarantee import Guarantee

WEDGE = Poset("abc", [("a", "c"), ("b", "c")])


@pytest.mark.parametrize("method", METHODS)
def test_the_largest_margin_of_the_logistic_loss_is_fitted_by_every_method(method: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ComparisonWarning)
        model = PrivateIsotonicRegression(1, (0, 1), (0, 1), loss=("logistic", "503/1024"), method=method)
        assert np.isfinite(model.fit([0.2, 0.8] * 20, [0, 1] * 20).predict([0.1, 0.9])).all()


@pytest.mark.parametrize("margin", [0.4999, "504/1024", Fraction(1, 2), 0, np.float32(0.4999)])
def test_margins_that_leave_nothing_to_choose_are_refused_before_the_charge(margin: Any) -> None:
    class Book:
        def charge(self, guarantee: Any, description: str) -> None:
            raise AssertionError("charged")

    for model in (
        PrivateIsotonicRegression(1, (0, 1), (0, 1), loss=("logistic", margin), ledger=Book()),
        PrivatePosetRegression(WEDGE, 1, (0, 1), loss=("logistic", margin), ledger=Book()),
    ):
        with pytest.raises(InputError, match="at most 503/1024"):
            model.fit(["a"], [1])


def test_every_slope_of_a_logistic_table_is_a_whole_step_up_to_the_largest_margin() -> None:
    loss = parse_loss(("logistic", "503/1024"))
    for values in (2, 64, ROWS):
        table = loss.table(ROWS, values, Fraction(1))
        assert np.diff(table[0]).min() >= ROWS
        assert np.diff(table[-1]).max() <= -ROWS


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int64, np.uint64])
def test_numpy_numbers_mean_their_values(kind: Any) -> None:
    given: dict[str, Any] = {"contributions": 100, "public_n": 120}
    plain = PrivateIsotonicRegression(
        Guarantee.pure(1, neighbours="replace"),
        (0, 1),
        (0, 1),
        x_grid=64,
        method=FitMethod("auto", 2, 4),
        **given,
    )
    wide = PrivateIsotonicRegression(
        Guarantee.pure(kind(1), neighbours="replace"),
        (kind(0), kind(1)),
        (kind(0), kind(1)),
        x_grid=kind(64),
        method=FitMethod("auto", kind(2), kind(4)),
        **{name: kind(value) for name, value in given.items()},
    )
    one, other = (
        model._problem(weighted=True, grouped=True)
        for model in (plain.set_params(max_weight=1), wide.set_params(max_weight=kind(1)))
    )
    assert one == other
    assert one.budget.whole.factor == 100 * 2 * 64
    assert type(other.levels) is int
    assert ProductOrder((kind(100), kind(100))) == ProductOrder((100, 100))


def test_units_are_not_told_apart_by_pythons_equality(monkeypatch: pytest.MonkeyPatch) -> None:
    model = PrivateIsotonicRegression(1, (0, 1), (0, 1), public_n=2)
    seen: list[Any] = []
    read = regression.read_records
    monkeypatch.setattr(regression, "read_records", lambda *given: seen.append(read(*given)) or seen[-1])
    model.fit([0.1, 0.2], [0, 1], groups=[True, 1])
    model.fit([0.1, 0.2], [0, 1], groups=[1.0, 1])
    assert [records.cells.size for records in seen] == [2, 1]


def test_a_curve_over_integers_names_every_integer() -> None:
    model = PrivateIsotonicRegression(1, (18, 90), (0, 1), x_grid="integers").fit([20, 80], [0, 1])
    assert model.X_thresholds_.tolist() == list(range(18, 91))
    np.testing.assert_allclose(model.predict(model.X_thresholds_), model.y_thresholds_)


def test_elements_by_what_they_mean() -> None:
    order = Poset([1, "1", "x", (2, 3), 7], [(1, "x")])
    model = PrivatePosetRegression(order, y_range=(0, 1)).fit([1, "x"], [0, 1])
    by_name = dict(zip(order.elements, model.values_.tolist(), strict=True))
    names: list[Any] = [1, 1.0, "1", " x ", [2, 3], "7", np.int8(7)]
    expected = [by_name[name] for name in (1, 1, "1", "x", (2, 3), 7, 7)]
    assert model.predict(names).tolist() == expected


def test_elements_that_are_unknown_are_shown_on_request_only() -> None:
    model = PrivatePosetRegression(WEDGE, y_range=(0, 1))
    with pytest.warns(PrivacyWarning, match="not private"):
        assert model.unknown(["a", "z", "z", None]) == ["z", None]
    with pytest.raises(InputError, match="from_features"):
        ProductOrder([(0, 1), (0, 10)])  # pyright: ignore[reportArgumentType]


def test_a_product_holds_the_whole_numbers_within_its_lengths_and_nothing_else() -> None:
    order = ProductOrder((2, 3))
    inside = [(i, j) for i in range(2) for j in range(3)]
    assert [order.index(cell) for cell in inside] == list(range(6)) == order.locate(inside).tolist()
    outside: list[Any] = [
        (2, 0),
        (0, 3),
        (-1, 0),
        (0, -1),
        (0.5, 0),
        (0, "x"),
        (None, 1),
        (np.nan, 0),
        (1e300, 1e300),
    ]
    assert order.locate(outside).tolist() == [-1] * len(outside)
    assert not any(cell in order for cell in [*outside, (0,), (0, 0, 0), [0, 0], 0])
    for cell in outside[:4]:
        with pytest.raises(KeyError):
            order.index(cell)


def test_a_product_has_a_largest_size_and_needs_a_length_for_each_chain() -> None:
    assert len(ProductOrder((2**12, 2**12))) == 2**24
    with pytest.raises(InputError, match="too large"):
        ProductOrder((2**12, 2**12 + 1))
    wrong: list[Any] = [(), 3, "33", None, np.array(3), (0, 3), (-1,), (True, 2), (2.0, 2), ((0, 1), (0, 10))]
    for shape in wrong:
        with pytest.raises(InputError, match="from_features"):
            ProductOrder(shape)


@pytest.mark.parametrize("n", [2**62 + 1, 10**400])
def test_a_number_of_records_that_no_file_has_is_refused_before_the_charge(tmp_path: Path, n: int) -> None:
    with Ledger(tmp_path / "b.ledger", epsilon=1) as ledger:
        models = (
            PrivateIsotonicRegression(bounds=(0, 1), y_range=(0, 1), public_n=n, ledger=ledger),
            PrivatePosetRegression(Poset.chain([0, 1]), y_range=(0, 1), public_n=n, ledger=ledger),
        )
        for model in models:
            with pytest.raises(InputError, match="public_n"):
                model.fit([0, 1], [0, 1])
        assert not ledger.charges()
