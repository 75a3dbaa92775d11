"""The report of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from isotone.release.kinds.page import INK, SOFT, Page

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from isotone.release.result import Release

__all__ = ["TablePage"]

_BARS = 400  # of a distribution: more would not be told apart


class TablePage(Page):
    """The distribution of the counts."""

    lead: ClassVar[str] = "One count for each category, made so that the distribution of counts survives."
    typical_error: ClassVar[str] = "typical error of a value, estimated"

    def caption(self, level: str) -> str:
        """Both distributions."""
        return "How many categories have each count: the released table, and the private distribution it follows."

    def accuracy(self, release: Release, level: str) -> list[str]:
        """What an interval means."""
        return [
            f"Given the noisy counts, the true count of a category lies in its interval with a probability of {level}, "
            "on average over the categories and as far as the private distribution is right."
        ]

    def rules(self, release: Release) -> list[str]:
        """Categories outside the list, and the top code."""
        top = release.manifest["rules"]["top code"]
        return [
            "Categories that are not in the published list are ignored; listed ones without a row count 0.",
            f"Counts above {top} are published as {top} at most.",
        ]

    def draw(self, release: Release, ax: Axes) -> None:
        """How many categories have each count, released and private."""
        value = np.array(release.columns["value"])
        upper = int(release.manifest["upper"])
        released = np.bincount(value, minlength=upper + 1)[: upper + 1] / max(len(value), 1)
        starts = np.arange(
            0, upper + 1, -(-(upper + 1) // _BARS)
        )  # neighbouring counts share a bar if there are many
        width = int(starts[1]) if len(starts) > 1 else 1
        places = starts + (width - 1) / 2
        ax.bar(places, np.add.reduceat(released, starts), 0.9 * width, color=SOFT, label="released table")
        private = np.add.reduceat(np.array(release.manifest["distribution"]), starts)
        ax.step(places, private, where="mid", color=INK, label="private distribution")
        ax.legend(frameon=False)
        ax.set_xlabel("count")
        ax.set_ylabel("share of categories")
