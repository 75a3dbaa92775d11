"""Relax an order until its tables can be built.

Some of its relations are left out.

If Q has some of the relations of P, every record of P is a record of Q, so noise shaped by Q is as private for P
as noise shaped by P, and only a little larger; and every extended bipartition of P is one of Q, so those of P can
be drawn by rejection (docs/theory/counts.md, section 9). How much larger the noise is, and how often a draw is
kept, depends on the number of extended bipartitions of Q: the fewer the better.

The search begins with many greedy relaxations. The best few go on: each takes a few elements out and puts them back in
another order, again and again (ruin and recreate). From round to round fewer of them are left and larger blocks are
allowed. It looks at the order only, which is public.
"""

from __future__ import annotations

import math
import time
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotone.counts.sampling.kept_draws import Starts
from isotone.counts.sampling.relaxations.relaxation_count import LogCount
from isotone.counts.sampling.relaxations.relaxation_modules import Matrix
from isotone.counts.sampling.relaxations.relaxation_search import put_back, try_pairs
from isotone.errors import InputError, OrderError
from isotone.mechanism import Progress, no_progress
from isotone.order.bipartitions.extended import within_reach
from isotone.order.poset import Poset

__all__ = ["Relaxation", "relax"]

REACH = 1 << 20
"""The largest prime block of a relaxation unless told otherwise."""

ROUNDS = (
    (0.03, 18, 10.0),
    (0.27, 4, 10.0),
    (0.45, 2, 14.0),
    (0.6, 1, 17.0),
    (1.0, 1, math.inf),
)
"""Until these shares of the steps so many relaxations are worked on, with blocks of so many states at most (binary logarithms).

In the first round they are new ones. Steps are quicker with small blocks."""

KEEP, SLACK = 0.05, 1.0
"""How much worse the log count may get in a step, and how much worse than the best so far (record-to-record travel).

The second, times the share of the steps that is left, counts once a single relaxation is left."""

HOPE = 0.7
"""All relations are tried once more in a relaxation whose log count is not more than so much worse."""

OUT = (2, 3, 4, 6, 8)
"""How many elements are taken out."""


@dataclass(frozen=True)
class Relaxation:
    """Some of the relations of an order.

    The covers (lower, upper) of the relaxed one, by name. ``restored`` are further relations that draws must have
    to be kept; None if it has not been looked for any. ``draws`` says where the draws of its law begin, so that
    readers draw them again at once (:mod:`isotone.counts.sampling.kept_draws`).

    It is a plain value, to be kept with a plan: release and verification must use the same one.
    """

    relations: tuple[tuple[Hashable, Hashable], ...]
    restored: tuple[tuple[Hashable, Hashable], ...] | None = None
    draws: Starts = field(default=(), repr=False)

    @classmethod
    def of(
        cls,
        relations: Iterable[Iterable[Hashable]],
        restored: Iterable[Iterable[Hashable]] | None = None,
        draws: Mapping[str, Sequence[int]] | None = None,
    ) -> Relaxation:
        """From pairs of names in any form, such as those read from a file."""
        starts = tuple((stream, tuple(words)) for stream, words in (draws or {}).items())
        return cls(_pairs(relations), None if restored is None else _pairs(restored), starts)

    @classmethod
    def from_plain(cls, given: Any) -> Relaxation:
        """From plain values, those of :meth:`plain`, or a list of pairs alone."""
        parts: Any = dict(given) if isinstance(given, dict) else {"relations": given}  # pyright: ignore[reportUnknownArgumentType]
        if not set(parts) <= {"relations", "restored", "draws"} or "relations" not in parts:
            raise InputError(
                "A relaxation has relations and may have restored, both lists of pairs of names, and draws."
            )
        draws = parts.pop("draws", {})
        if not isinstance(draws, dict) or not all(map(_are_words, draws.items())):  # pyright: ignore[reportUnknownArgumentType]
            raise InputError(
                "The draws of a relaxation are lists of whole numbers that go up, by name of a stream."
            )
        for pairs in parts.values():
            if not isinstance(pairs, (list, tuple)) or not all(map(_is_pair, pairs)):  # pyright: ignore[reportUnknownArgumentType]
                raise InputError("The relations of a relaxation are a list of pairs [lower, upper] of names.")
        return cls.of(**parts, draws=draws)  # pyright: ignore[reportUnknownArgumentType]

    def plain(self) -> dict[str, Any]:
        """The relations as plain values, for a file."""
        parts = {"relations": self.relations}
        if self.restored is not None:
            parts["restored"] = self.restored
        said: dict[str, Any] = {
            name: [[str(lower), str(upper)] for lower, upper in pairs] for name, pairs in parts.items()
        }
        return {**said, "draws": {name: list(words) for name, words in self.draws}} if self.draws else said

    def order(self, P: Poset) -> Poset:
        """The relaxed order on the elements of ``P``, without what is restored.

        Raises an error if it relates what ``P`` does not.
        """
        return _checked(P, self.relations)

    def kept(self, P: Poset) -> Poset:
        """The order that draws must fit, the relaxed one with what is restored."""
        return _checked(P, self.relations + (self.restored or ()))

    def dropped(self, P: Poset) -> NDArray[np.int64]:
        """The pairs (lower, upper) of positions that ``P`` relates and the relaxed order does not."""
        return np.argwhere(P.leq_matrix() & ~self.order(P).leq_matrix())


