"""Published count mechanisms that mix noise scales, and the programs that choose the mixture."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from isotone.errors import InputError, IsotoneError
from isotone.kernels import kernel
from isotone.lazy import from_extra
from isotone.mechanism import Error
from isotone.noise.bits import OPEN, locate, powers_of_exp
from isotone.privacy.draws import Draws
from isotone.privacy.guarantee import Unit
from isotone.tables.distribution import DistributionLike
from isotone.tables.matrices.count_mechanism import CountMechanism
from isotone.tables.matrices.factored import Remap, draw_remap, single_row, weighted_sums
from isotone.tables.matrices.geometric import Loss, loss_rows

if TYPE_CHECKING:
    import highspy

# ε-scales, the vectors in which every privacy constraint is tight.
#
# They are the building blocks of all other private vectors.
#
# A vector is *neighbour-indistinguishable* if each entry is within a factor ``exp(ε)`` of the next; a count
# mechanism is private when its columns are. These vectors form a cone whose extreme rays are the ``2^(n-1)``
# scales: vectors that go up or down by exactly ``exp(ε)`` at every step (docs/theory/tables.md, section 6).

Pattern = tuple[int, ...]
"""One entry for each step between neighbouring counts: 1 up, -1 down."""

_MOST = 20


def patterns(n: int) -> list[Pattern]:
    """All patterns of scales with ``n`` entries.

    They are in the order of the columns of :func:`scales`.

    >>> patterns(3)
    [(-1, -1), (-1, 1), (1, -1), (1, 1)]
    """
    if n > _MOST:
        raise InputError(
            f"There are 2^{n - 1} scales for {n} counts: too many to list (at most {_MOST} counts)."
        )
    return list(itertools.product((-1, 1), repeat=n - 1))


def single_peak(n: int, peak: int) -> Pattern:
    """The pattern that rises to ``peak`` and falls after it.

    >>> single_peak(4, 1)
    (1, -1, -1)
    """
    return tuple(1 if i < peak else -1 for i in range(n - 1))


def scale(pattern: Sequence[int] | NDArray[np.int64], epsilon: float) -> NDArray[np.float64]:
    """The scale with this pattern, summing to 1.

    >>> scale((1, -1), np.log(2))
    array([0.25, 0.5 , 0.25])
    """
    heights = np.concatenate([[0.0], np.cumsum(np.asarray(pattern, dtype=np.float64))])
    values = np.exp(epsilon * (heights - heights.max()))
    return values / values.sum()


def scales(n: int, epsilon: float) -> NDArray[np.float64]:
    """The matrix Ψ of all scales, with n rows and one scale per column."""
    return np.column_stack([scale(pattern, epsilon) for pattern in patterns(n)])


def is_scale(vector: NDArray[np.float64], epsilon: float, tolerance: float = 1e-9) -> bool:
    """Whether a positive vector is a multiple of a scale, up to a relative tolerance."""
    if bool(np.any(vector <= 0)):
        return False
    return bool(np.all(np.abs(np.abs(np.diff(np.log(vector))) - epsilon) <= tolerance))


def pattern_of(vector: NDArray[np.float64]) -> Pattern:
    """The pattern of a scale, 1 where it rises."""
    return tuple(1 if step > 0 else -1 for step in np.diff(vector))


def decompose(
    column: NDArray[np.float64], epsilon: float, tolerance: float = 1e-9
) -> list[tuple[float, Pattern]]:
    """A private column as a sum of at most n multiples of scales.

    Returns ``(weight, pattern)`` pairs.

    One scale after another is taken off, as large as the rest allows: each makes one more step tight, and a
    tight step stays so. Steps within ``tolerance`` of tight count as tight; steps beyond are refused.

    >>> [(round(weight, 3), pattern) for weight, pattern in decompose(np.array([0.5, 0.5]), np.log(2))]
    [(0.5, (-1,)), (0.5, (1,))]
    """
    rest = np.array(column, dtype=np.float64)
    if not bool(np.any(rest > 0)):
        return []
    if bool(np.any(rest <= 0)):
        raise InputError(
            "A column with a zero beside a positive entry is not private: no scales add up to it."
        )
    ratio, gap = np.exp(-epsilon), -np.expm1(-2 * epsilon)
    steps = np.diff(np.log(rest)) / epsilon
    if bool(np.any(np.abs(steps) > 1 + tolerance / epsilon)):
        raise InputError(f"The column is not private at epsilon {epsilon:g}: no scales add up to it.")
    tight = np.where(np.abs(steps) >= 1 - tolerance / epsilon, np.sign(steps), 0).astype(np.int64)
    result: list[tuple[float, Pattern]] = []
    while True:
        pattern = np.where(tight != 0, tight, np.where(np.diff(rest) > 0, 1, -1))
        unit = scale(pattern, epsilon)
        up = pattern > 0
        inner = np.where(up, rest[1:] - ratio * rest[:-1], rest[:-1] - ratio * rest[1:])
        with np.errstate(divide="ignore", invalid="ignore"):
            allowed = np.where(tight == 0, inner / (gap * np.where(up, unit[1:], unit[:-1])), np.inf)
        step = int(np.argmin(allowed)) if len(allowed) else 0
        whole = float(np.min(rest / unit))
        if len(allowed) == 0 or allowed[step] >= whole:
            result.append((whole, tuple(int(p) for p in pattern)))
            return result
        taken = max(float(allowed[step]), 0.0)
        if taken > 0:
            result.append((taken, tuple(int(p) for p in pattern)))
        rest = np.maximum(rest - taken * unit, np.finfo(np.float64).tiny)
        tight[step] = -pattern[step]


def representation(
    matrix: NDArray[np.float64], epsilon: float, tolerance: float = 1e-9
) -> NDArray[np.float64]:
    """A matrix B of non-negative weights with ``matrix = scales(n, ε) @ B`` (it need not be the only one)."""
    n = matrix.shape[0]
    index = {pattern: k for k, pattern in enumerate(patterns(n))}
    weights = np.zeros((len(index), matrix.shape[1]))
    for j, column in enumerate(matrix.T):
        for weight, pattern in decompose(column, epsilon, tolerance):
            weights[index[pattern], j] += weight
    return weights


# A transition matrix as a list of terms.
#
# A term is a multiple of an ε-scale, put into one column.
#
# An *ε-scale* is a positive vector in which every entry is ``exp(ε)`` or ``exp(-ε)`` times the one before: at
# every step the privacy constraint is tight. Sums of scales are private, and every private column is one
# (docs/theory/tables.md, section 6). A scale is known by its *pattern*, up or down at each of the n-1 steps,
# and a term by its column, its pattern, and its value at its highest row; at row i it is that value times
# ``exp(-ε·level)``, where the level counts steps down from the highest row. Levels are integers, so a term is
# an ε-scale exactly, however its value was rounded.


class Terms(Protocol):
    """Terms over the counts ``0..n-1``, in a fixed order."""

    @property
    def n(self) -> int:
        """The number of rows."""
        ...

    @property
    def columns(self) -> NDArray[np.int64]:
        """The column of each term."""
        ...

    @property
    def values(self) -> NDArray[np.float64]:
        """The value of each term at its highest row.

        A float, taken as the exact rational that it is.
        """
        ...

    @property
    def first_levels(self) -> NDArray[np.int64]:
        """The level of each term at row 0."""
        ...

    def rising(self, step: int) -> NDArray[np.bool_]:
        """Which terms go up from row ``step`` to the next."""
        ...


@dataclass(frozen=True, eq=False)
class ListedTerms:
    """Terms with patterns written out.

    ``patterns[t, i]`` is True where term t rises from row i to i+1.
    """

    columns: NDArray[np.int64]
    values: NDArray[np.float64]
    patterns: NDArray[np.bool_]

    @property
    def n(self) -> int:
        """The number of rows."""
        return self.patterns.shape[1] + 1

    @property
    def first_levels(self) -> NDArray[np.int64]:
        """The level of each term at row 0.

        It is the height of its highest row above row 0.
        """
        heights = np.cumsum(np.where(self.patterns, 1, -1), axis=1)
        return np.maximum(heights.max(axis=1, initial=0), 0).astype(np.int64)

    def rising(self, step: int) -> NDArray[np.bool_]:
        """Which terms go up from row ``step`` to the next."""
        return np.ascontiguousarray(self.patterns[:, step])


@dataclass(frozen=True, eq=False)
class PeeledTerms:
    """Terms as the heuristic peels them off, in O(n).

    A single peak at the column, but for the bound steps.

    From term ``bound_from[i]`` on, step i is bound and has the direction ``bound[i]`` (1 up, -1 down) in every term.
    """

    n: int
    columns: NDArray[np.int64]
    values: NDArray[np.float64]
    first_levels: NDArray[np.int64]
    bound_from: NDArray[np.int64]
    bound: NDArray[np.int64]

    def rising(self, step: int) -> NDArray[np.bool_]:
        """Which terms go up from row ``step`` to the next."""
        rising = step < self.columns
        rising[self.bound_from[step] :] = self.bound[step] > 0
        return rising


def levels_by_row(terms: Terms) -> Iterator[NDArray[np.int64]]:
    """The levels of all terms at row 0, 1, ….

    Each is a view that is overwritten by the next.
    """
    levels = terms.first_levels.copy()
    yield levels
    for step in range(terms.n - 1):
        _advance(levels, terms.rising(step))
        yield levels


def values_by_row(terms: Terms, epsilon: float) -> Iterator[NDArray[np.float64]]:
    """The values of all terms at row 0, 1, ….

    Each is a view that is overwritten by the next.
    """
    powers = np.exp(-epsilon * np.arange(terms.n))
    values = np.empty(len(terms.values))
    for levels in levels_by_row(terms):
        _evaluate(terms.values, powers, levels, values)
        yield values


def row_sums(terms: Terms, epsilon: float) -> NDArray[np.float64]:
    """The sum of all terms at each row."""
    powers = np.exp(-epsilon * np.arange(terms.n))
    levels = terms.first_levels.copy()
    sums = np.empty(terms.n)
    sums[0] = np.sum(terms.values * powers[levels])
    for step in range(terms.n - 1):
        sums[step + 1] = _advanced_sum(terms.values, powers, levels, terms.rising(step))
    return sums


@kernel
def _advanced_sum(
    tops: NDArray[np.float64],
    powers: NDArray[np.float64],
    levels: NDArray[np.int64],
    rising: NDArray[np.bool_],
) -> float:
    total = 0.0
    for t in range(levels.shape[0]):
        levels[t] += 1 - 2 * np.int64(rising[t])
        total += tops[t] * powers[levels[t]]
    return total


@kernel
def _advance(levels: NDArray[np.int64], rising: NDArray[np.bool_]) -> None:
    for t in range(levels.shape[0]):
        levels[t] += 1 - 2 * np.int64(rising[t])


@kernel
def _evaluate(
    tops: NDArray[np.float64],
    powers: NDArray[np.float64],
    levels: NDArray[np.int64],
    values: NDArray[np.float64],
) -> None:
    for t in range(tops.shape[0]):
        values[t] = tops[t] * powers[levels[t]]


# Count mechanisms that are a sum of ε-scales, released exactly.

_WORD = 64
_STEEPEST = 200.0


@dataclass(frozen=True, eq=False, repr=False)
class ScaleMechanism(CountMechanism):
    """A row of terms, each a multiple of an ε-scale in one column, and a small rest that goes to ``goal``.

    The terms' values are floats, so their rows sum to 1 only up to rounding. The mechanism is defined as
    ``(1 - rest)`` times the terms plus whatever is missing from each row, drawn from ``goal``. What is missing
    is nearly the same in all rows, so it too is private, and the whole is ε-DP in exact arithmetic
    (docs/theory/tables.md, section 7). Release: exact, from that definition: floats decide all draws but those
    within their error bound of a boundary, and big integers decide these.
    """

    terms: Terms = field(kw_only=True)
    goal: Remap = field(kw_only=True)
    rest: Fraction = field(kw_only=True)

    def matrix(self) -> NDArray[np.float64]:
        """The transition matrix, dense."""
        goal = self._goal()
        return np.stack([self._by_column(v) + missing * goal for _, v, missing in self._rows()])

    def output(self, z: DistributionLike) -> NDArray[np.float64]:
        """``z·T``, row by row."""
        p = self._checked(z)
        total, missed = np.zeros(len(self.terms.values)), 0.0
        for i, values, missing in self._rows():
            total += p[i] * values
            missed += p[i] * missing
        return self._by_column(total) + missed * self._goal()

    def count_error(self, z: DistributionLike, loss: Loss = "absolute") -> float:
        """The expected loss, row by row."""
        p, goal = self._checked(z), self._goal()
        costs = loss_rows(loss, self.n)
        total = 0.0
        for i, values, missing in self._rows():
            total += p[i] * float(values @ costs[i][self.terms.columns] + missing * (goal @ costs[i]))
        return total

    def privacy_loss(self) -> float:
        """The largest log-ratio between neighbouring rows.

        Sums within a column are taken in logarithms.
        """
        order = np.argsort(self.terms.columns, kind="stable")
        columns, starts = np.unique(self.terms.columns[order], return_index=True)
        with np.errstate(divide="ignore"):
            logs = np.log(self.terms.values)[order] + math.log1p(-float(self.rest))
            goal = np.log(self._goal())[columns]
        worst, before = 0.0, None
        sums = (missing for _, _, missing in self._rows())
        for levels, missing in zip(levels_by_row(self.terms), sums, strict=True):
            here = np.logaddexp.reduceat(logs - self.step * levels[order], starts)
            here = np.logaddexp(here, goal + math.log(missing))
            if before is not None:
                worst = max(worst, float(np.max(np.abs(here - before))))
            before = here
        return worst

    def error(self) -> Error:
        """Mean squared error given each true count, exact."""
        j, goal = np.arange(self.n, dtype=np.float64), self._goal()
        out = np.empty(self.n)
        for i, values, missing in self._rows():
            out[i] = values @ (self.terms.columns - i) ** 2.0 + missing * (goal @ (j - i) ** 2)
        return Error(out)

    def _draw(self, counts: NDArray[np.int64], draws: Draws) -> NDArray[np.int64]:
        words = draws.words(len(counts))
        chosen = self._choose(counts, words)
        for t in np.flatnonzero(chosen == OPEN):
            chosen[t] = self._settle(int(counts[t]), int(words[t]), draws)
        return self._published(chosen, draws.words(len(counts)))

    def _choose(self, counts: NDArray[np.int64], words: NDArray[np.uint64]) -> NDArray[np.int64]:
        """The term that each word picks from its count's row.

        One past the last is the rest. OPEN if the word is too close to a boundary.
        """
        order = np.argsort(counts, kind="stable")
        bounds = np.searchsorted(counts[order], np.arange(self.n + 1))
        uniform = words.astype(np.float64) / 2.0**_WORD
        chosen = np.empty(len(counts), np.int64)
        margin = self._float_error()
        for i, values, _ in self._rows():
            here = order[bounds[i] : bounds[i + 1]]
            if len(here) == 0:
                continue
            ceilings = np.cumsum(values)
            place = np.searchsorted(ceilings, uniform[here], side="right")
            edges = np.concatenate([[-1.0], ceilings, [2.0]])
            close = (uniform[here] - edges[place] <= margin) | (edges[place + 1] - uniform[here] <= margin)
            chosen[here] = np.where(close, OPEN, place)
        return chosen

    def _settle(self, i: int, word: int, draws: Draws) -> int:
        """The choice for a word that falls too close to a boundary.

        More bits are read until it is decided.
        """
        *_, levels = (
            levels.copy() for levels, _ in zip(levels_by_row(self.terms), range(i + 1), strict=False)
        )
        bits, uniform = _WORD, word
        while True:
            place = locate(uniform, *self._brackets(levels, bits))
            if place != OPEN:
                return place
            bits, uniform = bits + _WORD, uniform << _WORD | int(draws.words(1)[0])

    def _brackets(self, levels: NDArray[np.int64], bits: int) -> tuple[list[int], list[int]]:
        """Integers that bracket ``2**bits`` times each weight of a row.

        The last is the rest.
        """
        width = bits + _WORD
        powers = powers_of_exp(self.unit.per_step(self.epsilon), int(levels.max()), width)
        lower, upper = [], []
        for value, level in zip(self.terms.values, levels, strict=True):
            share = (1 - self.rest) * Fraction(float(value))
            low, high = powers[level]
            lower.append((share.numerator * low // share.denominator) >> _WORD)
            upper.append(-((-share.numerator * high // share.denominator) >> _WORD))
        unit = 1 << bits
        return [*lower, unit - sum(upper)], [*upper, unit - sum(lower)]

    def _published(self, chosen: NDArray[np.int64], words: NDArray[np.uint64]) -> NDArray[np.int64]:
        fallback = draw_remap(
            np.zeros_like(chosen), words, self.goal.starts, self.goal.columns, self.goal.ceilings
        )
        return np.where(chosen < len(self.terms.values), np.append(self.terms.columns, 0)[chosen], fallback)

    def _log_entries(self, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> NDArray[np.float64]:
        out, goal = np.empty(len(rows)), self._goal()
        with np.errstate(divide="ignore"):
            for i, values, missing in self._rows():
                here = rows == i
                if np.any(here):
                    out[here] = np.log(self._by_column(values) + missing * goal)[columns[here]]
        return out

    def _rows(self) -> Iterator[tuple[int, NDArray[np.float64], float]]:
        """The value of each term and what is missing, row by row."""
        for i, values in enumerate(values_by_row(self.terms, self.step)):
            values *= 1 - float(self.rest)
            yield i, values, 1.0 - float(np.sum(values))

    def _by_column(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return weighted_sums(self.terms.columns, values, self.n)

    def _goal(self) -> NDArray[np.float64]:
        return self.goal.weights

    def _float_error(self) -> float:
        return float_error(len(self.terms.values))

    def __repr__(self) -> str:
        return f"ScaleMechanism(counts 0..{self.upper}, {len(self.terms.values)} terms, {self.guarantee})"


def float_error(terms: int) -> float:
    """A bound on the error of a float sum of up to ``terms`` terms of a row, each a value times a power of a.

    A power ``exp(-x)`` with ``x <= 745`` has a relative error below 1500 roundings, most of it from x; a sum
    of positive numbers adds one rounding for each term. Doubled, and with room for that of a uniform.
    """
    return (terms + 4096) * 2.0**-52


def require_scales(epsilon: float) -> None:
    """Refuse an ε per step so large that one step of a scale leaves the range of floats."""
    if epsilon > _STEEPEST:
        raise InputError(
            f"An epsilon of {epsilon:g} for each step is beyond what sums of scales can represent (at most "
            f"{_STEEPEST:g}). Use constructor='optimal', which has no such limit."
        )


def scale_mechanism(
    terms: Terms, goal: NDArray[np.float64], epsilon: Fraction, unit: Unit, simulated: bool
) -> ScaleMechanism:
    """The mechanism of ``terms``, with the least rest that makes it private in exact arithmetic.

    If all row sums of the terms are within d of 1, what is missing from ``1 - rest`` of them is within d of
    ``rest``: its neighbouring entries are within a factor ``exp(ε)`` once ``rest·(1 - a) >= 2d``.
    """
    step = float(unit.per_step(epsilon))
    worst = float(np.max(np.abs(row_sums(terms, step) - 1)))
    worst += float_error(len(terms.values))
    bound = 4 * worst / -math.expm1(-step)  # twice what is needed, for the rounding in this very line
    if not bound < 2.0**-10:
        raise InputError(
            f"For counts 0..{terms.n - 1} and epsilon {float(epsilon):g} rounding is too coarse to build this "
            "mechanism as a sum of scales. Use constructor='optimal', which has no such limit."
        )
    rest = Fraction(1, 1 << math.floor(-math.log2(bound)))
    return ScaleMechanism(terms.n, epsilon, unit, simulated, terms=terms, goal=single_row(goal), rest=rest)


# The best scale of all for one column, given prices.
#
# Exact, in O(n) a try (docs/theory/tables.md, section 8).
#
# With prices u for the row sums, a scale s in a column earns its place if ``s·(cost - u)`` is small against
# ``s·z``, its part of the column's probability. The least ratio over all ``2^(n-1)`` scales is found by
# Dinkelbach's rule: for a trial ratio v, look for scales with ``s·(cost - u - v·z) < 0``, take the best ratio
# among them as the next trial, and stop when there are none.
#
# For a given row k, the best scale with ``s[k] = 1`` is made of two walks, one from either end: whatever the
# best continuation beyond a row is worth for each unit there, it is entered upwards if that is negative and
# downwards if it is positive. Every k is tried, because a scale that peaks far from k is seen from there
# through a factor that turns rounding into a verdict.

_TRIES = 100


@kernel
def best_ratio(
    cost: NDArray[np.float64], z: NDArray[np.float64], epsilon: float, start: float
) -> tuple[float, NDArray[np.bool_]]:
    """The least ``s·cost / s·z`` over all scales s, and where that scale rises.

    ``start`` is any ratio.
    """
    n = cost.shape[0]
    powers = np.exp(-epsilon * np.arange(n + 1))
    up, down = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
    right, left = np.zeros((3, n)), np.zeros((3, n))
    trial, best, rises = start, np.inf, np.zeros(n - 1, np.bool_)
    for _ in range(_TRIES):
        gain = cost - trial * z
        _walk(gain, z, powers, 1, right, up)
        _walk(gain, z, powers, -1, left, down)
        row = _best_row(gain, z, powers, right, left)
        result = np.empty(n - 1, np.bool_)
        for i in range(
            n - 1
        ):  # up says that the walk to the right rises into row i+1; down likewise leftwards
            result[i] = up[i] if i >= row else not down[i + 1]
        ratio = _ratio(cost, z, powers, result)
        if not ratio < best:
            break
        best, rises, trial = ratio, result, ratio
    return best, rises


@kernel
def _walk(
    gain: NDArray[np.float64],
    z: NDArray[np.float64],
    powers: NDArray[np.float64],
    side: int,
    worth: NDArray[np.float64],
    enters_up: NDArray[np.bool_],
) -> None:
    """The least ``s·gain`` from each row on, for s = 1.

    It goes from the last row towards the first, or back for side -1.

    ``worth[0]`` and ``worth[1]`` are its gain and its probability, both times ``exp(ε·worth[2])``;
    ``enters_up`` says whether the next row is entered upwards.
    """
    n = gain.shape[0]
    i = n - 1 if side == 1 else 0
    worth[0, i], worth[1, i], worth[2, i] = gain[i], z[i], 0
    for _ in range(n - 1):
        before, i = i, i - side
        enters_up[i] = worth[0, before] < 0.0
        height = int(worth[2, before]) + (1 if enters_up[i] else -1)
        if height > 0:
            worth[0, i] = worth[0, before] + gain[i] * powers[height]
            worth[1, i] = worth[1, before] + z[i] * powers[height]
            worth[2, i] = height
        else:
            worth[0, i] = gain[i] + worth[0, before] * powers[-height]
            worth[1, i] = z[i] + worth[1, before] * powers[-height]
            worth[2, i] = 0


@kernel
def _best_row(
    gain: NDArray[np.float64],
    z: NDArray[np.float64],
    powers: NDArray[np.float64],
    right: NDArray[np.float64],
    left: NDArray[np.float64],
) -> int:
    """The row k whose best scale has the least gain for each unit of probability."""
    row, least = 0, np.inf
    for k in range(gain.shape[0]):
        height = int(max(right[2, k], left[2, k]))
        to_right, to_left = powers[height - int(right[2, k])], powers[height - int(left[2, k])]
        total = right[0, k] * to_right + left[0, k] * to_left - gain[k] * powers[height]
        mass = right[1, k] * to_right + left[1, k] * to_left - z[k] * powers[height]
        if mass > 0.0 and total / mass < least:
            row, least = k, total / mass
    return row


@kernel
def _ratio(
    cost: NDArray[np.float64], z: NDArray[np.float64], powers: NDArray[np.float64], rises: NDArray[np.bool_]
) -> float:
    n = cost.shape[0]
    top, height = 0, 0
    for i in range(n - 1):
        height += 1 if rises[i] else -1
        top = max(top, height)
    above, below, level = 0.0, 0.0, top
    for i in range(n):
        above += powers[level] * cost[i]
        below += powers[level] * z[i]
        if i < n - 1:
            level += -1 if rises[i] else 1
    return above / below if below > 0.0 else np.inf


# The linear program over scales.
#
# Which scales, how much of each, in which column.
#
#     minimise    Σ weight · (scale · cost of its column)
#     such that   Σ weight · scale = 1 in every row,   Σ over a column of weight · (z·scale) = its target.
#
# Any feasible point is private whatever its weights (docs/theory/tables.md, section 6). There are ``n·2^(n-1)``
# possible (scale, column) pairs; the program holds a pool of them and grows it by exact pricing until none can
# improve it, which also proves a lower bound on the optimum over all of them.

_LEAST, _COARSE, _CALM = 1e-6, 1e-8, 0.8

Rises = NDArray[np.bool_]


class ScaleProgram:
    """A growing pool of scales for given z, target and costs ``cost[i, j]`` (weights of true counts included)."""

    def __init__(
        self,
        z: NDArray[np.float64],
        target: NDArray[np.float64],
        cost: NDArray[np.float64],
        epsilon: float,
    ) -> None:
        self.z, self.target, self.cost, self.epsilon = z, target, cost, epsilon
        self.n = len(z)
        self.wanted = np.flatnonzero(target > 0)
        self.place = {int(j): self.n + k for k, j in enumerate(self.wanted)}  # its row in the program
        self.pool: dict[tuple[int, bytes], tuple[NDArray[np.float64], Rises]] = {}
        self.solver = _quiet_solver()
        sides = np.concatenate([np.ones(self.n), target[self.wanted]])
        none, floats = np.zeros(0, np.int32), np.zeros(0)
        self.solver.addRows(len(sides), sides, sides, 0, np.zeros(len(sides), np.int32), none, floats)
        self.sides = sides
        self.lower_bound = -np.inf

    def add(self, column: int, rises: Rises) -> bool:
        """Put the scale that rises at the given steps into the pool of a column.

        Returns False if it is there already.
        """
        key = (column, rises.tobytes())
        if column not in self.place or key in self.pool:
            return False
        values = _values(rises, self.epsilon)
        # in units of the probability it carries, so that the solver's tolerances mean the same for all
        self.pool[key] = (values / max(values @ self.z, _LEAST), rises)
        values = self.pool[key][0]
        entries = np.append(values, values @ self.z)
        rows = np.append(np.arange(self.n), self.place[column]).astype(np.int32)
        self.solver.addCol(
            float(values @ self.cost[:, column]), 0.0, _highs().kHighsInf, len(rows), rows, entries
        )
        return True

    def add_all(self, scales: Iterable[tuple[int, Rises]]) -> None:
        """Put many scales into the pool."""
        for column, rises in scales:
            self.add(column, rises)

    def solve(self, tolerance: float = 1e-9, rounds: int = 1000) -> None:
        """Grow the pool until the best of it is within ``tolerance`` of the best of all, or nothing is new."""
        gap = np.inf
        for _ in range(rounds):
            self._run()
            # the prices of the moment swing wildly; those nearer to the best bound so far find better scales
            grown = self._grow(self.duals + _CALM * (self.steady - self.duals)) or self._grow(self.duals)
            gap = (self.value - self.lower_bound) / max(1.0, abs(self.value))
            if gap <= tolerance or (not grown and gap <= _COARSE):
                return
            if not grown:
                break
        raise IsotoneError(
            f"The linear program over scales was solved only to within {gap:.1g} of the optimum: rounding is too "
            "coarse for this distribution. Use constructor='optimal' or 'heuristic'."
        )

    def terms(self) -> ListedTerms:
        """The optimum's terms, their weights solved for once more in full precision."""
        positive = self._refined(np.flatnonzero(self.weights > 0))
        kept, weights, _ = min(positive, self._refined(self.basic), key=lambda result: result[2])
        keys = list(self.pool)
        columns = np.array([keys[k][0] for k in kept], dtype=np.int64)
        scales = [self.pool[keys[k]] for k in kept]
        tops = np.array([values.max() for values, _ in scales])
        patterns = np.array([rises for _, rises in scales]).reshape(len(kept), self.n - 1)
        return ListedTerms(columns, weights * tops, patterns)

    def _refined(self, used: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float64], float]:
        """Which of the scales used have a positive weight, these weights, and how far they are from feasible."""
        keys = list(self.pool)
        weights = self.weights[used]
        system = np.array([self._coefficients(keys[k]) for k in used]).T
        length = np.linalg.norm(system, axis=0)
        kept = np.arange(len(used))
        while True:
            part = system[:, kept] / length[kept]
            solved = weights[kept] * length[kept]
            for _ in range(3):
                solved = solved + np.linalg.lstsq(part, self.sides - part @ solved, rcond=None)[0]
            if np.all(solved > 0) or len(kept) <= 1:
                break
            kept = kept[solved > 0]  # a weight that should be 0 and came out below
        residual = float(np.max(np.abs(part @ solved - self.sides)))
        return used[kept], (solved / length[kept]).astype(np.float64), residual

    def _coefficients(self, key: tuple[int, bytes]) -> NDArray[np.float64]:
        values = self.pool[key][0]
        row = np.zeros(len(self.sides))
        row[: self.n] = values
        row[self.place[key[0]]] = values @ self.z
        return row

    def _run(self) -> None:
        """Solve from where the last round ended.

        If that fails, solve from the start, and then with looser tolerances.
        """
        for tolerance, afresh in ((1e-10, False), (1e-10, True), (1e-9, True), (1e-8, True)):
            if afresh:
                self.solver.clearSolver()
            self.solver.setOptionValue("primal_feasibility_tolerance", tolerance)
            self.solver.setOptionValue("dual_feasibility_tolerance", tolerance)
            self.solver.run()
            status = self.solver.getModelStatus()
            if status == _highs().HighsModelStatus.kOptimal:
                self._keep()
                return
        raise IsotoneError(
            "The linear program over scales could not be solved "
            f"({self.solver.modelStatusToString(status)}). Use constructor='optimal' or 'heuristic'."
        )

    def _keep(self) -> None:
        """Remember the solution.

        The solver forgets it when a column is added.
        """
        solution, statuses = self.solver.getSolution(), self.solver.getBasis().col_status
        self.value = float(self.solver.getObjectiveValue())
        self.weights = np.array(solution.col_value, dtype=np.float64)
        self.duals = np.array(solution.row_dual, dtype=np.float64)
        self.basic = np.array(
            [k for k, status in enumerate(statuses) if status == _highs().HighsBasisStatus.kBasic],
            dtype=np.int64,
        )
        if self.lower_bound == -np.inf:
            self.steady = self.duals

    def _grow(self, duals: NDArray[np.float64]) -> bool:
        """Add the best scale of each column at these prices, if it is any better at the prices of the moment.

        The prices prove a lower bound on the optimum over all scales; the best is kept.
        """
        prices = duals[: self.n]
        bound, grown = float(np.sum(prices)), False
        for j in self.wanted:
            at = self.place[int(j)]
            ratio, rises = best_ratio(self.cost[:, j] - prices, self.z, self.epsilon, float(duals[at]))
            bound += self.target[j] * ratio
            now = self._ratio_now(int(j), rises)
            if now < self.duals[at] - 1e-12 * max(1.0, abs(float(self.duals[at]))):
                grown = self.add(int(j), rises) or grown
        if bound > self.lower_bound:
            self.lower_bound, self.steady = bound, duals
        return grown

    def _ratio_now(self, column: int, rises: Rises) -> float:
        values = _values(rises, self.epsilon)
        return float(values @ (self.cost[:, column] - self.duals[: self.n]) / (values @ self.z))


def _values(rises: Rises, epsilon: float) -> NDArray[np.float64]:
    """The scale that rises at the given steps, with its highest entry 1."""
    heights = np.concatenate([[0.0], np.cumsum(np.where(rises, 1.0, -1.0))])
    return np.exp(epsilon * (heights - heights.max()))


def _highs() -> Any:
    """The library of the solver, which the extra ``programs`` brings: only published linear programs need it."""
    return from_extra("highspy", "programs")


def _quiet_solver() -> highspy.Highs:
    solver = _highs().Highs()
    solver.silent()
    for name, value in (
        ("threads", 1),
        ("presolve", "off"),  # the basis of one round starts the next
        ("solver", "simplex"),
        ("simplex_strategy", 4),  # primal: more columns keep a basis feasible
        ("simplex_scale_strategy", 0),  # scales are scaled as they should be; any other scaling fails often
        ("small_matrix_value", 1e-12),
    ):
        solver.setOptionValue(name, value)
    return solver
