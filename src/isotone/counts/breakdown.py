"""The public description of a breakdown, its attributes with lists of values and the margins that are asked for.

An attribute may have levels, such as state and county; a record has one value of the finest, which decides the others.
A margin names a level of some attributes. A record is in one cell of each margin.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from isotone.errors import InputError
from isotone.privacy.checks import did_you_mean, one_of, require_list, shown

T = TypeVar("T", np.int64, np.float64)

Margin = tuple[int, ...]
"""For each attribute the level that cells have, from 1 for the coarsest; 0 if all its values are one cell."""

MOST_NUMBERS = 20_000_000
"""A breakdown has at most so many cells of all attributes together, times elements."""

MOST_ATTRIBUTES, MOST_MARGINS = 12, 64
ALL, TOTAL, OTHER = "*", "", "other"


@dataclass(frozen=True)
class Attribute:
    """A public list of values. With several levels, coarsest first, ``parents`` are places in the level above."""

    names: tuple[str, ...]
    values: tuple[tuple[str, ...], ...]
    parents: tuple[tuple[int, ...], ...] = ()

    def size(self, level: int) -> int:
        """The number of values at a level, 1 at level 0."""
        return len(self.values[level - 1]) if level else 1

    @property
    def column(self) -> str:
        """The column that is read."""
        return self.names[-1]

    @property
    def finest(self) -> tuple[str, ...]:
        """The values that are read."""
        return self.values[-1]

    @cached_property
    def ancestors(self) -> tuple[NDArray[np.int64], ...]:
        """The place of every finest value at each level, from level 0 on."""
        result = [np.arange(len(self.finest))]
        for parents in reversed(self.parents):
            result.append(np.array(parents, np.int64)[result[-1]])
        return (np.zeros(len(self.finest), np.int64), *reversed(result))

    def with_other(self) -> Attribute:
        """With one more value for all that is not listed."""
        if any(OTHER in values for values in self.values):
            raise InputError(
                f"{self.names[-1]!r} lists {OTHER!r}, which is the name for all values that are not listed."
            )
        values = tuple((*level, OTHER) for level in self.values)
        parents = tuple((*p, len(above)) for p, above in zip(self.parents, self.values, strict=False))
        return Attribute(self.names, values, parents)


@dataclass(frozen=True)
class Breakdown:
    """Attributes and margins. ``unlisted`` says what happens to a record with a value that is in no list."""

    attributes: tuple[Attribute, ...]
    margins: tuple[Margin, ...]
    unlisted: str = "drop"

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The number of finest values of each attribute."""
        return tuple(len(a.finest) for a in self.attributes)

    @property
    def cells(self) -> int:
        """The number of cells of all attributes together."""
        return math.prod(self.shape)

    def sizes(self, margin: Margin) -> tuple[int, ...]:
        """The number of values of each attribute in a margin, 1 if it is not broken down by it."""
        return tuple(a.size(level) for a, level in zip(self.attributes, margin, strict=True))

    @cached_property
    def shapes(self) -> list[tuple[int, ...]]:
        """The sizes of each margin."""
        return [self.sizes(margin) for margin in self.margins]

    @cached_property
    def labels(self) -> list[str]:
        """Each margin in a word."""
        return [self.label(margin) for margin in self.margins]

    def names(self, margin: Margin) -> tuple[str, ...]:
        """What a margin is broken down by."""
        pairs = zip(self.attributes, margin, strict=True)
        return tuple(a.names[level - 1] for a, level in pairs if level)

    def label(self, margin: Margin) -> str:
        """A margin in a word."""
        return " × ".join(self.names(margin)) or "total"

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of all levels of all attributes."""
        return tuple(name for a in self.attributes for name in a.names)

    def tables(self, counts: NDArray[T]) -> list[NDArray[T]]:
        """The table of each margin, given the counts of all cells, one row each.

        Every margin is made from the same cells, so that a record is in one cell of each.
        """
        cube = counts.reshape(*self.shape, -1)
        return [self._table(cube, margin) for margin in self.margins]

    def _table(self, cube: NDArray[T], margin: Margin) -> NDArray[T]:
        for axis, (attribute, level) in enumerate(zip(self.attributes, margin, strict=True)):
            if level == 0:
                cube = cube.sum(axis=axis, keepdims=True)
            elif level < len(attribute.names):
                added = np.zeros(
                    (*cube.shape[:axis], attribute.size(level), *cube.shape[axis + 1 :]), cube.dtype
                )
                np.add.at(np.moveaxis(added, axis, 0), attribute.ancestors[level], np.moveaxis(cube, axis, 0))
                cube = added
        return cube

    def covers(self, finer: Margin, coarser: Margin) -> bool:
        """Whether the cells of one margin are sums of the cells of another."""
        return all(a >= b for a, b in zip(finer, coarser, strict=True))

    @property
    def finest(self) -> Margin | None:
        """The margin of which all others are sums, if there is one."""
        joint = tuple(max(levels) for levels in zip(*self.margins, strict=True))
        return joint if joint in self.margins else None

    def plain(self) -> dict[str, Any]:
        """As plain values, from which :func:`read_breakdown` makes it again."""
        groups: dict[str, Any] = {}
        listed = slice(None, -1) if self.unlisted == OTHER else slice(None)
        for a in self.attributes:
            groups[a.names[0]] = list(a.values[0][listed])
            for name, values, parents, above in zip(
                a.names[1:], a.values[1:], a.parents, a.values, strict=False
            ):
                groups[name] = {v: above[p] for v, p in zip(values[listed], parents[listed], strict=True)}
        return {
            "by": list(self.columns),
            "groups": groups,
            "margins": [list(self.names(margin)) for margin in self.margins],
            "unlisted": self.unlisted,
        }


def read_breakdown(
    by: Sequence[str], groups: Mapping[str, Any], margins: Sequence[Any] | None, unlisted: Any = "drop"
) -> Breakdown:
    """The breakdown that a release is asked for, or an error that says what is wrong.

    ``groups`` has a list of values for each name of ``by``, or for a finer level a mapping of its values to those of
    the name before it.
    """
    unlisted = one_of(unlisted, "unlisted", ("drop", OTHER))
    attributes = _attributes(by, groups)
    if unlisted == OTHER:
        attributes = [a.with_other() for a in attributes]
    result = Breakdown(tuple(attributes), (), unlisted)
    listed = (
        _default(attributes) if margins is None else [margin_of(result, names) for names in _listed(margins)]
    )
    if not listed or len(listed) > MOST_MARGINS:
        raise InputError(f"A breakdown has 1 to {MOST_MARGINS} margins, not {len(listed)}.")
    for i, margin in enumerate(listed):
        if margin in listed[:i]:
            raise InputError(f"The margin {result.label(margin)!r} is listed twice.")
    for a, levels in zip(attributes, zip(*listed, strict=True), strict=True):
        if max(levels) < len(a.names):
            raise InputError(f"by names {a.column!r}, which is in no margin. Leave it out.")
    return Breakdown(tuple(attributes), tuple(listed), unlisted)


def _listed(margins: Any) -> list[Any]:
    require_list(margins, "margins", 'margins such as ["", "region", "*"]')
    return list(margins)


def _attributes(by: Sequence[str], groups: Mapping[str, Any]) -> list[Attribute]:
    if not by or len(by) > MOST_ATTRIBUTES:
        raise InputError(f"by must name 1 to {MOST_ATTRIBUTES} attributes.")
    if len(set(by)) < len(by):
        raise InputError("by names an attribute twice.")
    strangers = sorted(set(groups) ^ set(by))
    if strangers:
        raise InputError(
            f"by and groups must name the same attributes; {strangers[0]!r} is in one of them only."
        )
    result: list[Attribute] = []
    for name in by:
        listed = groups[name]
        if not isinstance(listed, Mapping):
            result.append(Attribute((name,), (tuple(listed),)))
            continue
        if not result:
            raise InputError(f"{name!r} maps values to a coarser level, which must stand before it in by.")
        result[-1] = _with_level(result[-1], name, listed)  # pyright: ignore[reportUnknownArgumentType]
    for attribute in result:
        for level, values in zip(attribute.names, attribute.values, strict=True):
            if not values or len(set(values)) < len(values):
                raise InputError(f"{level!r} must have a public list of distinct values, with at least one.")
    return result


def _with_level(attribute: Attribute, name: str, parents: Mapping[str, str]) -> Attribute:
    """An attribute with one more level, finer than the others."""
    place = {value: i for i, value in enumerate(attribute.finest)}
    for value, parent in parents.items():
        if parent not in place:
            raise InputError(
                f"{name!r} says that {shown(value)} is in {shown(parent)}, which {attribute.column!r} does not list."
            )
    empty = sorted(set(place) - set(parents.values()))
    if empty:
        raise InputError(f"{shown(empty[0])} of {attribute.column!r} has no value of {name!r} in it.")
    # those with one parent stand side by side
    ordered = sorted(parents, key=lambda value: place[parents[value]])
    return Attribute(
        (*attribute.names, name),
        (*attribute.values, tuple(ordered)),
        (*attribute.parents, tuple(place[parents[value]] for value in ordered)),
    )


def _default(attributes: Sequence[Attribute]) -> list[Margin]:
    """The total, every level of every attribute, and all attributes together."""
    none = [0] * len(attributes)
    single = [
        (*none[:i], level, *none[i + 1 :])
        for i, a in enumerate(attributes)
        for level in range(1, len(a.names) + 1)
    ]
    everything = tuple(len(a.names) for a in attributes)
    return list(dict.fromkeys([tuple(none), *single, everything]))


def margin_of(breakdown: Breakdown, margin: Any) -> Margin:
    """A margin as the user names it, "" for the total, "*" for all attributes, a name, or several."""
    if isinstance(margin, str) and margin == ALL:
        return tuple(len(a.names) for a in breakdown.attributes)
    names = [name for name in [margin] if name != TOTAL] if isinstance(margin, str) else margin
    if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):  # pyright: ignore[reportUnknownVariableType]
        raise InputError(f"A margin is a name of by, several of them, '' or '*', not {shown(margin)}.")
    place = {
        name: (i, level) for i, a in enumerate(breakdown.attributes) for level, name in enumerate(a.names, 1)
    }
    levels = [0] * len(breakdown.attributes)
    for name in names:  # pyright: ignore[reportUnknownVariableType]
        if name not in place:
            near = did_you_mean(str(name), place) or f"; there are: {', '.join(place)}"  # pyright: ignore[reportUnknownArgumentType]
            raise InputError(f"The margin {shown(margin)} does not exist: by does not name {name!r}{near}")
        i, level = place[name]
        if levels[i]:
            raise InputError(
                f"The margin {shown(margin)} names one attribute twice. Name its finer level alone."
            )
        levels[i] = level
    return tuple(levels)
