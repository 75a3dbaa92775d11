"""Scores of a frozen classifier and outcomes as 0 and 1, read only after the budget was charged.

Contents are private: nothing here raises, warns or prints because of them. A row that the classifier cannot score has no
score, and no other row's score depends on it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from isotone.array_types import Floats
from isotone.curves.grids import numbers_of, only_column, shape_of
from isotone.errors import InputError
from isotone.privacy.checks import shown
from isotone.reading.values import text_of, texts

__all__ = ["Deferred", "FrozenScores", "outcomes", "two_classes"]


class Deferred:
    """A column of numbers of known length that is computed when it is first read."""

    def __init__(self, size: int, compute: Callable[[], Floats]) -> None:
        self.shape, self.dtype = (size,), np.dtype(np.float64)
        self._compute = compute

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Any:
        return iter(np.asarray(self))

    def __array__(self, dtype: Any = None, copy: Any = None) -> Floats:
        return self._compute()


@dataclass(frozen=True)
class FrozenScores:
    """What gives a row its score, a fitted classifier that is not changed, or nothing if rows are scores."""

    estimator: Any

    def __post_init__(self) -> None:
        known = self.estimator is None or any(hasattr(self.estimator, name) for name in _METHODS)
        if not known:
            raise InputError(
                "estimator must be a fitted classifier with predict_proba or decision_function, or None for scores themselves, "
                f"not {shown(self.estimator)}."
            )

    def rows(self, X: Any) -> int:
        """The number of rows. A wrong number of columns is refused."""
        shape = shape_of(X, "X")
        wanted = 1 if self.estimator is None else getattr(self.estimator, "n_features_in_", None)
        if len(shape) == 2 and wanted is not None and shape[1] != wanted:
            raise InputError(f"X has {shape[1]} columns, and the scores need {wanted}.")
        return shape[0]

    def of(self, X: Any) -> Floats:
        """The score of every row, for public rows. The classifier's own errors are raised."""
        if self.estimator is None:
            return numbers_of(only_column(X, "X"), public=True)
        method = next(name for name in _METHODS if hasattr(self.estimator, name))
        found = np.asarray(getattr(self.estimator, method)(X), dtype=np.float64)
        return found[:, 1] if method == "predict_proba" else found.reshape(-1)

    def of_private(self, X: Any, size: int) -> Floats:
        """The same for private rows. One that cannot be scored is missing, whatever the others are."""
        if self.estimator is None:
            return numbers_of(only_column(X, "X"))
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            found = self._tried(X, size)
            if found is not None:
                return found
            single = [self._tried(_row(X, place), 1) for place in range(size)]
        return np.array([np.nan if score is None else score[0] for score in single], dtype=np.float64)

    def _tried(self, X: Any, size: int) -> Floats | None:
        try:
            found = self.of(X)
        except Exception:  # a row that the classifier refuses: which one, and why, is private
            return None
        return found if found.shape == (size,) else None


_METHODS = ("predict_proba", "decision_function")


def _row(X: Any, place: int) -> Any:
    part = slice(place, place + 1)
    return X.iloc[part] if hasattr(X, "iloc") else X[part]


def two_classes(estimator: Any, classes: Any) -> tuple[Any, Any]:
    """The two public classes, the positive one last, as given, those of the classifier, or 0 and 1."""
    found = getattr(estimator, "classes_", (0, 1)) if classes is None else classes
    pair = list(found) if isinstance(found, (Sequence, np.ndarray)) and not isinstance(found, str) else []
    if len(pair) != 2 or text_of(pair[0]) is None or text_of(pair[0]) == text_of(pair[1]):
        raise InputError(f"Calibration is for two classes, the negative one first, not {shown(found)}.")
    return pair[0], pair[1]


def outcomes(y: Any, classes: tuple[Any, Any]) -> Floats:
    """1 for the positive class, 0 for the negative one, and missing for anything else."""
    column = only_column(y, "y")
    if all(isinstance(name, (bool, int, float, np.bool_, np.number)) for name in classes):
        numbers = numbers_of(column)
        low, high = (float(name) for name in classes)
        return np.where(numbers == high, 1.0, np.where(numbers == low, 0.0, np.nan))
    low, high = (text_of(name) for name in classes)
    found = {low: 0.0, high: 1.0}
    return np.array(
        [np.nan if text is None else found.get(text, np.nan) for text in texts(column)], np.float64
    )
