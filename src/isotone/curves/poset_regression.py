"""PrivatePosetRegression, mechanisms on a partial order, and which of them fits."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, NoReturn

import numpy as np
from numpy.typing import NDArray

from isotone.array_types import Floats, Ints
from isotone.curves.circuits import Circuit, CurveDraws, exact_draws
from isotone.curves.cuts import MechanismRule, RegressionMechanism, RiskBound
from isotone.curves.ideals import MOST_IDEALS, MOST_WORDS, Cut, Region
from isotone.curves.losses import Slopes, largest_range, parse_loss
from isotone.curves.posterior import faint, middles, noisy_means, noisy_sums, rescaled
from isotone.curves.problem import (
    FINE,
    LEVELS,
    WHY_RANGE,
    FitBudget,
    FitMethod,
    Records,
    RegressionProblem,
    check_columns,
    only_column,
    parse_interval,
    read_records,
    row_count,
)
from isotone.curves.regression import PrivacyWarning, PrivateEstimator, charged, warn_of_published
from isotone.curves.shape_posterior import draw_bound, point_costs
from isotone.curves.surface import (
    MOST_PROJECTED,
    Arrangement,
    FeatureOrder,
    Order,
    ProductOrder,
    arrange,
    few_ideals,
    listed,
    whole,
)
from isotone.errors import InputError
from isotone.order import Poset
from isotone.order.isotonic import project_bottom_up
from isotone.privacy.checks import Number, shown, truth
from isotone.privacy.guarantee import Guarantee
from isotone.reading.values import text_of, values_of

# What is public about one fit on an order.

METHODS = ("additive", "threshold", "baseline", "coupling", "auto")
MOST_THRESHOLD_LEVELS = 6
"""The published score is computed for each step of a grid of values, of at least this many halvings."""


@dataclass(frozen=True)
class PosetProblem(RegressionProblem):
    """Values that are monotone on a public ``order``."""

    methods: ClassVar[tuple[str, ...]] = METHODS

    order: Order

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.method == "threshold" and not few_ideals(self.order):
            raise InputError(
                f"method='threshold' lists the ideals of the order, up to {MOST_IDEALS:,} of them and "
                f"{MOST_WORDS >> 17} MB in all, and this one has more. Use method='additive'."
            )

    @property
    def deepest(self) -> int:
        """How often the range of values can be halved."""
        return MOST_THRESHOLD_LEVELS if self.method == "threshold" else LEVELS

    @cached_property
    def arrangement(self) -> Arrangement:
        """How the order is cut. Without cuts, only its size and covers matter."""
        if self.method == "threshold":
            return whole(self.order, listed(self.order), "listed")
        if self.method == "coupling":
            from isotone.published.curves.threshold import CoupledRegion

            same = listed(self.order)
            return whole(self.order, CoupledRegion(same.elements, same.covers), "coupled")
        return arrange(self.order)


# Mechanisms that cut an order with a tree. Values come from the tree itself, or are measured in its parts.
#
# At every level the order is partitioned into convex parts, and each part has an interval of values. In each part an
# ideal is drawn by the exponential mechanism: it gets the lower half of the interval, the rest the upper half. Parts
# without records are cut like any other; parts without elements are dropped, which only outputs decide
# (docs/theory/curves-posets.md, section 1).

CUTTING_SHARE = Fraction(1, 2)
"""Of epsilon, when means are measured. Depth and share were set by simulations on grids of 10 × 10 and 30 × 30."""


def equal_shares(levels: int, whole: Fraction = Fraction(1)) -> list[Fraction]:
    """The same share of epsilon for every level."""
    return [whole / levels] * levels


@dataclass(frozen=True)
class OrderMechanism(RegressionMechanism[Floats]):
    """A mechanism on an order. Outputs are values between 0 and 1, one for each element.

    The setting says what is guaranteed, ε-DP or ρ-zCDP (docs/theory/curves-posets.md, section 1).
    """

    arrangement: Arrangement


@dataclass(frozen=True)
class Leaves:
    """The output of a tree of cuts, which is the parts, and for each element the lower end of its interval and its part."""

    regions: list[Region]
    floor: Ints
    part: Ints
    width: int

    def middles(self) -> Floats:
        """The value of each element, from its interval."""
        return middles(self.floor, self.width)


CutRule = Callable[[Region, int, int, Fraction], Cut]
"""``cut(region, floor, width, share)``."""


def grow_regions(
    arrangement: Arrangement, shares: Sequence[Fraction], level: Callable[[Ints, int], CutRule]
) -> Leaves:
    """The partition after ``len(shares)`` levels, of which level ``t`` spends ``shares[t]`` of epsilon.

    ``level(floor, width)`` prepares the rule by which all parts of one level are cut.
    """
    regions, width = list(arrangement.regions), FINE
    floor = np.zeros(arrangement.size, np.int64)
    for share in shares:
        rule, half = level(floor, width), width // 2
        children: list[Region] = []
        raised = floor.copy()
        for region in regions:
            cut = rule(region, int(floor[region.members[0]]), width, share)
            if cut.above is not None:
                raised[cut.above.members] += half
            children += [side for side in (cut.below, cut.above) if side is not None]
        regions, floor, width = children, raised, half
    part = np.empty(arrangement.size, np.int64)
    for number, region in enumerate(regions):
        part[region.members] = number
    return Leaves(regions, floor, part, width)


@dataclass(frozen=True)
class PosetTree(OrderMechanism):
    """A tree of cuts by the additive score. Each leaf has the middle of its interval of values.

    An element's weight is minus the sum of its records' derivatives at the middle of the interval, so the score of an
    ideal is the sum of its weights, up to a constant.

    Guarantee: epsilon-DP for one privacy unit (docs/theory/curves-posets.md, section 1).
    Error: ``error()`` bounds the excess loss over the functions monotone on the arrangement's order, before a
    projection; ``steepest`` is the largest slope of the loss over the range.
    Cost: O(n + elements) a level on forests, series-parallel orders and grids; O(ideals) where they are listed.
    """

    slopes: Slopes
    levels: int
    steepest: float = 1.0

    @classmethod
    def of(cls, problem: PosetProblem) -> PosetTree:
        """The mechanism with a depth for a problem."""
        levels = problem.levels or min(LEVELS, max(2, round(math.log2(problem.strength) / 2)))
        return cls(problem.setting, problem.arrangement, problem.slopes, levels, problem.steepest)

    def draw(self, records: Records, draws: CurveDraws) -> Floats:
        """Step values, at most ``2**levels`` of them in each region of the arrangement."""
        shares = equal_shares(self.levels)
        return self.arrangement.monotone(self.leaves(records, shares, draws).middles())

    def leaves(self, records: Records, shares: Sequence[Fraction], draws: CurveDraws) -> Leaves:
        """The tree of cuts."""

        def level(floor: Ints, width: int) -> CutRule:
            weights = self._weights(records, floor + width // 2)

            def cut(region: Region, low: int, _: int, share: Fraction) -> Cut:
                rate = self.setting.rate(share, self.slopes.bound(low + width // 2, FINE))
                return region.cut(weights, rate, draws)

            return cut

        return grow_regions(self.arrangement, shares, level)

    def _weights(self, records: Records, middle: Ints) -> Ints:
        """For every element, minus the sum of its records' derivatives."""
        sums = np.zeros(middle.size, dtype=np.int64)
        slopes = self.slopes.at(middle[records.cells], records.levels)
        np.subtract.at(sums, records.cells, records.weights * slopes)
        return sums

    def error(self) -> RiskBound:
        """Section 1, with as many cuts as there are ideals."""
        return RiskBound.of_cuts(
            self.setting, equal_shares(self.levels), self.arrangement.log_ideals(), self.steepest
        )


