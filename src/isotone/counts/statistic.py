"""One checked count for each element of an order.

Counts of closed records are integers, not negative, and grow along the order: whoever says yes to ``a`` says
yes to everything above ``a``. :func:`check_counts` refuses anything else. Its messages name elements, which
are public, and never quote a count, which is not.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isotone.errors import InputError, OrderError
from isotone.noise.simulate import refuse_simulated
from isotone.order import Poset

__all__ = ["Counts", "check_counts", "check_records", "deviation"]

Counts = Any
"""Counts as a user gives them: a mapping (or a data-frame column) by name, or a sequence or array in the order
of ``P.elements``. No static type covers all of these; :func:`check_counts` does."""

_LARGEST = 2**62
"""Counts stay below this, so that a count plus noise cannot overflow 64 bits."""


def check_counts(P: Poset, counts: Counts) -> NDArray[np.int64]:
    """``counts`` as an integer vector in the order of ``P.elements``, or an error that names no count.

    A mapping must name every element of ``P`` exactly once; a sequence must have one entry per element, in
    the order of ``P.elements``. Whole numbers of any type are accepted, floats included.

    >>> from isotone.order import Poset
    >>> P = Poset(["hyp", "twice"], [("twice", "hyp")])
    >>> check_counts(P, {"twice": 80, "hyp": 120})
    array([120,  80])
    """
    refuse_simulated(counts)
    values = _as_integers(P, _in_order(P, counts))
    negative = np.flatnonzero(values < 0)
    if negative.size:
        raise InputError(
            f"The count of {P.elements[negative[0]]!r} is below 0. Pass the number of records that say yes."
        )
    pairs = P.cover_pairs
    broken = np.flatnonzero(values[pairs[:, 0]] > values[pairs[:, 1]])
    if broken.size:
        lower, upper = (P.elements[i] for i in pairs[broken[0]])
        raise OrderError(
            f"{lower!r} implies {upper!r}, but the counts given break that order. Counts of closed records "
            "never do: pass the records through close() first."
        )
    if P.choices:
        _check_choices(P, values)
    return values


def _check_choices(P: Poset, values: NDArray[np.int64]) -> None:
    """Refuse counts that no records with at most one option of each choice can have."""
    sums: dict[Hashable, tuple[str, int]] = {}
    for choice in P.choices:
        total = sum(int(values[P.index(option)]) for option in choice.options)
        sums[choice.options[0]] = choice.kind, total
    for option, upper in P.covers:
        kind, total = sums.get(option, ("any", 0))
        count = int(values[P.index(upper)])
        if total > count or (kind == "partition" and total < count):
            more = "add up to" if kind == "partition" else "are together at most"
            raise OrderError(
                f"{option!r} and its siblings exclude each other, so their counts {more} that of {upper!r}. The "
                "counts given do not. Give each record one option first."
            )


def _in_order(P: Poset, counts: Any) -> ArrayLike:
    """The raw counts, one for each element, in the order of ``P.elements``."""
    if hasattr(counts, "keys"):  # a mapping, or a data-frame column with names as its index
        named = cast("Mapping[Hashable, int]", counts)
        keys = list(named.keys())
        _check_names(P, keys)
        refuse_simulated([named[name] for name in keys])
        return [named[name] for name in P.elements]
    if isinstance(counts, (str, bytes)) or not (
        hasattr(counts, "__len__") and hasattr(counts, "__getitem__")
    ):
        raise InputError(
            f"Counts must be a mapping from element to count or a sequence of counts, not a "
            f"{type(counts).__name__}."
        )
    if len(counts) != len(P):
        raise InputError(
            f"The order has {len(P)} elements, but {len(counts)} counts were given. Pass one count for each "
            "element, in the order of P.elements, or a mapping by name."
        )
    return cast("ArrayLike", counts)


def _check_names(P: Poset, keys: Sequence[Hashable]) -> None:
    known = set(P.elements)
    unknown = [key for key in keys if key not in known]
    if unknown:
        guesses = get_close_matches(str(unknown[0]), [str(name) for name in P.elements], n=1)
        hint = f" Did you mean {guesses[0]!r}?" if guesses else ""
        raise InputError(f"{unknown[0]!r} is not an element of the order.{hint}")
    missing = known - set(keys)
    if missing or len(keys) != len(P):
        first = next((name for name in P.elements if name in missing), None)
        problem = f"No count is given for {first!r}." if missing else "An element is named more than once."
        raise InputError(f"{problem} Pass one count for each of the {len(P)} elements (0 is a count).")


def _as_integers(P: Poset, raw: ArrayLike) -> NDArray[np.int64]:
    """Whole numbers as int64. Anything else raises an error that names the element."""
    try:
        array = np.asarray(raw)
    except ValueError:
        array = np.empty((0, 0))
    if array.ndim != 1:
        raise InputError("Counts must be one number for each element: a flat sequence, not a table.")
    if array.dtype.kind in "iu" and np.all(array < _LARGEST):  # the quick path: no loop in Python
        return np.ascontiguousarray(array, dtype=np.int64)
    values = np.empty(len(array), dtype=np.int64)
    for i, item in enumerate(array.tolist()):
        whole = _whole(item)
        if whole is None:
            raise InputError(
                f"The count of {P.elements[i]!r} is not a whole number below 2**62. Counts are numbers of "
                "records: pass integers."
            )
        values[i] = whole
    return values


def _whole(item: Any) -> int | None:
    """``item`` as an int if it is a whole number of moderate size, else None."""
    if isinstance(item, bool) or not hasattr(item, "__int__") or isinstance(item, (str, bytes)):
        return None
    try:
        whole = int(item)
    except (ValueError, OverflowError, TypeError):  # NaN and infinities
        return None
    return whole if whole == item and abs(whole) < _LARGEST else None


def check_records(records: int, values: NDArray[np.int64]) -> int:
    """The number of records as an int. The message quotes neither it nor a count."""
    try:
        number = int(records.__index__())
    except (AttributeError, TypeError):
        raise InputError("The number of records must be a whole number.") from None
    if number >= 2**62:
        raise InputError("The number of records must be below 2**62.")
    if number < values.max():
        raise InputError("There are fewer records than one of the counts: pass the number of all records.")
    return number


def deviation(P: Poset, output: ArrayLike, counts: Counts | None) -> NDArray[np.float64]:
    """``output - counts`` (or ``output`` itself, as noise), with one entry per element in the last axis."""
    noise = np.asarray(output, dtype=float)
    if noise.ndim == 0 or noise.shape[-1] != len(P):
        raise InputError(f"The last axis must have one entry for each of the {len(P)} elements.")
    return noise if counts is None else noise - check_counts(P, counts).astype(float)
