"""Scores of a frozen classifier and outcomes as 0 and 1, read only after the budget was charged.

Contents are private: nothing here raises, warns or prints because of them. A row that the classifier cannot score has no
score, and no other row's score depends on it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from isotone.array_types import Floats
from isotone.curves.problem import columns_of, numbers_of, only_column, shape_of
from isotone.errors import InputError
from isotone.privacy.checks import shown
from isotone.process import unheard
from isotone.reading.values import real_of, text_of, texts, values_of


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
    """What gives a row its score, a fitted classifier that is not changed, or nothing if rows are scores.

    The classifier is given one private row at a time. A row in a batch has a score that depends on the batch, be it in its last bit.
    """

    estimator: Any

    def __post_init__(self) -> None:
        known = self.estimator is None or any(hasattr(self.estimator, name) for name in _METHODS)
        if not known:
            raise InputError(
                "estimator must be a fitted classifier with predict_proba or decision_function, or None for scores themselves, "
                f"not {shown(self.estimator)}."
            )

    def rows(self, X: Any) -> int:
        """The number of rows. Wrong columns are refused, and a classifier that cannot score one made-up row."""
        shape = shape_of(X, "X")
        if self.estimator is None:
            if len(shape) == 2 and shape[1] != 1:
                raise InputError(f"X has {shape[1]} columns, and the scores need 1.")
            return shape[0]
        expected = getattr(self.estimator, "n_features_in_", None)
        if len(shape) == 2 and expected is not None and shape[1] != expected:
            raise InputError(f"X has {shape[1]} columns, and the scores need {expected}.")
        if len(shape) == 1 and expected is not None and not isinstance(X, (list, tuple)):
            raise InputError(f"X has one dimension, and the scores need rows of {expected}.")
        names = getattr(self.estimator, "feature_names_in_", None)
        if names is not None and list(getattr(X, "columns", names)) != list(names):
            raise InputError(f"X must have the columns of the classifier, in its order: {list(names)}.")
        self._require_single(_Rows.of(self.estimator, X))
        return shape[0]

    def of(self, X: Any) -> Floats:
        """The score of every row, for public rows. The classifier's own errors are raised."""
        if self.estimator is None:
            return numbers_of(only_column(X, "X"), public=True)
        method = next(name for name in _METHODS if hasattr(self.estimator, name))
        result = np.asarray(getattr(self.estimator, method)(X), dtype=np.float64)
        return result[:, 1] if method == "predict_proba" else result.reshape(-1)

    def of_private(self, X: Any) -> Floats:
        """The same for private rows, each alone. One that cannot be scored is missing."""
        if self.estimator is None:
            return numbers_of(only_column(X, "X"))
        rows = _Rows.of(self.estimator, X)
        with unheard():
            return np.array([self._alone(rows, row) for row in rows.values(X)], dtype=np.float64)

    def _alone(self, rows: _Rows, row: Sequence[Any]) -> float:
        try:
            result = self.of(rows.given(row))
            return float(result[0]) if result.shape == (1,) else math.nan
        except KeyboardInterrupt:
            raise
        except BaseException:  # a row that the classifier refuses: which one, and why, is private
            return math.nan

    def _require_single(self, rows: _Rows) -> None:
        """Refuse a classifier that gives no made-up row the same number before and after another row."""
        with unheard():
            for made_up in ([0.0, 1.0, 0.0], ["a", "b", "a"]):
                first, _, again = (self._alone(rows, [value] * (rows.width or 1)) for value in made_up)
                if first == again:
                    return
        raise InputError(
            "This classifier gives no score, or not the same one twice, to one made-up row of zeros or of texts, and rows are scored one by "
            "one. Score the rows yourself, each by itself, and pass the scores with estimator=None."
        )


_METHODS = ("predict_proba", "decision_function")


@dataclass(frozen=True)
class _Rows:
    """Single rows in the form in which a classifier is given them, whatever types their columns have.

    A row has ``width`` values, or is one value by itself. Its numbers are floats, its texts texts, everything else is NaN.
    """

    width: int | None
    names: list[str] | None
    buffer: Floats

    @classmethod
    def of(cls, estimator: Any, X: Any) -> _Rows:
        """The form for a classifier and what is public of a container."""
        shape = shape_of(X, "X")
        width = shape[1] if len(shape) == 2 else getattr(estimator, "n_features_in_", None)
        names = getattr(estimator, "feature_names_in_", None) if hasattr(X, "columns") else None
        return cls(width, None if names is None else list(names), _aligned(width or 1))

    def values(self, X: Any) -> Iterator[Sequence[Any]]:
        """The rows of private data, value by value."""
        columns = [only_column(X, "X")] if self.width is None else columns_of(X, "X", self.width)
        return zip(*([_plain(value) for value in values_of(column)] for column in columns), strict=True)

    def given(self, row: Sequence[Any]) -> Any:
        """One row for the classifier. Rows of numbers always stand at the same place, so that none is computed in another way."""
        if self.width is None:
            return [row[0]]
        if any(type(value) is str for value in row):
            return self._named([list(row)]) if self.names is not None else np.array([row], dtype=object)
        self.buffer[0] = row
        return self.buffer if self.names is None else self._named(self.buffer)

    def _named(self, rows: Any) -> Any:
        import pandas as pd

        return pd.DataFrame(rows, columns=self.names)


def _aligned(width: int) -> Floats:
    """Room for a row at the begin of a line of the processor's cache."""
    room = np.empty(width + 8, np.float64)
    begin = -(room.ctypes.data // 8) % 8
    return room[begin : begin + width].reshape(1, width)


def _plain(value: Any) -> Any:
    # What bytes in one row make of the texts of all rows in a frame of polars.
    if type(value) is bytes or type(value) is np.bytes_:
        value = value.decode(errors="replace")
    return str(value) if type(value) is str or type(value) is np.str_ else real_of(value)


def two_classes(estimator: Any, classes: Any) -> tuple[Any, Any]:
    """The two public classes, the positive one last, as given, those of the classifier, or 0 and 1."""
    result = getattr(estimator, "classes_", (0, 1)) if classes is None else classes
    pair = list(result) if isinstance(result, (Sequence, np.ndarray)) and not isinstance(result, str) else []
    if len(pair) != 2 or text_of(pair[0]) is None or text_of(pair[0]) == text_of(pair[1]):
        raise InputError(f"Calibration is for two classes, the negative one first, not {shown(result)}.")
    return pair[0], pair[1]


def outcomes(y: Any, classes: tuple[Any, Any]) -> Floats:
    """1 for the positive class, 0 for the negative one, and missing for anything else."""
    column = only_column(y, "y")
    if all(isinstance(name, (bool, int, float, np.bool_, np.number)) for name in classes):
        numbers = numbers_of(column)
        low, high = (float(name) for name in classes)
        return np.where(numbers == high, 1.0, np.where(numbers == low, 0.0, np.nan))
    low, high = (text_of(name) for name in classes)
    result = {low: 0.0, high: 1.0}
    return np.array(
        [np.nan if text is None else result.get(text, np.nan) for text in texts(column)], np.float64
    )
