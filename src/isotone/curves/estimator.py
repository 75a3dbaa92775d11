"""What all regressions share."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Collection, Generator
from contextlib import contextmanager
from copy import deepcopy
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from isotone.curves.circuits import CurveDraws
from isotone.curves.grids import FINE
from isotone.curves.losses import add_linear_losses
from isotone.curves.problem import CurveSetting, Records
from isotone.curves.tree import Runs
from isotone.errors import InputError, LedgerError
from isotone.privacy.checks import Number
from isotone.privacy.guarantee import Guarantee, Neighbours

__all__ = [
    "AUTO_SHARE",
    "ClassifierBase",
    "ComparisonWarning",
    "EstimatorBase",
    "LedgerKeeper",
    "PlainBase",
    "PrivacyWarning",
    "PrivateEstimator",
    "charged",
    "choose_direction",
    "not_fitted",
    "warn_of_published",
]


# What the private estimators share. That is scikit-learn's conventions, and what becomes of a ledger.
#
# Their base classes are scikit-learn's where it is installed, and a small one elsewhere.


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
    ClassifierBase = EstimatorBase = PlainBase
else:
    try:
        from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, TransformerMixin
    except ImportError:
        ClassifierBase = EstimatorBase = PlainBase
    else:

        class EstimatorBase(RegressorMixin, TransformerMixin, BaseEstimator):
            """A regressor and transformer of scikit-learn."""

        class ClassifierBase(ClassifierMixin, BaseEstimator):
            """A classifier of scikit-learn."""


def not_fitted(message: str) -> Exception:
    """The error of an estimator that is used before it is fitted, scikit-learn's where it is installed."""
    try:
        from sklearn.exceptions import NotFittedError
    except ImportError:
        return InputError(message)
    return NotFittedError(message)


class LeftBehind:
    """What a pickle holds in place of a ledger."""

    def charge(self, guarantee: Guarantee, description: str = "") -> None:
        """Refuse, since this copy does not know its ledger any more."""
        raise LedgerError(
            "This estimator was copied through a pickle, and its ledger stayed behind. Attach it again before "
            "fitting: estimator.set_params(ledger=...)."
        )

    def __repr__(self) -> str:
        return "<a ledger, left behind by a pickle>"


class LedgerKeeper:
    """Parameters with a ledger, which a copy shares and a pickle leaves behind."""

    _shared: ClassVar[tuple[str, ...]] = ("ledger",)
    """What a copy has in common with its original. A copied ledger would spend the same budget twice."""

    def _store(self, parameters: dict[str, Any]) -> None:
        """Keep the constructor's arguments as they are, as scikit-learn asks for. ``fit`` checks them."""
        own = {name: value for name, value in parameters.items() if name not in ("self", "__class__")}
        self.__dict__.update(own)

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        if state.get("ledger") is not None:
            state["ledger"] = LeftBehind()
        return state

    def __sklearn_clone__(self) -> Any:
        """A copy with the same parameters, and the same ledger."""
        params: dict[str, Any] = self.get_params(deep=False)  # pyright: ignore[reportAttributeAccessIssue] - subclasses
        return type(self)(**{k: v if k in self._shared else deepcopy(v) for k, v in params.items()})


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
    with np.errstate(all="ignore"):  # what was paid for is not lost where a caller has made such errors raise
        yield
    if hasattr(receipt, "finish"):
        receipt.finish()


class PrivateEstimator(LedgerKeeper, EstimatorBase):
    """A private regressor, which charges its ledger before it reads data and keeps none."""

    epsilon: Number
    rho: Number | None
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


# The direction of a curve, chosen privately. Which way is the isotonic fit better?

AUTO_SHARE = Fraction(5, 100)
"""The share of epsilon that finding the direction costs."""


def choose_direction(records: Records, points: int, setting: CurveSetting, draws: CurveDraws) -> bool:
    """Whether the curve rises, by the exponential mechanism.

    The score of a direction is the least absolute loss of a curve in that direction. One record raises it by something
    between 0 and the width of ``y_range`` (docs/theory/curves.md, section 10).
    """
    scores = [least_absolute_loss(records), least_absolute_loss(records.mirrored(points))]
    rate = setting.rate(AUTO_SHARE, FINE)
    chosen = draws.segments(np.array(scores), np.array([0, 2]), [rate], np.ones(2, dtype=np.int64))
    return int(chosen[0]) == 0


def least_absolute_loss(records: Records) -> int:
    """The least absolute loss of a rising curve, in steps of ``y``."""
    runs = Runs.of(records)
    losses = np.zeros(runs.point.size + 1, dtype=np.int64)
    heap, heights = np.empty((2, records.cells.size + 1), dtype=np.int64)
    add_linear_losses(
        records.levels,
        records.weights,
        runs.start,
        0,
        runs.point.size,
        1,
        0,
        FINE,
        1,
        1,
        heap,
        heights,
        losses,
    )
    return int(losses[-1])
