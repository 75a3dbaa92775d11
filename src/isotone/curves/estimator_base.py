"""The base classes of the private estimators.

scikit-learn's where it is installed, and a small one elsewhere; and what becomes of a ledger in copies.
"""

from __future__ import annotations

import inspect
from copy import deepcopy
from typing import TYPE_CHECKING, Any, ClassVar

from isotone.errors import InputError, LedgerError
from isotone.privacy.guarantee import Guarantee

__all__ = ["ClassifierBase", "EstimatorBase", "LedgerKeeper", "PlainBase", "not_fitted"]


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
