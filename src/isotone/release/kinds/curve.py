"""A curve: y as a monotone function of x."""

from __future__ import annotations

import inspect
import operator
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from pydantic import model_validator
from typing_extensions import TypedDict

import isotone.curves as curves
from isotone.errors import InputError
from isotone.ledger.ledger import Ledger, require_ledger
from isotone.mechanism import Progress, no_progress
from isotone.privacy.checks import did_you_mean, truth
from isotone.privacy.guarantee import Guarantee, Neighbours, Number
from isotone.reading.points import Points, PointSource, count_points
from isotone.release import pipeline
from isotone.release.kinds.kind import Kind, Query, Stamp, require_pure
from isotone.release.kinds.parameters import (
    column_name,
    contribution_bound,
    request_name,
    title_text,
    unit_in_words,
)
from isotone.release.manifest import Manifest, guarantee_from, guarantee_to
from isotone.release.planning import SpecPlan
from isotone.release.recipes import rebuild_curve_mechanism
from isotone.release.result import Release, seal
from isotone.release.sections import Real, Section, Size, Text

if TYPE_CHECKING:
    from isotone.audit.report import AuditReport
    from isotone.curves import PrivateIsotonicRegression
    from isotone.reading.sources import Frame
    from isotone.release.spec import Spec

__all__ = ["Curve", "CurveKind", "CurveManifest", "CurveQuery", "curve_query", "release_curve"]

_Y_STEPS = 1 << 16
_FITS = 6_000  # an audit fits at most so often: a fit takes milliseconds


class Curve(Section):
    """``[curve]``: y as a monotone function of x."""

    x: Text
    """The column of x."""
    y: Text
    """The column of y."""
    bounds: tuple[Real, Real]
    """Public limits [low, high] of x; values outside are moved to the ends. Not chosen by the data."""
    y_range: tuple[Real, Real]
    """Public limits [low, high] of y, in the same way. The noise grows with their distance."""
    increasing: bool | Literal["auto"] = True
    """Whether y rises or falls with x; "auto" spends 5 % of ε on finding out."""
    loss: str | tuple[str, Real] = "squared"
    """What a fit minimises: "squared", "absolute", "logistic", ["huber", delta], ["pinball", q] or ["logistic", margin]."""
    method: Text = "additive"
    """The mechanism: "additive", "threshold", "baseline", "bins" or "auto"."""
    shape: str | tuple[str, Real] | tuple[str, Real, Size] | None = None
    """Beyond rising: ["constant", pieces], ["linear", pieces] or ["linear", pieces, knots], ["lipschitz", slope], "convex" or
    "concave"."""
    public_n: Size | None = None
    """The number of records, if it is public. Otherwise a noisy one costs 2 % of ε."""
    x_grid: Size | Literal["integers"] | list[Real] | None = None
    """The public grid of x: so many even points, "integers" for every whole number of bounds, or a list of points."""
    value_levels: Size | None = None
    """Steps between the lowest and the highest value of a baseline or a shape: a power of two up to 1024."""

    @model_validator(mode="before")
    @classmethod
    def _pairs(cls, given: Any) -> Any:
        if isinstance(given, dict):
            lists = {
                key: value for key, value in given.items() if isinstance(value, list) and key != "x_grid"
            }
            pairs = {key: tuple(value) for key, value in lists.items()}
            given = {**given, **pairs}
        return given

    def options(self) -> dict[str, Any]:
        """The options of the estimator."""
        return self.model_dump(exclude={"x", "y"}, exclude_none=True)

    def described(self) -> str:
        """Method, shape and loss in words."""
        loss = self.loss if isinstance(self.loss, str) else f"{self.loss[0]}({self.loss[1]})"
        if self.shape is None:
            return f"{self.method} method, {loss} loss"
        shape = self.shape if isinstance(self.shape, str) else f"{self.shape[0]}({self.shape[1]})"
        way = "the published tree" if self.method == "threshold" else "one draw from all curves"
        return f"{way} of shape {shape}, {loss} loss"


