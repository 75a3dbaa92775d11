"""Samplers without randomness: every path of a sampler, or one chosen path.

A sampler that asks for integers below small bounds can be followed down all its paths: the probabilities of the
outcomes are then exact lower bounds, and what is missing is the mass of the paths not followed to their end. A
sampler that asks for words can be given the words of the test's choice.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

__all__ = ["Law", "Script", "follow_all_paths"]


@dataclass(frozen=True)
class Law:
    """Outcomes with exact lower bounds of their probabilities, and the mass of the paths not followed."""

    reached: dict[Any, Fraction]
    unexplored: Fraction

    def allows(self, outcome: Any, probability: Fraction | float) -> bool:
        """Whether the outcome may have this probability."""
        reached = self.reached.get(outcome, Fraction(0))
        return reached <= probability <= reached + self.unexplored


class _BranchError(Exception):
    def __init__(self, options: int) -> None:
        self.options = options


def follow_all_paths(
    sampler: Callable[[], Any],
    patch: pytest.MonkeyPatch,
    sources: Iterable[str],
    smallest: Fraction = Fraction(1, 10**6),
) -> Law:
    """The law of ``sampler``, by every path of probability at least ``smallest``.

    ``sources`` are the names (with their modules) that the sampler draws from: each a ``random_below`` or a
    ``random_bits``, which is replaced by the choices of the path.
    """
    path: list[int] = []
    position = 0

    def choose(options: int) -> int:
        nonlocal position
        if options == 1:
            return 0
        if position == len(path):
            raise _BranchError(options)
        position += 1
        return path[position - 1]

    for source in sources:
        module, name = source.rsplit(".", 1)
        fake = choose if name == "random_below" else lambda count: choose(1 << count)
        patch.setattr(import_module(module), name, fake)
    reached: dict[Any, Fraction] = defaultdict(Fraction)
    unexplored = Fraction(0)
    waiting: list[tuple[list[int], Fraction]] = [([], Fraction(1))]
    while waiting:
        path, mass = waiting.pop()
        position = 0
        try:
            reached[sampler()] += mass
        except _BranchError as branch:
            if mass / branch.options < smallest:
                unexplored += mass
            else:
                waiting += [([*path, option], mass / branch.options) for option in range(branch.options)]
    return Law(dict(reached), unexplored)


@dataclass
class Script:
    """A source of words and bits that reads from a list, and then repeats a last word for ever."""

    words: list[int]
    after: int = 0
    used: int = field(default=0, init=False)

    def next_word(self) -> int:
        """The next 64-bit word."""
        self.used += 1
        return self.words[self.used - 1] if self.used <= len(self.words) else self.after

    def random_words(self, count: int) -> NDArray[np.uint64]:
        """Stands in for ``bits.random_words``."""
        return np.array([self.next_word() for _ in range(count)], dtype=np.uint64)

    def random_bits(self, count: int) -> int:
        """Stands in for ``bits.random_bits``; high bits of each word come first."""
        value = 0
        whole, rest = divmod(count, 64)
        for _ in range(whole):
            value = value << 64 | self.next_word()
        return value << rest | (self.next_word() >> (64 - rest)) if rest else value
