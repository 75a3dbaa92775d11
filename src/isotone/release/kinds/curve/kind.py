"""What strangers and readers do with a published curve or surface: report, verify, attack by name."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from isotone import svg as charts
from isotone.errors import InputError
from isotone.privacy.guarantee import Guarantee, Number, exact
from isotone.release.kinds.curve.description import (
    ChainFit,
    Curve,
    CurveManifest,
    CurveReader,
    SurfaceFit,
    has_sums,
    measured_from,
    middles,
)
from isotone.release.kinds.kind import INK, SOFT, TOLERANCES, Kind, Page, agrees, require_unit, versions
from isotone.release.manifest import Columns, Manifest, guarantee_from

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from isotone.audit.exact import AuditReport
    from isotone.curves.bands import MeasuredSums
    from isotone.curves.cuts import ChainProblem
    from isotone.mechanism import Progress
    from isotone.release.kinds.kind import Reader
    from isotone.release.result import Release

_BANDS = {
    "population": (
        "for the mean in the population, at all points at once",
        "With at least this probability the mean of y in the population that the records are a sample of lies inside at all "
        "points at once, for any number of records. It allows for the noise and for the sample being a sample. Two things must be true. The "
        "records are independent of each other, one for each of those protected. And the mean really {goes} with x, all the way: where it does not, "
        "it may lie far outside the band, with any number of records, and nothing here shows that. The curve {goes} whatever the data says.",
    ),
    "records": (
        "for the fit to the same records without noise",
        "With at least this probability the monotone fit to the same records in the same bins, but without noise, lies inside at all "
        "points at once. It allows for the noise alone: it says nothing about people who were not asked.",
    ),
    "credible": (
        "credible: what a model believes, point by point, not a guarantee",
        "The band is credible: a model of rising curves gives each single point this probability. It is right on average for curves "
        "like those of the model, and it guarantees nothing.",
    ),
}
"""What a band is, in few and in more words."""


def _description(release: Release) -> dict[str, Any]:
    return release.manifest["description"]


def _ends(release: Release) -> tuple[float, float]:
    """The lowest and the highest y."""
    labels = _description(release)["y_values"]
    low, high = labels["y_values"] if labels else _description(release)["y_range"]
    return float(Fraction(low)), float(Fraction(high))


_MIDDLE = 0.1
"""What is left out at each end of x."""
_MOST = 0.6
"""A picture whose values take less of the range of y shows a part of the range."""


def _fitted(release: Release) -> tuple[float, float]:
    """The part of the range of y that a picture shows: all of it, or round limits around what was released.

    A band is wide at its ends, where few records are: only its middle decides.
    """
    low, high = _ends(release)
    values = [float(at) for at in release.columns["value"]]
    if "high" in release.columns:
        first, last = (float(release.columns["x"][place]) for place in (0, -1))
        inner = _MIDDLE * (last - first)
        for name in ("low", "high"):
            pairs = zip(release.columns["x"], release.columns[name], strict=True)
            values += [float(y) for x, y in pairs if first + inner <= x <= last - inner]
    least, most = min(values, default=low), max(values, default=high)
    if most - least >= _MOST * (high - low) or not low < high:
        return low, high
    step = 10.0 ** math.floor(math.log10(max(most - least, 1e-3 * (high - low))))
    first, last = math.floor(least / step) * step, math.ceil(most / step) * step
    if least - low <= most - least:  # an end of the range that is near is shown
        first = low
    return max(first, low), min(max(last, first + step), high)


def _axis(release: Release) -> str:
    """A sentence if a picture shows a part of the range of y."""
    (low, high), (first, last) = _ends(release), _fitted(release)
    if (first, last) == (low, high):
        return ""
    band = [float(at) for name in ("low", "high") for at in release.columns.get(name, ())]
    beyond = " The band goes on beyond it." if band and not first <= min(band) <= max(band) <= last else ""
    return f" The picture shows y from {first:g} to {last:g}, within its limits {low:g} and {high:g}.{beyond}"


class CurvePage(Page):
    """The fitted curve."""

    lead: ClassVar[str] = "A monotone curve fitted to the data."
    few_rows: ClassVar[int | None] = 21

    def caption(self, release: Release, level: str) -> str:
        """The curve and what the band is."""
        words = "The released curve. It is monotone by construction."
        band = release.manifest.get("band")
        return (
            f"{words} Shaded: {level} band, {_BANDS[band][0]}.{_axis(release)}"
            if band
            else words + _axis(release)
        )

    def shown(self, release: Release) -> dict[str, tuple[Any, ...]]:
        """The columns, with the name of x."""
        return {
            str(_description(release)["x"]) if name == "x" else name: column
            for name, column in release.columns.items()
        }

    def accuracy(self, release: Release, level: str) -> list[str]:
        """That it depends on the data."""
        band = release.manifest.get("band")
        if band:
            meaning = _BANDS[band][1].format(goes="rises" if release.manifest["increasing"] else "falls")
            return [
                f"The columns from and to are a band at {level}, made of the same noisy numbers as the curve. {meaning}"
            ]
        return [
            "The curve was made from noisy numbers and favours a good fit. How large its error is depends on the data."
        ]

    def rules(self, release: Release) -> list[str]:
        """The bounds of x."""
        low, high = _description(release)["bounds"]
        x, y = (str(_description(release)[name]) for name in ("x", "y"))
        words = (_description(release)["y_values"] or {}).get("yes")
        read = (
            []
            if words is None
            else [f"{y} has the higher of its two values where the data says {' or '.join(words)}."]
        )
        return [
            f"Values of {x} below {low} or above {high} count as {low} or {high}; rows that lack {x} or {y} are left out.",
            *read,
        ]

    def draw(self, release: Release, ax: Axes) -> None:
        """The corners, joined."""
        if release.manifest.get("band"):
            ends = release.columns["low"], release.columns["high"]
            ax.fill_between(release.columns["x"], *ends, color=SOFT, alpha=0.45, linewidth=0)
        ax.plot(release.columns["x"], release.columns["value"], color=INK, linewidth=2)
        ax.set_xlabel(str(_description(release)["x"]))
        ax.set_ylabel(str(_description(release)["y"]))
        ax.set_ylim(*_fitted(release))
        ax.grid(alpha=0.3)

    def svg(self, release: Release) -> str:
        """The corners, joined."""
        xs, ys = ([float(at) for at in release.columns[name]] for name in ("x", "value"))
        band = None
        if release.manifest.get("band"):
            first, last = _fitted(release)
            band = tuple(
                [min(max(float(at), first), last) for at in release.columns[name]] for name in ("low", "high")
            )
        labels = str(_description(release)["x"]), str(_description(release)["y"])
        return charts.curve(xs, ys, _fitted(release), labels, band)


class SurfacePage(Page):
    """A heat map."""

    lead: ClassVar[str] = "A monotone function of two columns, fitted to the data."
    few_rows: ClassVar[int | None] = 25

    def some(self, release: Release, rows: list[tuple[int, int]], few: int) -> list[tuple[int, int]]:
        """Few places of both columns, in equal steps."""
        first, second = release.manifest.mechanism["bins"]
        side = math.isqrt(few)
        places = [[place * (size - 1) // (side - 1) for place in range(side)] for size in (first, second)]
        return [rows[x * second + y] for x in dict.fromkeys(places[0]) for y in dict.fromkeys(places[1])]

    def caption(self, release: Release, level: str) -> str:
        """What dark and light mean."""
        low, high = _fitted(release)
        return f"The released values, from {low:g} (light) to {high:g} (dark). They are monotone by construction."

    def shown(self, release: Release) -> dict[str, tuple[Any, ...]]:
        """The columns, with the names of both."""
        first, second = map(str, _description(release)["x"])
        names: dict[str, str] = {"x1": first, "x2": second}
        return {names.get(name, name): column for name, column in release.columns.items()}

    def accuracy(self, release: Release, level: str) -> list[str]:
        """That it depends on the data."""
        return [
            "The values were made from noisy numbers and favour a good fit. How large their error is depends on the data; no "
            "intervals are stated."
        ]

    def rules(self, release: Release) -> list[str]:
        """The limits of both columns."""
        limits = release.manifest.mechanism["bounds"]
        return [
            f"Values of {name} below {low} or above {high} count as {low} or {high}."
            for name, (low, high) in zip(_description(release)["x"], limits, strict=True)
        ] + ["Rows that lack a number in one of the columns are left out."]

    def draw(self, release: Release, ax: Axes) -> None:
        """The cells, the darker the higher."""
        edges, values, limits = _cells(release)
        shown = ax.pcolormesh(*edges, values.T, vmin=limits[0], vmax=limits[1], cmap="Blues")
        ax.set_xlabel(str(_description(release)["x"][0]))
        ax.set_ylabel(str(_description(release)["x"][1]))
        ax.figure.colorbar(shown, ax=ax, label=str(_description(release)["y"]))

    def svg(self, release: Release) -> str:
        """The cells, the darker the higher."""
        edges, values, limits = _cells(release)
        first, second = _description(release)["x"]
        return charts.heat_map(
            edges[0].tolist(), edges[1].tolist(), values.tolist(), limits, (str(first), str(second))
        )


def _cells(release: Release) -> tuple[list[Any], Any, tuple[float, float]]:
    """The edges of the bins of both columns, the values in a matrix, and the range of y that is shown."""
    recipe = release.manifest["mechanism"]
    edges = [
        np.linspace(float(exact(first, "bounds")), float(exact(last, "bounds")), size + 1)
        for (first, last), size in zip(recipe["bounds"], recipe["bins"], strict=True)
    ]
    return edges, np.array(release.columns["value"]).reshape(recipe["bins"]), _fitted(release)


# What strangers and readers do with a published curve or surface: verify, read, attack by name.

EDGE = TOLERANCES["point of a curve"].relative
"""What computers that compute the same may be off, as a share of the largest number."""


class CurveKind(Kind):
    """A monotone curve, or a surface."""

    described = Curve
    manifest = CurveManifest
    classes = (ChainFit.name, SurfaceFit.name)
    why_no_answers = (
        "Answers come from the band of a curve of means (squared or logistic loss, method 'auto', no shape). The law of the "
        "error of other curves, and of surfaces, depends on the data."
    )
    recomputed = "the curve keeps its bounds and its direction; where there is a band, curve and band are those of the published sums"

    def page(self, release: Release) -> Page:
        """A curve, or a heat map."""
        return SurfacePage() if _is_surface(release.manifest) else CurvePage()

    def audit_named(self, name: str, epsilon: Number, trials: int, progress: Progress) -> AuditReport:
        """The estimator on [0, 100] × [0, 1], or on the unit square in 4 × 4 cells."""
        example = Curve("x", y="y", bounds=(0, 100), y_range=(0, 1))
        if name == SurfaceFit.name:
            example = Curve(("a", "b"), y="y", bounds=((0, 1), (0, 1)), y_range=(0, 1), x_grid=4)
        return example.audit(epsilon=epsilon, trials=trials, progress=progress)

    def reader(self, release: Release) -> Reader:
        """Values and differences, from the band."""
        return CurveReader(release, self.why_no_answers)

    def rebuild(self, manifest: Manifest) -> ChainFit | SurfaceFit:
        """The estimator of the description that a manifest holds, which must be the one that it names."""
        description = Curve.from_manifest(manifest, {})
        if description.in_manifest() != manifest.description:
            raise InputError("the description is not written as a release writes it")
        stated = guarantee_from(manifest.guarantee)
        require_unit(description, stated)
        result = description.mechanism(stated)
        if result.recipe() != manifest.mechanism:
            raise InputError("the mechanism is not the one that the description has under this guarantee")
        return result

    def derived_guarantee(self, release: Release) -> Guarantee:
        """What the estimator of the manifest guarantees for the rows that are let through."""
        fit = self.rebuild(release.manifest)
        checked: Any = fit.problem if isinstance(fit, ChainFit) else fit.estimator().check()
        result = checked if isinstance(checked, Guarantee) else checked.guarantee
        return replace(result, unit=guarantee_from(release.manifest.guarantee).unit)

    def looked_at(self, release: Release) -> str:
        """What was compared."""
        if _is_surface(release.manifest):
            return "the surface keeps its cells, its range and its directions; no error is stated"
        return self.recomputed

    def faults(self, release: Release) -> list[str]:
        """Cells, bounds, ranges, directions and corners that the estimator cannot have given."""
        fit = self.rebuild(release.manifest)
        present = {name: release.manifest.get(name) is not None for name in ("increasing", "band", "sums")}
        if isinstance(fit, SurfaceFit):
            return (
                ["a surface has no such entries"]
                if any(present.values())
                else surface_faults(release.columns, fit)
            )
        if present["sums"] != has_sums(fit.problem):
            return ["the noisy sums are not there, or the method has none"]
        if (release.manifest["increasing"], release.manifest.get("band")) != (
            fit.settings["increasing"]
            if fit.settings["increasing"] != "auto"
            else release.manifest["increasing"],
            fit.band,
        ):
            return ["the direction or the band is not the one asked for"]
        return curve_faults(release.columns, release.manifest, fit.problem)


def _is_surface(manifest: Manifest) -> bool:
    return manifest.mechanism.get("name") == SurfaceFit.name


def curve_faults(columns: Columns, manifest: Mapping[str, Any], problem: ChainProblem) -> list[str]:
    """Faults in the corners of a curve, given the checked public parameters of its estimator."""
    kind = manifest.get("band")
    if set(columns) != {"x", "value"} | ({"low", "high"} if kind else set()):
        return ["the columns are not those of a curve"]
    faults: list[str] = []
    x, value = np.array(columns["x"], dtype=float), np.array(columns["value"], dtype=float)
    low, high = float(problem.grid.low), float(problem.grid.high)
    edge = EDGE * max(abs(low), abs(high), 1.0)
    if not x.size or np.any(np.diff(x) < 0) or x[0] < low - edge or x[-1] > high + edge:
        faults.append("x leaves its bounds or is not ascending")
    elif np.any(np.abs(x - problem.grid.positions(problem.grid.snap(x))) > edge):
        faults.append("an x is no point of the grid")
    bottom, top = map(float, problem.y_range)
    edge = EDGE * max(abs(bottom), abs(top), 1.0)
    if np.any(value < bottom - edge) or np.any(value > top + edge):
        faults.append("a value leaves the range of y")
    steps = np.diff(value) if manifest["increasing"] else -np.diff(value)
    if np.any(steps < -edge):
        faults.append("the curve is not monotone in the direction stated")
    if not faults and manifest.get("sums") is not None:
        measured = measured_from(manifest, problem)
        faults += _band_faults(columns, manifest, measured, problem, kind) if kind else []
        faults += [] if faults else _value_faults(columns, manifest, measured, problem)
    return faults


def _band_faults(
    columns: Columns, manifest: Mapping[str, Any], measured: MeasuredSums, problem: ChainProblem, kind: str
) -> list[str]:
    """Faults in the band, which follows from the published sums."""
    band = measured.band(manifest["description"]["confidence"], kind)
    x = np.array(columns["x"], dtype=float)
    missing = set(band.corners.tolist()) - set(problem.grid.snap(x).tolist())
    if missing:
        return ["a corner of the band is missing"]
    bottom, top = (float(end) for end in problem.y_range)
    size = max(abs(bottom), abs(top), 1.0)
    for name, share in band.at(problem.grid.snap(x))._asdict().items():
        if not agrees(columns[name], bottom + (top - bottom) * share, "point of a curve", size=size):
            return [f"{name} is not what the published sums give"]
    return []


def _value_faults(
    columns: Columns, manifest: Mapping[str, Any], measured: MeasuredSums, problem: ChainProblem
) -> list[str]:
    """Faults in the curve itself, which is the posterior given the published sums.

    Lines join the rows, so they are compared at the corners of the curve as well: one that is left out bends it.
    """
    rows = problem.grid.snap(np.array(columns["x"], dtype=float))
    curve = measured.curve(problem.output, problem.ends, problem.grid.even)
    at = np.r_[rows, curve.corners()[0]]
    share = curve.at(at)
    low, high = (float(end) for end in problem.ends)
    bottom, top = (float(end) for end in problem.y_range)
    expected = bottom + (top - bottom) * (low + (high - low) * share)
    place = problem.grid.positions
    value = np.array(columns["value"], dtype=float)
    stated = np.r_[value, np.interp(place(at[rows.size :]), place(rows), value)]
    what = "posterior of a curve"
    if dict(manifest["versions"]) != versions():
        what += " by other versions"
    if not agrees(stated, expected, what, size=top - bottom):
        return ["value is not what the published sums give"]
    return []


def surface_faults(columns: Columns, fit: SurfaceFit) -> list[str]:
    """Faults in the cells of a surface."""
    if set(columns) != {"x1", "x2", "value"}:
        return ["the columns are not those of a surface"]
    bounds, bins = fit.settings["bounds"], fit.settings["bins"]
    cells = np.array(list(product(*middles(bounds, bins))))
    stated = np.array([columns["x1"], columns["x2"]], dtype=float).T
    size = max(1.0, float(np.abs(cells).max()))
    if stated.shape != cells.shape or not agrees(stated, cells, "point of a curve", size=size):
        return ["the cells are not those of the mechanism"]
    value = np.array(columns["value"], dtype=float).reshape(bins)
    low, high = map(float, fit.settings["y_range"])
    edge = EDGE * max(abs(low), abs(high), 1.0)
    if not np.all((value >= low - edge) & (value <= high + edge)):
        return ["a value leaves the range of y"]
    for axis, rises in enumerate(fit.settings["directions"]):
        steps = np.diff(value, axis=axis)
        if np.any((steps if rises else -steps) < -edge):
            return ["the surface is not monotone in the directions stated"]
    return []


KIND = CurveKind()
