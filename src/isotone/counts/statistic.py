"""Counts of records: what is accepted, how records are cut to a size, and how far one unit moves the counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence, Set
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isotone.errors import InputError, OrderError
from isotone.noise.simulate import refuse_simulated
from isotone.order import Poset
from isotone.order.closure import Options, innermost_first, partitions_upward
from isotone.privacy.adjacency import Neighbours
from isotone.privacy.checks import whole_number
from isotone.privacy.guarantee import Unit

__all__ = [
    "Counts",
    "Sensitivity",
    "check_counts",
    "check_records",
    "cut",
    "cut_all",
    "deviation",
    "largest_record",
]


# One checked count for each element of an order.
#
# Counts of closed records are integers, not negative, and grow along the order: whoever says yes to ``a`` says
# yes to everything above ``a``. :func:`check_counts` refuses anything else. Its messages name elements, which
# are public, and never quote a count, which is not.

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


# Cutting records to at most k yeses, by a rule that looks at nothing but the order.
#
# Walk the canonical linear extension (by level, then name) from the top and keep the first k yeses of the record. What is kept of a filter
# is a filter: everything above a kept element is a yes and was met before it, so it was kept too
# (docs/theory/baselines.md, section 7). A yes whose partition has lost its option is taken back, with all below it. The rule depends on the order alone, so one record is cut the same way
# whatever the others are.


def cut(P: Poset, record: Any, max_size: int) -> Any:
    """A record cut to at most ``max_size`` yeses.

    It keeps its own form, a mapping, a set of names or an array.

    The record is closed upward first; the first ``max_size`` of its yeses from the top are kept.

    >>> from isotone.order import Poset
    >>> P = Poset(["app", "toolkit", "libc"], [("app", "toolkit"), ("toolkit", "libc")])
    >>> sorted(cut(P, {"app"}, 2))
    ['libc', 'toolkit']
    """
    closed = P.close(record)
    if isinstance(closed, Mapping):
        answers = np.array([bool(closed[name]) for name in P.elements])
        kept = cut_all(P, answers[None, :], max_size)[0]
        return dict(zip(P.elements, kept.tolist(), strict=True))
    if isinstance(closed, Set):
        answers = np.array([name in closed for name in P.elements])
        kept = cut_all(P, answers[None, :], max_size)[0]
        return frozenset(name for name, keep in zip(P.elements, kept, strict=True) if keep)
    return cut_all(P, np.asarray(closed)[None, :], max_size)[0]


def cut_all(P: Poset, records: ArrayLike, max_size: int) -> NDArray[np.bool_]:
    """Each row of a 0/1 matrix of *filters* (records × elements) cut to at most ``max_size`` yeses.

    Rows must be closed upward already (``P.close_all``); this is not checked again.
    """
    largest = whole_number(max_size, "max_size")
    answers = np.asarray(records, dtype=np.bool_)
    if answers.ndim != 2 or answers.shape[1] != len(P):
        raise InputError(f"Records must be a matrix with one column for each of the {len(P)} elements.")
    from_the_top = P.canonical.positions[::-1]
    kept = np.zeros_like(answers)
    walked = answers[:, from_the_top]
    kept[:, from_the_top] = walked & (np.cumsum(walked, axis=1) <= largest)
    for top, options, others in partitions_upward(P):
        lost = kept[:, P.index(top)] & ~np.any(kept[:, [P.index(x) for x in options]], axis=1)
        kept[np.ix_(lost, [P.index(x) for x in (top, *others)])] = False
    return kept


# How far one privacy unit can move the vector of counts, in the ℓ1, ℓ2 and ℓ∞ norms.
#
# One record moves the counts by the indicator of a filter; replacing it by another moves them by the
# difference of two, whose entries are -1, 0 or 1. So one number decides all three norms: the largest number of
# coordinates that can move (docs/theory/baselines.md, section 1).


@dataclass(frozen=True)
class Sensitivity:
    """How far one privacy unit can move the counts.

    ``records`` records change (:attr:`~isotone.privacy.guarantee.Unit.changes`), each moving at most ``coordinates`` counts by one.

    >>> from isotone.order import Poset
    >>> Sensitivity.of(Poset.antichain("abcdef"), max_size=4)
    Sensitivity(records=1, coordinates=4)
    >>> Sensitivity.of(Poset.antichain("abcdef"), neighbours="replace", contributions=2).l1
    12
    """

    records: int
    coordinates: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "records", whole_number(self.records, "records"))
        object.__setattr__(self, "coordinates", whole_number(self.coordinates, "coordinates", least=0))

    @classmethod
    def of(
        cls,
        P: Poset,
        neighbours: Neighbours = "add-remove",
        contributions: int = 1,
        max_size: int | None = None,
    ) -> Sensitivity:
        """The sensitivity of the counts over ``P`` when a unit gives up to ``contributions`` records, each
        with at most ``max_size`` yeses (None: no bound).
        """
        unit = Unit(contributions, neighbours)
        longest = largest_record(P)
        largest = longest if max_size is None else min(longest, whole_number(max_size, "max_size"))
        if not unit.adjacency.exchanges or largest == len(P):
            return cls(unit.changes, largest)
        top = _top_chain(P)
        return cls(unit.changes, max(largest, min(2 * (largest - top), len(P) - top)))

    @property
    def l1(self) -> int:
        """The largest ℓ1 norm of a unit's change."""
        return self.records * self.coordinates

    @property
    def l2_squared(self) -> int:
        """The largest squared ℓ2 norm of a unit's change."""
        return self.records**2 * self.coordinates

    @property
    def linf(self) -> int:
        """The largest ℓ∞ norm of a unit's change."""
        return self.records


def largest_record(P: Poset) -> int:
    """The largest number of elements in one record.

    Of the options of a choice only the one with the largest part of a record below it counts.

    >>> from isotone.order import Poset
    >>> largest_record(Poset.from_mapping({"a": "q", "b": "q", "b1": "b"}, children={"q": "exclusive"}))
    3
    """
    if not P.choices:
        return len(P)
    options = Options.of(P)
    most = Counter(options.nearest.values())  # elements whose lowest option this is, itself included
    for choice in innermost_first(P):
        most[options.enclosing[choice.options[0]]] += max(most[option] for option in choice.options)
    return most[None]


def _top_chain(P: Poset) -> int:
    """The number of elements that form a chain above all the rest.

    Every filter that is not among them holds them all.
    """
    below = np.sort(np.sum(P.leq_matrix(), axis=0))[::-1]
    expected = len(P) - np.arange(len(P))
    differs = np.flatnonzero(below != expected)
    return int(differs[0]) if differs.size else len(P)