@dataclass(frozen=True)
class MeasuredPosetTree(OrderMechanism):
    """A few levels of cuts, then the noisy mean of each part, made monotone.

    For losses that are fitted by means. ``ends`` are those of the predictions, as shares of ``y_range``; the cuts take
    ``share`` of epsilon.

    Guarantee: epsilon-DP for one privacy unit (docs/theory/curves-posets.md, sections 1 and 7).
    """

    slopes: Slopes
    levels: int
    share: Fraction
    ends: tuple[Fraction, Fraction] = (Fraction(0), Fraction(1))

    @classmethod
    def of(cls, problem: PosetProblem) -> MeasuredPosetTree:
        """The mechanism with sizes for a problem."""
        levels = problem.levels or (4 if problem.strength < 3000 else 5)
        return cls(problem.setting, problem.arrangement, problem.slopes, levels, CUTTING_SHARE, problem.ends)

    def draw(self, records: Records, draws: CurveDraws) -> Floats:
        """Values that are constant on each part."""
        shares = equal_shares(self.levels, self.share)
        tree = PosetTree(self.setting, self.arrangement, self.slopes, self.levels)
        leaves = tree.leaves(records, shares, draws)
        counted = Records(leaves.part[records.cells], records.levels, records.weights)
        starts = np.arange(len(leaves.regions))
        mean, count = noisy_means(counted, starts, self.setting, 1 - sum(shares, Fraction(0)), draws)
        values = rescaled(self._ordered(leaves, mean, count), self.ends)
        return self.arrangement.monotone(values[leaves.part])

    def _ordered(self, leaves: Leaves, mean: Floats, count: Floats) -> Floats:
        """The means, projected onto what the order between parts asks for."""
        by_floor = np.argsort([leaves.floor[region.members[0]] for region in leaves.regions], kind="stable")
        rank = np.empty(by_floor.size, np.int64)
        rank[by_floor] = np.arange(by_floor.size)
        pairs = rank[leaves.part[self.arrangement.covers]]
        # in a relaxed order parts may be related the wrong way round: the last projection takes care of them
        pairs = np.unique(pairs[pairs[:, 0] < pairs[:, 1]], axis=0).reshape(-1, 2)
        values = np.empty(by_floor.size)
        values[by_floor] = project_bottom_up(pairs, mean[by_floor], count[by_floor])
        return values

    def error(self) -> RiskBound:
        """``17/(4ε')`` a part and a quarter a record for the squared loss (section 7).

        An estimate for other losses, and where parts are put in order after the means were taken.
        """
        rest = float(self.setting.epsilon * (1 - self.share)) / self.setting.factor
        parts = 2**self.levels * len(self.arrangement.regions)
        return RiskBound(noise=4.25 * parts / rest, per_record=0.25, proved=False)


