"""Losses of a curve, and their sums over prefixes."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple

import numpy as np

from isotone.array_types import Floats, Ints
from isotone.errors import InputError
from isotone.kernels import kernel
from isotone.privacy.checks import exact, shown

# The derivative of a loss as an integer, on the fine grid of ``y``.


@dataclass(frozen=True)
class Slopes:
    """The derivative of a loss at value ``v`` for a record of level ``u``, as an integer.

    ``clip(offset + scale·v − step·u, −cap, cap)``, times ``above`` where positive and ``below`` where negative.
    """

    offset: int
    scale: int
    step: int
    cap: int
    above: int = 1
    below: int = 1

    def at(self, value: int | Ints, levels: Ints) -> Ints:
        """The derivatives at one value, or one for each record, for records of the given levels."""
        raw = np.clip(self.offset + self.scale * value - self.step * levels, -self.cap, self.cap)
        return np.where(raw > 0, raw * self.above, raw * self.below)

    def bound(self, value: int, top: int) -> int:
        """The largest absolute derivative at ``value`` over all records of levels ``0, …, top``."""
        return int(np.abs(self.at(value, np.array([0, top], dtype=np.int64))).max())


# What a loss is, namely convex, public, and exact in integers.
#
# On a grid of ``levels + 1`` values it has two exact forms:
#
# - ``slopes``: the derivative at a value, times a positive constant that no choice depends on. Mechanisms with the
#   additive score use it (docs/theory/curves.md, section 3).
# - ``table``: the loss of every value for every ``y``, in integers, *exactly convex* along each row. Irrational
#   losses are rounded slope by slope, which keeps them convex: the table is then the loss that is minimised, and
#   everything proved for convex losses holds for it without a rounding error (section 6).

ROWS = 1024
"""Levels of ``y`` in loss tables."""


class Loss(ABC):
    """What every loss can do. ``span`` below is the width of ``y_range``.

    ``name`` is what it is chosen by, and ``usage`` how users write it. ``by_means`` tells whether the best constant for a
    group of records is their mean. The loss grows with the width of ``y_range`` to the power ``degree``.
    """

    name: ClassVar[str]
    usage: ClassVar[str]
    by_means: ClassVar[bool] = False
    degree: ClassVar[int] = 1

    @classmethod
    def parse(cls, argument: Any) -> Loss | None:
        """The loss with this argument, which is None where none is given. By default it has none.

        None if it is missing or one too many. A wrong argument raises an error.
        """
        return cls() if argument is None else None

    def on_unit(self, span: Fraction) -> Loss:
        """The loss for ``y`` moved to the unit interval. An argument in the unit of ``y`` shrinks with it."""
        return self

    def values(self, y_range: tuple[Fraction, Fraction]) -> tuple[Fraction, Fraction]:
        """The lowest and the highest prediction."""
        return y_range

    @abstractmethod
    def slopes(self, levels: int, span: Fraction) -> Slopes:
        """The derivative on a grid of ``levels + 1`` values."""

    @abstractmethod
    def table(self, levels: int, values: int, span: Fraction) -> Ints:
        """The loss of value ``v`` of ``values`` for level ``u`` of ``levels`` in entry ``(u, v)``, convex in ``v``."""

    @abstractmethod
    def unit(self, levels: int, values: int, span: Fraction) -> float:
        """The loss that 1 in the table stands for."""

    def steepest(self, span: Fraction) -> float:
        """The largest slope of the loss per unit of ``y``, for bounds on the error and not for privacy."""
        return 1.0

    def flipped(self) -> Loss:
        """The loss of ``−f`` for ``−y``. The same, where both sides are treated alike."""
        return self

    @abstractmethod
    def evaluate(self, prediction: Floats, y: Floats) -> Floats:
        """The loss itself, for risks of public or simulated data."""


def largest_range(table: Ints) -> int:
    """How far apart one record can move the losses of two values."""
    return int(np.ptp(table, axis=1).max())


def differences(levels: int, values: int) -> tuple[Ints, int]:
    """``value − y`` for every pair, in units of the finer of the two grids. Both are powers of two."""
    unit = max(levels, values)
    v = np.arange(values + 1, dtype=np.int64) * (unit // values)
    u = np.arange(levels + 1, dtype=np.int64) * (unit // levels)
    return v[None, :] - u[:, None], unit


# The losses that a curve can be fitted by, and their names.


@dataclass(frozen=True)
class Squared(Loss):
    """``(prediction − y)²``."""

    name, usage = "squared", "'squared'"
    by_means, degree = True, 2

    def slopes(self, levels: int, span: Fraction) -> Slopes:
        """Half the derivative, ``v − u``."""
        return Slopes(0, 1, 1, cap=levels)

    def table(self, levels: int, values: int, span: Fraction) -> Ints:
        """Squared distances in squared grid units."""
        return differences(levels, values)[0] ** 2

    def unit(self, levels: int, values: int, span: Fraction) -> float:
        """The loss that 1 in the table stands for."""
        return float(span / max(levels, values)) ** 2

    def steepest(self, span: Fraction) -> float:
        """Twice the width of ``y_range``."""
        return 2 * float(span)

    def evaluate(self, prediction: Floats, y: Floats) -> Floats:
        """The loss itself."""
        return (prediction - y) ** 2


@dataclass(frozen=True)
class Pinball(Loss):
    """``q·(y − prediction)`` below ``y`` and ``(1 − q)·(prediction − y)`` above. Fits the ``q``-quantile."""

    quantile: Fraction
    name, usage = "pinball", "('pinball', q)"

    @classmethod
    def parse(cls, argument: Any) -> Pinball | None:
        """A quantile with a small denominator, in which slopes are whole numbers."""
        if argument is None:
            return None
        q = exact(argument, "the quantile of the pinball loss")
        if not 0 < q < 1 or q.denominator > 1024:
            raise InputError(
                f"The quantile of the pinball loss must be strictly between 0 and 1, and a fraction with a "
                f"denominator of at most 1024, not {argument!r}."
            )
        return cls(q)

    def slopes(self, levels: int, span: Fraction) -> Slopes:
        """``1 − q`` above ``y``, ``−q`` below, 0 at ``y``, times the denominator of ``q``."""
        below = self.quantile.numerator
        return Slopes(0, 1, 1, cap=1, above=self.quantile.denominator - below, below=below)

    def table(self, levels: int, values: int, span: Fraction) -> Ints:
        """Distances in grid units times the two integer slopes."""
        away, _ = differences(levels, values)
        rule = self.slopes(levels, span)
        return np.where(away > 0, away * rule.above, -away * rule.below)

    def unit(self, levels: int, values: int, span: Fraction) -> float:
        """The loss that 1 in the table stands for."""
        return float(span / max(levels, values)) / self.quantile.denominator

    def steepest(self, span: Fraction) -> float:
        """The larger of ``q`` and ``1 − q``."""
        return float(max(self.quantile, 1 - self.quantile))

    def flipped(self) -> Pinball:
        """Pinball of the opposite quantile."""
        return Pinball(1 - self.quantile)

    def evaluate(self, prediction: Floats, y: Floats) -> Floats:
        """The loss itself."""
        away = prediction - y
        q = float(self.quantile)
        return np.where(away > 0, (1 - q) * away, -q * away)


@dataclass(frozen=True)
class Absolute(Loss):
    """``|prediction − y|``."""

    name, usage = "absolute", "'absolute'"

    def slopes(self, levels: int, span: Fraction) -> Slopes:
        """The sign of ``v − u``."""
        return Slopes(0, 1, 1, cap=1)

    def table(self, levels: int, values: int, span: Fraction) -> Ints:
        """Distances in grid units."""
        return np.abs(differences(levels, values)[0])

    def unit(self, levels: int, values: int, span: Fraction) -> float:
        """The loss that 1 in the table stands for."""
        return float(span / max(levels, values))

    def evaluate(self, prediction: Floats, y: Floats) -> Floats:
        """The loss itself."""
        return np.abs(prediction - y)


@dataclass(frozen=True)
class Huber(Loss):
    """``d²/(2·delta)`` up to a distance ``delta`` and ``|d| − delta/2`` beyond, with slope at most 1.

    ``delta`` is rounded to the grid of ``y`` (at least one step); None is a tenth of ``y_range``.
    """

    delta: Fraction | None = None
    name, usage = "huber", "('huber', delta)"

    @classmethod
    def parse(cls, argument: Any) -> Huber:
        """A width above 0, or none for a tenth of ``y_range``."""
        delta = None if argument is None else exact(argument, "the width of the Huber loss")
        if delta is not None and delta <= 0:
            raise InputError(f"The width of the Huber loss must be above 0, not {argument!r}.")
        return cls(delta)

    def on_unit(self, span: Fraction) -> Huber:
        """The width shrinks with ``y``."""
        return self if self.delta is None else Huber(self.delta / span)

    def _steps(self, levels: int, span: Fraction) -> int:
        """``delta`` in steps of the grid."""
        delta = span / 10 if self.delta is None else self.delta
        return max(1, round(delta / span * levels))

    def _cap(self, levels: int, span: Fraction) -> int:
        """The same, but no more than there are steps. No two values are further apart."""
        return min(levels, self._steps(levels, span))

    def slopes(self, levels: int, span: Fraction) -> Slopes:
        """``v − u``, cut off at ``delta``."""
        return Slopes(0, 1, 1, cap=self._cap(levels, span))

    def table(self, levels: int, values: int, span: Fraction) -> Ints:
        """``d²`` up to ``delta``, ``2·delta·|d| − delta²`` beyond."""
        away, unit = differences(levels, values)
        cap = self._cap(unit, span)
        far = np.abs(away)
        return np.where(far <= cap, far**2, 2 * cap * far - cap**2)

    def unit(self, levels: int, values: int, span: Fraction) -> float:
        """The loss that 1 in the table stands for."""
        unit = max(levels, values)
        return float(span / unit / (2 * self._steps(unit, span)))

    def evaluate(self, prediction: Floats, y: Floats) -> Floats:
        """The loss itself. ``delta`` None means a tenth here (``y_range`` of width 1)."""
        delta = 0.1 if self.delta is None else float(self.delta)
        far = np.abs(prediction - y)
        return np.where(far <= delta, far**2 / (2 * delta), far - delta / 2)


@dataclass(frozen=True)
class Logistic(Loss):
    """``−y·ln p − (1 − y)·ln(1 − p)`` for predictions ``p`` in ``[margin, 1 − margin]`` and ``y`` in [0, 1].

    Cutting ``p`` off inside the loss would not be convex, so the *range* of predictions is restricted instead
    (docs/theory/curves.md, section 2). ``margin`` is rounded to a multiple of 1/1024.
    """

    margin: Fraction = Fraction(1, 64)
    name, usage = "logistic", "'logistic' or ('logistic', margin)"
    by_means = True

    PARTS = 1024
    ROUNDING = 1 << 24
    LARGEST = Fraction(503, 1024)
    """Up to here every slope of every table is at least 1: at 504 some are rounded to 0, at 505 all of them."""

    @classmethod
    def parse(cls, argument: Any) -> Logistic:
        """A margin, or none for 1/64."""
        margin = Fraction(1, 64) if argument is None else exact(argument, "the margin of the logistic loss")
        if not Fraction(1, cls.PARTS) <= margin <= cls.LARGEST:
            raise InputError(
                f"The margin of the logistic loss must be at least 1/1024 and at most 503/1024, not {shown(argument)}: "
                "predictions closer to 0 or 1 can cost without limit, so no noise would hide a record, and between "
                "margins closer to 1/2 all predictions are the same."
            )
        return cls(margin)

    @property
    def _share(self) -> int:
        return max(1, round(self.margin * self.PARTS))

    def values(self, y_range: tuple[Fraction, Fraction]) -> tuple[Fraction, Fraction]:
        """``(margin, 1 − margin)``. The labels must be declared to lie between 0 and 1."""
        if y_range != (0, 1):
            raise InputError(
                f"The logistic loss needs y_range=(0, 1): its y are labels or shares, not values between "
                f"{y_range[0]} and {y_range[1]}."
            )
        margin = Fraction(self._share, self.PARTS)
        return margin, 1 - margin

    def slopes(self, levels: int, span: Fraction) -> Slopes:
        """``p − y`` times 1024·levels. The derivative up to the positive factor ``1/(p·(1 − p))``."""
        share = self._share
        return Slopes(share * levels, self.PARTS - 2 * share, self.PARTS, cap=self.PARTS * levels)

    def table(self, levels: int, values: int, span: Fraction) -> Ints:
        """Integer slopes of the two losses at ``y = 0`` and ``y = 1``, added up and mixed by ``y``."""
        low, high = self.values((Fraction(0), Fraction(1)))
        p = np.linspace(float(low), float(high), values + 1)
        scale = self.ROUNDING / levels
        rising = np.sort(np.rint(np.diff(-np.log1p(-p)) * scale).astype(np.int64))
        falling = np.sort(np.rint(np.diff(-np.log(p)) * scale).astype(np.int64))
        zero = np.concatenate([[0], np.cumsum(rising)])
        one = np.concatenate([[0], np.cumsum(falling)])
        one = one - one[-1]
        u = np.arange(levels + 1, dtype=np.int64)[:, None]
        return u * one[None, :] + (levels - u) * zero[None, :]

    def unit(self, levels: int, values: int, span: Fraction) -> float:
        """The loss that 1 in the table stands for."""
        return 1.0 / self.ROUNDING

    def steepest(self, span: Fraction) -> float:
        """At the margin, for the label that is further away."""
        return self.PARTS / self._share

    def evaluate(self, prediction: Floats, y: Floats) -> Floats:
        """The loss itself."""
        return -(y * np.log(prediction) + (1 - y) * np.log1p(-prediction))


LOSSES: tuple[type[Loss], ...] = (Squared, Absolute, Huber, Pinball, Logistic)


def parse_loss(spec: Any) -> Loss:
    """The loss that a name, a pair or a text such as ``"pinball(0.9)"`` stands for.

    >>> parse_loss("pinball(0.9)")
    Pinball(quantile=Fraction(9, 10))
    >>> parse_loss(("huber", 2)).delta
    Fraction(2, 1)
    """
    name, argument = _split(spec)
    for kind in LOSSES:
        result = kind.parse(argument) if kind.name == name else None
        if result is not None:
            return result
    *others, last = (kind.usage for kind in LOSSES)
    raise InputError(f"There is no loss {shown(spec)}. Use {', '.join(others)}, {last}.")


def _split(spec: Any) -> tuple[str, Any]:
    if isinstance(spec, str):
        called = re.fullmatch(r"\s*(\w+)\s*\(\s*([^()]+?)\s*\)\s*", spec)
        return (called[1], called[2]) if called else (spec, None)
    if isinstance(spec, (tuple, list)) and len(parts := list(spec)) == 2:
        return str(parts[0]), parts[1]
    if isinstance(spec, LOSSES):
        return spec.name, next(iter(vars(spec).values()), None)
    return "", None


# The least loss of an isotonic fit to every prefix of a sequence, with values restricted to an interval.
#
# Two algorithms, both in integers (docs/theory/curves.md, section 5): a heap of breakpoints for losses that are
# linear on both sides of ``y``, and a pass over a grid of values for any table.
# Each function adds, for every run, the loss of the records up to the end of that run to ``out``; with ``step = −1``
# it reads the records from the last to the first and the fit falls. ``span`` is the first run, the one after the last,
# and the step; ``ends`` are the least and the largest value of the fit.


class WeightedLevels(NamedTuple):
    """Levels and weights of records, those of run i from ``start[i]`` on."""

    levels: Ints
    weights: Ints
    start: Ints


@kernel
def _push(values: Ints, weights: Ints, size: int, value: int, weight: int) -> None:
    """Add an entry to a heap whose largest value is at 0."""
    place = size
    while place > 0:
        above = (place - 1) >> 1
        if values[above] >= value:
            break
        values[place], weights[place] = values[above], weights[above]
        place = above
    values[place], weights[place] = value, weight


@kernel
def _pop(values: Ints, weights: Ints, size: int) -> None:
    """Remove the entry at 0 from a heap of ``size`` entries."""
    last = size - 1
    value, weight = values[last], weights[last]
    place = 0
    while True:
        below = 2 * place + 1
        if below >= last:
            break
        if below + 1 < last and values[below + 1] > values[below]:
            below += 1
        if values[below] <= value:
            break
        values[place], weights[place] = values[below], weights[below]
        place = below
    values[place], weights[place] = value, weight


@kernel
def add_linear_losses(
    records: WeightedLevels,
    span: tuple[int, int, int],
    ends: tuple[int, int],
    slopes: tuple[int, int],
    room: tuple[Ints, Ints],
    out: Ints,
) -> None:
    """Losses with the first slope beyond ``y``, and minus the second before it. ``room`` is for a heap."""
    (levels, weights, start), (first, last, step), (low, high) = records, span, ends
    (above, below), (heap, heights) = slopes, room
    cost, size = 0, 0
    if step < 0:
        low, high, above, below = -high, -low, below, above
    run = first if step > 0 else last - 1
    for place in range(1, last - first + 1):
        for record in range(start[run], start[run + 1]):
            index = record if step > 0 else start[run] + start[run + 1] - 1 - record
            level, weight = step * levels[index], weights[index]
            kept = min(max(level, low), high)
            cost += weight * (above * (kept - level) if kept > level else below * (level - kept))
            _push(heap, heights, size, kept, weight * (above + below))
            size += 1
            rest = weight * above
            while rest > 0:
                part = min(rest, heights[0])
                cost += part * (heap[0] - kept)
                rest -= part
                heights[0] -= part
                if heights[0] == 0:
                    _pop(heap, heights, size)
                    size -= 1
        out[place if step > 0 else last - first - place] += cost
        run += step


@kernel
def add_table_losses(
    records: WeightedLevels,
    span: tuple[int, int, int],
    ends: tuple[int, int],
    table: Ints,
    least: Ints,
    out: Ints,
) -> None:
    """Any convex loss, by its table. ``levels`` are rows, and columns from the first to the last of ``ends`` are the values allowed."""
    (levels, weights, start), (first, last, step), (low, high) = records, span, ends
    width = high - low + 1
    for value in range(width):
        least[value] = 0
    run = first if step > 0 else last - 1
    for place in range(1, last - first + 1):
        for record in range(start[run], start[run + 1]):
            index = record if step > 0 else start[run] + start[run + 1] - 1 - record
            row, weight = table[levels[index]], weights[index]
            running = least[0 if step > 0 else width - 1]
            for value in range(width):
                at = value if step > 0 else width - 1 - value
                running = min(running, least[at])
                least[at] = running + weight * row[low + at]
        best = least[0]
        for value in range(1, width):
            best = min(best, least[value])
        out[place if step > 0 else last - first - place] += best
        run += step