class CurveRules(TypedDict):
    """How rows became points."""

    unit: str | None
    contributions: int
    bounds: list[str]


@dataclass(frozen=True, kw_only=True)
class CurveManifest(Manifest):
    """The manifest of a curve."""

    name: ClassVar[str] = "curve"

    meanings: ClassVar[dict[str, str]] = Manifest.meanings | {
        "x": "The column of x.",
        "y": "The column of y.",
        "y_range": "The public range of y, as exact text.",
        "increasing": "Whether the curve rises.",
        "rules": "How rows became points: unit, contributions and the bounds of x.",
    }

    x: str
    y: str
    y_range: list[str]
    increasing: bool
    rules: CurveRules


@dataclass(frozen=True)
class CurveQuery(Query[Points, "PrivateIsotonicRegression"]):
    """A release of a curve as asked for; :func:`curve_query` makes and checks one."""

    source: PointSource
    settings: Mapping[str, Any]
    grid: Any
    guarantee: Guarantee
    title: str

    @property
    def description(self) -> str:
        """The names of both columns."""
        return f"curve of {self.source.y} over {self.source.x}"

    @property
    def mechanism_name(self) -> str:
        """The class of the estimator."""
        return CurveKind.classes[0]

    def parameters(self) -> dict[str, Any]:
        """Columns, settings of the estimator, guarantee and rules."""
        return {
            "kind": CurveManifest.name,
            "x": self.source.x,
            "y": self.source.y,
            "mechanism": self._recipe(),
            "guarantee": guarantee_to(self.guarantee),
            "rules": self._rules(),
        }

    def open(self) -> Frame:
        """The columns of x, y and the unit."""
        return self.source.open()

    def read(self, frame: Frame) -> Points:
        """How many records fall on each point of the grid."""
        return count_points(self.source, frame)

    def draw(self, statistic: Points) -> PrivateIsotonicRegression:
        """The fitted curve."""
        low, high = map(float, self.source.y_range)
        xs = np.repeat(self.grid.positions(statistic.x), statistic.count)
        ys = np.repeat(low + (high - low) * statistic.y / _Y_STEPS, statistic.count)
        estimator = curves.PrivateIsotonicRegression(unit=self.guarantee.unit, **self.settings)
        # The engine has already bounded each unit; rows of their own keep the noise for `contributions` rows.
        return estimator.fit(xs, ys, groups=np.arange(len(xs)))

    def publish(self, drawn: PrivateIsotonicRegression, stamp: Stamp) -> Release:
        """The corners of the curve."""
        columns: dict[str, tuple[Any, ...]] = {
            "x": tuple(np.round(drawn.X_thresholds_, 12).tolist()),
            "value": tuple(np.round(drawn.y_thresholds_, 12).tolist()),
        }
        manifest = CurveManifest(
            kind=CurveManifest.name,
            title=self.title,
            x=self.source.x,
            y=self.source.y,
            y_range=[str(end) for end in self.source.y_range],
            increasing=bool(drawn.increasing_),
            mechanism=self._recipe(),
            guarantee=guarantee_to(self.guarantee),
            rules=self._rules(),
            **stamp.entries(),
        )
        return seal(columns, manifest)

    def _recipe(self) -> dict[str, Any]:
        given = {key: _plain(value) for key, value in self.settings.items() if value is not None}
        return {"name": self.mechanism_name, **given}

    def _rules(self) -> CurveRules:
        bounds = [str(end) for end in self.source.bounds]
        return {"unit": self.source.unit, "contributions": self.source.contributions, "bounds": bounds}


