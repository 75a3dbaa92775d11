"""What the private estimators share: scikit-learn's conventions, the ledger, the size of the data.

With scikit-learn installed they are its estimators; without it a small base does the same for parameters.
"""

from __future__ import annotations

import inspect
import warnings
from copy import deepcopy
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from isotone.curves.choices import Choices
from isotone.curves.privacy import Setting
from isotone.errors import InputError, LedgerError
from isotone.privacy.guarantee import Guarantee, positive

__all__ = ["COUNTING_SHARE", "PrivacyWarning", "PrivateEstimator", "not_fitted", "plain_integer"]

COUNTING_SHARE = Fraction(2, 100)
"""The share of epsilon that a noisy number of records costs, when ``public_n`` is not given."""


class PrivacyWarning(UserWarning):
    """Something was computed that must not be published."""


class PlainBase:
    """Parameters as scikit-learn keeps them, for installations without it."""

    @classmethod
    def _names(cls) -> list[str]:
        return sorted(name for name in inspect.signature(cls.__init__).parameters if name != "self")

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's arguments."""
        return {name: getattr(self, name) for name in self._names()}

    def set_params(self, **params: Any) -> Any:
        """Change constructor arguments."""
        unknown = sorted(set(params) - set(self._names()))
        if unknown:
            raise InputError(
                f"{type(self).__name__} has no parameter {unknown[0]!r}; it has {self._names()}."
            )
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """Fit, then transform the same points."""
        return self.fit(X, y, **fit_params).transform(X)  # pyright: ignore[reportAttributeAccessIssue] - subclasses

    def __repr__(self) -> str:
        defaults = inspect.signature(type(self).__init__).parameters
        shown = [f"{k}={v!r}" for k, v in self.get_params().items() if v is not defaults[k].default]
        return f"{type(self).__name__}({', '.join(shown)})"


if TYPE_CHECKING:
    _Base = PlainBase
else:
    try:
        from sklearn.base import BaseEstimator, RegressorMixin, TransformerMixin
    except ImportError:
        _Base = PlainBase
    else:

        class _Base(RegressorMixin, TransformerMixin, BaseEstimator):
            """A regressor and transformer of scikit-learn."""


class LeftBehind:
    """What a pickle holds in place of a ledger."""

    def charge(self, guarantee: Guarantee, description: str = "") -> None:
        """Refuse: this copy does not know its ledger any more."""
        raise LedgerError(
            "This estimator was copied through a pickle, and its ledger stayed behind. Attach it again before "
            "fitting: estimator.set_params(ledger=...)."
        )

    def __repr__(self) -> str:
        return "<a ledger, left behind by a pickle>"


class PrivateEstimator(_Base):
    """A private regressor: charges its ledger before it reads data, and keeps none."""

    epsilon: Any
    ledger: Any
    public_n: Any
    contributions: Any
    max_weight: Any

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        if state.get("ledger") is not None:
            state["ledger"] = LeftBehind()
        return state

    def __sklearn_clone__(self) -> Any:
        """A copy that charges the same ledger: a copied ledger would spend the same budget twice."""
        params = self.get_params(deep=False)
        return type(self)(**{k: v if k == "ledger" else deepcopy(v) for k, v in params.items()})

    def _charge(self, guarantee: Guarantee, description: str) -> Any:
        """Spend the budget; what comes back may be marked as finished once the release exists."""
        if self.ledger is None:
            return None
        if not hasattr(self.ledger, "charge"):
            raise InputError(
                f"ledger must have a method charge(guarantee, description), not {self.ledger!r}."
            )
        return self.ledger.charge(guarantee, description)

    def _contributions(self, grouped: bool) -> int:
        k = plain_integer(self.contributions)
        if isinstance(k, bool) or not isinstance(k, int) or k < 1:
            raise InputError(f"contributions must be a whole number of at least 1, not {k!r}.")
        if k > 1 and not grouped:
            raise InputError(
                f"contributions={k} needs groups, the privacy unit of each record: fit(X, y, groups=...). Without "
                "them nothing could keep a unit from having more."
            )
        return k

    def _max_weight(self, weighted: bool) -> float:
        if not weighted:
            return 1.0
        if self.max_weight is None:
            raise InputError(
                "sample_weight needs max_weight: the largest weight that a record may have, known without the data. A "
                "record of unlimited weight cannot be hidden."
            )
        return float(positive(self.max_weight, "max_weight"))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """One name, as scikit-learn gives it."""
        if not hasattr(self, "guarantee_"):
            raise not_fitted(self)
        return np.asarray([type(self).__name__.lower() + "0"], dtype=object)

    def _counting_share(self) -> Fraction:
        if self.public_n is None:
            return Fraction(0) + COUNTING_SHARE
        size = plain_integer(self.public_n)
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise InputError(
                f"public_n must be a whole number of at least 1, or None, not {self.public_n!r}."
            )
        return Fraction(0)

    def _size(self, count: int, whole: Setting, choices: Choices) -> int:
        """The public number of records, or a noisy one: the true one decides nothing."""
        if self.public_n is not None:
            return int(self.public_n)
        unweighted = Setting(whole.epsilon, whole.neighbours, whole.contributions)
        return max(1, int(choices.perturb(np.array([count]), unweighted.rate(COUNTING_SHARE, 1))[0]))

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
        """Predictions; see the subclass."""
        raise NotImplementedError


def plain_integer(value: Any) -> Any:
    """A whole number of numpy as Python's own; everything else as it is."""
    return int(value) if isinstance(value, np.integer) else value


def not_fitted(estimator: Any) -> Exception:
    """The error of an estimator that is used before ``fit``."""
    message = f"This {type(estimator).__name__} is not fitted yet: call fit(X, y) first."
    try:
        from sklearn.exceptions import NotFittedError
    except ImportError:
        return InputError(message)
    return NotFittedError(message)
