"""The base class of the private estimators.

scikit-learn's where it is installed, and a small one elsewhere.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from isotone.errors import InputError

__all__ = ["ClassifierBase", "EstimatorBase", "PlainBase"]


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
