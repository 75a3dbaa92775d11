"""What is public about a fit: grids, budgets and methods; and arrays that become records checked against them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from isotone.array_types import Bools, Floats, Ints
from isotone.curves.losses import ROWS, Loss, Slopes
from isotone.errors import InputError
from isotone.noise import Simulated, refuse_simulated
from isotone.privacy.checks import Number, exact, one_of, plain_text, positive, shown, whole_number
from isotone.privacy.draws import Draws
from isotone.privacy.guarantee import Guarantee, Unit
from isotone.reading.values import reals, units, values_of

# Public grids, of where a curve can change and which values a record can have.
#
# Everything a mechanism of this package sees of a record are two integers: the index of its ``x`` and the
# index of its ``y`` on grids that were fixed without looking at the data. Snapping is done record by record, so
# it needs no exactness: any fixed function of one record keeps the guarantee (docs/theory/curves.md, section 1).

GridSpec = int | Literal["integers"] | Sequence[Number]

LEVELS = 16
"""Binary digits of ``y``: records have one of 2**16 + 1 values."""
FINE = 1 << LEVELS
MOST_POINTS = 1 << 40
NARROWEST = Fraction(1, 1 << 36)
"""An interval is at least this share of its larger end wide: so floats tell all values of a record's ``y`` apart."""
WHY_RANGE = "The noise that hides one record depends on how far its y can lie from the others."
WHY_VALUES = "The two values of y are declared, lower first, as in y_values=(0, 1)."


