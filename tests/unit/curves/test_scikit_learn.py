"""The estimator in scikit-learn's hands, and without scikit-learn."""

from __future__ import annotations

import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pytest
import sklearn.utils.estimator_checks as checks
from sklearn.base import clone, is_regressor
from sklearn.isotonic import IsotonicRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from isotone.curves import PrivacyWarning, PrivateIsotonicRegression

# scikit-learn's own run over one-dimensional estimators stops after the first check; these are the ones that apply.
# Left out: checks that want errors for missing, infinite or odd values (contents never raise), equal fits (draws are
# random), several features, or equality of weights and repetitions.
APPLICABLE = [
    "check_dataframe_column_names_consistency",
    "check_do_not_raise_errors_in_init_or_set_params",
    "check_estimator_cloneable",
    "check_estimator_repr",
    "check_estimator_sparse_matrix",
    "check_estimator_sparse_tag",
    "check_estimator_tags_renamed",
    "check_estimators_dtypes",
    "check_estimators_fit_returns_self",
    "check_estimators_overwrite_params",
    "check_estimators_pickle",
    "check_estimators_unfitted",
    "check_fit_check_is_fitted",
    "check_fit_score_takes_y",
    "check_get_feature_names_out_error",
    "check_get_params_invariance",
    "check_inplace_ensure_writeable",
    "check_mixin_order",
    "check_n_features_in_after_fitting",
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_readonly_memmap_input",
    "check_requires_y_none",
    "check_sample_weights_list",
    "check_sample_weights_not_an_array",
    "check_sample_weights_pandas_series",
    "check_set_output_transform",
    "check_set_output_transform_pandas",
    "check_set_output_transform_polars",
    "check_set_params",
    "check_transformer_get_feature_names_out",
    "check_transformer_get_feature_names_out_pandas",
    "check_transformer_preserve_dtypes",
    "check_transformers_unfitted",
    "check_valid_tag_types",
]


def estimator(**changes: Any) -> PrivateIsotonicRegression:
    settings: dict[str, Any] = {
        "epsilon": 10,
        "bounds": (-10, 10),
        "y_range": (-100, 100),
        "max_weight": 2,
        "x_grid": 64,
    }
    return PrivateIsotonicRegression(**(settings | changes))


@pytest.mark.parametrize("name", APPLICABLE)
def test_scikit_learns_own_check_passes(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        getattr(checks, name)("PrivateIsotonicRegression", estimator())


def test_scikit_learns_run_over_the_estimator_reports_no_failure() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = checks.check_estimator(estimator(), on_fail=None, on_skip=None)
    assert results
    assert [result["check_name"] for result in results if result["status"] == "failed"] == []


def test_a_clone_has_the_parameters_and_charges_the_same_ledger() -> None:
    class Book:
        def charge(self, guarantee: Any, description: str) -> None: ...

    original = estimator(shape=("constant", 2), ledger=Book())
    copy: Any = clone(original)
    assert copy.get_params() == original.get_params()
    assert copy.ledger is original.ledger
    assert not hasattr(copy, "curve_")


def test_it_takes_the_place_of_the_ordinary_regression_in_a_pipeline() -> None:
    x = np.linspace(0, 9, 2000)
    y = np.sqrt(x)
    halve = FunctionTransformer(lambda v: v / 2)
    ours = make_pipeline(halve, estimator(epsilon=50, bounds=(0, 5), y_range=(0, 3))).fit(x[:, None], y)
    theirs = make_pipeline(halve, IsotonicRegression()).fit(x[:, None], y)
    assert np.abs(ours.predict(x[:, None]) - theirs.predict(x[:, None])).mean() < 0.2
    assert is_regressor(estimator())
    as_transformer = estimator(bounds=(0, 10), y_range=(0, 3)).fit(x, y)
    assert as_transformer.fit_transform(x, y).shape == x.shape
    assert as_transformer.get_feature_names_out().tolist() == ["privateisotonicregression0"]


def test_cross_validation_and_grid_search_warn_that_they_are_not_private() -> None:
    x = np.linspace(-10, 10, 400)[:, None]
    y = x.ravel()
    with pytest.warns(PrivacyWarning, match="cross-validation, grid search"):
        cross_val_score(estimator(), x, y, cv=2)
    with pytest.warns(PrivacyWarning):
        search = GridSearchCV(estimator(), {"method": ["bins", "additive"]}, cv=2).fit(x, y)
    assert search.best_params_["method"] in ("bins", "additive")


WITHOUT = """
import sys
sys.modules["sklearn"] = None
import pickle
import numpy as np
from isotone.curves import PrivateIsotonicRegression
model = PrivateIsotonicRegression(epsilon=50, bounds=(0, 1), y_range=(0, 1), x_grid=16)
print(model)
x = np.linspace(0, 1, 500)
try:
    model.predict(x)
except ValueError as error:
    print("not fitted" in str(error))
try:
    model.set_params(colour="red")
except ValueError as error:
    print("no parameter 'colour'" in str(error))
print(model.set_params(method="bins").get_params()["method"])
print(bool(np.abs(model.fit_transform(x, x) - x).max() < 0.2))
print(bool(pickle.loads(pickle.dumps(model)).predict([0.5])[0] == model.predict([0.5])[0]))
"""


def test_it_works_without_scikit_learn() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=True)
    first, *rest = done.stdout.splitlines()
    assert first == "PrivateIsotonicRegression(bounds=(0, 1), epsilon=50, x_grid=16, y_range=(0, 1))"
    assert rest == ["True", "True", "bins", "True", "True"]
