"""PrivatePosetRegression as a user meets it: monotone, quiet about contents, exact about parameters."""

from __future__ import annotations

import pickle
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import base
from tests.support.estimators import grouped
from tests.support.posets import all_posets

from isotone.curves import PrivacyWarning, PrivatePosetRegression, ProductOrder
from isotone.curves.poset_regression import Elements
from isotone.errors import InputError, LedgerError
from isotone.noise import Simulated
from isotone.order import Poset


def clone(estimator: Any) -> Any:
    return base.clone(estimator)


SURVEY = Poset(["any", "mild", "severe"], [("severe", "any"), ("mild", "any")])


def model(order: Any = SURVEY, **params: Any) -> PrivatePosetRegression:
    every: dict[str, Any] = {"epsilon": 1, "y_range": (0, 1), **params}
    return PrivatePosetRegression(order, **grouped(**every))


def assert_monotone(poset: Poset, values: np.ndarray) -> None:
    assert (values[poset.cover_pairs[:, 0]] <= values[poset.cover_pairs[:, 1]]).all()


@pytest.mark.parametrize("loss", ["squared", "absolute", "logistic"])
@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_predictions_are_monotone_on_every_small_order(size: int, loss: str) -> None:
    rng = np.random.default_rng(size)
    for poset in all_posets(size):
        names = [poset.elements[k] for k in rng.integers(0, size, 30)]
        fitted = model(poset, loss=loss, levels=2).fit(names, rng.random(30))
        values = fitted.predict(poset.elements)
        assert_monotone(poset, values)
        assert ((values >= 0) & (values <= 1)).all()


@pytest.mark.parametrize("method", ["threshold", "additive", "coupling"])
@pytest.mark.parametrize("increasing", [True, False])
def test_predictions_follow_the_direction(method: str, increasing: bool) -> None:
    poset = Poset("abcd", [("a", "c"), ("b", "c"), ("b", "d")])
    fitted = model(poset, method=method, increasing=increasing, levels=2).fit(
        ["a", "b", "c", "d"] * 5, [0.5] * 20
    )
    assert_monotone(poset, fitted.values_ if increasing else -fitted.values_)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 9), st.booleans())
def test_predictions_are_monotone_on_random_orders(seed: int, size: int, measured: bool) -> None:
    rng = np.random.default_rng(seed)
    poset = Poset.random_dag(size, rng)
    names = [poset.elements[k] for k in rng.integers(0, size, 20)]
    loss = "squared" if measured else ("pinball", Fraction(1, 4))
    assert_monotone(poset, model(poset, loss=loss, public_n=100).fit(names, rng.random(20)).values_)


@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_relaxed_orders_are_made_monotone_at_the_end(loss: str) -> None:
    rng = np.random.default_rng(7)
    order = ProductOrder((7, 6, 5))
    fitted = model(order, loss=loss, epsilon=5).fit(
        [tuple(row) for row in rng.integers(0, 5, (300, 3)).tolist()], rng.random(300)
    )
    assert fitted.arrangement_ == "relaxed"
    pairs = order.cover_pairs()
    assert (fitted.values_[pairs[:, 0]] <= fitted.values_[pairs[:, 1]]).all()


def test_envelopes_make_large_relaxed_orders_monotone() -> None:
    order = ProductOrder((40, 30, 6))
    fitted = model(order, loss="absolute", levels=2).fit(
        [(0, 0, 0)] * 50 + [(39, 29, 5)] * 50, [1.0, 0.0] * 50
    )
    pairs = order.cover_pairs()
    assert (fitted.values_[pairs[:, 0]] <= fitted.values_[pairs[:, 1]]).all()