def release_curve(
    data: Any,
    *,
    x: str,
    y: str,
    bounds: tuple[Number, Number],
    y_range: tuple[Number, Number],
    epsilon: Number,
    ledger: Ledger,
    unit: str | None = None,
    contributions: int = 1,
    neighbours: Neighbours = "add-remove",
    unit_name: str | None = None,
    title: str | None = None,
    request: str | None = None,
    again: bool = False,
    folder: str | os.PathLike[str] | None = None,
    progress: Progress = no_progress,
    **options: Any,
) -> Release:
    """Release a monotone curve fitted to the columns ``x`` and ``y``.

    Parameters
    ----------
    data
        A path or a table, as for :func:`release_counts`.
    x, y, bounds, y_range
        The columns and their public ranges. Values outside go to the ends; rows where either is missing are
        dropped. The ranges must not come from the data.
    unit, contributions
        The column of the privacy unit, and how many of its rows count.
    title, request, again, folder
        As for :func:`release_counts`.
    options
        Everything else that :class:`~isotone.curves.PrivateIsotonicRegression` takes: ``increasing``, ``loss``,
        ``method``, ``shape``, ``levels``, ``public_n``, ``x_grid`` …

    Returns
    -------
    Release
        The corners of the curve: columns ``x`` and ``value``.
    """
    require_ledger(ledger)
    promise = Guarantee.pure(epsilon, neighbours=neighbours, unit=unit_in_words(unit, unit_name))
    options = {"bounds": bounds, "y_range": y_range, **options}
    query = curve_query(data, x, y, promise, unit, contributions, title, options)
    shown = pipeline.Presentation(folder)
    done = pipeline.run(
        query,
        ledger=ledger,
        identity=request_name(request),
        again=truth(again, "again"),
        presentation=shown,
        progress=progress,
    )
    return done.release


def curve_query(
    data: Any,
    x: str,
    y: str,
    promise: Guarantee,
    unit: str | None,
    contributions: int,
    title: str | None,
    options: Mapping[str, Any],
) -> CurveQuery:
    """The query that :func:`release_curve` runs, with every public parameter checked."""
    known = set(inspect.signature(curves.PrivateIsotonicRegression).parameters) - {"unit", "ledger"}
    for name in options:
        if name not in known:
            near = did_you_mean(name, known) or f"; there are: {', '.join(sorted(known))}."
            raise InputError(f"A curve has no option {name!r}{near}")
    x, y = column_name(x, "x"), column_name(y, "y")
    unit = None if unit is None else column_name(unit, "unit")
    units = contribution_bound(contributions, unit)
    settings: dict[str, Any] = {
        "epsilon": promise.epsilon,
        "neighbours": promise.neighbours,
        "contributions": units,
        **{key: _simple(value) for key, value in options.items()},
    }
    public = curves.PrivateIsotonicRegression(unit=promise.unit, **settings).check()
    grid = public.grid
    limits = (grid.low, grid.high), public.y_range
    source = PointSource(data, x, y, *limits, grid.points - 1, _Y_STEPS, unit, units, grid.listed)
    return CurveQuery(source, settings, grid, promise, title_text(title, f"{y} by {x}"))


def _simple(value: Any) -> Any:
    """An option without numpy's types, which JSON does not know."""
    if isinstance(value, (tuple, list, np.ndarray)):
        return tuple(_simple(part) for part in value)
    if isinstance(value, (np.bool_, np.floating)):
        return value.item()
    if value is None or isinstance(value, (bool, str)):
        return value
    return operator.index(value) if hasattr(value, "__index__") else value


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    return value if isinstance(value, (bool, int, str)) else str(value)


