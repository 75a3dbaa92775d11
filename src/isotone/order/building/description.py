"""Read and check the description of an order.

Names, pairs of names, matrices or parents. All checks of input are here.

Everything in a description is public, so messages quote it freely; each says how to repair it.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isotone.array_types import Ints
from isotone.errors import OrderError

__all__ = [
    "check_reflexive_antisymmetric",
    "cycle_error",
    "find",
    "not_transitive",
    "read_elements",
    "read_mapping",
    "read_matrix",
    "read_relations",
]


def read_elements(elements: Iterable[Hashable]) -> dict[Hashable, int]:
    """The position of each name, refusing what cannot be the elements of an order."""
    index: dict[Hashable, int] = {}
    for position, name in enumerate(elements):
        try:
            first = index.setdefault(name, position)
        except TypeError:
            raise OrderError(
                f"The element {name!r} is not hashable, so it is no name. Use text, a number or a tuple."
            ) from None
        if first != position:
            raise OrderError(
                f"The element {name!r} is given twice (positions {first} and {position}). "
                "Names must differ: drop one or rename it."
            )
    if not index:
        raise OrderError("An order needs at least one element. Name the questions (or items) to count.")
    return index


def find(index: Mapping[Hashable, int], name: Any) -> int:
    """The position of ``name``, or an error that proposes what may have been meant."""
    try:
        return index[name]
    except TypeError:
        raise OrderError(f"{name!r} is not hashable, so it is no name. Use one of the elements.") from None
    except KeyError:
        raise _unknown_name(index, name) from None


def _unknown_name(names: Collection[Hashable], name: Hashable) -> OrderError:
    close = get_close_matches(str(name), [str(known) for known in names], n=1) if len(names) <= 10_000 else []
    hint = f" Did you mean {close[0]!r}?" if close else ""
    return OrderError(f"{name!r} is not an element of this order.{hint} Correct it or add it.")


def read_relations(relations: Iterable[Any], index: Mapping[Hashable, int]) -> Ints:
    """Positions of the distinct pairs ``(lower, upper)``, without those that relate a name to itself."""
    pairs: dict[tuple[int, int], None] = {}
    for relation in relations:
        lower, upper = _pair(relation)
        pair = find(index, lower), find(index, upper)
        if pair[0] != pair[1]:
            pairs[pair] = None
    return np.array(list(pairs), np.int64).reshape(-1, 2)


def _pair(relation: Any) -> tuple[Any, Any]:
    if not isinstance(relation, (str, bytes, set, frozenset, Mapping)):
        try:
            lower, upper = relation
        except (TypeError, ValueError):
            pass
        else:
            return lower, upper
    raise OrderError(f"A relation must be a pair (lower, upper) of names, not {relation!r}.")


def read_matrix(matrix: ArrayLike) -> NDArray[np.bool_]:
    """A square matrix of 0 and 1 (or booleans) as booleans."""
    given = np.asarray(matrix)
    if given.ndim != 2 or given.shape[0] != given.shape[1]:
        raise OrderError(f"An order's matrix must be square, [i, j] saying i ≤ j; this one is {given.shape}.")
    if given.size == 0:
        raise OrderError("An order needs at least one element: this matrix has none.")
    if given.dtype.kind not in "biuf" or not np.isin(given, (0, 1)).all():
        raise OrderError("An order's matrix must hold only 0 and 1 (or booleans).")
    return given.astype(np.bool_)


def check_reflexive_antisymmetric(matrix: NDArray[np.bool_], names: Sequence[Hashable]) -> None:
    """Refuse a matrix with a gap in its diagonal or two elements below each other."""
    if not matrix.diagonal().all():
        name = names[int(np.argmin(matrix.diagonal()))]
        raise OrderError(
            f"In this matrix {name!r} is not related to itself. An order is reflexive: set the diagonal to 1."
        )
    both = matrix & matrix.T
    np.fill_diagonal(both, False)
    if both.any():
        i, j = (names[int(k)] for k in np.argwhere(both)[0])
        raise OrderError(
            f"In this matrix {i!r} ≤ {j!r} and {j!r} ≤ {i!r}. In an order they would be one element: "
            "clear one of the two entries, or merge the elements."
        )


def not_transitive(
    matrix: NDArray[np.bool_], closed: NDArray[np.bool_], names: Sequence[Hashable]
) -> OrderError:
    """The error for a matrix that lacks an entry of its closure, with the two entries that call for it."""
    for i, k in np.argwhere(closed & ~matrix):
        between = np.flatnonzero(matrix[i] & matrix[:, k])
        if between.size:  # the first gap on a path has two steps: some gap always does
            a, b, c = names[int(i)], names[int(between[0])], names[int(k)]
            return OrderError(
                f"This matrix is not transitive: {a!r} ≤ {b!r} ≤ {c!r}, but {a!r} ≤ {c!r} is missing. "
                "Set that entry, or pass the pairs to Poset(elements, relations), which closes them."
            )
    raise AssertionError("the matrix is closed")


def read_mapping(parents: Mapping[Any, Any]) -> tuple[list[Hashable], list[tuple[Hashable, Hashable]]]:
    """Elements and relations of a mapping from children to parents.

    ``child: parent | [parents] | None``. Parents that are no keys come last.
    """
    elements = dict.fromkeys(parents)
    relations: list[tuple[Hashable, Hashable]] = []
    for child, above in parents.items():
        if above is None:
            continue
        if isinstance(above, tuple) and above not in elements:
            raise OrderError(f"The parent {above!r} of {child!r} is a tuple but no element. Pass a list.")
        several = above if isinstance(above, (list, set, frozenset)) else [above]
        relations.extend((child, parent) for parent in several)
    for _, parent in relations:
        try:
            elements.setdefault(parent)
        except TypeError:
            raise OrderError(f"The parent {parent!r} is not hashable, so it is no name.") from None
    return list(elements), relations


def cycle_error(names: Sequence[Hashable]) -> OrderError:
    """The error for relations that form a cycle.

    Each name lies below the next, the last below the first.
    """
    shown = [repr(name) for name in names]
    if len(shown) > 12:
        shown[6:-5] = [f"… {len(shown) - 11} more …"]
    cycle = " ≤ ".join([*shown, shown[0]])
    return OrderError(
        f"These relations form a cycle: {cycle}. In an order its elements would be equal: "
        "drop one of these relations, or merge the elements."
    )