@pytest.mark.parametrize("method", ["additive", "threshold", "baseline"])
@pytest.mark.parametrize("loss", ["squared", "absolute", ("huber", "0.1"), "pinball(0.5)", "logistic"])
def test_plenty_of_clear_data_are_fitted_closely(method: str, loss: Any) -> None:
    fitted = model(loss=loss, method=method, epsilon=20).fit(
        ["severe", "mild", "any"] * 400, [0.125, 0.375, 0.875] * 400
    )
    assert fitted.predict(["severe", "mild", "any"]) == pytest.approx([0.125, 0.375, 0.875], abs=0.15)
    assert fitted.method_ == method
    assert fitted.epsilon_spent_ == 20


def test_a_decreasing_fit_turns_the_order_round() -> None:
    poset = Poset.chain("abc")
    fitted = model(poset, loss="pinball(0.9)", increasing=False, epsilon=30, public_n=900)
    assert fitted.fit(list("abc") * 300, [0.9, 0.5, 0.1] * 300).predict(["a", "b", "c"]) == pytest.approx(
        [0.9, 0.5, 0.1], abs=0.15
    )


def test_contents_are_never_complained_about() -> None:
    strange: list[Any] = ["severe", "unknown", None, ["a", "list"], {"a": 1}, 3.5, "any"]
    fitted = model().fit(strange, [0.1, 0.2, 0.3, 0.4, "text", None, float("inf")])
    assert fitted.values_.shape == (3,)
    assert model().fit([], []).values_.shape == (3,)


def test_an_unknown_element_cannot_be_predicted() -> None:
    fitted = model().fit(["any"], [1.0])
    with pytest.raises(InputError, match="'nothing'"):
        fitted.predict(["any", "nothing"])
    with pytest.raises(InputError, match="no element"):
        fitted.predict([["any"]])


def test_a_list_that_holds_itself_names_no_element_and_is_not_followed_on_every_way() -> None:
    endless: list[Any] = []
    endless.extend([endless] * 40)
    values: Any = [endless, ("a", [endless]), ["a", "b"]]
    assert Elements.of([("a", "b")]).locate(values).tolist() == [-1, -1, 0]


def test_unknown_elements_change_nothing_but_the_record_itself() -> None:
    loud = model(epsilon=10**6, loss="absolute", public_n=10**4)
    clean = loud.fit(["severe", "mild", "any"] * 9, [0.25, 0.5, 0.75] * 9).values_.copy()
    mixed = loud.fit(["severe", "x", "mild", "y", "any"] * 9, [0.25, 1, 0.5, 0, 0.75] * 9).values_
    assert mixed == pytest.approx(clean, abs=1e-4)


def test_a_band_is_refused_with_its_reason() -> None:
    with pytest.raises(InputError, match="no band for values on an order"):
        model().band(["mild"])


