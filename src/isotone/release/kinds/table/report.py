"""The report of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from isotone.release.kinds.page import INK, SOFT, Page
from isotone.svg import charts
from isotone.tables.thresholds import SMALL

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from isotone.release.result import Release

__all__ = ["TablePage"]

_Floats = NDArray[np.floating[Any]]
_NAMES = "released table", "private distribution"
_BARS = 400  # of a distribution: more would not be told apart


class TablePage(Page):
    """The distribution of the counts."""

    lead: ClassVar[str] = "One count for each category, made so that the distribution of counts survives."
    most_rows: ClassVar[int | None] = 10_000  # no browser shows a million
    typical_error: ClassVar[str] = "standard deviation of an unbiased noisy count, at most"

    def caption(self, release: Release, level: str) -> str:
        """Both distributions."""
        if _is_heavy(release):
            return "The share of categories with at most so many: the released table, and the private distribution it follows."
        return "How many categories have each count: the released table, and the private distribution it follows."

    def accuracy(self, release: Release, level: str) -> list[str]:
        """What an interval means."""
        return [
            "Use value for histograms: integers whose distribution is right. Use estimate for maps and lists: the smallest "
            "expected error, with low and high. Use noisy for adding up: it is unbiased, and sd is the largest standard "
            "deviation of its noise over all possible counts.",
            f"Given the noisy counts, the true count of a category lies in its interval with a probability of {level}, "
            "on average over the categories and as far as the private distribution is right. Where a table or a stratum has fewer "
            f"than {SMALL} categories, its intervals come from the noise alone and hold with that probability for every count.",
        ]

    def rules(self, release: Release) -> list[str]:
        """Categories outside the list, and the top code."""
        top = release.manifest["description"]["upper"]
        return [
            "Categories that are not in the published list are ignored; listed ones without a row count 0.",
            f"Counts above {top} are published as {top} at most.",
        ]

    def draw(self, release: Release, ax: Axes) -> None:
        """How many categories have each count, released and private."""
        edges, released, private = _shares(release)
        places = (edges[1:] + edges[:-1]) / 2
        ax.bar(places, released, 0.9 * (edges[1] - edges[0]), color=SOFT, label=_NAMES[0])
        ax.step(places, private, where="mid", color=INK, label=_NAMES[1])
        ax.legend(frameon=False)
        ax.set_xlabel("count")
        ax.set_ylabel("share of categories")

    def svg(self, release: Release) -> str:
        """How many categories have each count, released and private, only those with at most so many if the tail is heavy."""
        if _is_heavy(release):
            return charts.cumulative(*_steps(release), _NAMES, "share of categories")
        edges, released, private = _shares(release)
        return charts.distribution(edges.tolist(), released.tolist(), private.tolist(), _NAMES)


def _shares(release: Release) -> tuple[_Floats, _Floats, _Floats]:
    """Edges of bars, with the shares of the released table and of the private distribution between them."""
    value = np.array(release.columns["value"])
    upper = int(release.manifest["description"]["upper"])
    released = np.bincount(value, minlength=upper + 1)[: upper + 1] / max(len(value), 1)
    width = -(-(upper + 1) // _BARS)  # neighbouring counts share a bar if there are many
    starts = np.arange(0, upper + 1, width)
    private = np.add.reduceat(np.array(release.manifest["distribution"], float), starts)
    return np.append(starts, starts[-1] + width) - 0.5, np.add.reduceat(released, starts), private


def _is_heavy(release: Release) -> bool:
    """Whether nearly all of the private distribution lies in the lowest tenth of a long range."""
    private = np.array(release.manifest["distribution"], float)
    return len(private) > 50 and float(private[: len(private) // 10].sum()) > 0.9 * float(private.sum())


def _steps(release: Release) -> tuple[list[int], list[float], list[float]]:
    """Counts that can be told apart on a logarithmic axis, and both cumulative shares at them."""
    upper = int(release.manifest["description"]["upper"])
    counts = np.unique(np.round(np.expm1(np.linspace(0.0, np.log1p(upper), 400))).astype(np.int64))
    value = np.sort(np.array(release.columns["value"]))
    released = np.searchsorted(value, counts, side="right") / max(len(value), 1)
    private = np.cumsum(np.array(release.manifest["distribution"], float))[counts]
    return counts.tolist(), released.tolist(), np.minimum(private / max(private[-1], 1e-300), 1.0).tolist()
