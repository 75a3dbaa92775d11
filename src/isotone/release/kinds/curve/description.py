"""Curves and surfaces: y as a function of one column or of two, which rises or falls with each."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from fractions import Fraction
from functools import cache
from itertools import product
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NotRequired, Self, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field
from typing_extensions import TypedDict

import isotone.curves as curves
from isotone.curves.bands import KINDS, MeasuredSums, no_band, why_no_population
from isotone.curves.cuts import fit_counted, point_source
from isotone.curves.losses import LOSSES, parse_loss
from isotone.curves.posterior import NoisySums
from isotone.curves.problem import FINE
from isotone.curves.shapes import SHAPES, parse_shape
from isotone.errors import InputError
from isotone.inference import Estimate
from isotone.planning import Column, Plan, Row
from isotone.privacy.calibration import largest_rho
from isotone.privacy.checks import confidence_level, exact, frozen, one_of, shown, truth, whole_number
from isotone.privacy.guarantee import Guarantee, budget_of
from isotone.reading.grids import CellSource, PointSource, count_cells, count_points
from isotone.reading.questions import Codes, plain_words
from isotone.reading.values import real_of
from isotone.release.description import (
    ColumnName,
    Description,
    FrozenMapping,
    InSpec,
    Listed,
    Pair,
    Real,
    Section,
    Size,
    Text,
    Unit,
    described,
    gathered,
    plain_value,
    section_of,
)
from isotone.release.kinds.kind import Reader
from isotone.release.manifest import Manifest, rebuild_curve_mechanism

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from isotone.audit.exact import AuditReport
    from isotone.curves.bands import Law, PossibleSums
    from isotone.curves.cuts import ChainProblem
    from isotone.curves.plan import CurvePlan
    from isotone.mechanism import Progress
    from isotone.reading.questions import Question
    from isotone.reading.sources import Frame

_IN_TOML = str.maketrans("()'", '[]"')
_LOSSES, _SHAPES = (", ".join(kind.usage for kind in kinds).translate(_IN_TOML) for kinds in (LOSSES, SHAPES))
_POINTS = ", ".join(f"{kind.points} ({kind.name})" for kind in SHAPES)
MOST_BINS = 64
USUAL_BINS = 16


def _codes(words: Any) -> Any:
    """Words as they are compared."""
    return words if words is None else plain_words(words, "y")


_FITS = 6_000  # an audit fits at most so often: a fit takes milliseconds


@dataclass(frozen=True, kw_only=True)
class CurveManifest(Manifest):
    """The manifest of a curve or a surface."""

    name: ClassVar[str] = "curve"

    meanings: ClassVar[dict[str, str]] = Manifest.meanings | {
        "increasing": "Whether the curve rises; absent for a surface, whose directions were stated.",
        "band": "What low and high are a band for: the population, the fit to the records, or what a model finds credible.",
        "sums": "The noisy sums that the curve and its band were made of: bins by their first points, sums of y and of 1 - y "
        "(as shares of y_range, in labels or 65,536ths of a record), the rate or the variance of their noise, and the number of values of the posterior.",
    }

    increasing: bool | None = None
    band: str | None = None
    sums: SumsEntry | None = None


class CurveEntries(Section):
    """``[curve]``: y as a monotone function of x, or of two columns."""


def _rising(value: Any) -> Any:
    """True, False or "auto", or two of the first."""
    if isinstance(value, str) and value == "auto":
        return value
    if isinstance(value, (tuple, list)):
        return tuple(truth(part, "increasing") for part in cast("list[Any]", value))
    return truth(value, "increasing (or 'auto')")


@described
class Labels:
    """The two values of y, where there are no others, and the words that mean them.

    >>> Labels((0, 1), yes=["ja"])
    Labels((0, 1), yes=('ja',))
    """

    y_values: Annotated[Pair | None, InSpec("curve")] = None
    """In place of `y_range`: the two values of y, such as [0, 1]. Rows with any other y are left out."""
    _: KW_ONLY
    yes: Annotated[tuple[str, ...] | None, BeforeValidator(_codes), InSpec("curve")] = None
    """With `y_values`, where y holds words: those that mean the higher value, such as ["yes"], in any case. Without it y is read as a number."""
    no: Annotated[tuple[str, ...] | None, BeforeValidator(_codes), InSpec("curve")] = None
    """With `yes`: the words that mean the lower value, by default 0, false, f, no and n. Rows with other words are left out."""

    def __post_init__(self) -> None:
        if self.y_values is None:
            raise InputError(
                "yes needs y_values, the two numbers that the words stand for, such as (0, 1), in place of y_range."
            )
        if self.yes is None and self.no is not None:
            raise InputError("no= goes with yes=, the words that mean the higher of the two values.")
        self.words  # noqa: B018 (words that mean both are refused)

    @classmethod
    def of(cls, value: Any) -> Any:
        """Labels from their values alone, or as they are."""
        if value is None or isinstance(value, cls):
            return value
        return cls(**cast("Any", value)) if isinstance(value, Mapping) else cls(frozen(value))

    @property
    def words(self) -> Codes | None:
        """The words, if y is read as words."""
        return None if self.yes is None else Codes.listed(self.yes, self.no)


@described
class Curve(Description):
    """A curve: y as a function of x that rises or falls with it. With two columns for x it is a surface.

    The published columns are the corners of the curve and of its band, ``x``, ``value``, ``low`` and ``high``: between two rows
    the ends of a band keep their value, and those of a credible band are linear, as the curve is. A surface has a row for
    each cell, with ``x1`` and ``x2``, the middles of its bins, and ``value``.

    With ``delta`` a curve is made, and charged, with ``epsilon`` alone: noise of sums and choices grows in proportion to
    contributions either way, so that δ buys nothing. Curves are fitted by
    :class:`~isotone.curves.PrivateIsotonicRegression`, surfaces by :class:`~isotone.curves.PrivatePosetRegression`.

    >>> Curve("age", y="ill", bounds=(18, 90), y_range=(0, 1))
    Curve('age', y='ill', bounds=(18, 90), y_range=(0, 1))
    """

    kind_name: ClassVar[str] = "curve"
    form: ClassVar[type[Manifest]] = CurveManifest
    key: ClassVar[str] = "curve"
    entries: ClassVar[type[Section]] = CurveEntries

    x: ColumnName | Annotated[tuple[ColumnName, ColumnName], Listed]
    """The column of x, or two for a surface."""
    _: KW_ONLY
    y: ColumnName
    """The column of y."""
    bounds: Annotated[tuple[Real, Real] | tuple[tuple[Real, Real], tuple[Real, Real]], Listed]
    """Public limits [low, high] of x; values outside are moved to the ends. Not chosen by the data. A surface has a pair for each column."""
    y_range: Pair | None = None
    """Public limits [low, high] of y, in the same way. The noise grows with their distance. Required, but for `y_values`."""
    y_values: Annotated[Labels | Pair | None, BeforeValidator(Labels.of)] = None
    """In place of `y_range`: the two values of y, such as [0, 1], or Labels that say also which words mean them."""
    increasing: Annotated[Literal["auto"] | bool | tuple[bool, bool], BeforeValidator(_rising)] = True
    """Whether y rises or falls with x; "auto" spends 5 % of ε on finding out. For a surface one answer for both columns, or two."""
    loss: Text | Annotated[tuple[Text, Real], Listed] = Field(
        default="squared", description=f"What a fit minimises, one of {_LOSSES}."
    )
    method: Text | Annotated[tuple[Text, Size], Listed] = "auto"
    """The mechanism: "auto", or for comparison "additive", "threshold", "baseline" or "bins". A pair such as ["baseline", 64] says also into how many steps, a power of two up to 1024, the values of a baseline or a shape are cut."""
    output: Literal["population", "records"] = "population"
    """What a fit by means estimates: the curve that the records were drawn from, or the fit to these records."""
    shape: Text | Annotated[tuple[Text, Real], Listed] | Annotated[tuple[Text, Real, Size], Listed] | None = (
        Field(default=None, description=f"Beyond rising, one of {_SHAPES}.")
    )
    x_grid: Size | Literal["integers"] | Annotated[tuple[Real, ...], Listed] | None = Field(
        default=None,
        description='The public grid of x: so many even points, "integers" for every whole number of bounds, or a list of points. '
        f"By default 4096 points, and fewer for a baseline and for shapes: {_POINTS}. For a surface the number of equal bins of each column, one for both or two; at most {MOST_BINS}, by default {USUAL_BINS}.",
    )
    public_n: Size | None = None
    """The number of records, if it is public. Otherwise a noisy one costs 2 % of ε."""
    band: Literal["population", "records", "credible", "none"] | None = None
    """The band beside the curve: for the mean in the population, for the fit to these records, what a model finds credible, or none. By default the guaranteed one that fits `output` and holds."""

    def __post_init__(self) -> None:
        if self.y_range is None and self.y_values is None:
            raise InputError(
                "y_range is missing: the public limits of y, such as (0, 100). Where y has two values only, give y_values instead, "
                "such as (0, 1); where these are words, also yes, the words that mean the higher one."
            )
        if self.y in (self.x if isinstance(self.x, tuple) else (self.x,)):
            raise InputError(f"x and y are the same column, {self.y!r}. Name another one for y.")
        parse_loss(self.loss)
        parse_shape(self.shape)
        if self.is_surface:
            _surface_bounds(self.bounds)
            for name in ("y_values", "shape", "band"):
                if getattr(self, name) is not None:
                    raise InputError(f"A surface has no {name}: leave it out.")
            if (self.method, self.output) != ("auto", "population"):
                raise InputError("A surface has one method and one output: leave out both.")
            if self.increasing == "auto":
                raise InputError("A surface finds no directions: say increasing for each column.")
        elif any(isinstance(end, tuple) for end in cast("tuple[Any, ...]", self.bounds)):
            raise InputError("bounds must be one pair (low, high) for one column x.")
        elif isinstance(self.increasing, tuple):
            raise InputError(f"increasing must be True, False or 'auto', not {shown(self.increasing)}.")

    @property
    def is_surface(self) -> bool:
        """Whether there are two columns."""
        return isinstance(self.x, tuple)

    @property
    def xs(self) -> tuple[str, ...]:
        """The columns of x."""
        return self.x if isinstance(self.x, tuple) else (self.x,)

    @property
    def limits(self) -> list[tuple[Fraction, Fraction]]:
        """The limits of each column of x."""
        return cast("Any", list(self.bounds) if self.is_surface else [self.bounds])

    @property
    def y_ends(self) -> tuple[Fraction, Fraction]:
        """The lowest and the highest y."""
        return cast("Any", self.labels.y_values if self.labels else self.y_range)

    @property
    def labels(self) -> Labels | None:
        """The two values of y, if there are no others."""
        return cast("Labels | None", self.y_values)

    @property
    def answer_words(self) -> Codes | None:
        """The words of y, if it is read as words."""
        return self.labels and self.labels.words

    @property
    def reading_of_y(self) -> str:
        """How y is read, in a sentence."""
        low, high = (_decimal(end) for end in self.y_ends)
        words = self.answer_words
        if words is not None:
            yes, no = (", ".join(named) for named in (words.yes, words.no))
            return f"{self.y} counts {high} where it says {yes}, and {low} where it says {no}; rows with anything else are left out."
        if self.y_values is not None:
            return f"{self.y} is read as a number, {low} or {high}; rows with anything else are left out, words too (yes = declares them)."
        return (
            f"{self.y} is read as a number and moved into {low} to {high}; rows with words are left out "
            "(y_values and yes together declare words)."
        )

    @property
    def words(self) -> str:
        """The names of the columns."""
        return f"{'surface' if self.is_surface else 'curve'} of {self.y} over {' and '.join(self.xs)}"

    @property
    def title(self) -> str:
        """The names of the columns."""
        return f"{self.y} by {' and '.join(self.xs)}"

    @classmethod
    def from_sections(
        cls,
        sections: Mapping[str, Section],
        questions: Mapping[str, Question],
        resolve: Callable[[str], Path],
    ) -> Self:
        """The description, whose labels stand in the same section."""
        parameters = gathered(cls, sections, cls.key)
        if labels := gathered(Labels, sections):
            parameters["y_values"] = Labels(**labels)
        return cls(**parameters, unit=Unit(**gathered(Unit, sections)))

    @classmethod
    @cache
    def section(cls) -> type[Section]:
        """The section of a spec, with the entries of labels."""
        return section_of("CurveSection", cls.entries, cls.key, Labels, cls, leave=cls.leaves())

    def mechanism(self, guarantee: Guarantee) -> ChainFit | SurfaceFit:
        """The estimator, with every parameter checked."""
        self.privacy_unit.require_column()
        return (SurfaceFit if self.is_surface else ChainFit).of(self, kept(guarantee))

    def charged(self, mechanism: ChainFit | SurfaceFit, guarantee: Guarantee) -> Guarantee:
        """Of (ε, δ) the ε alone."""
        return kept(guarantee)

    def mechanism_name(self, mechanism: ChainFit | SurfaceFit) -> str:
        """The class of the estimator."""
        return mechanism.name

    def source(self, data: Any, mechanism: ChainFit | SurfaceFit) -> Any:
        """Columns, limits and grids."""
        return mechanism.source(data, self)

    def read(self, source: Any, frame: Frame) -> Any:
        """How many records fall on each point of the grid, or in each cell."""
        return count_cells(source, frame) if self.is_surface else count_points(source, frame)

    def draw(self, mechanism: ChainFit | SurfaceFit, statistic: Any) -> Any:
        """The fitted estimator."""
        return mechanism.fitted(statistic)

    def columns(self, mechanism: ChainFit | SurfaceFit, drawn: Any, known: Any) -> dict[str, tuple[Any, ...]]:
        """The corners of the curve and of its band, or the cells of the surface."""
        return mechanism.columns(drawn, self.confidence)

    def manifest(
        self, mechanism: ChainFit | SurfaceFit, drawn: Any, common: Mapping[str, Any]
    ) -> CurveManifest:
        """With direction, band and noisy sums of a curve."""
        return CurveManifest(mechanism=mechanism.recipe(), **mechanism.entries(drawn), **common)

    def planned(self, guarantee: Guarantee, guess: Any, progress: Progress) -> Plan[Any]:
        """What the methods are expected to lose on about ``guess`` records."""
        mechanism = self.mechanism(guarantee)
        text, size = mechanism.described(self, kept(guarantee)) + compared(guarantee), guess or self.public_n
        own = OwnRow(mechanism.name, mechanism.estimator())
        if self.is_surface:
            return CurveOutline((own,), text, own.mechanism)
        if size is None:
            hint = " Guess how many records there are (--records, in Python guess=): the plan then says what error to expect."
            return CurveOutline((own,), text + hint, own.mechanism)
        from isotone.curves.plan import plan

        method = str(mechanism.recipe()["method"])
        result = plan(own.mechanism, size, methods=tuple(dict.fromkeys((method, "auto", "baseline", "bins"))))
        if self.shape is not None:
            text += " What follows is for curves without the shape: those of other methods, to compare with."
            return CurveOutline(result.rows, text, own.mechanism, result)
        first = replace(result[method], mechanism=own.mechanism)
        result = replace(result, rows=(first, *(row for row in result.rows if row.name != method)))
        return CurveOutline(result.rows, text, own.mechanism, result)

    def attacked(
        self, mechanism: ChainFit | SurfaceFit, guarantee: Guarantee, trials: int, progress: Progress
    ) -> AuditReport:
        """A fit to a dozen records, with and without the units that neighbours differ in, seen at three points."""
        from isotone.audit import audit
        from isotone.audit.exact import AuditReport

        guarantee, (bottom, top) = kept(guarantee), map(float, self.y_ends)
        (x, y), last, seen = mechanism.example(self)
        units, times = guarantee.adjacency.changes, self.privacy_unit.most
        owners = np.append(np.arange(len(y)), len(y) + np.repeat(np.arange(units), times))

        def release(extra: float | None) -> Any:
            more = 0 if extra is None else units * times
            rows = np.concatenate([x, np.repeat(np.asarray(last)[None], more, axis=0)])
            values = np.append(y, [extra or 0.0] * more)
            return mechanism.estimator().fit(rows, values, groups=owners[: len(values)]).predict(seen)

        sides = (top, bottom) if guarantee.adjacency.exchanges else (None, bottom)
        trials = min(trials, _FITS // len(self.xs))
        return AuditReport((audit(release, *sides, trials=trials, claimed=guarantee, progress=progress),))

    def findings(self, source: Any) -> list[str]:
        """Values of x and y that are missing, no numbers or outside."""
        from isotone.release.check import other_words, outside

        limits = list(zip(self.xs, self.limits, strict=True))
        if self.answer_words is None:
            return [self.reading_of_y, *outside(source, [*limits, (self.y, self.y_ends)])]
        return [self.reading_of_y, *outside(source, limits), *other_words(source, self.y, self.answer_words)]


def _surface_bounds(bounds: Any) -> None:
    if not all(isinstance(pair, tuple) for pair in bounds):
        raise InputError(
            f"bounds must have two entries, one for each column of a surface, not {shown(bounds)}."
        )


def kept(guarantee: Guarantee) -> Guarantee:
    """What a fit keeps of a guarantee. Of (ε, δ) it keeps ε alone."""
    if guarantee.kind != "approximate":
        return guarantee
    return replace(guarantee, kind="pure", delta=Fraction(0))


def compared(guarantee: Guarantee) -> str:
    """What another kind of guarantee would mean for a fit, in words. Choices have bounded range (docs/theory/composition.md)."""
    if guarantee.kind == "approximate":
        choices = (8 * float(largest_rho(guarantee.epsilon, guarantee.delta))) ** 0.5
        return (
            " δ is not used, nor charged: the fit is made with ε alone. As the zCDP that implies (ε, δ) one choice would have "
            f"ε = {choices:.3g} in place of {float(guarantee.epsilon):.3g}."
        )
    if guarantee.kind == "zcdp":
        pure = (2 * float(guarantee.rho)) ** 0.5
        return (
            f" The pure guarantee that implies this one has ε = {pure:.3g}; with zCDP choices have twice that, {2 * pure:.3g}, "
            "and sums have Gaussian noise."
        )
    return ""


@dataclass(frozen=True)
class OwnRow(Row):
    """The mechanism of a release whose error cannot be told without the data."""

    columns: ClassVar[tuple[Column, ...]] = ()


@dataclass(frozen=True)
class CurveOutline(Plan[Row]):
    """What would be released, in words, and methods to compare with where their error can be told without the data."""

    text: str
    own: Any
    view: CurvePlan | None = None

    @property
    def best(self) -> Any:
        """The estimator of a release."""
        return self.own

    @property
    def title(self) -> str:
        """What would be released."""
        return self.text

    def plain(self) -> dict[str, Any]:
        """The words, and what is compared."""
        compared = {} if self.view is None else self.view.plain()
        return {"text": str(self), **compared}

    def __str__(self) -> str:
        return self.text if self.view is None else f"{self.text}\n{self.view}"

    def __rich__(self) -> Any:
        from rich.console import Group

        return Group(self.text, *([] if self.view is None else [self.view]))


@dataclass(frozen=True)
class ChainFit:
    """The estimator of a curve, by its checked parameters."""

    settings: Mapping[str, Any]
    guarantee: Guarantee
    problem: ChainProblem
    """What is public about the fit."""
    band: str | None = None

    name: ClassVar[str] = "PrivateIsotonicRegression"
    """The class, which is not loaded for it: it brings scikit-learn."""

    @classmethod
    def of(cls, curve: Curve, guarantee: Guarantee) -> ChainFit:
        """The estimator of a description under a guarantee."""
        name, steps = curve.method if isinstance(curve.method, tuple) else (curve.method, None)
        parameters = {name: getattr(curve, name) for name in _OF_CURVES}
        parameters["y_values"] = curve.labels and curve.labels.y_values
        settings: dict[str, Any] = {
            "method": curves.FitMethod(name, value_levels=steps),
            "contributions": curve.privacy_unit.most,
            **{name: value for name, value in parameters.items() if value is not None},
        }
        problem = curves.PrivateIsotonicRegression(guarantee, **settings).check()
        return cls(settings, guarantee, problem, band_kind(curve.band, problem))

    def estimator(self) -> Any:
        """A new estimator."""
        return curves.PrivateIsotonicRegression(self.guarantee, **self.settings)

    def recipe(self) -> dict[str, Any]:
        """The name and the arguments that make the estimator again."""
        method = self.settings["method"]
        steps = {} if method.value_levels is None else {"value_levels": method.value_levels}
        return _recipe(self, method=method.name, **steps)

    def source(self, data: Any, curve: Curve) -> PointSource:
        """Both columns on the grids of the problem."""
        source = point_source(data, curve.xs[0], curve.y, self.problem, curve.privacy_unit.column)
        return replace(source, words=curve.answer_words)

    def fitted(self, points: Any) -> Any:
        """The estimator fitted to counted points."""
        return self.estimator().fit_counted(self.problem, points.x, points.y, points.count)

    def columns(self, drawn: Any, confidence: float) -> dict[str, tuple[Any, ...]]:
        """The corners of the curve and of its band."""
        xs, values, measured = drawn.X_thresholds_, drawn.y_thresholds_, drawn.measured_
        ends: dict[str, Any] = {}
        if self.band is not None and measured is not None:
            corners = self.problem.grid.positions(measured.band(confidence, self.band).corners)
            xs = np.union1d(xs, corners)
            values = drawn.predict(xs)
            ends = drawn.band(xs, confidence, self.band)._asdict()
        result = {"x": xs, "value": values, **ends}
        if self.problem.shape is None:  # rounded, a curve would not have its shape exactly
            result = {name: np.round(column, 12) for name, column in result.items()}
        return {name: tuple(column.tolist()) for name, column in result.items()}

    def entries(self, drawn: Any) -> dict[str, Any]:
        """What was drawn beside the values."""
        sums = drawn.measured_ and sums_to(drawn.measured_)
        return {"increasing": bool(drawn.increasing_), "band": self.band, "sums": sums}

    def described(self, curve: Curve, guarantee: Guarantee) -> str:
        """What would be released, in words."""
        loss, shape = (_called(named) for named in (curve.loss, curve.shape))
        method = self.settings["method"].name
        way = f"{method} method, {loss} loss"
        if curve.shape is not None:
            way = "the published tree" if method == "threshold" else "one draw from all curves"
            if method == "auto" and parse_loss(curve.loss).by_means:
                way = "a curve fitted to noisy sums,"
            way = f"{way} of shape {shape}, {loss} loss"
        return (
            f"A monotone curve of {curve.y} over {curve.xs[0]}: {way}, {guarantee}. {curve.reading_of_y} "
            "No data was read and no budget was spent."
        )

    def example(self, curve: Curve) -> tuple[Any, Any, Any]:
        """A dozen records, where one more has the most to say, and three points to look at."""
        (low, high), (bottom, top) = map(float, curve.limits[0]), map(float, curve.y_ends)
        x = np.linspace(low, high, 12)
        return (x, np.where(x < (low + high) / 2, bottom, top)), high, np.linspace(low, high, 5)[1:4]


_OF_CURVES = ("bounds", "y_range", "increasing", "loss", "output", "shape", "x_grid", "public_n")
"""Parameters that the estimator of curves has under the same name."""


def _recipe(fit: ChainFit | SurfaceFit, **more: Any) -> dict[str, Any]:
    """The class of an estimator, its guarantee and its parameters, as plain values."""
    promise = {**budget_of(fit.guarantee), "neighbours": fit.guarantee.neighbours}
    return {"name": fit.name, **plain_value(promise | {**fit.settings, **more})}


def _called(named: Any) -> str:
    return f"{named[0]}({_decimal(named[1])})" if isinstance(named, tuple) else str(named)


def _decimal(number: Any) -> str:
    """A number as people write it."""
    return f"{float(number):g}" if Fraction(f"{float(number):g}") == number else str(number)


def middles(bounds: Any, bins: Any) -> list[NDArray[np.float64]]:
    """The middles of the bins of each column."""
    return [
        float(low) + (np.arange(size) + 0.5) / size * (float(high) - float(low))
        for (low, high), size in zip(bounds, bins, strict=True)
    ]


@dataclass(frozen=True)
class SurfaceFit:
    """The estimator of a surface, by its checked parameters."""

    settings: Mapping[str, Any]
    guarantee: Guarantee

    name: ClassVar[str] = "PrivatePosetRegression"
    """The class, which is not loaded for it: it brings scikit-learn."""

    @classmethod
    def of(cls, curve: Curve, guarantee: Guarantee) -> SurfaceFit:
        """The estimator of a description under a guarantee."""
        settings = {
            "bounds": tuple(curve.limits),
            "bins": _bins(curve.x_grid),
            "directions": curve.increasing
            if isinstance(curve.increasing, tuple)
            else (curve.increasing,) * 2,
            "y_range": curve.y_ends,
            "contributions": curve.privacy_unit.most,
            "loss": curve.loss,
            **({} if curve.public_n is None else {"public_n": curve.public_n}),
        }
        fit = cls(FrozenMapping(settings), guarantee)
        fit.estimator().check()
        return fit

    def estimator(self) -> Any:
        """A new estimator."""
        parameters = {
            **self.settings,
            "bins": list(self.settings["bins"]),
            "directions": list(self.settings["directions"]),
        }
        return curves.PrivatePosetRegression.from_features(epsilon=self.guarantee, **parameters)

    def recipe(self) -> dict[str, Any]:
        """The name and the arguments that make the estimator again."""
        return _recipe(self)

    def source(self, data: Any, curve: Curve) -> CellSource:
        """The columns in bins."""
        unit, bins = curve.privacy_unit, self.settings["bins"]
        return CellSource(
            data, curve.xs, curve.y, tuple(curve.limits), bins, curve.y_ends, FINE, unit.column, unit.most
        )

    def fitted(self, cells: Any) -> Any:
        """The estimator fitted to counted cells."""
        places = middles(self.settings["bounds"], self.settings["bins"])
        x = np.stack([at[cells.bins[:, axis]] for axis, at in enumerate(places)], axis=1)
        return fit_counted(self.estimator(), x, cells.y, cells.count, self.settings["y_range"])

    def columns(self, drawn: Any, confidence: float) -> dict[str, tuple[Any, ...]]:
        """A row for each cell, with the middles of its bins."""
        cells = np.array(list(product(*middles(self.settings["bounds"], self.settings["bins"]))))
        result = {"x1": cells[:, 0], "x2": cells[:, 1], "value": drawn.predict(cells)}
        return {name: tuple(np.round(column, 12).tolist()) for name, column in result.items()}

    def entries(self, drawn: Any) -> dict[str, Any]:
        """Nothing was drawn beside the values."""
        return {}

    def described(self, curve: Curve, guarantee: Guarantee) -> str:
        """What would be released, in words."""
        first, second = self.settings["bins"]
        return (
            f"A surface of {curve.y} over {' and '.join(curve.xs)}, {first} × {second} cells, {guarantee}. No "
            "data was read and no budget was spent. Its error depends on the data, so no plan can tell it."
        )

    def example(self, curve: Curve) -> tuple[Any, Any, Any]:
        """A dozen records at three corners, which are looked at."""
        first, second = middles(self.settings["bounds"], self.settings["bins"])
        bottom, top = map(float, curve.y_ends)
        corners = np.array([[first[0], second[0]], [first[-1], second[0]], [first[-1], second[-1]]])
        return (np.repeat(corners, 4, axis=0), np.repeat([bottom, bottom, top], 4)), corners[-1], corners


def _bins(value: Any) -> tuple[int, int]:
    """The number of bins of each column."""
    listed = value if isinstance(value, tuple) else (USUAL_BINS if value is None else value,) * 2
    if len(listed) != 2 or any(isinstance(size, str) for size in listed):
        raise InputError("x_grid must be one number of bins for both columns of a surface, or two.")
    sizes = [exact(size, "x_grid") for size in listed]
    if any(size.denominator != 1 for size in sizes):
        raise InputError("x_grid must be whole numbers of bins for a surface.")
    first, second = (whole_number(int(size), "x_grid", 1, MOST_BINS) for size in sizes)
    return first, second


# Bands of a published curve, which one and from which published sums, and the answers that follow from them.

MOST_SUMS = 1024


class SumsEntry(TypedDict):
    """The noisy sums of y and 1 − y in bins of the grid of x, in whole numbers, and the rate or the variance of their noise."""

    starts: list[int]
    ones: list[int]
    zeros: list[int]
    values: int
    rate: NotRequired[str]
    variance: NotRequired[str]


def _possible(problem: ChainProblem) -> dict[Law, PossibleSums]:
    from isotone.curves.regression import sums_for  # here: it brings all mechanisms

    return sums_for(problem)


def has_sums(problem: ChainProblem) -> bool:
    """Whether a curve is made of noisy sums, which are published."""
    return bool(_possible(problem))


def _no_population(problem: ChainProblem) -> str:
    return why_no_population(problem.budget.whole.unit.contributions, problem.direction_given)


def usual_kind(problem: ChainProblem) -> str | None:
    """The band that fits what the curve estimates, and holds, or None where no band is known."""
    if not _possible(problem):
        return None
    return "population" if problem.output == "population" and not _no_population(problem) else "records"


def band_kind(band: Any, problem: ChainProblem) -> str | None:
    """The kind of band as asked for, refused where it does not hold, or the usual one."""
    if band is None:
        return usual_kind(problem)
    kind = one_of(band, "band (or None)", (*KINDS, "none"))
    if kind == "none":
        return None
    if not _possible(problem):
        raise no_band(problem.method)
    if kind == "population" and (reason := _no_population(problem)):
        raise InputError(reason)
    return kind


def sums_to(measured: MeasuredSums) -> SumsEntry:
    """The sums as plain values."""
    sums = measured.sums
    entry: SumsEntry = {
        "starts": sums.starts.tolist(),
        "ones": sums.ones.tolist(),
        "zeros": sums.zeros.tolist(),
        "values": measured.levels,
    }
    if sums.rate is not None:
        return {**entry, "rate": str(sums.rate)}
    return {**entry, "variance": str(sums.variance)}


def measured_from(manifest: Mapping[str, Any], problem: ChainProblem) -> MeasuredSums:
    """The sums that a manifest publishes, as the estimator that it describes could have measured them."""
    entry = manifest.get("sums")
    possible = _possible(problem)
    if entry is None or not possible:
        raise InputError("The release has no noisy sums, which a band is made of.")
    starts, ones, zeros = (np.array(entry[key], dtype=np.int64) for key in ("starts", "ones", "zeros"))
    points = problem.grid.points
    whole = starts.ndim == 1 and 0 < starts.size == ones.size == zeros.size <= MOST_SUMS
    if not whole or starts[0] != 0 or starts[-1] >= points or np.any(np.diff(starts) <= 0):
        raise InputError("the bins of the published sums are not bins of the grid")
    rate, variance = (exact(entry[key], key) if key in entry else None for key in ("rate", "variance"))
    known = possible.get((rate, variance))
    if known is None:
        raise InputError("the rate or the variance of the noise of the sums is not the mechanism's")
    if entry["values"] not in known.values:
        raise InputError("the number of values of the posterior is none that the mechanism has")
    sums = NoisySums(starts, ones, zeros, 1 if problem.labels else FINE, rate, points, variance)
    rising = sums if manifest["increasing"] else sums.mirrored()
    if known.starts is not None and known.starts != tuple(rising.starts.tolist()):
        raise InputError("the bins of the published sums are not those of noise without a coarse look")
    result = manifest["mechanism"].get("increasing", True) != "auto"
    return MeasuredSums(
        sums,
        manifest["increasing"],
        problem.labels,
        entry["values"],
        int(manifest["description"]["unit"]["contributions"] or 1),
        result,
    )


CREDIBLE = "credible: what a model believes, not a guarantee"


class CurveReader(Reader):
    """Answers from the band of a curve of means.

    The band holds at all points at once, so any number of answers holds with its confidence. A credible band
    holds point by point, as far as its model is right: no difference follows from it.
    """

    def at(self, x: Any, confidence: float | None) -> Estimate:
        """The value at ``x``, with the band there."""
        kind, level, low, high = self._band("value with an interval", confidence, [x])
        value, note = self._value(x), CREDIBLE if kind == "credible" else ""
        return Estimate(value, float(low[0]), float(high[0]), level, note, _about(kind))

    def difference(self, first: Any, second: Any, what: Any, confidence: float | None) -> Estimate:
        """The value at ``second`` minus that at ``first``. What the band leaves possible for a monotone curve."""
        if what is not None:
            raise InputError("A curve has no elements: leave out what.")
        kind, level, low, high = self._band("differences with an interval", confidence, [first, second])
        if kind == "credible":
            raise InputError(
                "The band of this release is credible, point by point: no interval of a difference follows from it."
            )
        least, most = float(low[1] - high[0]), float(high[1] - low[0])
        forward = _number(second) >= _number(first)
        rises = forward == self.release.manifest["increasing"]
        least, most = (max(least, 0.0), max(most, 0.0)) if rises else (min(least, 0.0), min(most, 0.0))
        value = self._value(second) - self._value(first)
        return Estimate(value, least, most, level, about=_about(kind))

    def _band(self, what: str, confidence: float | None, xs: list[Any]) -> tuple[str, float, Any, Any]:
        """The kind of the band, its confidence, and its ends at some points."""
        manifest = self.release.manifest
        if manifest.get("sums") is None:
            self.refuse(what)
        problem = rebuild_curve_mechanism(manifest["mechanism"])
        level = confidence_level(manifest["description"]["confidence"] if confidence is None else confidence)
        kind = manifest.get("band") or usual_kind(problem)
        assert kind is not None, "there are sums"
        measured, places = measured_from(manifest, problem), np.array([_number(x) for x in xs])
        if np.any(places < float(problem.grid.low)) or np.any(places > float(problem.grid.high)):
            raise InputError(
                f"x must lie in the bounds of the curve, from {problem.grid.low} to {problem.grid.high}."
            )
        bottom, top = map(float, problem.y_range)
        low, high = measured.band(level, kind).at(problem.grid.snap(places))
        return kind, level, bottom + (top - bottom) * low, bottom + (top - bottom) * high

    def _value(self, x: Any) -> float:
        columns = self.release.columns
        return float(np.interp(_number(x), columns["x"], columns["value"]))


def _number(x: Any) -> float:
    number = real_of(x)
    if math.isnan(number):
        raise InputError(f"x must be a number, not {shown(x)}.")
    return number


def _about(kind: str) -> Literal["records", "population"]:
    return "records" if kind == "records" else "population"