# The baseline on chains and forests. One exact draw from all monotone functions on a grid of values.
#
# The score of a function is its loss; one record moves it by the range of its own loss. On a forest the total weight of
# the functions on a subtree with a given value at its root is a product of running sums over its children: a circuit
# (docs/theory/curves-posets.md, section 9).

MOST_NODES = 8_000_000


@dataclass(frozen=True)
class Branches:
    """A forest. ``order`` lists the elements with children before parents. ``parent`` is −1 at the roots.

    ``downward``: roots are at the bottom of the order, so that values count from the top.
    """

    order: Ints = field(repr=False)
    parent: Ints = field(repr=False)
    downward: bool = False


def branches(size: int, covers: Ints, bottom_up: Ints) -> Branches:
    """The order as a forest, upward or downward. Refused if it is none."""
    for lower, upper, downward in ((0, 1, False), (1, 0, True)):
        if np.bincount(covers[:, lower], minlength=size).max(initial=0) <= 1:
            parent = np.full(size, -1, np.int64)
            parent[covers[:, lower]] = covers[:, upper]
            return Branches(bottom_up[::-1] if downward else bottom_up, parent, downward)
    raise InputError(
        "The baseline needs a chain or a forest: no element with two elements right above it, or none with two right "
        "below it. Use method='additive'."
    )


