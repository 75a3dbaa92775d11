"""The report of counts over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from isotone.release.description import Answers
from isotone.release.kinds.counts.report import CountsPage
from isotone.release.kinds.kind import INK, SOFT, Page
from isotone.svg import curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from isotone.release.result import Release

LATE = (
    "Late reports count when they arrive. Corrections downwards are not shown: who was counted stays counted."
)
_MOST = 24  # pictures


class SeriesPage(CountsPage):
    """A picture with a band over time for each stage."""

    lead: ClassVar[str] = "How many have reached each stage by the end of each period."
    typical_error: ClassVar[str] = "typical error of a count"
    sequence_name: ClassVar[str] = "time, the latest first"

    def sequence(self, release: Release) -> list[tuple[int, int]]:
        """The latest period first."""
        periods = release.columns["period"]
        latest = {period: -place for place, period in enumerate(dict.fromkeys(periods))}
        return [(row, 0) for row in sorted(range(len(periods)), key=lambda row: (latest[periods[row]], row))]

    def caption(self, release: Release, level: str) -> str:
        """What bands are."""
        more = len(_lines(release)) - _MOST
        rest = f" {more} more are in release.csv." if more > 0 else ""
        planned, shown = release.manifest["description"]["periods"], release.manifest["shown"]
        words = f"Released counts over time, a picture for each stage; the band holds each count with a probability of {level}."
        words += f" Period 1 is {planned[0]}, and period {len(planned)} is {planned[-1]}."
        if shown and shown[-1] - shown[0] >= len(shown):
            words += " Of periods that were passed over nothing is known: lines and bands go on across them."
        return words + rest

    def accuracy(self, release: Release, level: str) -> list[str]:
        """Intervals, what is new, and what is planned."""
        manifest = release.manifest
        planned = manifest["description"]["periods"]
        dropped = manifest["description"]["date"] is not None
        words = [
            f"{len(manifest['shown'])} of {len(planned)} planned periods are shown: {planned[0]} to {planned[-1]} are planned, and all "
            "of them together have the guarantee above.",
            f"Each interval contains the true count with a probability of {level}. The noise of one period and of the next belong "
            "together, so that what is new since the period before (new) has an error of its own (new_sd), often far below that of "
            "two separate counts. For what is new since any earlier period ask release.difference(earlier, later).",
            "The uncertainty shown is that of the noise alone, whose law is public.",
        ]
        return [*words, "A row counts from its day on; rows without a day are left out." if dropped else LATE]

    def rules(self, release: Release) -> list[str]:
        """How rows become histories."""
        stated = release.manifest["description"]
        rules, own = stated["answers"], Answers.of(stated["answers"])
        words = [
            f"Yes is: {', '.join(rules['yes'])}. An answer that is missing or cannot be read counts as {rules['missing']}."
            if own.element is None
            else f"A row says that its unit has reached the stage in the column {own.element!r}.",
            "What a unit has reached is only added to: rows that are edited or removed change nothing that was counted.",
        ]
        if stated["date"] is None:
            words.append(
                "A row counts in the first period that was closed after it was there. Dates in it are not looked at."
            )
        if stated["order"].get("choices"):
            words.append(
                "Of stages of which a unit has at most one, the first one seen stays; of several at once the first of the published sequence."
            )
        if stated["by"]:
            words.append("The first group of a unit that was seen stays.")
        if stated["record"]:
            words.append(
                f"The histories of a unit have the keys in the column {stated['record']!r}: those seen first stay."
            )
        return words

    def size(self, release: Release) -> tuple[float, float]:
        """The usual size."""
        return Page.size(self, release)

    def draw(self, release: Release, ax: Axes) -> None:
        """A line with its band for each stage and group."""
        for number, (name, rows) in enumerate(_lines(release)[:_MOST]):
            at = [_place(release, row) for row in rows]
            low, high, value = (
                [release.columns[key][row] for row in rows] for key in ("low", "high", "value")
            )
            colour = f"C{number}" if len(_lines(release)) > 1 else INK
            ax.fill_between(at, low, high, color=colour if number else SOFT, alpha=0.25)
            ax.plot(at, value, color=colour, marker="o", ms=3, label=name)
        ax.set_xlabel("period")
        ax.set_ylabel("count")
        ax.legend()

    def svg(self, release: Release) -> str:
        """A picture for each stage and group."""
        labels, parts = self.labels(release), list[str]()
        for name, rows in _lines(release)[:_MOST]:
            value, low, high = (
                [float(release.columns[key][row]) for row in rows] for key in ("value", "low", "high")
            )
            at = [float(_place(release, row)) for row in rows]
            if len(at) == 1:
                at, value, low, high = ([at[0], at[0] + 1e-6], *(2 * part for part in (value, low, high)))
            ends, words = (0.0, max(1.0, *high)), ("period", labels.get(name, name))
            parts.append(curve(at, [max(0.0, x) for x in value], ends, words, (low, high), whole=True))
        return "".join(parts) or "<p>No period is shown yet.</p>"


def _lines(release: Release) -> list[tuple[str, list[int]]]:
    """For each stage and group its name and its rows, in the sequence of time."""
    columns, result = release.columns, dict[Any, list[int]]()
    groups = columns.get("group", ("",) * len(columns["element"]))
    for row, (group, stage) in enumerate(zip(groups, columns["element"], strict=True)):
        result.setdefault((group, stage), []).append(row)
    return [(f"{stage}, {group}" if group else stage, rows) for (group, stage), rows in result.items()]


def _place(release: Release, row: int) -> int:
    """The place of a row's period among those planned, from 1."""
    planned: list[str] = release.manifest["description"]["periods"]
    return planned.index(release.columns["period"][row]) + 1
