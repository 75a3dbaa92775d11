"""Exact choices that need only integers.

A uniform shuffle and a choice with integer weights.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import TypeVar

from isotone.errors import InputError
from isotone.noise.bits import random_below

__all__ = ["choose_integer", "shuffle"]

T = TypeVar("T")


def shuffle(items: Sequence[T]) -> list[T]:
    """The items in a uniformly random order.

    Returns a new list (Fisher and Yates).

    >>> sorted(shuffle([3, 1, 2]))
    [1, 2, 3]
    """
    order = list(items)
    for last in range(len(order) - 1, 0, -1):
        other = random_below(last + 1)
        order[last], order[other] = order[other], order[last]
    return order


def choose_integer(weights: Sequence[int]) -> int:
    """Choose an index ``i`` with probability ``weights[i] / sum(weights)``.

    The weights are integers of any size.

    >>> choose_integer([0, 10**50, 0])
    1
    """
    cumulative = list(accumulate(int(weight) for weight in weights))
    if not cumulative or cumulative[-1] <= 0 or min(weights) < 0:
        raise InputError("A choice needs weights that are 0 or above, at least one of them above 0.")
    return bisect_right(cumulative, random_below(cumulative[-1]))
