"""The report of a curve."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from isotone.release.kinds.page import INK, SOFT, Page
from isotone.svg import charts

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from isotone.release.result import Release

__all__ = ["CurvePage"]

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
            str(release.manifest["x"]) if name == "x" else name: column
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
        low, high = release.manifest["rules"]["bounds"]
        return [
            f"Values of x below {low} or above {high} count as {low} or {high}; rows that lack x or y are left out."
        ]

    def draw(self, release: Release, ax: Axes) -> None:
        """The corners, joined."""
        if release.manifest.get("band"):
            ends = release.columns["low"], release.columns["high"]
            ax.fill_between(release.columns["x"], *ends, color=SOFT, alpha=0.45, linewidth=0)
        ax.plot(release.columns["x"], release.columns["value"], color=INK, linewidth=2)
        ax.set_xlabel(str(release.manifest["x"]))
        ax.set_ylabel(str(release.manifest["y"]))
        ax.set_ylim(*(float(Fraction(end)) for end in release.manifest["y_range"]))
        ax.grid(alpha=0.3)

    def svg(self, release: Release) -> str:
        """The corners, joined."""
        low, high = (float(Fraction(end)) for end in release.manifest["y_range"])
        xs, ys = ([float(at) for at in release.columns[name]] for name in ("x", "value"))
        band = None
        if release.manifest.get("band"):
            band = tuple([float(at) for at in release.columns[name]] for name in ("low", "high"))
        labels = str(release.manifest["x"]), str(release.manifest["y"])
        return charts.curve(xs, ys, (low, high), labels, band)