@dataclass(frozen=True)
class PosetBaseline(OrderMechanism):
    """The exponential mechanism over all monotone functions on a chain or forest, with values on a grid.

    Guarantee: epsilon-DP for one privacy unit (docs/theory/curves-posets.md, section 9).
    Cost: O(elements · values), and O(n·values) for the losses.
    """

    forest: Branches
    table: Ints = field(repr=False)
    unit: float = 1.0
    steepest: float = 1.0

    def __post_init__(self) -> None:
        if 2 * self.arrangement.size * self.table.shape[1] > MOST_NODES:
            raise InputError(
                f"The baseline on {self.arrangement.size:,} elements and {self.table.shape[1]} values is too large. Use "
                "method='additive', or fewer values (value_levels)."
            )

    @classmethod
    def of(cls, problem: PosetProblem) -> PosetBaseline:
        """The mechanism with a grid of values for a problem."""
        arrangement = problem.arrangement
        size = math.sqrt(problem.strength / math.log(arrangement.size + 1))
        values = problem.value_levels or 1 << min(7, max(1, round(math.log2(max(2.0, size)))))
        forest = branches(arrangement.size, arrangement.covers, arrangement.bottom_up)
        table, unit = problem.table(values), problem.unit(values)
        return cls(problem.setting, arrangement, forest, table, unit, problem.steepest)

    def draw(self, records: Records, draws: CurveDraws) -> Floats:
        """A monotone function."""
        size, values = self.arrangement.size, self.table.shape[1]
        losses = point_costs(records, size, self.table)[self.forest.order]
        if self.forest.downward:
            losses = losses[:, ::-1]
        costs = np.zeros((size, 2, values), np.int64)
        costs[:, 0, :] = losses
        selected = draws.select(self._circuit, np.append(costs.ravel(), 0), self._rate())
        place, node = np.divmod(selected, 2 * values)
        chosen = (node < values) & (place < size)
        level = np.empty(size, np.int64)
        level[self.forest.order[place[chosen]]] = node[chosen]
        return (values - 1 - level if self.forest.downward else level) / (values - 1)

    def _rate(self) -> Fraction:
        return self.setting.rate(Fraction(1), largest_range(self.table))

    @cached_property
    def _circuit(self) -> Circuit:
        """Nodes "this value" and "at most this value" for the element at place ``p``, for every value."""
        values, order, parent = self.table.shape[1], self.forest.order, self.forest.parent
        above: dict[int, list[int]] = {}
        steps = np.arange(values)
        counts: list[Ints] = []
        child: list[Ints] = []
        for place, element in enumerate(order.tolist()):
            inner = above.pop(element, [])
            start = 2 * values * place
            counts.append(np.full(values, len(inner)))
            if inner:
                child.append(np.stack([2 * values * p + values + steps for p in inner], axis=1).ravel())
            counts.append(np.where(steps > 0, 2, 1))
            sums = np.stack([start + values + steps - 1, start + steps], axis=1).ravel()
            child.append(sums[1:])  # the lowest value has no sum before it
            above.setdefault(int(parent[element]), []).append(place)
        roots = above.pop(-1)
        counts.append(np.array([len(roots)]))
        child.append(np.array([2 * values * p + 2 * values - 1 for p in roots]))
        summed = np.append(np.tile(np.repeat([False, True], values), order.size), False)
        first = np.concatenate([[0], np.cumsum(np.concatenate(counts))])
        return Circuit(summed, first.astype(np.int64), np.concatenate(child).astype(np.int64))

    def error(self) -> RiskBound:
        """Section 9, for all monotone functions."""
        step = self.steepest / (self.table.shape[1] - 1)
        return draw_bound(self, self._circuit, self.unit * largest_range(self.table), step)


# Means and probabilities on an order with many records at every element. All elements are measured at once.

RECORDS, STRENGTH = 12, 3
"""So many records an element, and so much of epsilon times records, make measuring all elements pay."""


def many_records(problem: PosetProblem) -> bool:
    """Whether there are enough records to take the mean of every element. Only public numbers decide."""
    if not problem.loss.by_means or problem.levels is not None:
        return False
    size = problem.arrangement.size
    return size <= MOST_PROJECTED and problem.n >= RECORDS * size and problem.strength >= STRENGTH * size


@dataclass(frozen=True)
class MeasuredElements(OrderMechanism):
    """A noisy histogram of elements, with sums of ``y`` and of ``1 − y``, and the nearest monotone values.

    For losses that are fitted by means. ``ends`` are those of the predictions, as shares of ``y_range``.

    Guarantee: epsilon-DP for one privacy unit (docs/theory/curves-posets.md, section 7).
    Error: ``error()`` is an estimate, not a bound.
    """

    ends: tuple[Fraction, Fraction] = (Fraction(0), Fraction(1))

    @classmethod
    def of(cls, problem: PosetProblem) -> MeasuredElements:
        """The mechanism for a problem."""
        return cls(problem.setting, problem.arrangement, problem.ends)

    def draw(self, records: Records, draws: CurveDraws) -> Floats:
        """Values that respect the whole order."""
        size, line = self.arrangement.size, self.arrangement.bottom_up
        sums = noisy_sums(records, np.arange(size), size, self.setting, Fraction(1), draws)
        ones, zeros = (np.maximum(side, 0.0) for side in sums.in_records)
        total = ones + zeros
        half = min(0.5, faint(self.setting, Fraction(1)))  # a little towards the middle, where noise is alone
        mean, weight = (ones + half) / (total + 2 * half), np.maximum(total, half)
        rank = np.empty(size, np.int64)
        rank[line] = np.arange(size)
        values = np.empty(size)
        values[line] = project_bottom_up(rank[self.arrangement.covers], mean[line], weight[line])
        return rescaled(values, self.ends)

    def error(self) -> RiskBound:
        """An estimate, from the noise of the sums of all elements."""
        rest = float(self.setting.epsilon) / self.setting.factor
        return RiskBound(noise=2.0 * self.arrangement.size / rest, per_record=0.0, proved=False)


