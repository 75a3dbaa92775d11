"""The report of a curve."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from isotone.privacy.guarantee import exact
from isotone.release.kinds.page import INK, SOFT, Page
from isotone.svg import charts

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from isotone.release.result import Release

__all__ = ["CurvePage", "SurfacePage"]

_BANDS = {
    "population": (
        "for the mean in the population, at all points at once",
        "With at least this probability the mean of y in the population that the records are a sample of lies inside at all "
        "points at once, for any number of records, if they are independent of each other, one for each of those protected, and if the mean really "
        "rises (or falls) with x. It allows for the noise and for the sample being a sample.",
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


def _said(release: Release) -> dict[str, Any]:
    return release.manifest["description"]


def _ends(release: Release) -> tuple[float, float]:
    """The lowest and the highest y."""
    low, high = _said(release)["y_values"] or _said(release)["y_range"]
    return float(Fraction(low)), float(Fraction(high))


class CurvePage(Page):
    """The fitted curve."""

    lead: ClassVar[str] = "A monotone curve fitted to the data."
    few_rows: ClassVar[int | None] = 21

    def caption(self, release: Release, level: str) -> str:
        """The curve and what the band is."""
        words = "The released curve. It is monotone by construction."
        band = release.manifest.get("band")
        return f"{words} Shaded: {level} band, {_BANDS[band][0]}." if band else words

    def shown(self, release: Release) -> dict[str, tuple[Any, ...]]:
        """The columns, with the name of x."""
        return {
            str(_said(release)["x"]) if name == "x" else name: column
            for name, column in release.columns.items()
        }

    def accuracy(self, release: Release, level: str) -> list[str]:
        """That it depends on the data."""
        band = release.manifest.get("band")
        if band:
            return [
                f"The columns from and to are a band at {level}, made of the same noisy numbers as the curve. {_BANDS[band][1]}"
            ]
        return [
            "The curve was made from noisy numbers and favours a good fit. How large its error is depends on the data."
        ]

    def rules(self, release: Release) -> list[str]:
        """The bounds of x."""
        low, high = _said(release)["bounds"]
        return [
            f"Values of x below {low} or above {high} count as {low} or {high}; rows that lack x or y are left out."
        ]

    def draw(self, release: Release, ax: Axes) -> None:
        """The corners, joined."""
        if release.manifest.get("band"):
            ends = release.columns["low"], release.columns["high"]
            ax.fill_between(release.columns["x"], *ends, color=SOFT, alpha=0.45, linewidth=0)
        ax.plot(release.columns["x"], release.columns["value"], color=INK, linewidth=2)
        ax.set_xlabel(str(_said(release)["x"]))
        ax.set_ylabel(str(_said(release)["y"]))
        ax.set_ylim(*_ends(release))
        ax.grid(alpha=0.3)

    def svg(self, release: Release) -> str:
        """The corners, joined."""
        xs, ys = ([float(at) for at in release.columns[name]] for name in ("x", "value"))
        band = None
        if release.manifest.get("band"):
            band = tuple([float(at) for at in release.columns[name]] for name in ("low", "high"))
        labels = str(_said(release)["x"]), str(_said(release)["y"])
        return charts.curve(xs, ys, _ends(release), labels, band)


class SurfacePage(Page):
    """A heat map."""

    lead: ClassVar[str] = "A monotone function of two columns, fitted to the data."

    def caption(self, release: Release, level: str) -> str:
        """What dark and light mean."""
        low, high = release.manifest.mechanism["y_range"]
        return f"The released values, from {low} (light) to {high} (dark). They are monotone by construction."

    def shown(self, release: Release) -> dict[str, tuple[Any, ...]]:
        """The columns, with the names of both."""
        first, second = map(str, _said(release)["x"])
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
            for name, (low, high) in zip(_said(release)["x"], limits, strict=True)
        ] + ["Rows that lack a number in one of the columns are left out."]

    def draw(self, release: Release, ax: Axes) -> None:
        """The cells, the darker the higher."""
        edges, values, limits = _cells(release)
        shown = ax.pcolormesh(*edges, values.T, vmin=limits[0], vmax=limits[1], cmap="Blues")
        ax.set_xlabel(str(_said(release)["x"][0]))
        ax.set_ylabel(str(_said(release)["x"][1]))
        ax.figure.colorbar(shown, ax=ax, label=str(_said(release)["y"]))

    def svg(self, release: Release) -> str:
        """The cells, the darker the higher."""
        edges, values, limits = _cells(release)
        first, second = _said(release)["x"]
        return charts.heat_map(
            edges[0].tolist(), edges[1].tolist(), values.tolist(), limits, (str(first), str(second))
        )


def _cells(release: Release) -> tuple[list[Any], Any, tuple[float, float]]:
    """The edges of the bins of both columns, the values in a matrix, and the range of y."""
    recipe = release.manifest["mechanism"]
    edges = [
        np.linspace(float(exact(first, "bounds")), float(exact(last, "bounds")), size + 1)
        for (first, last), size in zip(recipe["bounds"], recipe["bins"], strict=True)
    ]
    low, high = (float(exact(end, "y_range")) for end in recipe["y_range"])
    return edges, np.array(release.columns["value"]).reshape(recipe["bins"]), (low, high)