def _is_pair(given: Any) -> bool:
    return isinstance(given, (list, tuple)) and [isinstance(name, str) for name in given] == [True, True]  # pyright: ignore[reportUnknownVariableType]


def _are_words(entry: tuple[Any, Any]) -> bool:
    """Whether a name goes with whole numbers that go up and fit a machine word."""
    name, words = entry
    return (
        isinstance(name, str)
        and isinstance(words, (list, tuple))
        and all(type(word) is int and 0 <= word < 2**62 for word in words)  # pyright: ignore[reportUnknownVariableType]
        and all(one < other for one, other in pairwise(words))  # pyright: ignore[reportUnknownArgumentType]
    )


def _pairs(relations: Iterable[Iterable[Hashable]]) -> tuple[tuple[Hashable, Hashable], ...]:
    return tuple((lower, upper) for lower, upper in relations)


def _checked(P: Poset, relations: Iterable[tuple[Hashable, Hashable]]) -> Poset:
    """The order with these relations, which ``P`` must have as well."""
    pairs = tuple(relations)
    for lower, upper in pairs:
        if not P.leq(lower, upper):
            raise OrderError(
                f"The relaxation says that {lower!r} implies {upper!r}, which the order does not. It belongs "
                "to another order: relax this one again."
            )
    return Poset(P.elements, pairs)


def relax(
    P: Poset,
    *,
    seed: int = 0,
    steps: int = 600,
    seconds: float | None = None,
    reach: int = REACH,
    progress: Progress = no_progress,
) -> Relaxation:
    """A relaxation of ``P`` with no prime block above ``reach`` states and few extended bipartitions.

    The same ``seed`` and ``steps`` give the same result, unless ``seconds`` ends the search early. An order
    within reach is its own relaxation.

    >>> relax(Poset.chain("abc")).relations
    (('a', 'b'), ('b', 'c'))
    """
    order = P.canonical.order
    if steps < 1:
        raise InputError(f"A search takes at least one step, not {steps!r}.")
    if within_reach(order, reach):
        progress(1.0, "within reach")
        return Relaxation(order.covers)
    search = _RelaxationSearch(order, reach, np.random.default_rng(seed))
    started, limit = time.monotonic(), math.inf if seconds is None else max(seconds, 1e-9)
    for step in range(steps):
        spent = max(step / steps, (time.monotonic() - started) / limit)
        if spent >= 1 and step > 0:
            break
        spent = min(spent, 1.0)
        search.step(spent)
        progress(spent, f"relaxing the order: log count {search.best.best_log:.2f}")
    progress(1.0, f"relaxed: log count {search.best.best_log:.2f}")
    return Relaxation(_poset(order, search.best.best).covers)


@dataclass(eq=False)
class _Contender:
    """A relaxation that is being changed, and the best that it has been."""

    current: Matrix
    current_log: float = math.inf
    best: Matrix = field(init=False)
    best_log: float = math.inf

    def __post_init__(self) -> None:
        self.best = self.current


