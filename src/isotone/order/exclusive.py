"""Elements that exclude each other.

A *choice* is a group of elements, its options, of which a record has at most one (``exclusive``) or exactly one
as soon as it has their parent (``partition``: their counts add up to that of the parent). Elements without a
choice combine freely (``any``).

A choice can be recoded as an order (:mod:`isotone.order.closure`) if nothing but an option itself connects what is below
it with the rest, and if all its options have the same elements above them. Anything else is refused here.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from isotone.errors import OrderError

if TYPE_CHECKING:
    from isotone.order.poset import Poset

__all__ = [
    "Children",
    "Choice",
    "Kind",
    "check_choices",
    "never_together",
    "read_children",
    "read_choices",
    "some_record",
]

Kind = Literal["any", "exclusive", "partition"]
"""What can occur together among the children of an element."""

Children = Kind | Mapping[Any, Any]
"""One kind for all elements, or by element a kind or a list of groups ``(kind, options)``.

The key None stands for the elements that have nothing above them."""

_REPAIR = "Declare its options any, or describe another order."


@dataclass(frozen=True)
class Choice:
    """Options that exclude each other, in the sequence of the order's elements.

    Of a ``partition`` a record has exactly one if it has the parent, of an ``exclusive`` choice one at most.
    """

    kind: Literal["exclusive", "partition"]
    options: tuple[Hashable, ...]


def read_choices(choices: Iterable[Any], index: Mapping[Hashable, int]) -> tuple[Choice, ...]:
    """The choices given as pairs ``(kind, options)``, or as :class:`Choice`, in the sequence of the elements."""
    found: list[Choice] = []
    for choice in choices:
        kind, options = _pair(choice)
        for option in options:
            if option not in index:
                raise OrderError(f"The option {option!r} of a choice is not an element of this order.")
        if len(set(options)) < len(options):
            raise OrderError(f"A choice names an option twice: {options!r}. Name each once.")
        # one option that may be missing excludes nothing
        if kind == "partition" or (kind == "exclusive" and len(options) > 1):
            found.append(Choice(kind, tuple(sorted(options, key=index.__getitem__))))
    _require_disjoint(found)
    return tuple(sorted(found, key=lambda choice: index[choice.options[0]]))


def _pair(choice: Any) -> tuple[Kind, list[Any]]:
    given = (choice.kind, choice.options) if isinstance(choice, Choice) else choice
    try:
        kind, options = given
        names = None if isinstance(options, (str, bytes)) else list(options)
    except (TypeError, ValueError):
        kind, names = None, None
    if names is None:
        raise OrderError(f"A choice is a pair (kind, [options]), not {choice!r}.")
    if not names:
        raise OrderError("A choice needs at least one option.")
    return _kind(kind), names


def _kind(kind: Any) -> Kind:
    if not isinstance(kind, str) or kind not in get_args(Kind):
        raise OrderError(f"Children are 'any', 'exclusive' or 'partition', not {kind!r}.")
    return kind  # pyright: ignore[reportReturnType] - one of the names


def _require_disjoint(choices: Iterable[Choice]) -> None:
    seen: set[Hashable] = set()
    for choice in choices:
        for option in choice.options:
            if option in seen:
                raise OrderError(
                    f"{option!r} is an option of two choices. Groups of options must not overlap: put the options "
                    "that exclude it below one element, and let that element exclude it."
                )
            seen.add(option)


def read_children(
    children: Children, elements: Iterable[Hashable], relations: Iterable[tuple[Hashable, Hashable]]
) -> list[tuple[Kind, list[Hashable]]]:
    """The choices that ``children`` declares for an order given by its elements and relations."""
    below: dict[Hashable, list[Hashable]] = {}
    has_parent: set[Hashable] = set()
    for child, parent in dict.fromkeys(relations):  # which may repeat, and say no more then
        if child != parent:
            below.setdefault(parent, []).append(child)
            has_parent.add(child)
    names = list(elements)
    roots = [x for x in names if x not in has_parent]
    if not isinstance(children, Mapping):
        kind = _kind(children)
        found: list[tuple[Kind, list[Hashable]]] = [(kind, group) for group in below.values()]
        # one code for a record means one root for it too
        return [*found, ("exclusive", roots)] if kind == "partition" and len(roots) > 1 else found
    known = {*names, None}
    result: list[tuple[Kind, list[Hashable]]] = []
    for parent, said in children.items():
        if parent not in known:
            raise OrderError(f"children= names {parent!r}, which is not an element of this order.")
        group = roots if parent is None else below.get(parent, [])
        result += _groups(parent, said, group)
    return result


def _groups(parent: Any, said: Any, group: list[Hashable]) -> list[tuple[Kind, list[Hashable]]]:
    """The choices below one element."""
    if isinstance(said, str):
        kind = _kind(said)
        if parent is None and kind == "partition":
            raise OrderError(
                "A partition needs a parent: elements with nothing above them are exclusive at most."
            )
        if not group and kind != "any":
            raise OrderError(f"{parent!r} has no children, so they cannot be {kind}.")
        return [(kind, group)] if group else []
    if isinstance(said, Mapping) or not isinstance(said, Iterable):
        raise OrderError(f"children= of {parent!r} is a kind, or a list of groups (kind, [options]).")
    result = [_pair(part) for part in said]
    for _, options in result:
        strange = [option for option in options if option not in group]
        if strange:
            raise OrderError(f"{strange[0]!r} is not a child of {parent!r}, so it is no option below it.")
    return result


def check_choices(P: Poset) -> None:
    """Refuse choices that cannot be recoded as an order, with the reason."""
    if not P.choices:
        return
    uppers: dict[Hashable, set[Hashable]] = {}
    for lower, upper in P.covers:
        uppers.setdefault(lower, set()).add(upper)
    for choice in P.choices:
        first, *others = choice.options
        above = uppers.get(first, set())
        for option in others:
            if uppers.get(option, set()) != above:
                raise OrderError(
                    f"{first!r} and {option!r} cannot exclude each other: not the same elements are above them. "
                    f"{_REPAIR}"
                )
        if choice.kind == "partition" and len(above) != 1:
            missing = "nothing is above them" if not above else "several elements are above them"
            raise OrderError(
                f"{first!r} and its siblings are no partition: {missing}. A partition needs one parent; without "
                "it, declare them exclusive."
            )
        for option in () if P.is_forest else choice.options:
            _require_module(P, option, uppers)


def some_record(P: Poset, wanted: Iterable[Hashable]) -> frozenset[Hashable]:
    """A record with as many of the elements wanted as a walk from the top finds possible.

    >>> from isotone.order import Poset
    >>> P = Poset.from_mapping({"a": "q", "b": "q"}, children="partition")
    >>> sorted(some_record(P, ["q"])), sorted(some_record(P, ["q", "b"]))
    (['a', 'q'], ['b', 'q'])
    """
    asked = set(wanted)
    taken: dict[Hashable, Hashable | None] = {}
    for choice in P.choices:
        first = choice.options[0] if choice.kind == "partition" else None
        only = next((option for option in choice.options if option in asked), first)
        taken.update(dict.fromkeys(choice.options, only))
    uppers: dict[Hashable, list[Hashable]] = {}
    for lower, upper in P.covers:
        uppers.setdefault(lower, []).append(upper)
    record: set[Hashable] = set()
    for x in reversed(P.linear_extension()):
        said = x == taken[x] if x in taken else x in asked
        if said and all(upper in record for upper in uppers.get(x, ())):
            record.add(x)
    return frozenset(record)


def never_together(P: Poset) -> NDArray[np.bool_]:
    """A matrix that says which two elements no record has together.

    >>> from isotone.order import Poset
    >>> never_together(Poset("abc", (), [("exclusive", ["a", "b"])])).astype(int).tolist()
    [[0, 1, 0], [1, 0, 0], [0, 0, 0]]
    """
    apart = np.zeros((len(P), len(P)), np.bool_)
    for choice in P.choices:
        part = np.full(len(P), -1)
        for number, option in enumerate(choice.options):
            part[[P.index(x) for x in P.down_set(option)]] = number
        inside = part >= 0
        apart |= inside[:, None] & inside & (part[:, None] != part)
    return apart


def _require_module(P: Poset, option: Hashable, uppers: Mapping[Hashable, set[Hashable]]) -> None:
    """Refuse an option if something below it has a way up around it."""
    inside = P.down_set(option)
    for x in inside:
        if x != option and not uppers.get(x, set()) <= inside:
            outside = next(iter(sorted(uppers[x] - inside, key=str)))
            raise OrderError(
                f"{option!r} cannot be an option: {x!r} below it also implies {outside!r}, which is not below "
                f"{option!r}. {_REPAIR}"
            )
