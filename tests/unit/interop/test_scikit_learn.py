"""Both private regressions in scikit-learn's hands: pipelines, searches, and what they cost."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler

from isotone.curves import PrivacyWarning, PrivateIsotonicRegression, PrivatePosetRegression
from isotone.errors import BudgetError
from isotone.release import Ledger


def two_columns(rows: int = 3000):
    X = np.random.default_rng(0).random((rows, 2))
    return 10 * X, X.mean(axis=1)


def test_a_regression_on_several_columns_is_the_last_step_of_a_pipeline():
    X, y = two_columns()
    tenth = FunctionTransformer(
        lambda rows: rows / 10
    )  # a public scale: one learnt from the data would not be private
    model = PrivatePosetRegression.from_features([(0, 1), (0, 1)], bins=8, epsilon=20, y_range=(0, 1))
    fitted: Any = make_pipeline(tenth, model).fit(X, y)
    assert np.abs(fitted.predict(X) - y).mean() < 0.15
    again: Any = clone(fitted)
    assert again.get_params()["privateposetregression__epsilon"] == 20
    assert not hasattr(again[-1], "values_")


def test_a_curve_is_a_transformer_in_the_middle_of_a_pipeline():
    x = np.linspace(0, 1, 2000)[:, None]
    curve = PrivateIsotonicRegression(epsilon=20, bounds=(0, 1), y_range=(0, 1))
    column = FunctionTransformer(lambda values: np.reshape(values, (-1, 1)))
    values = make_pipeline(curve, column, MinMaxScaler()).fit_transform(x, x.ravel() ** 2)
    assert values.shape == (2000, 1)
    assert np.all(np.diff(values.ravel()) >= 0)


def test_every_fit_of_a_search_is_charged_and_its_scores_are_called_what_they_are(tmp_path):
    x = np.linspace(0, 1, 600)[:, None]
    y = x.ravel()
    with Ledger(tmp_path / "search.ledger", epsilon=5, unit="record") as ledger:
        model = PrivateIsotonicRegression(epsilon="1/2", bounds=(0, 1), y_range=(0, 1), ledger=ledger)
        with pytest.warns(PrivacyWarning, match="not private"):
            GridSearchCV(model, {"method": ["additive", "bins"]}, cv=2).fit(x, y)
        assert ledger.remaining().epsilon == Fraction(5, 2)  # two methods in two folds, and the refit
        cross_val_predict(model, x, y, cv=5)
        assert ledger.remaining().epsilon == 0
        copy: Any = clone(model)
        with pytest.raises(BudgetError):
            copy.fit(x, y)
