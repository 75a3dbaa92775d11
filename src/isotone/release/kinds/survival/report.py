"""The report of survival: steps, band, and the numbers at risk below."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from isotone import svg as charts
from isotone.release.kinds.distribution.report import open_bands, rows_are
from isotone.release.kinds.kind import INK, SOFT, Page
from isotone.release.kinds.survival.description import Survival

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from isotone.release.result import Release

_SHOWN = 4
"""Pictures have so many groups; the table has all."""


class SurvivalPage(Page):
    """The survival curve."""

    lead: ClassVar[str] = "How long it takes until an event: the share that lasts longer than each time."
    few_rows: ClassVar[int | None] = 21

    def caption(self, release: Release, level: str) -> str:
        """Steps, band and numbers."""
        return (
            f"Survival as estimated from the noisy counts, shaded: {level} band for the curve of these records. Below: about how many "
            "are still at risk."
        )

    def shown(self, release: Release) -> dict[str, tuple[Any, ...]]:
        """The columns, with the name of the time."""
        names = {"x": _description(release)["time"], "value": "survival", "at_risk": "at risk"}
        columns = {names.get(name, name): column for name, column in release.columns.items()}
        return {**columns, "at risk": tuple(round(left) for left in columns["at risk"])}

    def accuracy(self, release: Release, level: str) -> list[str]:
        """What the band means, and how exactly times are known."""
        return [
            f"{rows_are(release, Survival)} Between two of them the curve lies between the lower end after and the upper end before.",
            f"With a probability of at least {level}, in each group for itself, the curves of Kaplan and Meier and of Nelson and Aalen for these "
            "records lie inside, at all ends at once. The band allows for the noise alone: it says nothing about people who were not followed.",
            *open_bands(release),
        ]

    def rules(self, release: Release) -> list[str]:
        """What counts as an event, and what is left out."""
        stated = _description(release)
        words = f"says {', '.join(stated['yes'])}" if stated["yes"] else "is 1"
        lines = [
            f"There was an event where {stated['event']} {words}. Rows without a time, or without a readable {stated['event']}, are left out. "
            f"Times below 0 are taken for 0, and who lasts longer than {stated['horizon']} is censored there."
        ]
        if stated["by"] is not None:
            lines.append(f"Rows whose {next(iter(stated['by']))} is not listed are left out.")
        return lines

    def draw(self, release: Release, ax: Axes) -> None:
        """The steps of each group with their band, and numbers at risk below the axis."""
        groups, horizon = _groups(release), float(_description(release)["horizon"])
        marks = charts.ticks(0.0, horizon)
        for place, (name, xs, ys, band) in enumerate(groups):
            colour = INK if len(groups) == 1 else f"C{place}"
            ax.fill_between(xs, *band, color=SOFT if len(groups) == 1 else colour, alpha=0.35, linewidth=0)
            ax.plot(xs, ys, color=colour, linewidth=2, label=name)
            for mark, number in zip(marks, _at_risk(release, name, marks), strict=True):
                ax.annotate(
                    number,
                    (mark, 0),
                    xycoords=("data", "axes fraction"),
                    xytext=(0, -40 - 12 * place),
                    textcoords="offset points",
                    ha="center",
                    color=colour,
                    fontsize=8,
                    annotation_clip=False,
                )
        ax.set_xticks(marks)
        ax.set_xlim(0, horizon)
        ax.set_ylim(0, 1)
        ax.set_xlabel(str(_description(release)["time"]), loc="right", labelpad=-2)
        ax.set_ylabel("survival")
        if len(groups) > 1:
            ax.legend(frameon=False)
        ax.grid(alpha=0.3)

    def svg(self, release: Release) -> str:
        """The same picture."""
        groups = _groups(release)
        marks = charts.ticks(0.0, float(_description(release)["horizon"]))
        below = [(name or "at risk", _at_risk(release, name, marks)) for name, *_ in groups]
        labels = str(_description(release)["time"]), "survival"
        return charts.curves(groups, (0.0, 1.0), labels, (marks, below))


def _description(release: Release) -> dict[str, Any]:
    return release.manifest["description"]


def _rows(release: Release, name: str) -> dict[str, list[float]]:
    """The columns of one group."""
    columns = release.columns
    rows = [at for at, group in enumerate(columns.get("group", ("",) * len(columns["x"]))) if group == name]
    return {key: [float(column[at]) for at in rows] for key, column in columns.items() if key != "group"}


def _groups(release: Release) -> list[tuple[str, list[float], list[float], tuple[list[float], list[float]]]]:
    """The corners of the steps and of their band by group. A step has the value of its end, and the upper end of its beginning."""
    names = list(dict.fromkeys(release.columns.get("group", ("",))))[:_SHOWN]
    result: list[Any] = []
    for name in map(str, names):
        rows = _rows(release, name)
        xs = [0.0, *(x for x in rows["x"] for _ in (0, 1))]
        ys = [1.0, *(y for pair in zip([1.0, *rows["value"]], rows["value"], strict=False) for y in pair)]
        low = [y for y in rows["low"] for _ in (0, 1)]
        high = [1.0, *(y for pair in zip([1.0, *rows["high"]], rows["high"], strict=False) for y in pair)]
        result.append((name, xs, ys, ([*low, low[-1]], high)))
    return result


def _at_risk(release: Release, name: str, times: list[float]) -> list[str]:
    """About how many last longer than each time, in words: all at the beginning, then those at the end of the bin before."""
    rows = _rows(release, name)
    first = release.at_risk(0, group=name or None).value or 0.0
    numbers = []
    for time in times:
        before = [left for x, left in zip(rows["x"], rows["at_risk"], strict=True) if x <= time]
        numbers.append(f"{max(round(before[-1] if before else first), 0):,}")
    return numbers