# Which mechanism fits values on an order. A table of public conditions and classes, as for chains.


def _threshold_tree(problem: PosetProblem) -> OrderMechanism:
    from isotone.published.curves.threshold import PosetThresholdTree

    return PosetThresholdTree.of(problem)


Row = MechanismRule[PosetProblem, OrderMechanism]

TABLE = (
    Row("threshold", ("threshold",), lambda problem: True, _threshold_tree),
    Row("baseline", ("baseline",), lambda problem: True, PosetBaseline.of),
    Row("all elements", ("auto",), many_records, MeasuredElements.of),
    Row("coupling", ("coupling",), lambda problem: problem.loss.by_means, MeasuredPosetTree.of),
    Row("coupling", ("coupling",), lambda problem: True, PosetTree.of),
    Row("additive", ("additive", "auto"), lambda problem: problem.loss.by_means, MeasuredPosetTree.of),
    Row("additive", ("additive", "auto"), lambda problem: True, PosetTree.of),
)


def rule_for(problem: PosetProblem) -> Row:
    """The first row of the table that applies."""
    return next(row for row in TABLE if problem.method in row.methods and row.when(problem))


def mechanism_for(problem: PosetProblem) -> OrderMechanism:
    """The mechanism for a problem, for rising values. Falling ones rise with ``y`` upside down."""
    seen = problem if problem.increasing else replace(problem, loss=problem.loss.flipped())
    return rule_for(seen).build(seen)


# Which element of an order a private value names.

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
        result = cls({}, {}, {})
        for number, element in enumerate(elements):
            if isinstance(element, str):
                result.names[element] = number
            elif (key := _key(element)) is not None:
                result.others.setdefault(key, number)
            else:
                result.objects.setdefault(type(element), {})[element] = number
        for name, number in list(result.names.items()):
            result.names.setdefault(text_of(name) or name, number)
        return result

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
    parts: list[Key] = []
    for part in (
        value if depth else [None]
    ):  # a list may hold itself often: the first part without a key ends it
        key = _key(part, depth - 1)
        if key is None:
            return None
        parts.append(key)
    return tuple(parts)


# Private regression on a partial order, as an estimator.

PUBLISHED = ("threshold", "coupling")
"""Methods that are kept for comparison."""