class CurveKind(Kind):
    """A monotone curve."""

    name: ClassVar[str] = CurveManifest.name
    key: ClassVar[str] = "curve"
    section: ClassVar[type[Section]] = Curve
    manifest: ClassVar[type[Manifest]] = CurveManifest
    classes: ClassVar[tuple[str, ...]] = ("PrivateIsotonicRegression",)

    def query(self, spec: Spec) -> CurveQuery:
        """The query of a spec with ``[curve]``."""
        curve, promise, data = spec.said(Curve), require_pure(spec), spec.data
        options, title = curve.options(), spec.output.title
        return curve_query(
            spec.source, curve.x, curve.y, promise, data.unit, data.contributions, title, options
        )

    def plan(self, spec: Spec, records: int | None, progress: Progress) -> SpecPlan:
        """What the methods are expected to lose on about ``records`` records."""
        curve, promise = spec.said(Curve), require_pure(spec)
        setting: dict[str, Any] = {
            "neighbours": promise.neighbours,
            "contributions": spec.data.contributions,
        }
        curves.PrivateIsotonicRegression(
            promise.epsilon, unit=promise.unit, **setting, **curve.options()
        ).check()
        text = (
            f"A monotone curve of {curve.y} over {curve.x}: {curve.described()}, {promise}. No data was read "
            "and no budget was spent."
        )
        size = records or curve.public_n
        if size is None:
            text += " About how many records are there? With --records the plan tells the expected error."
            return SpecPlan(text, {**spec.head(), "text": text})
        expected = curves.plan(promise.epsilon, size, loss=curve.loss, y_range=curve.y_range, **setting)
        entries = ("method", "excess", "least", "most")
        rows = [{key: getattr(row, key) for key in entries} for row in expected.rows]
        if curve.shape is not None:
            text += " What follows is for curves without the shape: those of other methods, to compare with."
        text += f"\n{expected}"
        return SpecPlan(text, {**spec.head(), "text": text, "rows": rows})

    def audit(self, spec: Spec, trials: int, progress: Progress) -> AuditReport:
        """The estimator of the spec, by draws."""
        options = spec.said(Curve).options()
        return _audited(options, spec.data.contributions, require_pure(spec), trials, progress)

    def audit_named(self, name: str, epsilon: Number, trials: int, progress: Progress) -> AuditReport:
        """The estimator on [0, 100] × [0, 1]."""
        options = {"bounds": (0, 100), "y_range": (0, 1)}
        return _audited(options, 1, Guarantee.pure(epsilon), trials, progress)

    def check(self, spec: Spec, source: Any) -> list[str]:
        """Values of x and y that are missing or no numbers."""
        from isotone.release.check import check_curve

        return check_curve(spec, source)

    def rebuild(self, manifest: Manifest) -> Any:
        """The checked parameters of the estimator, with its guarantee."""
        return rebuild_curve_mechanism(manifest.mechanism)

    def derived_guarantee(self, release: Release) -> Guarantee:
        """What the estimator of the manifest promises."""
        stated, setup = guarantee_from(release.manifest.guarantee), self.rebuild(release.manifest)
        if release.manifest.mechanism.get("contributions", 1) < release.manifest["rules"]["contributions"]:
            raise InputError("the noise is for fewer rows a unit than the rules let through")
        return replace(setup.guarantee, unit=stated.unit)

    recomputed: ClassVar[str] = "the curve keeps its bounds and its direction; no error is stated"

    def faults(self, release: Release) -> list[str]:
        """Bounds, ranges, directions and corners that the estimator cannot have given."""
        from isotone.release.recomputed import curve_faults

        return curve_faults(release.columns, release.manifest, self.rebuild(release.manifest))


def _audited(
    options: dict[str, Any], contributions: int, promise: Guarantee, trials: int, progress: Progress
) -> AuditReport:
    """A fit to a dozen records, with and without one unit more (or with one replaced); seen at three points."""
    from isotone.audit import audit
    from isotone.audit.report import AuditReport

    estimator = curves.PrivateIsotonicRegression(
        promise.epsilon, neighbours=promise.neighbours, contributions=contributions, **options
    )
    setup = estimator.check()
    low, high = float(setup.grid.low), float(setup.grid.high)
    bottom, top = map(float, setup.y_range)
    x = np.linspace(low, high, 12)
    y = np.where(x < (low + high) / 2, bottom, top)
    seen = np.linspace(low, high, 5)[1:4]
    owners = np.append(np.arange(12), [12] * contributions)

    def release(extra: float | None) -> Any:
        count = 0 if extra is None else contributions
        more_x, more_y = np.append(x, [high] * count), np.append(y, [extra or 0.0] * count)
        return estimator.fit(more_x, more_y, groups=owners[: 12 + count]).predict(seen)

    sides = (top, bottom) if promise.neighbours == "replace" else (None, bottom)
    found = audit(release, *sides, trials=min(trials, _FITS), claimed=promise, progress=progress)
    return AuditReport((found,))
