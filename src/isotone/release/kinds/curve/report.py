"""The report of a curve."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from isotone.release.kinds.page import INK, Page
from isotone.svg import charts

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from isotone.release.result import Release

__all__ = ["CurvePage"]


class CurvePage(Page):
    """The fitted curve."""

    lead: ClassVar[str] = "A monotone curve fitted to the data."

    def caption(self, level: str) -> str:
        """The curve."""
        return "The released curve. It is monotone by construction."

    def accuracy(self, release: Release, level: str) -> list[str]:
        """That it depends on the data."""
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
        ax.plot(release.columns["x"], release.columns["value"], color=INK, linewidth=2)
        ax.set_xlabel(str(release.manifest["x"]))
        ax.set_ylabel(str(release.manifest["y"]))
        ax.set_ylim(*(float(Fraction(end)) for end in release.manifest["y_range"]))
        ax.grid(alpha=0.3)

    def svg(self, release: Release) -> str:
        """The corners, joined."""
        low, high = (float(Fraction(end)) for end in release.manifest["y_range"])
        xs, ys = ([float(at) for at in release.columns[name]] for name in ("x", "value"))
        return charts.curve(xs, ys, (low, high), (str(release.manifest["x"]), str(release.manifest["y"])))
