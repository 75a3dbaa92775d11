"""Records as subsets of an order.

Which are filters, and the smallest filter around each.

A record says yes or no to every element. It is a *filter* (an up-set, closed upward) when a yes to ``a``
comes with a yes to everything above ``a``. Records are private: no message here quotes one.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence, Set
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isotone.array_types import Ints
from isotone.errors import InputError
from isotone.kernels import kernel

__all__ = ["Record", "are_filters", "close_all", "like", "read_matrix", "read_record"]

Record = Mapping[Any, Any] | Set[Hashable] | Sequence[Any] | NDArray[Any]
Answers = NDArray[np.bool_]


def read_record(index: Mapping[Hashable, int], record: Record) -> Answers:
    """The answers of one record, one per element.

    A mapping gives answers by name (absent names are no), a set holds the names answered yes, a sequence or
    array holds one answer per element in the order of the elements.
    """
    if isinstance(record, (Mapping, Set)):
        if not all(name in index for name in record):
            raise InputError("A record names something that is not an element of this order: drop it first.")
        if isinstance(record, Mapping):
            answers = _answers(list(record.values()))
            yes = [index[name] for name, answer in zip(record, answers, strict=True) if answer]
        else:
            yes = [index[name] for name in record]
        full = np.zeros(len(index), np.bool_)
        full[yes] = True
        return full
    answers = _answers(record)
    if answers.shape != (len(index),):
        raise InputError(f"A record given as a sequence needs one answer per element: {len(index)} of them.")
    return answers


def read_matrix(n: int, matrix: ArrayLike) -> Answers:
    """A matrix of answers, one row per record and one column per element."""
    answers = _answers(matrix)
    if answers.ndim != 2 or answers.shape[1] != n:
        raise InputError(f"Records must be a matrix with one column per element: {n} columns.")
    return np.ascontiguousarray(answers)


def _answers(values: Any) -> Answers:
    given = np.asarray(values)
    if given.size == 0 or given.dtype == np.bool_:
        return given.astype(np.bool_)
    if given.dtype.kind not in "iuf" or not np.isin(given, (0, 1)).all():
        raise InputError("Answers must be 0 or 1 (or booleans). Recode missing and other answers first.")
    return given.astype(np.bool_)


def like(record: Record, names: Sequence[Hashable], answers: Answers) -> Any:
    """``answers`` in the form of ``record``. A dict, a frozenset of names, or an array."""
    if isinstance(record, Mapping):
        return dict(zip(names, answers.tolist(), strict=True))
    if isinstance(record, Set):
        return frozenset(name for name, answer in zip(names, answers, strict=True) if answer)
    return answers


def are_filters(covers: Ints, matrix: Answers) -> Answers:
    """For each row whether it is closed upward."""
    closed = np.ones(len(matrix), np.bool_)
    step = max(1, _CHUNK // max(len(matrix), 1))
    for start in range(0, len(covers), step):
        lower, upper = covers[start : start + step].T
        closed &= np.all(matrix[:, upper] | ~matrix[:, lower], axis=1)
    return closed


def close_all(covers: Ints, matrix: Answers) -> None:
    """Close each row upward, in place.

    ``covers`` come in a linear order of their lower elements.
    """
    if len(covers) > FEW_COVERS:
        _close_all(covers, matrix)
        return
    for lower, upper in covers.tolist():
        matrix[:, upper] |= matrix[:, lower]


_CHUNK = 1 << 22
"""Answers that are compared at a time."""
FEW_COVERS = 1 << 12
"""Orders with so many covers at most need no compiled code; the number of rows does not matter."""


@kernel
def _close_all(covers: Ints, matrix: Answers) -> None:
    """Close each row upward, in place.

    ``covers`` come in a linear order of their lower elements.
    """
    for row in range(matrix.shape[0]):
        for k in range(covers.shape[0]):
            if matrix[row, covers[k, 0]]:
                matrix[row, covers[k, 1]] = True
