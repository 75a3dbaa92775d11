"""Orders out of reach, relaxed until their tables can be built: the search, its compiled parts, and draws by rejection.

Independent draws by rejection from a public stream, and where in it those begin that were kept.

A reader draws the law of the noise again. Where one walk of thousands is kept, nearly all the time goes to walks
that are not. Each walk depends on the words from its first one on alone, so whoever knows the first words of
those that were kept draws the same rows at once. What was found is thus kept with the relaxation of an order.

Rows are the same with it or without it. That a word named there begins a walk that is kept is seen when it is drawn
again; that none between was left out is seen only by :meth:`KeptDraws.draw` without it (docs/theory/inference.md,
section 1).
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isotone.array_types import Floats, Ints
from isotone.counts.relaxation_tree import (
    BITS,
    Int64,
    Matrix,
    copied,
    fits,
    fits_with,
    grow,
    members,
    new_tree,
    rows_of,
    split_module,
)
from isotone.errors import InputError, OrderError
from isotone.kernels import kernel
from isotone.mechanism import Progress, no_progress
from isotone.noise.simulate import PublicStream
from isotone.order.bipartitions.counting import draw_at, within_reach
from isotone.order.poset import Poset

if TYPE_CHECKING:
    from isotone.counts.sampler import TableSource

Orders = NDArray[np.int32]
Starts = tuple[tuple[str, tuple[int, ...]], ...]
"""For each stream, by the end of its label, the words that the walks began with that were kept, ascending."""

KEPT_STREAM = "isotone kept 1"
"""The beginning of the labels of these streams, with their version."""


@dataclass(eq=False)
class KeptDraws:
    """Independent draws of a source that rejects, remembered by where they begin."""

    source: TableSource
    known: dict[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])

    def draw(self, size: int, stream: str) -> tuple[Orders, Ints]:
        """The first ``size`` draws of a public stream that are kept."""
        starts, end = self.known.get(stream, ())[:size], 0
        orders, sizes = np.empty((size, self.source.tables.steps.total), np.int32), np.empty(size, np.int64)
        for r, start in enumerate(starts):
            orders[r : r + 1], sizes[r : r + 1], begun, after = self._walk(stream, start, 1)
            if start < end or begun[0] != start:
                raise InputError(
                    f"The relaxation says that a draw begins with word {start} of a public stream. None that fits does. "
                    "It belongs to another order or version: relax this order again."
                )
            end = after
        rest = len(starts)
        if rest < size:
            orders[rest:], sizes[rest:], begun, _ = self._walk(stream, end, size - rest)
            self.known[stream] = (*starts, *begun.tolist())
        return orders, sizes

    def _walk(self, stream: str, start: int, size: int) -> tuple[Orders, Ints, Ints, int]:
        """The first draws from a word on that are kept, the words that they begin with, and the next word."""
        label, source = f"{KEPT_STREAM} {stream}", self.source

        def words(at: int, count: int) -> NDArray[np.uint64]:
            return PublicStream(label, at).words(count)

        def settle(at: int, question: int, p: Fraction) -> bool:
            return bool(PublicStream(f"{label} question {at}", question).random() < p)

        return draw_at(source.tables, size, words, settle, start, source.dropped)


# The number of extended bipartitions of a relaxed order, in floating point, for the search alone.
#
# The search asks again and again, and from one step to the next few modules change. So the table of every module is
# kept under a hash of its relations. Entry a of a table is the number of extended bipartitions of the module with a
# elements on side A, by the formulas of docs/theory/counts.md, section 5, up to a common factor whose logarithm is kept
# with it. Releases never use these numbers.

MOST = 20_000
"""Tables that are kept at most."""


class SizeTable(NamedTuple):
    """Numbers by size of side A, the largest of which is 1, and the logarithm of what they were divided by."""

    numbers: Floats
    log: float


POINT = SizeTable(np.ones(2), 0.0)


class LogCount:
    """Counts the extended bipartitions of orders that resemble each other."""

    def __init__(self) -> None:
        """Nothing is known at first."""
        self._tables: dict[bytes, SizeTable] = {}

    def __call__(self, Q: Matrix) -> float:
        """The logarithm of their number for the order ``Q``, or infinity if it is out of the range of floats."""
        result = self._table(Q, np.arange(len(Q), dtype=np.int64))
        total = float(result.numbers.sum())
        return result.log + math.log(total) if 0 < total < math.inf else math.inf

    def _table(self, Q: Matrix, part: Ints) -> SizeTable:
        if part.size == 1:
            return POINT
        key = hashlib.sha256(Q[np.ix_(part, part)].tobytes()).digest()
        if key not in self._tables:
            if len(self._tables) >= MOST:
                self._tables.clear()
            self._tables[key] = self._counted(Q, part)
        return self._tables[key]

    def _counted(self, Q: Matrix, part: Ints) -> SizeTable:
        label = np.zeros(len(Q), np.int64)
        count, prime = split_module(Q, part, label)
        if prime:
            modules = [part[label[part] == c] for c in range(count)]
            return _prime(Q, modules, [self._table(Q, module) for module in modules])
        pieces: list[Ints] = []
        related = False
        while not prime:  # one component after the other, as long as they are of one kind
            one, rest = part[label[part] == 0], part[label[part] == 1]
            if pieces and (Q[one[0], rest[0]] != 0) != related:
                break
            related = bool(Q[one[0], rest[0]] != 0)
            pieces.append(one)
            part = rest
            if part.size == 1:
                break
            _, prime = split_module(Q, part, label)
        tables = [self._table(Q, piece) for piece in [*pieces, part]]
        return _stacked(tables) if related else _beside(tables)


def _stacked(tables: list[SizeTable]) -> SizeTable:
    """The table of modules above each other: a convolution."""
    result = tables[0]
    for other in tables[1:]:
        result = _scaled(np.convolve(result.numbers, other.numbers), result.log + other.log)
    return result


def _beside(tables: list[SizeTable]) -> SizeTable:
    """The table of unrelated modules: a convolution of numbers without the orders of the two sides."""
    result = _loosened(tables[0], -1)
    for other in tables[1:]:
        loose = _loosened(other, -1)
        result = _scaled(np.convolve(result.numbers, loose.numbers), result.log + loose.log)
    return _loosened(result, 1)


def _loosened(table: SizeTable, sign: int) -> SizeTable:
    """Entry a times a! (n - a)!, or divided by it for a negative sign."""
    logs = np.array([math.lgamma(a + 1) for a in range(len(table.numbers))])
    logs = sign * (logs + logs[::-1])
    return _scaled(table.numbers * np.exp(logs - logs.max()), table.log + float(logs.max()))


def _prime(Q: Matrix, modules: list[Ints], tables: list[SizeTable]) -> SizeTable:
    """The table of a prime module, from the words over its modules."""
    some = np.array([module[0] for module in modules])
    sizes = np.array([module.size for module in modules], np.int64)
    above = (Q[np.ix_(some, some)] == 1) @ (1 << np.arange(len(some), dtype=np.int64))
    width = int(sizes.max()) + 1
    padded = np.array([np.pad(table.numbers, (0, width - len(table.numbers))) for table in tables])
    rate = len(modules) / 2  # words of m letters are about so many to the power of m: keeps floats in range
    numbers = _split(sizes, padded, _words(sizes, above, rate))
    return _scaled(numbers, sum(table.log for table in tables) + int(sizes.sum()) * math.log(rate))


def _scaled(numbers: Floats, log: float) -> SizeTable:
    largest = float(numbers.max())
    if not 0 < largest < math.inf:
        return SizeTable(np.full(len(numbers), np.inf), log)
    return SizeTable(numbers / largest, log + math.log(largest))


@kernel
def _words(sizes: Ints, above: Ints, rate: float) -> Floats:
    """The number of words with so many of each letter, divided by ``rate`` for each letter."""
    k, states = sizes.size, 1
    stride, count = np.empty(k, np.int64), np.zeros(k, np.int64)
    for i in range(k):
        stride[i] = states
        states *= sizes[i] + 1
    words = np.empty(states)
    words[0] = 1.0
    used = np.int64(0)
    for state in range(1, states):
        i = 0
        while count[i] == sizes[i]:
            count[i] = 0
            used &= ~(np.int64(1) << i)
            i += 1
        count[i] += 1
        used |= np.int64(1) << i
        total = 0.0
        for i in range(k):  # the last letter: none above it is used
            if used >> i & 1 and above[i] & used == 0:
                total += words[state - stride[i]]
        words[state] = total / rate
    return words


@kernel
def _split(sizes: Ints, tables: Floats, words: Floats) -> Floats:
    """The weights of all splits, by size of side A."""
    k, a, changed = sizes.size, 0, sizes.size - 1
    result, count, product = np.zeros(np.sum(sizes) + 1), np.zeros(k, np.int64), np.ones(k + 1)
    for state in range(words.size):
        if state > 0:
            changed = 0
            while count[changed] == sizes[changed]:
                a -= count[changed]
                count[changed] = 0
                changed += 1
            count[changed] += 1
            a += 1
        for i in range(changed, -1, -1):
            product[i] = product[i + 1] * tables[i, count[i]]
        result[a] += product[0] * words[state] * words[words.size - 1 - state]
    return result


# Put back as many relations as keep an order within reach.
#
# The compiled part of the relaxation search.
#
# Orders are square matrices: entry [x, y] is 1 where x < y, 2 where x > y, 0 where neither. They are kept
# transitively closed. ``reach`` bounds the binary logarithm of the states of every prime block
# (:mod:`isotone.order.bipartitions.steps`).


@kernel
def put_back(
    P: Matrix, Q: Matrix, placed: NDArray[np.bool_], order: Ints, reach: float, style: Int64
) -> None:
    """Place the elements of ``order`` one after the other, each with as many of its relations as fit.

    All relations to placed elements are tried together, then those to one side (upward first for an even
    ``style``), then one by one: those that skip few elements first, or last for a style above 1.
    """
    n = P.shape[0]
    up, down = rows_of(Q)
    up_before, down_before, tree = np.empty_like(up), np.empty_like(down), new_tree(n)
    for w in order:
        placed[w] = True
        for phase in range(3):
            upward = phase == 0 or (phase == 1) == (style % 2 == 0)
            downward = phase == 0 or not upward
            _keep(up, down, up_before, down_before)
            for z in range(n):
                if placed[z] and upward and P[w, z] == 1:
                    _relate(up, down, w, z)
                if placed[z] and downward and P[w, z] == 2:
                    _relate(up, down, z, w)
            if not fits(up, down, w, reach):
                _keep(up_before, down_before, up, down)
            elif phase == 0:
                break
        missing = [z for z in range(n) if placed[z] and P[w, z] != 0 and not _related(up, down, w, z)]
        candidates = np.array(missing, np.int64)
        skipped = np.array([_between(P, w, z) for z in candidates], np.float64)
        pairs = np.empty((candidates.size, 2), np.int64)
        for i, k in enumerate(np.argsort(skipped if style < 2 else -skipped)):
            z = candidates[k]
            pairs[i, 0], pairs[i, 1] = (w, z) if P[w, z] == 1 else (z, w)
        _try_each(up, down, tree, pairs, reach)
    _write(up, Q)


@kernel
def try_pairs(Q: Matrix, pairs: Ints, reach: float) -> None:
    """Try to put back each of the pairs (lower, upper), one by one."""
    up, down = rows_of(Q)
    _try_each(up, down, new_tree(Q.shape[0]), pairs, reach)
    _write(up, Q)


@kernel
def _try_each(up: Ints, down: Ints, tree: Ints, pairs: Ints, reach: float) -> None:
    """Add each of the pairs that fits. The tree is written anew when the order has changed."""
    changed = True
    for k in range(pairs.shape[0]):
        low, high = pairs[k, 0], pairs[k, 1]
        if _related(up, down, low, high):
            continue
        if changed:
            grow(up, down, tree)
        changed = fits_with(up, down, tree, low, high, reach)
        if changed:
            _relate(up, down, low, high)


@kernel
def _keep(up: Ints, down: Ints, to_up: Ints, to_down: Ints) -> None:
    """Write an order over another."""
    for x in range(up.shape[0]):
        copied(up[x], to_up[x])
        copied(down[x], to_down[x])


@kernel(leaf=True)
def _related(up: Ints, down: Ints, x: Int64, y: Int64) -> bool:
    return (up[x, y // BITS] | down[x, y // BITS]) >> (y % BITS) & 1 == 1


@kernel
def _relate(up: Ints, down: Ints, low: Int64, high: Int64) -> None:
    """Add low < high, and what follows by transitivity."""
    if up[low, high // BITS] >> (high % BITS) & 1:
        return
    n, width = up.shape
    below, above, listed = down[low].copy(), up[high].copy(), np.empty(n, np.int64)
    below[low // BITS] |= np.int64(1) << (low % BITS)
    above[high // BITS] |= np.int64(1) << (high % BITS)
    for j in range(members(below, listed)):
        for k in range(width):
            up[listed[j], k] |= above[k]
    for j in range(members(above, listed)):
        for k in range(width):
            down[listed[j], k] |= below[k]


@kernel
def _write(up: Ints, Q: Matrix) -> None:
    """Write the order in a matrix."""
    n = Q.shape[0]
    listed = np.empty(n, np.int64)
    Q[:, :] = 0
    for x in range(n):
        for j in range(members(up[x], listed)):
            Q[x, listed[j]], Q[listed[j], x] = 1, 2


@kernel
def _between(P: Matrix, x: Int64, y: Int64) -> Int64:
    count = 0
    for z in range(P.shape[0]):
        if P[x, z] == P[x, y] and P[z, y] == P[x, y]:
            count += 1
    return count


# Relax an order until its tables can be built.
#
# Some of its relations are left out.
#
# If Q has some of the relations of P, every record of P is a record of Q, so noise shaped by Q is as private for P
# as noise shaped by P, and only a little larger; and every extended bipartition of P is one of Q, so those of P can
# be drawn by rejection (docs/theory/counts.md, section 9). How much larger the noise is, and how often a draw is
# kept, depends on the number of extended bipartitions of Q: the fewer the better.
#
# The search begins with many greedy relaxations. The best few go on: each takes a few elements out and puts them back in
# another order, again and again (ruin and recreate). From round to round fewer of them are left and larger blocks are
# allowed. It looks at the order only, which is public.

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
    readers draw them again at once (:mod:`isotone.counts.relaxation`).

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
    def from_plain(cls, plain: Any) -> Relaxation:
        """From plain values, those of :meth:`plain`, or a list of pairs alone."""
        parts: Any = dict(plain) if isinstance(plain, dict) else {"relations": plain}  # pyright: ignore[reportUnknownArgumentType]
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
        plain: dict[str, Any] = {
            name: [[str(lower), str(upper)] for lower, upper in pairs] for name, pairs in parts.items()
        }
        return {**plain, "draws": {name: list(words) for name, words in self.draws}} if self.draws else plain

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


def _is_pair(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and [isinstance(name, str) for name in value] == [True, True]  # pyright: ignore[reportUnknownVariableType]


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
        result = contender.current.copy()
        result[out, :] = 0
        result[:, out] = 0
        placed = np.ones(n, np.bool_)
        placed[out] = False
        self._consider(contender, result, placed, self.rng.permutation(out).astype(np.int64))

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
        self, contender: _Contender, candidate: Matrix, placed: NDArray[np.bool_], order: NDArray[np.int64]
    ) -> None:
        """Complete a relaxation, and go on from it unless it is much worse."""
        put_back(self.goal, candidate, placed, order, self.limit, int(self.rng.integers(3)))
        log = self.log_count(candidate)
        if log < contender.current_log + HOPE:
            missing = self.rng.permutation(np.argwhere((self.goal == 1) & (candidate == 0)))
            try_pairs(candidate, missing, self.limit)
            log = self.log_count(candidate)
        if log < max(contender.current_log + KEEP, contender.best_log + self.slack):
            contender.current, contender.current_log = candidate, log
        if log < contender.best_log:
            contender.best, contender.best_log = candidate, log


def _poset(P: Poset, matrix: Matrix) -> Poset:
    return Poset(P.elements, [(P.elements[x], P.elements[y]) for x, y in np.argwhere(matrix == 1)])
