"""Relax an order until its tables can be built.

Some of its relations are left out.

If Q has some of the relations of P, every record of P is a record of Q, so noise shaped by Q is as private for P
as noise shaped by P, and only a little larger; and every extended bipartition of P is one of Q, so those of P can
be drawn by rejection (docs/theory/counts.md, section 9). How much larger the noise is, and how often a draw is
kept, depends on the number of extended bipartitions of Q: the fewer the better.

A few searches begin with greedy relaxations, and the best goes on: it takes a few elements out and puts them back in
another order, again and again (ruin and recreate), and goes on from what is not much worse than the best so far
(record-to-record travel). It looks at the order only, which is public.
"""

from __future__ import annotations

import math
import time
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from isotone.counts.sampling.kept_draws import Starts
from isotone.counts.sampling.relaxations.relaxation_count import LogCount
from isotone.counts.sampling.relaxations.relaxation_search import put_back, try_pairs
from isotone.errors import InputError, OrderError
from isotone.mechanism import Progress, no_progress
from isotone.order.bipartitions.extended import within_reach
from isotone.order.poset import Poset

if TYPE_CHECKING:
    from isotone.counts.sampling.relaxations.relaxation_modules import Matrix

__all__ = ["Relaxation", "relax"]

REACH = 1 << 20
"""The largest prime block of a relaxation unless told otherwise."""

BEGINNINGS, BEGINNING = 4, 0.1
"""So many searches begin, each with such a share of the steps; the best goes on."""

STARTS = 0.1
"""The share of a beginning that goes to greedy relaxations from nothing."""

STAGES = ((0.4, 10.0), (1.0, 14.0))
"""Until these shares of a beginning smaller blocks are allowed (binary logarithms): such steps are quicker."""

LATER_STAGES = ((0.4, 17.0),)
"""The same for the steps that follow."""

KEEP, LATER_KEEP, SLACK = 0.05, 0.02, 0.6
"""How much worse the log count may get in a step, and in one after the beginnings; there it may also be as much worse
than the best as the last number, times the share of the steps that is left."""

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
        """From plain values: those of :meth:`plain`, or a list of pairs alone."""
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
        """The order that draws must fit: the relaxed one with what is restored."""
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
        progress(spent, f"relaxing the order: log count {search.best_log:.2f}")
        search.step(spent)
    progress(1.0, f"relaxed: log count {search.best_log:.2f}")
    return Relaxation(_poset(order, search.best).covers)


class _RelaxationSearch:
    """The state of a search.

    The best relaxation so far, and the one being changed.
    """

    def __init__(self, P: Poset, reach: int, rng: np.random.Generator) -> None:
        self.P, self.reach, self.rng = P, reach, rng
        strict = P.leq_matrix() & ~np.eye(len(P), dtype=np.bool_)
        self.goal: Matrix = strict.astype(np.int8) + 2 * strict.T.astype(np.int8)
        self.limit = math.inf
        self.log_count = LogCount()
        self.part, self.keep, self.slack = -1, KEEP, -math.inf
        self.best = self.current = np.zeros_like(self.goal)
        self.best_log = self.current_log = math.inf

    def step(self, spent: float) -> None:
        """A step of the search, of which the share ``spent`` is over."""
        part = min(int(spent / BEGINNING), BEGINNINGS)
        begins, self.part = part != self.part, part
        within = spent / BEGINNING - part
        if part == BEGINNINGS:
            within = (spent - BEGINNINGS * BEGINNING) / (1 - BEGINNINGS * BEGINNING)
        stages = STAGES if part < BEGINNINGS else LATER_STAGES
        self.limit = min([largest for share, largest in stages if within < share], default=math.inf)
        if part < BEGINNINGS and (begins or within < STARTS):
            self.current_log = math.inf if begins else self.current_log
            self.start()
            return
        if part == BEGINNINGS:
            self.keep, self.slack = LATER_KEEP, SLACK * (1 - spent)
            if begins:
                self.current, self.current_log = self.best, self.best_log
        self.recreate()

    def start(self) -> None:
        """A greedy relaxation from nothing, in one of four orders of insertion."""
        n = len(self.P)
        below, above = (self.goal == 2).sum(axis=1), (self.goal == 1).sum(axis=1)
        keys = (np.zeros(n), below, -(below + above), above)
        order = np.lexsort((self.rng.random(n), keys[self.rng.integers(4)])).astype(np.int64)
        found = np.zeros_like(self.goal)
        self._consider(found, np.zeros(n, np.bool_), order)

    def recreate(self) -> None:
        """Take a few elements out of the current relaxation and put them back in another order."""
        n, out = len(self.P), self._taken_out()
        found = self.current.copy()
        found[out, :] = 0
        found[:, out] = 0
        placed = np.ones(n, np.bool_)
        placed[out] = False
        self._consider(found, placed, self.rng.permutation(out).astype(np.int64))

    def _taken_out(self) -> NDArray[np.int64]:
        """A few elements: two that miss a relation with some related to them, or one with some related to it, or any."""
        n, missing = len(self.P), np.argwhere((self.goal == 1) & (self.current == 0))
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

    def _consider(self, found: Matrix, placed: NDArray[np.bool_], order: NDArray[np.int64]) -> None:
        """Complete a relaxation, and make it the current one unless it is much worse (record-to-record travel)."""
        limit = min(self.limit, float(np.log2(self.reach)))
        put_back(self.goal, found, placed, order, limit, int(self.rng.integers(3)))
        log = self.log_count(found)
        if log < self.current_log + HOPE:
            missing = self.rng.permutation(np.argwhere((self.goal == 1) & (found == 0)))
            try_pairs(found, missing, limit)
            log = self.log_count(found)
        if log < max(self.current_log + self.keep, self.best_log + self.slack):
            self.current, self.current_log = found, log
        if log < self.best_log:
            self.best, self.best_log = found, log


def _poset(P: Poset, matrix: Matrix) -> Poset:
    return Poset(P.elements, [(P.elements[x], P.elements[y]) for x, y in np.argwhere(matrix == 1)])