class _RelaxationSearch:
    """The relaxations that are left in this round of a search."""

    def __init__(self, P: Poset, reach: int, rng: np.random.Generator) -> None:
        self.P, self.reach, self.rng = P, float(np.log2(reach)), rng
        strict = P.leq_matrix() & ~np.eye(len(P), dtype=np.bool_)
        self.goal: Matrix = strict.astype(np.int8) + 2 * strict.T.astype(np.int8)
        self.log_count = LogCount()
        self.round, self.turn, self.limit, self.slack = -1, 0, self.reach, -math.inf
        self.left: list[_Contender] = []

    @property
    def best(self) -> _Contender:
        """The one with the best relaxation so far."""
        return min(self.left, key=lambda contender: contender.best_log)

    def step(self, spent: float) -> None:
        """A step of the search, of which the share ``spent`` is over."""
        number = next((i for i, (share, _, _) in enumerate(ROUNDS) if spent < share), len(ROUNDS) - 1)
        if number > 0 and number != self.round:
            self.left = sorted(self.left, key=lambda contender: contender.best_log)[: ROUNDS[number][1]]
            for contender in self.left:
                contender.current, contender.current_log = contender.best, contender.best_log
        self.round, self.limit = number, min(ROUNDS[number][2], self.reach)
        self.slack = SLACK * (1 - spent) if len(self.left) == 1 else -math.inf
        if number == 0 or not self.left:
            self.start()
        else:
            self.turn += 1
            self.recreate(self.left[self.turn % len(self.left)])

    def start(self) -> None:
        """A greedy relaxation from nothing, in one of four orders of insertion."""
        n = len(self.P)
        below, above = (self.goal == 2).sum(axis=1), (self.goal == 1).sum(axis=1)
        keys = (np.zeros(n), below, -(below + above), above)
        order = np.lexsort((self.rng.random(n), keys[self.rng.integers(4)])).astype(np.int64)
        new = _Contender(np.zeros_like(self.goal))
        self._consider(new, new.current.copy(), np.zeros(n, np.bool_), order)
        self.left.append(new)

    def recreate(self, contender: _Contender) -> None:
        """Take a few elements out of a relaxation and put them back in another order."""
        n, out = len(self.P), self._taken_out(contender.current)
        found = contender.current.copy()
        found[out, :] = 0
        found[:, out] = 0
        placed = np.ones(n, np.bool_)
        placed[out] = False
        self._consider(contender, found, placed, self.rng.permutation(out).astype(np.int64))

    def _taken_out(self, current: Matrix) -> NDArray[np.int64]:
        """A few elements, two that miss a relation with some related to them, or one with some related to it, or any."""
        n, missing = len(self.P), np.argwhere((self.goal == 1) & (current == 0))
        if self.rng.random() >= 0.5 and len(missing):
            centre = missing[self.rng.integers(len(missing))]
            count = int(self.rng.choice(OUT))
        else:
            count = min(int(self.rng.choice(OUT)), n)
            if self.rng.random() >= 0.5:
                return self.rng.choice(n, count, replace=False)
            centre = self.rng.integers(n, size=1)
        related = self.rng.permutation(np.flatnonzero(np.any(self.goal[centre] > 0, axis=0)))
        return np.append(centre, related[~np.isin(related, centre)][: count - len(centre)])

    def _consider(
        self, contender: _Contender, found: Matrix, placed: NDArray[np.bool_], order: NDArray[np.int64]
    ) -> None:
        """Complete a relaxation, and go on from it unless it is much worse."""
        put_back(self.goal, found, placed, order, self.limit, int(self.rng.integers(3)))
        log = self.log_count(found)
        if log < contender.current_log + HOPE:
            missing = self.rng.permutation(np.argwhere((self.goal == 1) & (found == 0)))
            try_pairs(found, missing, self.limit)
            log = self.log_count(found)
        if log < max(contender.current_log + KEEP, contender.best_log + self.slack):
            contender.current, contender.current_log = found, log
        if log < contender.best_log:
            contender.best, contender.best_log = found, log


def _poset(P: Poset, matrix: Matrix) -> Poset:
    return Poset(P.elements, [(P.elements[x], P.elements[y]) for x, y in np.argwhere(matrix == 1)])
