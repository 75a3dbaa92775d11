"""Which element of an order a private value names."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from isotone.array_types import Ints
from isotone.reading.values import text_of, values_of

__all__ = ["Elements"]

Key = str | tuple["Key", ...]

DEEPEST = 8
"""How far tuples inside tuples are read."""


@dataclass(frozen=True)
class Elements:
    """The public elements by what they mean as values.

    A value names the element with the same text, so 7, 7.0 and "7" are one; where an order tells texts from numbers,
    each names its own kind. Lists name tuples. Elements without a text (members of an enumeration, say) are named by
    equal values of their own type.
    """

    names: dict[str, int] = field(repr=False)
    others: dict[Any, int] = field(repr=False)
    objects: dict[type, dict[Any, int]] = field(repr=False)

    @classmethod
    def of(cls, elements: Iterable[Any]) -> Elements:
        """The elements in their public sequence."""
        made = cls({}, {}, {})
        for number, element in enumerate(elements):
            if isinstance(element, str):
                made.names[element] = number
            elif (key := _key(element)) is not None:
                made.others.setdefault(key, number)
            else:
                made.objects.setdefault(type(element), {})[element] = number
        for name, number in list(made.names.items()):
            made.names.setdefault(text_of(name) or name, number)
        return made

    def locate(self, values: Any) -> Ints:
        """The number of each value's element, −1 where there is none. Nothing is raised or said."""
        return np.array([self._number(value) for value in values_of(values)], dtype=np.int64)

    def _number(self, value: Any) -> int:
        try:
            if type(value) in self.objects:
                return self.objects[type(value)].get(value, -1)
        except Exception:  # cannot be hashed or compared: names no element
            return -1
        if type(value) is str and value in self.names:
            return self.names[value]
        key = _key(value)
        first, second = (self.names, self.others) if isinstance(value, str) else (self.others, self.names)
        return -1 if key is None else first.get(key, second.get(key, -1))  # pyright: ignore[reportArgumentType, reportCallIssue]


def _key(value: Any, depth: int = DEEPEST) -> Key | None:
    """What a value is compared by. Its text, or those of the entries of a tuple or list."""
    if type(value) is np.ndarray:
        value = value.tolist()
    if type(value) is not tuple and type(value) is not list:
        return text_of(value)
    parts = [_key(part, depth - 1) for part in value] if depth else [None]
    return None if None in parts else tuple(part for part in parts if part is not None)
