"""What the report says about one kind of release and draws of it. Only published numbers enter."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from isotone.release.result import Release

__all__ = ["INK", "SOFT", "Page", "draw_bars"]

INK, SOFT = "#1f4e79", "#9dbbd6"


def draw_bars(
    ax: Axes, names: Sequence[str], columns: Mapping[str, Any], rows: Sequence[int], label: str
) -> None:
    """Bars of some rows with the upper halves of their intervals, the first on top."""
    value, high = (np.array([columns[key][i] for i in rows]) for key in ("value", "high"))
    place = np.arange(len(rows))[::-1]
    ax.barh(place, value, color=SOFT, xerr=np.maximum(high - value, 0), ecolor=INK)
    ax.set_yticks(place, names)
    ax.set_xlabel(label)


class Page(ABC):
    """The words and the picture of a report. ``level`` is the confidence of the intervals in words."""

    lead: ClassVar[str]
    """What was released, in one sentence."""
    most_rows: ClassVar[int | None] = None
    """The table shows at most so many rows; None shows all."""
    few_rows: ClassVar[int | None] = None
    """Of more than twice as many rows the table shows so many, in equal steps, and folds the rest; None folds nothing."""
    typical_error: ClassVar[str] = "typical error of a value"
    """What the mean of the published errors is called."""

    sequence_name: ClassVar[str] = "the sequence of the file"
    """What the sequence of the table is called."""

    def head(self, release: Release) -> Release:
        """The release, or its first rows where the table shows no others."""
        return release

    def sequence(self, release: Release) -> list[tuple[int, int]]:
        """The rows of the table in their sequence, each with how deep it is nested."""
        return [(row, 0) for row in range(len(next(iter(release.columns.values()), ())))]

    def shown(self, release: Release) -> dict[str, tuple[Any, ...]]:
        """The columns of the table, by the headings they have there."""
        return dict(release.columns)

    def labels(self, release: Release) -> dict[str, str]:
        """What is read in place of an element, where a question has a label."""
        asked = (release.manifest["description"].get("answers") or {}).get("questions", ())
        return {entry["name"]: entry["label"] for entry in asked if entry.get("label")}

    @abstractmethod
    def caption(self, release: Release, level: str) -> str:
        """What the picture shows."""

    @abstractmethod
    def accuracy(self, release: Release, level: str) -> list[str]:
        """How accurate the release is, a paragraph each."""

    @abstractmethod
    def rules(self, release: Release) -> list[str]:
        """The declared rules by which data was read beyond those about units, a sentence each."""

    def size(self, release: Release) -> tuple[float, float]:
        """Width and height of the picture."""
        return 7.5, 4.5

    @abstractmethod
    def draw(self, release: Release, ax: Axes) -> None:
        """Draw the release."""

    @abstractmethod
    def svg(self, release: Release) -> str:
        """The same picture as SVG text, for the page."""
