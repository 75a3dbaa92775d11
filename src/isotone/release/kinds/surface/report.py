"""The report of a surface."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from isotone.privacy.guarantee import exact
from isotone.release.kinds.page import Page
from isotone.svg import charts

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from isotone.release.result import Release

__all__ = ["SurfacePage"]


class SurfacePage(Page):
    """A heat map."""

    lead: ClassVar[str] = "A monotone function of two columns, fitted to the data."

    def caption(self, release: Release, level: str) -> str:
        """What dark and light mean."""
        low, high = release.manifest["mechanism"]["y_range"]
        return f"The released values, from {low} (light) to {high} (dark). They are monotone by construction."

    def shown(self, release: Release) -> dict[str, tuple[Any, ...]]:
        """The columns, with the names of both."""
        first, second = map(str, release.manifest["x"])
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
        limits = release.manifest["mechanism"]["bounds"]
        return [
            f"Values of {name} below {low} or above {high} count as {low} or {high}."
            for name, (low, high) in zip(release.manifest["x"], limits, strict=True)
        ] + ["Rows that lack a number in one of the columns are left out."]

    def draw(self, release: Release, ax: Axes) -> None:
        """The cells, the darker the higher."""
        edges, values, limits = _cells(release)
        shown = ax.pcolormesh(*edges, values.T, vmin=limits[0], vmax=limits[1], cmap="Blues")
        ax.set_xlabel(str(release.manifest["x"][0]))
        ax.set_ylabel(str(release.manifest["x"][1]))
        ax.figure.colorbar(shown, ax=ax, label=str(release.manifest["y"]))

    def svg(self, release: Release) -> str:
        """The cells, the darker the higher."""
        edges, values, limits = _cells(release)
        first, second = release.manifest["x"]
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