@dataclass(frozen=True)
class Grid:
    """``points`` numbers from ``low`` to ``high``, evenly spaced or as listed.

    >>> grid = Grid(Fraction(0), Fraction(10), 11)
    >>> grid.snap(np.array([-5.0, 3.4, 1e300])), grid.step
    (array([ 0,  3, 10]), Fraction(1, 1))
    """

    low: Fraction
    high: Fraction
    points: int
    listed: tuple[float, ...] = ()

    @property
    def even(self) -> bool:
        """Whether the points are evenly spaced."""
        return not self.listed

    @property
    def step(self) -> Fraction:
        """The distance between two neighbouring points of an even grid."""
        return (self.high - self.low) / max(1, self.points - 1)

    def positions(self, indices: NDArray[np.int64]) -> NDArray[np.float64]:
        """The numbers at the given indices."""
        if self.listed:
            return np.array(self.listed)[indices]
        whole = self.low.denominator == self.step.denominator == 1
        if whole and max(abs(self.low), abs(self.high)) < 1 << 53:
            return float(self.low) + indices.astype(np.float64) * float(self.step)
        share = indices / max(1, self.points - 1)
        return float(self.low) * (1.0 - share) + float(self.high) * share

    def snap(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """The index of the point nearest to each value. Values beyond an end go to that end."""
        low, high = float(self.low), float(self.high)
        inside = np.clip(values, low, high)
        if self.listed:
            marks = np.array(self.listed)
            return np.searchsorted((marks[1:] + marks[:-1]) / 2, inside, side="right").astype(np.int64)
        # the distance of the two floats, not of the exact ends: no share can be above 1, whatever was rounded
        return np.rint((inside - low) / (high - low) * (self.points - 1)).astype(np.int64)


def parse_interval(value: Any, name: str, why: str) -> tuple[Fraction, Fraction]:
    """The two ends of a public interval, refused with the reason if it is missing or reversed."""
    if value is None:
        raise InputError(
            f"{name}=(low, high) is missing. {why} Give limits that are known without the data: they must not "
            f"be the data's own minimum and maximum, because those belong to single records."
        )
    ends = _pair(value)
    if ends is None:
        raise InputError(f"{name} must be a pair (low, high), not {shown(value)}.")
    low, high = exact(ends[0], f"the lower end of {name}"), exact(ends[1], f"the upper end of {name}")
    if max(abs(low), abs(high), high - low) > Fraction(10) ** 300:
        raise InputError(
            f"{name}={shown(value)} is too wide for floating-point arithmetic: rescale the data."
        )
    if low >= high:
        raise InputError(
            f"{name} from {float(low):g} to {float(high):g} is reversed or empty: give (low, high) with low below high."
        )
    if not high - low >= NARROWEST * max(abs(low), abs(high), Fraction(1, 10**280)):
        raise InputError(
            f"{name}={shown(value)} is too narrow for floating-point arithmetic: subtract a public number from the data and "
            "from the limits, or rescale both."
        )
    return low, high


def _pair(value: Any) -> list[Any] | None:
    """The two entries of something ordered, or None."""
    if isinstance(value, (str, bytes, Mapping, Set)) or not isinstance(value, Iterable):
        return None
    ends: list[Any] = list(value)
    return ends if len(ends) == 2 else None


def parse_y(y_range: Any, y_values: Any) -> tuple[tuple[Fraction, Fraction], bool]:
    """The public range of ``y``, and whether it has only the two ends of it as values.

    Such labels are declared by the user, never detected.
    """
    if y_values is None:
        return parse_interval(y_range, "y_range", WHY_RANGE), False
    ends = parse_interval(y_values, "y_values", WHY_VALUES)
    if any(Fraction(float(end)) != end for end in ends):
        raise InputError(
            f"y_values={shown(y_values)} are not floating-point numbers exactly, so no y could be told to equal them: use whole "
            "numbers, such as (0, 1)."
        )
    if y_range is not None and parse_interval(y_range, "y_range", WHY_RANGE) != ends:
        raise InputError(
            f"y_range={shown(y_range)} and y_values={shown(y_values)} contradict each other: leave out y_range, or y_values if y has "
            "other values too."
        )
    return ends, True


def make_grid(bounds: tuple[Fraction, Fraction], spec: GridSpec | None, default: int) -> Grid:
    """The public grid of ``x``. A number of even points, every integer, or a list of points.

    >>> make_grid((Fraction(1), Fraction(5)), "integers", 1024).points
    5
    """
    low, high = bounds
    if spec is None:
        return Grid(low, high, default)
    if isinstance(spec, str):
        return _integers(low, high, spec)
    if isinstance(spec, (int, np.integer)) and not isinstance(spec, (bool, np.timedelta64)):
        if not 2 <= spec <= MOST_POINTS:
            raise InputError(f"x_grid must have at least 2 and at most 2**40 points, not {shown(spec)}.")
        return Grid(low, high, int(spec))
    if isinstance(spec, (Mapping, Set)) or not isinstance(spec, Iterable):
        raise InputError(
            f"x_grid must be a number of points, 'integers' or a list of points, not {shown(spec)}."
        )
    return _listed(low, high, spec)


def _integers(low: Fraction, high: Fraction, spec: str) -> Grid:
    if spec != "integers":
        raise InputError(
            f"x_grid must be a number of points, 'integers' or a list of points, not {shown(spec)}."
        )
    if low.denominator != 1 or high.denominator != 1:
        raise InputError(f"x_grid='integers' needs whole bounds, not ({low}, {high}).")
    points = int(high - low) + 1
    if points > MOST_POINTS:
        raise InputError(
            f"x_grid='integers' would have {points:,} points, and 2**40 is the limit: give a number of points."
        )
    return Grid(low, high, points)


def _listed(low: Fraction, high: Fraction, spec: Sequence[Number]) -> Grid:
    marks = [exact(point, "a point of x_grid") for point in spec]
    if len(marks) < 2:
        raise InputError(f"A list of points for x_grid must have at least two, not {shown(spec)}.")
    if min(marks) < low or max(marks) > high:  # so that all are floats
        raise InputError(f"The points of x_grid must lie in bounds=({low}, {high}), not {shown(spec)}.")
    for a, b in pairwise(marks):
        if float(a) >= float(b):
            raise InputError(
                f"The points of x_grid must rise, but {float(b):g} comes after {float(a):g}: sort them, each once."
            )
    return Grid(low, high, len(marks), tuple(float(mark) for mark in marks))


# Columns of arrays, tables and lists of any library. Only types and shapes are looked at, never a value.
#
# What a container says of its own shape is public. A list has a length and nothing else: whether its entries are rows, and
# of what length, is a matter of contents.


def shape_of(values: Any, name: str) -> tuple[int, ...]:
    """The shape of a container. A list has one dimension."""
    if isinstance(values, Simulated):  # by the type of the container: what a list holds is contents
        refuse_simulated(values)
    if hasattr(values, "toarray"):
        raise InputError(f"{name} is a sparse matrix: pass a dense array, {name}.toarray().")
    shape = getattr(_array(values), "shape", None)
    if isinstance(shape, tuple):
        return tuple(int(size) for size in shape)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(values, (str, bytes)) or not hasattr(values, "__len__") or not hasattr(values, "__iter__"):
        raise InputError(
            f"{name} must have one dimension: pass an array or a list with one entry for each record."
        )
    return (len(values),)


def row_count(values: Any, name: str, hint: str = "") -> int:
    """The number of rows of a column. Several columns are refused, with a hint."""
    shape = shape_of(values, name)
    if len(shape) != 1 and not (len(shape) == 2 and shape[1] == 1):
        raise InputError(f"{name} must have one dimension, or two with one column, not shape {shape}.{hint}")
    return shape[0]


def check_length(values: Any, name: str, rows: int) -> None:
    """Refuse a column of another length or of several dimensions."""
    if row_count(values, name) != rows:
        raise InputError(f"X and {name} differ in length: every record needs one value in each.")


def only_column(values: Any, name: str) -> Any:
    """The column itself, from one dimension or from a table of one column."""
    return columns_of(values, name, 1)[0] if len(shape_of(values, name)) == 2 else _array(values)


def _array(values: Any) -> Any:
    """What can only be made an array, as an array, and everything else as it is."""
    return np.asarray(values) if hasattr(values, "__array__") and not hasattr(values, "__len__") else values


def columns_of(table: Any, name: str, count: int) -> list[Any]:
    """The columns of a table, or of a list of rows. A row of another length has no values."""
    table = _array(table)
    if len(shape_of(table, name)) == 1:
        rows = [_row(row, count) for row in values_of(table)]
        return [[row[place] for row in rows] for place in range(count)]
    if hasattr(table, "iloc"):
        return [table.iloc[:, place] for place in range(count)]
    if hasattr(table, "to_series"):
        return [table.to_series(place) for place in range(count)]
    if hasattr(table, "column"):
        return [table.column(place) for place in range(count)]
    return [table[:, place] for place in range(count)]


def _row(row: Any, count: int) -> list[Any]:
    flat = type(row) is list or type(row) is tuple or (type(row) is np.ndarray and row.ndim == 1)
    return list(row) if flat and len(row) == count else [None] * count


def numbers_of(column: Any, *, public: bool = False) -> Floats:
    """A column as floats, in which what cannot be read is NaN, and so is infinity unless the values are ``public``."""
    if isinstance(getattr(column, "dtype", None), np.dtype) and not isinstance(column, np.ma.MaskedArray):
        column = np.asarray(column)
    numbers = reals(column)
    if public:
        for row in np.flatnonzero(np.isnan(numbers)).tolist():
            value = values_of(column)[row]
            if isinstance(value, float) and math.isinf(value):
                numbers[row] = value
    return numbers


# What is public about a fit, and the records that it counts.

# How much a privacy unit can move a score, for every mechanism on curves.

Noisy = tuple[Ints, Fraction | None, Fraction | None]
"""Noisy values, and the rate or the variance of their noise."""

LARGEST_EPSILON = 10**9
"""Exponents of weights are 64-bit integers; up to here none can overflow."""


@dataclass(frozen=True)
class CurveSetting:
    """The guarantee of a mechanism on curves, and what a unit may hold.

    Each record of a unit has an integer weight of at most ``weight_steps``. If one record of weight 1 moves all scores by
    amounts within an interval of length ``R``, then choosing with ``exp(−rate(share, R)·score)`` costs ``share`` of
    epsilon (docs/theory/curves.md, section 4).
    """

    epsilon: Fraction
    unit: Unit = field(default_factory=Unit)
    weight_steps: int = 1

    def __post_init__(self) -> None:
        if not (type(self.epsilon) is Fraction and self.epsilon > 0):  # else checked where it was given
            object.__setattr__(self, "epsilon", positive(self.epsilon, "epsilon"))
        if self.epsilon > LARGEST_EPSILON:
            raise InputError(
                f"epsilon={float(self.epsilon):g} guarantees nothing: take at most {LARGEST_EPSILON:,}."
            )

    @property
    def guarantee(self) -> Guarantee:
        """What the whole release guarantees."""
        return self.unit.pure(self.epsilon)

    @cached_property
    def factor(self) -> int:
        """How many records of weight 1, added or removed, a change of one unit can amount to."""
        return self.unit.steps * self.weight_steps

    def rate(self, share: Fraction, scale: int) -> Fraction:
        """The rate at which scores that one record moves by at most ``scale`` may be used."""
        return share * self.epsilon / (self.factor * scale)

    def noise_rate(self, share: Fraction, scale: int) -> Fraction:
        """The same for geometric noise, refused if the noise would not fit 64 bits."""
        rate = self.rate(share, scale)
        if rate < Fraction(1, 1 << 44):
            raise InputError(
                f"epsilon={float(self.epsilon):g} is too small for this setting: its noise would not fit 64-bit "
                "integers. Take a larger epsilon, or fewer contributions."
            )
        return rate

    def law(self, share: Fraction, scale: int) -> tuple[Fraction | None, Fraction | None]:
        """The rate, or the variance, of the noise of :meth:`perturbed`."""
        return self.noise_rate(share, scale), None

    def check_noise(self, share: Fraction, scale: int) -> None:
        """Refuse noise that would not fit 64 bits."""
        self.noise_rate(share, scale)

    def part(self, share: Fraction) -> CurveSetting:
        """The same with a share of the budget."""
        return replace(self, epsilon=self.epsilon * share)

    def perturbed(self, values: Ints, share: Fraction, scale: int, draws: Draws) -> Noisy:
        """Values that a record of weight 1 changes by at most ``scale`` in sum, with noise for ``share`` of the budget."""
        rate = self.noise_rate(share, scale)
        return np.asarray(draws.perturb(values, rate)), rate, None


@dataclass(frozen=True)
class ConcentratedSetting(CurveSetting):
    """ρ-zCDP by Gaussian noise on sums, and by choices of bounded range.

    A choice whose losses lie in an interval of length ε costs ρ = ε²/8, and geometric noise that loses at most ε costs
    ρ = ε²/2 (docs/theory/curves.md, section 4.1). ``epsilon`` is the budget whose geometric noise has the same variance as
    Gaussian noise, ``2√ρ``: it sets sizes, and guarantees nothing.
    """

    rho: Fraction = Fraction(0)

    @classmethod
    def of(cls, rho: Fraction, unit: Unit, weight_steps: int = 1) -> ConcentratedSetting:
        """The setting for a budget."""
        if _alike(rho) > LARGEST_EPSILON:
            raise InputError(
                f"rho={float(rho):g} guarantees nothing: take at most {LARGEST_EPSILON**2 / 4:g}."
            )
        return cls(_alike(rho), unit, weight_steps, rho)

    @property
    def guarantee(self) -> Guarantee:
        """What the whole release guarantees."""
        return self.unit.zcdp(self.rho)

    def rate(self, share: Fraction, scale: int) -> Fraction:
        """The rate at which scores may be used by a choice that costs ``share`` of ρ."""
        return root_below(8 * share * self.rho) / (self.factor * scale)

    def noise_rate(self, share: Fraction, scale: int) -> Fraction:
        """The rate of geometric noise that costs ``share`` of ρ."""
        self.check_noise(share, scale)
        return root_below(2 * share * self.rho) / (self.factor * scale)

    def variance(self, share: Fraction, scale: int) -> Fraction:
        """The variance for values that a record of weight 1 changes by at most ``scale`` in sum, and so in length."""
        return Fraction((self.factor * scale) ** 2) / (2 * share * self.rho)

    def law(self, share: Fraction, scale: int) -> tuple[Fraction | None, Fraction | None]:
        """See above."""
        return None, self.variance(share, scale)

    def check_noise(self, share: Fraction, scale: int) -> None:
        """Refuse noise that would not fit 64 bits."""
        if self.variance(share, scale) > 1 << 88:
            raise InputError(
                f"rho={float(self.rho):g} is too small for this setting: its noise would not fit 64-bit integers. Take a "
                "larger rho, or fewer contributions."
            )

    def part(self, share: Fraction) -> ConcentratedSetting:
        """The same with a share of the budget."""
        return replace(self, epsilon=_alike(self.rho * share), rho=self.rho * share)

    def perturbed(self, values: Ints, share: Fraction, scale: int, draws: Draws) -> Noisy:
        """The same with Gaussian noise, rounded to integers."""
        self.check_noise(share, scale)
        variance = self.variance(share, scale)
        return values + draws.rounded_gaussians(variance, values.size).reshape(values.shape), None, variance


def root_below(square: Fraction) -> Fraction:
    """The root of a number above 0, rounded down by less than one part in 2^26.

    >>> root_below(Fraction(1, 4)), root_below(Fraction(2)) ** 2 < 2
    (Fraction(1, 2), True)
    """
    places = max(0, 28 + (square.denominator.bit_length() - square.numerator.bit_length()) // 2 + 1)
    return Fraction(math.isqrt((square.numerator << 2 * places) // square.denominator), 1 << places)


def _alike(rho: Fraction) -> Fraction:
    """The epsilon of geometric noise with the same variance, about."""
    return Fraction(2 * math.sqrt(rho))


# What one fit may spend, and on what besides the fit itself.

COUNTING_SHARE = Fraction(2, 100)
"""The share of epsilon that a noisy number of records costs, when ``public_n`` is not given."""
MOST_RECORDS = 2**62
"""A larger ``public_n`` is refused."""
MOST_COUNTED = 1 << 30
"""Sums of scores are 64-bit integers, which so many records cannot overflow."""
WEIGHT_STEPS = 64


@dataclass(frozen=True)
class FitBudget:
    """The ``whole`` budget of a fit, of which finding the direction takes the share ``finding``.

    Counting the records takes a share too, unless their number is public. A record's weight counts up to ``max_weight``.
    """

    whole: CurveSetting
    public_n: int | None = None
    finding: Fraction = Fraction(0)
    max_weight: float = 1.0

    @classmethod
    def of(cls, stated: Any, finding: Fraction, *, weighted: bool, grouped: bool) -> FitBudget:
        """The budget that the parameters of an estimator state, checked."""
        guarantee = fit_guarantee(stated.epsilon)
        unit = Unit(stated.contributions, guarantee.neighbours, guarantee.unit)
        if unit.contributions > 1 and not grouped:
            raise InputError(
                f"contributions={unit.contributions} needs groups, the privacy unit of each record: "
                "fit(X, y, groups=...). Without them nothing could keep a unit from having more."
            )
        steps = WEIGHT_STEPS if weighted else 1
        if guarantee.kind == "zcdp":
            whole = ConcentratedSetting.of(guarantee.rho, unit, steps)
        else:
            whole = CurveSetting(guarantee.epsilon, unit, steps)
        size = stated.public_n
        if size is not None:
            size = whole_number(size, "public_n (or None)", most=MOST_RECORDS)
        return cls(whole, size, finding, _max_weight(stated.max_weight) if weighted else 1.0)

    @property
    def largest_n(self) -> int:
        """The largest number of records that sizes may have to follow. A noisy one may be any."""
        return self.public_n or MOST_COUNTED

    @property
    def left(self) -> Fraction:
        """The share that is left for the fit itself."""
        return 1 - self.finding - (COUNTING_SHARE if self.public_n is None else 0)

    @property
    def rest(self) -> CurveSetting:
        """What the fit itself may spend."""
        return self.whole.part(self.left)

    def size(self, count: int, draws: Draws) -> int:
        """The public number of records, or a noisy one. The true one decides nothing."""
        if self.public_n is not None:
            return self.public_n
        unweighted = replace(self.whole, weight_steps=1)
        noisy, _, _ = unweighted.perturbed(np.array([count]), COUNTING_SHARE, 1, draws)
        return max(1, int(noisy[0]))


def fit_guarantee(epsilon: Any) -> Guarantee:
    """What a fit guarantees: pure ε for a number, or a guarantee as it is. Others than ε and ρ-zCDP are refused."""
    guarantee = epsilon if isinstance(epsilon, Guarantee) else Guarantee.pure(epsilon)
    if guarantee.kind not in ("pure", "zcdp") or guarantee.delta:
        raise InputError(
            f"A fit has pure ε-DP or ρ-zCDP, not {guarantee}: give epsilon, or Guarantee.zcdp(rho)."
        )
    return guarantee


@dataclass(frozen=True)
class FitMethod:
    """A mechanism by its name, and how finely it cuts the range of values, where that is not left to it."""

    name: str = "auto"
    levels: int | None = None
    """How often a tree of cuts halves the range of values."""
    value_levels: int | None = None
    """Steps of the grid of values of a baseline or a shape, a power of two."""

    @classmethod
    def of(cls, method: Any) -> FitMethod:
        """A method from its name, or as it is."""
        return method if isinstance(method, FitMethod) else cls(plain_text(method, "method"))


def _max_weight(stated: Any) -> float:
    if stated is None:
        raise InputError(
            "sample_weight needs max_weight: the largest weight that a record may have, known without the data. A "
            "record of unlimited weight cannot be hidden."
        )
    return float(positive(stated, "max_weight"))


# What is public about one fit, and what mechanisms compute from it. Nothing here has seen a record.


@dataclass(frozen=True)
class RegressionProblem:
    """The public parameters of a fit, checked.

    The loss and the range of ``y``, what may be spent, and about how many records there are: ``n`` is public or noisy, and 1
    until it is known.
    """

    methods: ClassVar[tuple[str, ...]]

    loss: Loss
    y_range: tuple[Fraction, Fraction]
    method: str = field(default="auto", kw_only=True)
    levels: int | None = field(default=None, kw_only=True)
    value_levels: int | None = field(default=None, kw_only=True)
    increasing: bool = field(default=True, kw_only=True)
    labels: bool = field(default=False, kw_only=True)
    """Whether ``y`` is one of the two ends of its range, by declaration."""
    budget: FitBudget = field(default=FitBudget(CurveSetting(Fraction(1))), kw_only=True)
    n: int = field(default=1, kw_only=True)

    def __post_init__(self) -> None:
        """Refuse a method, a depth or a grid of values that does not exist, and store plain values."""
        method = self.method if self.method in self.methods else one_of(self.method, "method", self.methods)
        levels, size = self.levels, self.value_levels
        if levels is not None:
            levels = whole_number(levels, "levels (or None)", 1, self.deepest)
        if size is not None:
            size = whole_number(size, "value_levels (or None)", 2, ROWS)
            if size & (size - 1):
                raise InputError(
                    f"value_levels must be a power of two from 2 to {ROWS}, or None, not {size}."
                )
        for name, value in (("method", method), ("levels", levels), ("value_levels", size)):
            object.__setattr__(self, name, value)
        self.loss.values(self.y_range)

    @property
    def deepest(self) -> int:
        """How often the range of values can be halved."""
        return LEVELS

    def sized(self, n: int, setting: CurveSetting) -> Self:
        """The same for about ``n`` records, with a budget for the fit alone."""
        return replace(self, n=n, budget=FitBudget(setting, n))

    @property
    def guarantee(self) -> Guarantee:
        """What the whole fit guarantees."""
        return self.budget.whole.guarantee

    @property
    def direction_given(self) -> bool:
        """Whether the direction is declared, and not found."""
        return not self.budget.finding

    @cached_property
    def setting(self) -> CurveSetting:
        """What the mechanism may spend."""
        return self.budget.rest

    @cached_property
    def strength(self) -> float:
        """Epsilon times the number of privacy units, as far as public numbers tell."""
        setting = self.setting
        return max(1.0, float(setting.epsilon * setting.weight_steps * self.n / setting.factor))

    @property
    def y_grid(self) -> Grid:
        """The values that a record's ``y`` can have."""
        return Grid(*self.y_range, FINE + 1)

    @property
    def span(self) -> Fraction:
        """The width of ``y_range``."""
        return self.y_range[1] - self.y_range[0]

    @property
    def height(self) -> Fraction:
        """The highest prediction less the lowest."""
        low, high = self.loss.values(self.y_range)
        return high - low

    @cached_property
    def ends(self) -> tuple[Fraction, Fraction]:
        """The lowest and the highest prediction, as shares of ``y_range``."""
        low, high = self.loss.values(self.y_range)
        return (low - self.y_range[0]) / self.span, (high - self.y_range[0]) / self.span

    @property
    def steepest(self) -> float:
        """The largest slope of the loss per step from the lowest to the highest prediction."""
        return self.loss.steepest(self.span) * float(self.height)

    @property
    def slopes(self) -> Slopes:
        """The derivative of the loss on the fine grid of ``y``."""
        return self.loss.slopes(FINE, self.span)

    def table(self, values: int) -> Ints:
        """The loss of ``values + 1`` values for ``ROWS + 1`` levels of ``y``, in integers."""
        return self.loss.table(ROWS, values, self.span)

    def unit(self, values: int) -> float:
        """The loss that 1 in the table stands for."""
        return self.loss.unit(ROWS, values, self.span)


# From arrays to private records.
#
# Shapes and lengths are public and checked with errors. Contents are private: a value that is missing or cannot
# be read drops its record, a value outside its interval is moved to the nearest end, and nothing is ever raised
# or printed about either (docs/theory/curves.md, section 1). What a value means is decided by
# :mod:`isotone.reading.values`, as for releases.


@dataclass(frozen=True)
class Records:
    """Private records on public grids.

    The index of ``x``, the index of ``y``, an integer weight.
    """

    cells: Ints = field(repr=False)
    levels: Ints = field(repr=False)
    weights: Ints = field(repr=False)

    def sorted(self) -> Records:
        """Sorted by cell, and by falling level within a cell.

        The second order makes every isotonic fit of a prefix or suffix give equal ``x`` equal values: levels
        that fall are pooled (docs/theory/curves.md, section 5).
        """
        levels, weights = int(self.levels.max(initial=0)) + 1, int(self.weights.max(initial=0)) + 1
        if (int(self.cells.max(initial=0)) + 1) * levels * weights >= 1 << 62:
            order = np.lexsort((-self.levels, self.cells))
            return Records(self.cells[order], self.levels[order], self.weights[order])
        # one integer for each record sorts much faster than an index
        packed = np.sort((self.cells * levels + (levels - 1 - self.levels)) * weights + self.weights)
        rest, weight = np.divmod(packed, weights)
        cells, fallen = np.divmod(rest, levels)
        return Records(cells, levels - 1 - fallen, weight)

    def rows(self, table: Ints) -> Ints:
        """For every record the row of a loss table, whose rows are coarser than levels."""
        coarse = FINE // (table.shape[0] - 1)
        return (self.levels + coarse // 2) // coarse

    def bins(self, starts: Ints) -> Ints:
        """The bin of every record. Bins begin at ``starts``."""
        return np.searchsorted(starts, self.cells, side="right") - 1

    def mirrored(self, points: int) -> Records:
        """The same records with ``x`` running the other way."""
        return replace(self, cells=points - 1 - self.cells).sorted()

    def upside_down(self, levels: int) -> Records:
        """The same records with ``y`` running the other way."""
        return replace(self, levels=levels - self.levels).sorted()


def check_columns(rows: int, y: Any, weight: Any, groups: Any) -> None:
    """Refuse columns that have not one entry for each of ``rows`` rows. No value is looked at."""
    if y is None:
        raise InputError("A regression requires y to be passed, but the target y is None.")
    for name, column in (("y", y), ("sample_weight", weight), ("groups", groups)):
        if column is not None:
            check_length(column, name, rows)


def read_records(cells: Ints, y: Any, weight: Any, groups: Any, problem: RegressionProblem) -> Records:
    """The records that count, as integers on public grids.

    ``cells`` has the place of each ``x``, −1 where there is none. Where labels are declared any other ``y`` is missing. Of
    each unit the first ``contributions`` records with values count.
    """
    budget, y = problem.budget, numbers_of(only_column(y, "y"))
    kept = (cells >= 0) & ~np.isnan(y)
    if problem.labels:
        low, high = map(float, problem.y_range)
        kept &= (y == low) | (y == high)
    weights = np.full(cells.size, budget.whole.weight_steps, dtype=np.int64)
    if weight is not None:
        weight = numbers_of(only_column(weight, "sample_weight"))
        kept &= ~np.isnan(weight)
        share = np.clip(np.nan_to_num(weight), 0.0, budget.max_weight) / budget.max_weight
        weights = np.rint(share * budget.whole.weight_steps).astype(np.int64)
    if groups is not None:
        names = units(only_column(groups, "groups"))
        kept &= _among_first(names, kept, budget.whole.unit.contributions)
    return Records(cells[kept], problem.y_grid.snap(y[kept]), weights[kept]).sorted()


def counted_records(cells: Ints, levels: Ints, count: Ints, problem: RegressionProblem) -> Records:
    """So many records of each cell and level of ``y``, each of a unit of its own, as a reading gives them."""
    (low, high), share = map(float, problem.y_range), levels / FINE
    y = problem.y_grid.snap((1.0 - share) * low + share * high)
    weights = np.full(int(count.sum()), problem.budget.whole.weight_steps, dtype=np.int64)
    return Records(np.repeat(cells, count), np.repeat(y, count), weights).sorted()


def _among_first(names: Sequence[str | None], kept: Bools, contributions: int) -> Bools:
    """Mark the first ``contributions`` records of each unit among those kept.

    None is marked without a unit.

    The rule sees one unit's rows at a time, so adding or removing another unit changes nothing.
    """
    seen: dict[str, int] = {}
    marks = np.zeros(len(names), dtype=np.bool_)
    for row in np.flatnonzero(kept).tolist():
        name = names[row]
        if name is not None and seen.get(name, 0) < contributions:
            seen[name] = seen.get(name, 0) + 1
            marks[row] = True
    return marks
