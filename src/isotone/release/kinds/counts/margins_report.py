"""The report of a breakdown, with small charts, one for each margin, for the element that a reader picks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from isotone.release.kinds.counts.asked import labels_of
from isotone.release.kinds.counts.report import CountsPage
from isotone.release.kinds.page import draw_bars
from isotone.svg import charts

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from isotone.release.result import Release

__all__ = ["BreakdownPage"]

Ints = NDArray[np.int64]

_MOST_BARS, _MOST_ELEMENTS, _MOST_ROWS = 25, 30, 2_000

_STYLE = """<style>
.pick input { position: absolute; opacity: 0; } .pick label { display: inline-block; border: 1px solid var(--line); border-radius: 1rem; padding: .1rem .7rem; margin: .15rem; cursor: pointer; }
.pick input:checked + label { background: var(--mark); color: var(--paper); } .pick input:focus-visible + label { outline: 2px solid var(--mark); }
.pick .panel { display: none; grid-template-columns: repeat(auto-fit, minmax(20rem, 1fr)); gap: .5rem; } .pick .panel h3 { font-size: .95rem; margin: .6rem 0 0; }
@media print { .pick input, .pick label { display: none; } .pick .panel { display: grid; } }
SHOWN
</style>"""


class BreakdownPage(CountsPage):
    """Bars with intervals for every margin."""

    lead: ClassVar[str] = "How many say yes to each question, or have each item, by groups."
    most_rows: ClassVar[int | None] = _MOST_ROWS

    def caption(self, release: Release, level: str) -> str:
        """Values and intervals."""
        return (
            f"Released values with their {level} intervals, a chart for each margin. Pick a question or item above; "
            f"where a margin has more than {_MOST_BARS} cells, those with the {_MOST_BARS} largest released values are shown."
        )

    def head(self, release: Release) -> Release:
        """The first rows, to whole cells. The table shows no others."""
        size = len(release.order)
        kept = -(-_MOST_ROWS // size) * size
        return replace(release, columns={name: column[:kept] for name, column in release.columns.items()})

    def shown(self, release: Release) -> dict[str, tuple[Any, ...]]:
        """Where, in one column, and the others."""
        apart = {"margin", *map(str, _by(release))}
        where = tuple(_words(release))
        return {
            "where": where,
            **{name: column for name, column in release.columns.items() if name not in apart},
        }

    def accuracy(self, release: Release, level: str) -> list[str]:
        """Least squares, intervals, negative values, shares."""
        said = release.manifest.mechanism
        names = [" × ".join(margin) or "total" for margin in release.manifest["description"]["margins"]]
        shares = ", ".join(f"{name} {share}" for name, share in zip(names, said["shares"], strict=True))
        text = [
            f"Each interval contains the true value with a probability of at least {level}. The uncertainty shown is that "
            "of the noise alone, whose law is public; errors in the data itself are not part of it.",
            "Noise was added to whole numbers in every cell of the margins that were measured. All values here are the best "
            "estimates from all of them together, so that they are no whole numbers, and cells add up to their margins.",
            f"The share of the privacy budget that each margin had: {shares}.",
        ]
        if release.manifest.get("derived"):
            text.append(
                "The values were moved to the nearest that could be true: not negative, and following the order. "
                "This makes sums over many small cells too large. The release as drawn is in the column raw."
            )
        elif min(release.columns["value"], default=0) < 0:
            text.append(
                "Noise can make a released value negative. It is published as it is, because changing it would bias "
                "sums and averages. The true count is not negative, so intervals start at 0."
            )
        return text

    def rules(self, release: Release) -> list[str]:
        """Answers, records that break the order, and values in no list."""
        dropped = release.manifest["description"]["unlisted"] == "drop"
        lost = "is left out of all margins" if dropped else "is counted as other in all margins"
        return [
            *super().rules(release),
            f"A row with a value that is in no list, or with none, {lost}.",
            "Rows of one unit that are in different cells are counted in the first of them in the public sequence.",
        ]

    def size(self, release: Release) -> tuple[float, float]:
        """Room for the bars of the first element."""
        return 7.5, 6.0

    def draw(self, release: Release, ax: Axes) -> None:
        """The largest cells of the first element, in all margins."""
        first = str(release.order.elements[0])
        own = [row for row, x in enumerate(release.columns["element"]) if x == first]
        rows = _largest(np.array(release.columns["value"], dtype=np.float64), np.array(own, np.int64))
        names = [f"{margin}: {name}" if name != "all" else name for margin, name in _named(release, rows)]
        draw_bars(ax, names, release.columns, rows, f"{first}: released count, with interval")

    def svg(self, release: Release) -> str:
        """Small charts for each element, of which a reader picks one. It works without any script."""
        words = labels_of(release.manifest)
        elements = [str(x) for x in release.order.elements][:_MOST_ELEMENTS]
        shown = " ".join(
            f".pick #pick{i}:checked ~ .panel{i} {{ display: grid; }}" for i in range(len(elements))
        )
        picks = "".join(
            f'<input type="radio" name="pick" id="pick{i}"{" checked" * (i == 0)}>'
            f'<label for="pick{i}">{escape(words[x])}</label>'
            for i, x in enumerate(elements)
        )
        rows, values = _rows(release), np.array(release.columns["value"], dtype=np.float64)
        panels = "".join(
            f'<div class="panel panel{i}">{_panel(release, values, x, rows[x])}</div>'
            for i, x in enumerate(elements)
        )
        return f'{_STYLE.replace("SHOWN", shown)}<div class="pick">{picks}{panels}</div>'


def _panel(release: Release, values: NDArray[np.float64], element: str, margins: dict[str, Ints]) -> str:
    """The charts of one element, one for each margin."""
    parts: list[str] = []
    words = labels_of(release.manifest)
    for margin, found in margins.items():
        rows = _largest(values, found)
        names = [name for _, name in _named(release, rows)]
        value, low, high = (
            [float(release.columns[key][i]) for i in rows] for key in ("value", "low", "high")
        )
        title = f"{words[element]}: {margin}"
        parts.append(
            f"<div><h3>{escape(title)}</h3>{charts.bars(names, value, low, high, 'released count')}</div>"
        )
    return "".join(parts)


def _rows(release: Release) -> dict[str, dict[str, Ints]]:
    """The rows of each element in each margin, at once. A breakdown may have millions."""
    margins, elements = (list(dict.fromkeys(release.columns[name])) for name in ("margin", "element"))
    place = _places(release, "margin", margins) * len(elements) + _places(release, "element", elements)
    sequence = np.argsort(place, kind="stable")
    ends = np.cumsum(np.bincount(place, minlength=len(margins) * len(elements)))
    parts = iter(np.split(sequence, ends[:-1]))
    found: dict[str, dict[str, Ints]] = {element: {} for element in elements}
    for margin in margins:
        for element in elements:
            rows = next(parts)
            if len(rows):
                found[element][margin] = rows
    return found


def _places(release: Release, name: str, words: list[str]) -> Ints:
    """The place of the word of each row in a list."""
    known = {word: place for place, word in enumerate(words)}
    column = release.columns[name]
    return np.fromiter(map(known.__getitem__, column), np.int64, len(column))


def _largest(values: NDArray[np.float64], rows: Ints) -> list[int]:
    """All rows in their sequence, or those of the largest values if there are many."""
    if len(rows) <= _MOST_BARS:
        return rows.tolist()
    return rows[np.argsort(-values[rows], kind="stable")[:_MOST_BARS]].tolist()


def _named(release: Release, rows: list[int]) -> list[tuple[str, str]]:
    """The margin of each of some rows, and what it is about."""
    columns = {name: tuple(column[row] for row in rows) for name, column in release.columns.items()}
    return list(zip(columns["margin"], _words(replace(release, columns=columns)), strict=True))


def _words(release: Release) -> Iterator[str]:
    """What each row is about, in words."""
    by = [release.columns[name] for name in _by(release)]
    return (", ".join(word for word in map(str, words) if word) or "all" for words in zip(*by, strict=True))


def _by(release: Release) -> list[str]:
    """The names of the attributes."""
    return [str(name) for name, _ in release.manifest["description"]["by"]]
