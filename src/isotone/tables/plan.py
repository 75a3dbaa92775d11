"""The plan of a table: guessed shapes, and both errors of every mechanism along the scale from counts to distribution."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from isotone.errors import InputError
from isotone.lazy import new_axes
from isotone.mechanism import Mechanism, Progress, no_progress
from isotone.planning import Column, Plan, Row
from isotone.privacy.calibration import largest_pure
from isotone.privacy.checks import Number, one_of, whole_number
from isotone.privacy.guarantee import Guarantee, Neighbours, Unit
from isotone.tables.distribution import Counts, DistributionLike, probabilities_of
from isotone.tables.matrices.fixed_point import fixed_point, truncated_geometric
from isotone.tables.smooth import many_systems
from isotone.tables.thresholds import POINTS, SMALL, Thresholds, predicted_errors, share_of, thresholds_for
from isotone.tables.two_stage import GaussianTableMechanism, TwoStageMechanism, noises

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Shape = Literal["uniform", "binomial", "skewed", "zero-inflated", "constant"]


def guessed(shape: Shape | DistributionLike, upper: int | None) -> NDArray[np.float64]:
    """The probabilities of the counts ``0..upper`` for a named shape, or those of a public prior.

    ``uniform``; ``binomial``: a bell about the middle; ``skewed``: falls geometrically, with a fifth of the
    range as its mean; ``zero-inflated``: half of the categories at 0, the others skewed; ``constant``: all
    categories at the middle.

    >>> guessed("zero-inflated", upper=2).round(3)
    array([0.908, 0.077, 0.015])
    """
    if not isinstance(shape, str):
        p = probabilities_of(shape, "shape")
        if upper is not None and len(p) != whole_number(upper, "upper", least=0) + 1:
            raise InputError(f"shape has {len(p)} probabilities, but the counts 0..{upper} need {upper + 1}.")
        return p
    name = one_of(shape, "shape", get_args(Shape))
    if upper is None:
        raise InputError(f"upper, the largest count, is needed with the shape {shape!r}.")
    n = whole_number(upper, "upper", least=0) + 1
    counts = np.arange(n)
    if name == "uniform":
        weights = np.ones(n)
    elif name == "binomial":
        from scipy.stats import binom

        weights = np.asarray(binom.pmf(counts, n - 1, 0.5))
    elif name == "constant":
        weights = np.asarray(counts == n // 2, np.float64)
    else:
        weights = np.exp(-counts / max(n / 5, 0.5))
        if name == "zero-inflated":
            weights = 0.5 * weights / weights.sum() + 0.5 * (counts == 0)
    return weights / weights.sum()


def families(n: int) -> dict[str, NDArray[np.float64]]:
    """Probabilities of the counts ``0..n-1`` for eight shapes like those the release is judged on. None was used to tune it.

    A guess is wrong by some amount; the range of errors over these says by how much a plan may be.

    >>> [name for name, p in families(40).items() if p[0] > 0.4]
    ['half empty', 'power law', 'nearly all zero']
    """
    counts = np.arange(n)
    x = (counts + 0.5) / n
    first = counts == 0
    bells = ((0.5, 0.11, 0.03), (0.35, 0.41, 0.07), (0.15, 0.82, 0.045))
    weights = {
        "half empty": np.exp(-7 * x) / np.sum(np.exp(-7 * x)) + first,
        "u-shaped": x**-0.6 * (1 - x) ** -0.4,
        "power law": (counts + 1.0) ** -1.7,
        "triangle": np.where(x < 1 / 7, 7 * x, 7 / 6 * (1 - x)),
        "three bells": sum(share / wide * np.exp(-(((x - at) / wide) ** 2) / 2) for share, at, wide in bells),
        "stairs": np.array([0.55, 0.3, 0.1, 0.05])[np.minimum((4 * x).astype(int), 3)],
        "heaps of five": np.exp(-2 * np.log(3 * x) ** 2) / x * np.where(counts % 5 == 0, 1 + 10 / 3, 1.0),
        "nearly all zero": np.exp(-2.5 * counts),
    }
    return {name: np.asarray(each / np.sum(each), np.float64) for name, each in weights.items()}


def apportioned(probabilities: NDArray[np.float64], size: int) -> NDArray[np.int64]:
    """A table of ``size`` categories whose distribution is as near to ``probabilities`` as whole numbers are.

    >>> apportioned(np.array([0.5, 0.3, 0.2]), 4)
    array([0, 0, 1, 2])
    """
    ends = np.floor(np.cumsum(probabilities) * size + 0.5).astype(np.int64)
    ends[-1] = size
    return np.repeat(np.arange(len(probabilities)), np.diff(ends, prepend=0))


# Count error against distribution error, if the distribution is known.

_PRICES = (0.0, *(float(price) for price in np.geomspace(0.01, 2.0, 24)))


@dataclass(frozen=True, eq=False)
class TradeOff:
    """Count error against distribution error along the price of the second.

    In closed form, row by row.

    Entry ``i`` belongs to the mechanism with the least ``count error + price[i]·W1`` among all ε-DP matrices
    (docs/theory/tables.md, section 4): price 0 is the least count error, a large price the fixed point.
    """

    price: NDArray[np.float64]
    count_error: NDArray[np.float64]
    wasserstein: NDArray[np.float64]


def trade_off(z: NDArray[np.float64], step: Fraction) -> TradeOff:
    """The curve for one ε per step, when the distribution is ``z`` and known."""
    points: list[tuple[float, float]] = []
    for price in _PRICES:
        t = fixed_point(z, step, price=price)
        points.append((t.count_error(z), float(np.abs(np.cumsum(t.output(z) - z)).sum())))
    count_error, wasserstein = np.array(points).T
    return TradeOff(np.array(_PRICES), count_error, wasserstein)


# Plan a table before any data is read.
#
# Both errors of every mechanism, for a guessed shape or a public prior.

_SCALE = tuple(Fraction(hundredths, 100) for hundredths in (0, 2, 5, 10, 20, 30, 50, 70, 85, 100))

_LEAST_DRAWS, _MOST_DRAWS = 12, 40
_PLAIN_FITS = 512  # counts times runs beyond which compiled code is worth loading
_PRECISE = 0.05  # standard error of a mean distance, relative to it, at which runs end


def plan(
    shape: Shape | DistributionLike = "skewed",
    *,
    size: int,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    upper: int | None = None,
    contributions: int = 1,
    once: bool = True,
    neighbours: Neighbours = "add-remove",
    draws: int | None = None,
    seed: int = 0,
    progress: Progress = no_progress,
    released: tuple[str, Any] | None = None,
) -> TablePlan:
    """Compare mechanisms for a table of ``size`` categories, without data and without spending anything.

    ``shape`` is a guess (``"uniform"``, ``"binomial"``, ``"skewed"``, ``"zero-inflated"``, ``"constant"``, with
    ``upper``), or a public prior: a list of probabilities of the counts ``0..upper``. It must not come from
    the data to be released, unless it is a private distribution. Errors are means over ``draws`` seeded runs
    on a table of that shape, or over 12 to 40 until distances are known to 5 %; for a guess there is the range over
    other shapes, too. With ``delta`` or ``rho`` Gaussian noise is compared with geometric noise; ``once`` says that a
    person counts at most once in a category, as rows with a unit do. ``released`` is the mechanism that a release uses, with the
    name of its row, which then comes first.

    >>> p = plan("skewed", upper=20, size=2000, epsilon=1, draws=2)
    >>> [row.name for row in p][:2], type(p.best).__name__
    (['distribution', 'both'], 'TwoStageMechanism')
    """
    z = guessed(shape, upper)
    number = whole_number(size, "size")
    runs = _runs(draws)
    if len(z) < 2:
        raise InputError("A table whose counts are all 0 needs no mechanism: upper must be at least 1.")
    unit = Unit(contributions, neighbours)
    guarantee = unit.guarantee(epsilon, delta, rho)
    table = apportioned(z, number)
    candidates = _candidates(len(z) - 1, guarantee, unit, number, once)
    result: list[TableRow] = []
    for position, (name, mechanism, share) in enumerate(candidates):
        progress(position / len(candidates), name)
        rng = np.random.default_rng(whole_number(seed, "seed", least=0))
        result.append(_simulated(name, mechanism, share, table, len(z), runs, rng))
    progress(1.0, "done")
    result.sort(key=lambda row: (row.count_error * row.wasserstein, row.count_error))
    if released is not None:
        name, mechanism = released
        same = [row for row in result if row.name == name]
        own = (
            replace(same[0], mechanism=mechanism)
            if same
            else _simulated(name, mechanism, Fraction(0), table, len(z), runs, np.random.default_rng(seed))
        )
        result = [own, *(row for row in result if row.name != name)]
    wide = _range(result[0], len(z), number) if isinstance(shape, str) else None
    points = scale(len(z) - 1, unit.per_step(largest_pure(guarantee)), number)
    return TablePlan(
        tuple(result), z, unit.per_step(largest_pure(guarantee)), number, len(z) - 1, guarantee, runs,
        unit.contributions, once, wide, points,
    )  # fmt: skip


@dataclass(frozen=True)
class ScalePoint:
    """What an emphasis buys, and both errors expected without data, those of a table with evenly spread counts.

    ``estimate`` is the root mean square error of an estimate, ``distance`` the Wasserstein-1 distance of the distributions, and ``deviation``
    the largest standard deviation of an unbiased noisy count.
    """

    emphasis: Fraction
    thresholds: Thresholds
    estimate: float
    distance: float

    @property
    def deviation(self) -> float:
        """The largest standard deviation of an unbiased noisy count, if no gap turns out to be rough."""
        return self.thresholds.deviation

    @property
    def name(self) -> str:
        """The name of the point, if it has one."""
        return next((name for name, point in POINTS.items() if point == self.emphasis), "")


def scale(upper: int, step: Fraction, size: int) -> tuple[ScalePoint, ...]:
    """Points from the counts alone to the distribution alone, for ``step`` of ε on every step of a count.

    >>> [(float(p.emphasis), p.name, round(p.estimate, 2), round(p.distance, 3)) for p in scale(20, Fraction(1), 2000)][3:7:3]
    [(0.1, '', 1.45, 0.047), (0.5, 'distribution', 2.38, 0.021)]
    """
    thresholds = [thresholds_for(emphasis, upper, step, size) for emphasis in _SCALE]
    errors = predicted_errors(size, upper, step, [(each.places, each.share) for each in thresholds])
    return tuple(
        ScalePoint(emphasis, each, *both)
        for emphasis, each, both in zip(_SCALE, thresholds, errors, strict=True)
    )


def _candidates(
    upper: int, guarantee: Guarantee, unit: Unit, size: int, once: bool
) -> list[tuple[str, TwoStageMechanism | Any, Fraction]]:
    epsilon = largest_pure(guarantee)
    options: dict[str, Any] = {"contributions": unit.contributions, "neighbours": unit.neighbours}
    result: list[tuple[str, Any, Fraction]] = []
    for name, point in POINTS.items() if guarantee.kind != "pure" else ():
        gaussian = GaussianTableMechanism(
            upper, guarantee, point, once=once, contributions=unit.contributions
        )
        result.append((f"{name}, Gaussian", gaussian, share_of(point) if size >= SMALL else Fraction(0)))
    for name, point in POINTS.items():
        mechanism = TwoStageMechanism(upper, epsilon, point, **options)
        share = thresholds_for(point, upper, unit.per_step(epsilon), size).share
        result.append((name, mechanism, share))
    plain = truncated_geometric(upper + 1, epsilon, **options)
    return [*result, ("geometric noise only", plain, Fraction(0))]


def _simulated(
    name: str,
    mechanism: Any,
    share: Fraction,
    table: NDArray[np.int64],
    n: int,
    draws: int | None,
    rng: np.random.Generator,
) -> TableRow:
    truth = np.cumsum(np.bincount(table, minlength=n)) / len(table)
    simulate: Callable[..., NDArray[np.int64]] = mechanism.simulate
    off = np.zeros(n, np.int64)
    gaps: list[tuple[float, float]] = []
    compiled = n * (draws or _LEAST_DRAWS) > _PLAIN_FITS
    with many_systems() if compiled else nullcontext():
        while len(gaps) < draws if draws else _goes_on(gaps):
            published = simulate(table, rng=rng).view(np.ndarray)
            errors = np.bincount(np.abs(published - table), minlength=n)
            off = _longer(off, errors.size) + _longer(errors, off.size)
            below = np.cumsum(np.bincount(published, minlength=n)) / len(table)
            gap = np.abs(below - _longer(truth, below.size, 1.0))
            gaps.append((float(gap.sum()), float(gap.max())))
    frequency = off / off.sum()
    within = int(np.searchsorted(np.cumsum(frequency), 0.95))
    mean, largest = np.mean(gaps, axis=0)
    error = float(frequency @ np.arange(frequency.size))
    return TableRow(name, mechanism, share, error, within, float(mean), float(largest))


def _longer(numbers: NDArray[Any], size: int, last: float = 0) -> NDArray[Any]:
    """The numbers, and as many more as make up a size: counts without a bound may be published above the guessed ones."""
    return np.pad(numbers, (0, max(size - numbers.size, 0)), constant_values=last)


def _goes_on(gaps: list[tuple[float, float]]) -> bool:
    """Whether the mean distance is not known well enough yet."""
    if not _LEAST_DRAWS <= len(gaps) < _MOST_DRAWS:
        return len(gaps) < _LEAST_DRAWS
    result = np.array(gaps)[:, 0]
    return bool(np.std(result, ddof=1) > _PRECISE * np.mean(result) * len(gaps) ** 0.5)


def _range(row: TableRow, n: int, size: int) -> Range:
    """The errors of a mechanism on a table of each other shape, one seeded run each."""
    result: list[tuple[float, float]] = []
    for seed, shape in enumerate(families(n).values()):
        rng = np.random.default_rng(seed)
        table = rng.choice(n, size, p=shape)
        one = _simulated(row.name, row.mechanism, row.share, table, n, 1, rng)
        result.append((one.count_error, one.wasserstein))
    counts, distances = zip(*result, strict=True)
    return Range(len(result), (min(counts), max(counts)), (min(distances), max(distances)))


def expected_errors(
    mechanism: Any,
    shape: Shape | DistributionLike,
    *,
    size: int,
    upper: int | None = None,
    draws: int | None = None,
) -> TableRow:
    """The expected errors of one mechanism on a table of a guessed shape, as :func:`plan` finds them."""
    z = guessed(shape, upper)
    table = apportioned(z, whole_number(size, "size"))
    runs, rng = _runs(draws), np.random.default_rng(0)
    return _simulated(type(mechanism).__name__, mechanism, Fraction(0), table, len(z), runs, rng)


def _runs(draws: int | None) -> int | None:
    return None if draws is None else whole_number(draws, "draws")


@dataclass(frozen=True)
class TableRow(Row):
    """One mechanism and its expected errors.

    ``count_error``: mean distance of a published count from the true one. ``within``: 95 % of the published
    counts are at most this far off. ``wasserstein``: mean distance by which counts must move to turn the
    published distribution into the true one. ``kolmogorov``: the largest error of a cumulative share.
    """

    columns: ClassVar[tuple[Column, ...]] = (
        Column("count_error", "error of a count", "{:.3g}".format),
        Column("within", "95 % of the time", "within ± {}".format),
        Column("wasserstein", "distance (W1)", "{:.3g}".format),
        Column("kolmogorov", "distance (KS)", lambda share: f"{round(100 * share, 2):g} %"),
        Column(
            "share", "ε for a threshold", lambda share: f"{100 * float(share):.0f} %" if share else "none"
        ),
    )

    mechanism: Mechanism[Counts, NDArray[np.int64]]
    share: Fraction
    count_error: float
    within: int
    wasserstein: float
    kolmogorov: float


@dataclass(frozen=True)
class Range:
    """The smallest and the largest error of the first mechanism over other shapes than the guessed one."""

    shapes: int
    count_error: tuple[float, float]
    wasserstein: tuple[float, float]

    def __str__(self) -> str:
        count, distance = (f"{low:.3g} to {high:.3g}" for low, high in (self.count_error, self.wasserstein))
        return f"error of a count {count}, distance (W1) {distance}"


@dataclass(frozen=True, eq=False)
class TablePlan(Plan[TableRow]):
    """Mechanisms for a table, best first.

    They are sorted by the product of count error and distribution error.

    Printed it is a table, in a terminal as in a notebook; ``best`` is ready to release.
    """

    shape: NDArray[np.float64]
    """The distribution that was guessed, or is public."""
    step: Fraction
    """The ε on every step of a count."""
    size: int
    upper: int
    guarantee: Guarantee
    draws: int | None
    contributions: int = 1
    once: bool = True
    others: Range | None = None
    """What the first mechanism does on other shapes. None for a public prior, which is no guess."""
    scale: tuple[ScalePoint, ...] = ()
    """Both errors along the scale from counts to distribution, expected without data and without a guess."""

    @cached_property
    def trade_off(self) -> TradeOff:
        """Count error against distribution error for this shape, found when it is asked for."""
        return trade_off(self.shape, self.step)

    @property
    def epsilon(self) -> Fraction:
        """The ε of the guarantee, or of the pure guarantee that implies it."""
        return largest_pure(self.guarantee)

    @property
    def title(self) -> str:
        """The shape of the table and the budget."""
        guarantee = self.guarantee
        parts = {"ε": guarantee.epsilon, "δ": guarantee.delta, "ρ": guarantee.rho}
        budget = ", ".join(f"{name} = {float(x):g}" for name, x in parts.items() if x)
        return f"Table of {self.size} categories, counts 0..{self.upper}, {budget}"

    @property
    def remark(self) -> str:
        """What a wrong guess may mean, and what Gaussian noise would gain on a count where the guarantee allows it."""
        sentence = self._scale_in_words
        if self.others:
            sentence += f"The shape is a guess. Over {self.others.shapes} others {self.rows[0].name!r} has: {self.others}."
        if self.guarantee.kind == "pure":
            return sentence.rstrip("\n")
        geometric, gaussian = noises(self.guarantee, self.contributions, self.once)
        times = "once" if self.contributions == 1 else f"up to {self.contributions} times"
        sentence += "\n" * bool(sentence and not sentence.endswith("\n"))
        sentence += f"A person counts {times}: noise on a count has a standard deviation of {gaussian:.3g} if it is Gaussian, and "
        sentence += f"of {geometric:.3g} if it is geometric."
        if self.guarantee.kind == "approximate" and geometric <= gaussian:
            sentence += " δ buys nothing here."
        return sentence

    @property
    def _scale_in_words(self) -> str:
        """The scale as a small table, one line for each point."""
        if self.size < SMALL:
            return ""
        lines = ["emphasis                  estimate  distance (W1)  sd of noisy  thresholds"]
        for point in self.scale:
            measured = len(point.thresholds.places)
            spent = f"{measured} at {100 * float(point.thresholds.share):.0f} %" if measured else "none"
            numbers = f"{point.estimate:8.3g}  {point.distance:13.3g}  {point.deviation:11.3g}"
            lines.append(f"{float(point.emphasis):<6g} {point.name:<17}  {numbers}  {spent}")
        words = (
            "Expected errors along the scale from counts (0) to distribution (1), without data or a guess:"
        )
        return "\n".join([words, *lines, ""])

    @property
    def best(self) -> Mechanism[Counts, NDArray[np.int64]]:
        """The mechanism of the first row."""
        return self.rows[0].mechanism

    def plain(self) -> dict[str, Any]:
        """The plan as plain values, with the scale."""
        points = [
            {
                "emphasis": float(point.emphasis),
                "name": point.name,
                "estimate": point.estimate,
                "distance": point.distance,
                "deviation": point.deviation,
                "thresholds": len(point.thresholds.places),
                "share": float(point.thresholds.share),
            }
            for point in self.scale
        ]
        return {**super().plain(), "scale": points}

    def plot(self, ax: Axes | None = None) -> Axes:
        """The trade-off curve and the planned mechanisms, count error against distribution error."""
        ax = ax if ax is not None else new_axes(figsize=(7, 4.5))
        curve = self.trade_off
        ax.plot(
            curve.wasserstein, curve.count_error, ".-", color="0.5", label="trade-off, distribution known"
        )
        for at, words in (
            (0, "price 0"),
            (len(curve.price) // 2, f"price {curve.price[len(curve.price) // 2]:.2g}"),
        ):
            where = (float(curve.wasserstein[at]), float(curve.count_error[at]))
            ax.annotate(words, where, xytext=(4, 4), textcoords="offset points", fontsize=8)
        for row in self.rows:
            ax.plot([row.wasserstein], [row.count_error], "o", label=row.name)
        ax.set(
            xlabel="distance of distributions (Wasserstein-1)",
            ylabel="mean error of a count",
            title=self.title,
        )
        ax.legend(fontsize=8)
        return ax
