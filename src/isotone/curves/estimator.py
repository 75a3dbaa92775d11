"""What the private estimators share. That is scikit-learn's conventions, and how a ledger is charged."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Generator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotone.curves.estimator_base import EstimatorBase, LedgerKeeper, not_fitted
from isotone.errors import InputError
from isotone.privacy.checks import Number
from isotone.privacy.guarantee import Guarantee
from isotone.privacy.unit import Neighbours

__all__ = ["ComparisonWarning", "PrivacyWarning", "PrivateEstimator", "charged", "warn_of_published"]


class PrivacyWarning(UserWarning):
    """Something was computed that must not be published."""


class ComparisonWarning(UserWarning):
    """A published method is used that is kept for comparison."""


def warn_of_published(method: str, published: Collection[str]) -> None:
    """Warn the caller of ``fit`` of a method that is kept for comparison."""
    if method in published:
        warnings.warn(
            f"method={method!r} is kept for comparison with the literature: 'auto' is more accurate.",
            ComparisonWarning,
            stacklevel=3,
        )


@contextmanager
def charged(ledger: Any, guarantee: Guarantee, description: str) -> Generator[None]:
    """Charge a ledger, if there is one, before what follows, and mark the charge as finished after it."""
    if ledger is not None and not hasattr(ledger, "charge"):
        raise InputError(f"ledger must have a method charge(guarantee, description), not {ledger!r}.")
    receipt: Any = None if ledger is None else ledger.charge(guarantee, description)
    yield
    if hasattr(receipt, "finish"):
        receipt.finish()


class PrivateEstimator(LedgerKeeper, EstimatorBase):
    """A private regressor, which charges its ledger before it reads data and keeps none."""

    epsilon: Number
    rho: Number | None = None
    y_range: Any
    increasing: Any
    loss: Any
    method: str
    levels: int | None
    value_levels: int | None
    neighbours: Neighbours
    public_n: int | None
    max_weight: Number | None
    contributions: Any
    unit: str
    ledger: Any

    def _require_fit(self) -> None:
        if hasattr(self, "guarantee_"):
            return
        raise not_fitted(f"This {type(self).__name__} is not fitted yet: call fit(X, y) first.")

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """One name, as scikit-learn gives it."""
        self._require_fit()
        return np.asarray([type(self).__name__.lower() + "0"], dtype=object)

    def _tags(self, *, columns: bool) -> Any:
        """Tags for scikit-learn. Missing values allowed, random."""
        tags = super().__sklearn_tags__()  # pyright: ignore[reportAttributeAccessIssue] - scikit-learn's base has it
        tags.input_tags.one_d_array = not columns
        tags.input_tags.two_d_array = columns
        tags.input_tags.allow_nan = True
        tags.non_deterministic = True
        return tags

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The coefficient of determination of ``predict(X)`` — **not private** if ``X, y`` are not public.

        Scores of private data, and choices made from them (cross-validation, grid search), reveal the data they
        were computed from; every fit of a search also spends its own epsilon. A warning says so.
        """
        warnings.warn(
            "score() is computed from X and y without noise: it is not private, and neither is a model chosen "
            "by it (cross-validation, grid search). Use public or held-out data that may be revealed.",
            PrivacyWarning,
            stacklevel=2,
        )
        return self._r2(X, y, sample_weight)

    def _r2(self, X: Any, y: Any, sample_weight: Any) -> float:
        truth = np.asarray(y, dtype=float).ravel()
        weight = np.ones_like(truth) if sample_weight is None else np.asarray(sample_weight, dtype=float)
        predicted = np.asarray(self.predict(X), dtype=float)
        spread = float(np.sum(weight * (truth - np.average(truth, weights=weight)) ** 2))
        missed = float(np.sum(weight * (truth - predicted) ** 2))
        return 1.0 - missed / spread if spread else (1.0 if missed == 0.0 else 0.0)

    def predict(self, T: Any) -> Any:
        """Predictions. See the subclass."""
        raise NotImplementedError

    def transform(self, T: Any) -> Any:
        """The same as ``predict``, for pipelines."""
        return self.predict(T)