class PrivatePosetRegression(PrivateEstimator):
    """Isotonic regression on a partial order, with differential privacy.

    Fits values ``f`` with ``f(a) <= f(b)`` whenever ``a <= b`` to records ``(element, y)``, so that the released values
    hardly depend on any one privacy unit. They are monotone on ``P``, always.

    Guarantee: ``epsilon``-DP for adding or removing one unit, or what a :class:`~isotone.Guarantee` says:
    docs/theory/curves-posets.md. All choices are exact and use cryptographic bits. Records are never stored.

    Parameters
    ----------
    P : Poset or ProductOrder
        The public order. How it is cut is chosen from the order alone (``arrangement_``).
    epsilon : number or Guarantee
        As for :class:`PrivateIsotonicRegression`.
    y_range : (low, high)
        Public limits of ``y``, which must not come from the data. Values outside are moved to the ends. Records with a
        missing, infinite or unreadable value or an unknown element are dropped, and nothing is said about it:
        :meth:`unknown` lists such elements.
    increasing : bool
        Whether predictions rise or fall along the order.
    loss : name or (name, number)
        As for :class:`PrivateIsotonicRegression`.
    method : "auto", "additive", "threshold", "baseline" or "coupling", or a FitMethod
        A :class:`FitMethod` says also how finely the range of values is cut.
        "auto": for squared and logistic loss a noisy histogram of all elements and the nearest monotone values, where there
        are twelve records an element or more, and epsilon times their number is at least three; otherwise "additive".
        "additive": cuts by the additive score, and for squared and logistic loss noisy means between them.
        "threshold": the algorithm of Ghazi, Kamath, Kumar and Manurangsi 2022, for orders with at most a million
        ideals. "baseline": the exponential mechanism over all monotone functions on a grid, for chains and forests. "coupling": the
        additive score on any order without relaxing it, by coupling from the past; its **running time depends on the
        data** and has no limit, so use it only where nobody can measure it.
    public_n : int, optional
        The number of records, if it is public. Otherwise a noisy number, which costs 2 % of epsilon, sets the depth.
    max_weight : number, optional
        The largest ``sample_weight``: weights are cut off there and rounded to 64 steps. Without it, no weights.
    contributions : int
        How many records of one unit count, when ``groups`` is given to ``fit``.
    ledger : object with ``charge(guarantee, description)``, optional
        Charged before the data are read.

    Attributes
    ----------
    values_ : array
        The released value of each element.
    arrangement_ : str
        How the order was cut: "grid", "grids", "forest", "series-parallel", "small prime parts", "listed", "relaxed" or
        "coupled".
    epsilon_spent_ : Fraction, or None for ρ-zCDP
    guarantee_ : Guarantee
    method_ : str

    Notes
    -----
    Scores, and selections made from them (cross-validation, grid search), are not private unless the scorer is.

    Examples
    --------
    >>> from isotone.order import Poset
    >>> P = Poset(["any", "mild", "severe"], [("severe", "any"), ("mild", "any")])
    >>> model = PrivatePosetRegression(P, epsilon=2, y_range=(0, 1), public_n=3000)
    >>> model = model.fit(["severe", "mild", "any"] * 1000, [0.0, 0.2, 1.0] * 1000)
    >>> low, high = model.predict(["severe", "any"])
    >>> bool(low <= high)
    True
    """

    P: Order

    def __init__(
        self,
        P: Order,
        epsilon: Number | Guarantee = 1,
        y_range: Any = None,
        *,
        increasing: Any = True,
        loss: Any = "squared",
        method: str | FitMethod = "auto",
        public_n: int | None = None,
        max_weight: Number | None = None,
        contributions: Any = 1,
        ledger: Any = None,
    ) -> None:
        self._store(locals())

    @classmethod
    def from_features(
        cls,
        bounds: Iterable[Any],
        bins: int | Sequence[int] = 20,
        directions: bool | Sequence[bool] = True,
        **params: Any,
    ) -> PrivatePosetRegression:
        """A regression on several columns, monotone in each. ``fit(X, y)`` and ``predict(X)`` with a matrix ``X``.

        ``bounds`` are public limits, one pair for each column; each column is cut into ``bins`` equal bins; a column
        with direction False makes predictions fall as it rises. Other parameters are those of the class.

        >>> model = PrivatePosetRegression.from_features([(0, 1), (0, 10)], bins=[8, 4], y_range=(0, 1), epsilon=1)
        >>> X = np.array([[0.1, 1.0], [0.9, 9.0]] * 500)
        >>> a, b = model.fit(X, [0, 1] * 500).predict([[0.2, 2], [0.8, 2]])
        >>> bool(a <= b)
        True
        """
        return cls(FeatureOrder.of(bounds, bins, directions), **params)

    def fit(
        self, elements: Any, y: Any, sample_weight: Any = None, groups: Any = None
    ) -> PrivatePosetRegression:
        """Fit private values to records ``(element, y)``. With features, ``elements`` is a matrix.

        ``groups`` names the privacy unit of each record; of every unit the first ``contributions`` records count.
        """
        problem = self._problem(weighted=sample_weight is not None, grouped=groups is not None)
        check_columns(_row_count(problem.order, elements), y, sample_weight, groups)
        warn_of_published(problem.method, PUBLISHED)
        with charged(self.ledger, problem.guarantee, f"poset regression, {problem.method}"):
            records = read_records(_places(problem.order, elements), y, sample_weight, groups, problem)
            draws = exact_draws()
            problem = replace(problem, n=problem.budget.size(records.cells.size, draws))
            mechanism = mechanism_for(problem)
            if problem.increasing:
                values = mechanism.draw(records, draws)
            else:
                values = 1.0 - mechanism.draw(records.upside_down(FINE), draws)
            low, high = (float(end) for end in problem.loss.values(problem.y_range))
            self.values_ = low + (high - low) * values
            self.arrangement_ = problem.arrangement.way
            self.method_ = rule_for(problem).name
            self.guarantee_ = problem.guarantee
            self.epsilon_spent_ = problem.guarantee.epsilon or None
        return self

    def check(self) -> Guarantee:
        """Check every parameter, without data and without spending anything. Refuse what ``fit`` would refuse.

        Returns what a fit guarantees.
        """
        return self._problem(weighted=False, grouped=True).guarantee

    def unknown(self, elements: Any) -> list[Any]:
        """The different values that name no element, which ``fit`` drops. This is **not private**.

        For the person who holds the data, before anything is released: a fit of nothing looks like any other.
        """
        warnings.warn("unknown() shows values of the data: it is not private.", PrivacyWarning, stacklevel=2)
        _row_count(self.P, elements)
        missing = np.flatnonzero(_places(self.P, elements) < 0)
        rows = values_of(elements)
        return list({repr(rows[row]): rows[row] for row in missing.tolist()}.values())

    def band(self, T: Any, confidence: float = 0.95, kind: str = "population") -> NoReturn:
        """Refused. There is no band for values on an order."""
        raise InputError(
            "There is no band for values on an order: the limit of an element would come from sums over sets of elements above "
            "or below it, and there are too many such sets to hold for all at once. PrivateIsotonicRegression has bands, for "
            "one x at a time."
        )

    def predict(self, T: Any) -> Floats:
        """The released values of elements. With features, of the rows of a matrix (missing stays missing)."""
        self._require_fit()
        _row_count(self.P, T)
        places = _places(self.P, T)
        if not isinstance(self.P, FeatureOrder) and (places < 0).any():
            name = values_of(T)[int(np.argmax(places < 0))]
            raise InputError(f"There is no element {shown(name)} in the order.")
        return np.where(places < 0, np.nan, self.values_[np.maximum(places, 0)])

    def __sklearn_tags__(self) -> Any:
        """Tags for scikit-learn. Missing values and names allowed, random."""
        tags = self._tags(columns=isinstance(self.P, ProductOrder))
        tags.input_tags.string = True
        return tags

    def _problem(self, *, weighted: bool, grouped: bool) -> PosetProblem:
        """Check all parameters. The errors may name them, as they are public."""
        if not isinstance(self.P, (Poset, ProductOrder)) or not len(self.P):  # pyright: ignore[reportUnnecessaryIsInstance] - what users pass
            raise InputError(
                f"P must be a Poset or a ProductOrder with at least one element, not {self.P!r}."
            )
        if isinstance(self.increasing, str) and self.increasing == "auto":
            raise InputError(
                "increasing='auto' is for curves on a line. To compare both directions on a partial order, the least losses of "
                "both would be needed, which on many orders cannot be computed in reasonable time. Say True or False: what the "
                "order means is public."
            )
        budget, method = (
            FitBudget.of(self, Fraction(0), weighted=weighted, grouped=grouped),
            FitMethod.of(self.method),
        )
        problem = PosetProblem(
            parse_loss(self.loss),
            parse_interval(self.y_range, "y_range", WHY_RANGE),
            self.P,
            method=method.name,
            levels=method.levels,
            value_levels=method.value_levels,
            increasing=truth(self.increasing, "increasing"),
            budget=budget,
            n=budget.public_n or 1,
        )
        budget.whole.check_noise(budget.left / 2, FINE)
        if problem.method == "baseline":
            # an order that is no forest, or too large, fails before the charge
            mechanism_for(replace(problem, n=budget.largest_n))
        return problem


def _row_count(order: Order, x: Any) -> int:
    """The number of rows. A wrong shape is refused."""
    return order.rows(x) if isinstance(order, ProductOrder) else row_count(x, "elements")


def _places(order: Order, x: Any) -> NDArray[np.int64]:
    """The number of each row's element, −1 where it has none."""
    if isinstance(order, ProductOrder):
        return order.locate(x)
    return Elements.of(order.elements).locate(only_column(x, "elements"))