def test_the_fit_of_a_wider_range_clipped_is_the_fit_of_the_range() -> None:
    """With hardly any noise: records beyond the range are moved to its ends."""
    names, y = ["severe", "mild", "any"] * 50, [-3.0, 0.5, 7.0] * 50
    fitted = model(epsilon=10**6, public_n=10**4).fit(names, y)
    assert fitted.predict(["severe", "mild", "any"]) == pytest.approx([0.0, 0.5, 1.0], abs=1e-3)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"y_range": None}, "y_range"),
        ({"y_range": (1, 0)}, "y_range"),
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": 10**12}, "guarantees nothing"),
        ({"epsilon": "1e-9"}, "too small"),
        ({"method": "bins"}, "method must be .* not 'bins'"),
        ({"levels": 0}, "levels"),
        ({"levels": 9, "method": "threshold"}, "levels"),
        ({"value_levels": 3}, "power of two"),
        ({"loss": "cubic"}, "no loss"),
        ({"increasing": "auto"}, "least losses of both"),
        ({"increasing": "up"}, "True or False"),
        ({"public_n": 0}, "public_n"),
        ({"contributions": 2}, "groups"),
        ({"contributions": 0}, "contributions"),
        ({"neighbours": "friends"}, "friends"),
        ({"order": ["a", "b"]}, "P must be"),
        ({"order": Poset("abcd", [("a", "c"), ("b", "c"), ("b", "d")]), "method": "baseline"}, "forest"),
        ({"order": ProductOrder((40, 40)), "method": "threshold"}, "ideals"),
    ],
)
def test_bad_parameters_are_refused_with_a_reason(params: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        model(**params).fit(["any"], [1.0])


def test_shapes_are_checked() -> None:
    with pytest.raises(InputError, match="length"):
        model().fit(["any"], [1.0, 2.0])
    with pytest.raises(InputError, match="one dimension"):
        model().fit("any", [1.0])
    with pytest.raises(InputError, match="max_weight"):
        model().fit(["any"], [1.0], sample_weight=[1.0])
    with pytest.raises(InputError, match="y is None"):
        model().fit(["any"], None)
    with pytest.raises(InputError, match="simulate"):
        model().fit(["any"], Simulated.wrap(np.ones(1)))
    with pytest.raises(Exception, match="not fitted"):
        model().predict(["any"])


def test_weights_and_units_are_limited() -> None:
    fitted = model(max_weight=2, contributions=2, epsilon=50, public_n=200)
    fitted.fit(
        ["severe"] * 90 + ["any"] * 90,
        [0.0] * 90 + [1.0] * 90,
        sample_weight=[2.0, 1e9, -5.0] * 60,
        groups=[k // 2 for k in range(180)],
    )
    assert fitted.predict(["severe"])[0] <= fitted.predict(["any"])[0]


def test_a_unit_with_many_records_counts_only_its_share() -> None:
    loud = model(epsilon=10**5, public_n=100, loss="absolute", unit="person")
    one = ["p"] * 1000 + list(range(20))
    fitted = loud.fit(["any"] * 1020, [0.0] * 1000 + [1.0] * 20, groups=np.array(one, dtype=object))
    assert fitted.predict(["any"])[0] > 0.9
    assert fitted.guarantee_.unit == "person"


class Receipts:
    """A ledger that writes down what is charged."""

    def __init__(self) -> None:
        self.charged: list[Any] = []

    def charge(self, guarantee: Any, description: str = "") -> None:
        self.charged.append((guarantee.epsilon, description))


def test_the_ledger_is_charged_and_stays_behind_in_pickles() -> None:
    ledger = Receipts()
    fitted = model(ledger=ledger).fit(["any"], [1.0])
    assert ledger.charged == [(1, "poset regression, auto")]
    copy = pickle.loads(pickle.dumps(fitted))
    assert copy.predict(["any"]) == fitted.predict(["any"])
    with pytest.raises(LedgerError):
        copy.fit(["any"], [1.0])
    assert clone(fitted).ledger is ledger


def test_a_refused_parameter_charges_nothing() -> None:
    ledger = Receipts()
    with pytest.raises(InputError):
        model(ledger=ledger, levels=99).fit(["any"], [1.0])
    assert not ledger.charged


def test_nothing_fitted_or_pickled_holds_data() -> None:
    fitted = model(public_n=50).fit(["severe", "any"] * 25, [0.123456789, 0.987654321] * 25)
    learned = {k for k in vars(fitted) if k.endswith("_")}
    assert learned == {"values_", "arrangement_", "method_", "guarantee_", "epsilon_spent_"}
    assert fitted.values_.shape == (3,)
    assert len(pickle.dumps(fitted)) == len(pickle.dumps(model(public_n=50).fit(["mild"] * 500, [0.5] * 500)))


def test_scores_warn_and_parameters_clone() -> None:
    fitted = model(epsilon="0.5").fit(["any"] * 3, [1.0, 0.5, 0.2])
    with pytest.warns(PrivacyWarning):
        fitted.score(["any", "mild"], [1.0, 0.0])
    assert clone(fitted).get_params()["epsilon"] == "0.5"
    assert not hasattr(clone(fitted), "values_")
    model().check()
    with pytest.raises(InputError):
        model(levels=99).check()


def test_features_make_a_product_order() -> None:
    rng = np.random.default_rng(0)
    X = rng.random((4000, 2)) * [1, 10]
    y = (X[:, 0] + (10 - X[:, 1]) / 10) / 2
    fitted = PrivatePosetRegression.from_features(
        [(0, 1), (0, 10)], bins=[16, 8], directions=[True, False], y_range=(0, 1), epsilon=5
    ).fit(X, y)
    assert fitted.arrangement_ == "grid"
    assert np.abs(fitted.predict(X) - y).mean() < 0.12
    line = np.linspace(-0.5, 1.5, 50)
    assert (np.diff(fitted.predict(np.stack([line, np.full(50, 5.0)], axis=1))) >= 0).all()
    assert (np.diff(fitted.predict(np.stack([np.full(50, 0.5), 10 * line], axis=1))) <= 0).all()
    assert np.isnan(fitted.predict([[0.5, None]])).all()


def test_features_are_checked() -> None:
    def make(**params: Any) -> PrivatePosetRegression:
        every: dict[str, Any] = {"bounds": [(0, 1)] * 2, "y_range": (0, 1), **params}
        return PrivatePosetRegression.from_features(**grouped(**every))

    for bad in [
        {"bounds": []},
        {"bounds": [(1, 0)]},
        {"bins": [3]},
        {"bins": 0},
        {"bins": 9999},
        {"directions": "up"},
        {"bounds": None},
        {"bounds": {"age": (0, 1)}},
        {"bins": 2.5},
    ]:
        with pytest.raises(InputError):
            make(**bad)
    with pytest.raises(InputError, match="must not be the data's own"):
        make(bounds=None)
    with pytest.raises(InputError, match="directions must be"):
        make(directions="up")
    arrays = make(
        bounds=np.array([[0, 1], [0, 2]]), bins=np.array([3, 4]), directions=np.array([True, False])
    )
    assert arrays.P == make(bounds=[(0, 1), (0, 2)], bins=[3, 4], directions=[True, False]).P
    assert make(bins=np.int64(3)).P == make(bins=3).P
    with pytest.raises(InputError, match="2 columns"):
        make().fit(np.array([[1.0]]), [0.5])
    odd: list[Any] = [["x", 1.0], [None, 0.2], [float("nan"), 0.1], [1e400, 0.5]]
    assert make(bins=3).fit(odd, [0.1, 0.2, 0.3, 0.4]).values_.shape == (9,)


def test_one_three_and_four_columns_work() -> None:
    for columns in (1, 3, 4):
        X = np.random.default_rng(columns).random((60, columns))
        fitted = PrivatePosetRegression.from_features([(0, 1)] * columns, bins=3, y_range=(0, 1)).fit(
            X, X[:, 0]
        )
        assert fitted.predict(X).shape == (60,)


def test_equal_orders_with_other_sequences_of_elements_are_cut_each_in_its_own():
    relations = [("severe", "any"), ("mild", "any"), ("any", "all")]
    values = {"severe": 0.0, "mild": 0.3, "any": 0.6, "all": 1.0}
    for elements in (["severe", "mild", "any", "all"], ["all", "any", "severe", "mild"]):
        order = Poset(elements, relations)
        names = np.repeat(list(values), 500)
        fit = PrivatePosetRegression(order, epsilon=10**6, y_range=(0, 1)).fit(
            names.tolist(), np.repeat(list(values.values()), 500)
        )
        np.testing.assert_allclose(fit.predict(list(values)), list(values.values()), atol=0.02)


@pytest.mark.parametrize("whole", [int, np.int8, np.int64])
def test_cells_of_a_product_may_be_integers_of_any_type(whole: Any) -> None:
    cells = [(whole(0), whole(1)), (whole(2), whole(2))] * 500
    fit = model(ProductOrder((3, 3)), epsilon=10**6, public_n=1000).fit(cells, [0.0, 1.0] * 500)
    np.testing.assert_allclose(fit.predict(cells[:2]), [0, 1], atol=0.01)
    np.testing.assert_allclose(fit.predict(np.array(cells[:2])), [0, 1], atol=0.01)
