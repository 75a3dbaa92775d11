"""The report of a distribution."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from isotone import svg as charts
from isotone.release.kinds.distribution.description import Distribution, LineDescription
from isotone.release.kinds.kind import INK, SOFT, Page
from isotone.release.manifest import guarantee_from

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from isotone.release.result import Release

_SHARE = "share at or below"
_BANDS = {
    "records": "the share of these records at or below each end lies inside, at all ends at once. It allows for the noise alone: it says nothing "
    "about people who were not asked.",
    "population": "the share of the population at or below each end lies inside, at all ends at once, if the records are independent draws "
    "from it, one for each of those protected. It allows for the noise and for the sample being a sample.",
}
_REACHED = 0.99
_SHOWN = 4
"""Pictures have so many groups; the table has all."""


class DistributionPage(Page):
    """The distribution function."""

    lead: ClassVar[str] = "How a number is distributed: the share of records at or below each value."
    few_rows: ClassVar[int | None] = 21

    def caption(self, release: Release, level: str) -> str:
        """The line and its band."""
        kind = _description(release)["band"]
        words = "The share of records at or below each value, as estimated from the noisy counts."
        if _end(release) < float(max(release.columns["x"])):
            words += " The picture ends where 99 % are reached; the table goes on."
        return words if kind == "none" else f"{words} Shaded: {level} band for the {kind}."

    def shown(self, release: Release) -> dict[str, tuple[Any, ...]]:
        """The columns, with the name of the number."""
        names = {"x": f"{_description(release)['column']} up to", "value": "share"}
        return {names.get(name, name): column for name, column in release.columns.items()}

    def accuracy(self, release: Release, level: str) -> list[str]:
        """What the band means, and how exactly values are known."""
        band = _description(release)["band"]
        lines = [
            f"{rows_are(release, Distribution)} Between two of them the line is an estimate, and the share lies between the lower end before "
            "and the upper end after."
        ]
        if band != "none":
            lines.append(f"With a probability of at least {level}, in each group for itself, {_BANDS[band]}")
        return lines + open_bands(release)

    def rules(self, release: Release) -> list[str]:
        """Limits, missing values, and what shares are of."""
        stated = _description(release)
        low, high = stated["bounds"]
        lines = [
            f"Values below {low} or above {high} count as {low} or {high}, so all statements are about values moved there. Rows without a number are "
            "left out: shares are of the records that have one."
        ]
        if stated["by"] is not None:
            lines.append(f"Rows whose {next(iter(stated['by']))} is not listed are left out.")
        return lines

    def draw(self, release: Release, ax: Axes) -> None:
        """The line of each group, and the band of one."""
        parts = _parts(release)
        for place, (name, (xs, ys, band)) in enumerate(parts.items()):
            colour = INK if len(parts) == 1 else f"C{place}"
            if band is not None:
                ax.fill_between(xs, *band, color=SOFT if len(parts) == 1 else colour, alpha=0.35, linewidth=0)
            ax.plot(xs, ys, color=colour, linewidth=2, label=name)
        ax.set_xlabel(str(_description(release)["column"]))
        ax.set_ylabel(_SHARE)
        ax.set_ylim(0, 1)
        if _description(release)["grid"] == "log":
            ax.set_xscale("log")
        if len(parts) > 1:
            ax.legend(frameon=False)
        ax.grid(alpha=0.3)

    def svg(self, release: Release) -> str:
        """The same picture."""
        parts = list(_parts(release).items())
        labels = str(_description(release)["column"]), _SHARE
        if len(parts) == 1:
            xs, ys, band = parts[0][1]
            return charts.curve(xs, ys, (0.0, 1.0), labels, band)
        return charts.curves([(name, xs, ys, band) for name, (xs, ys, band) in parts], (0.0, 1.0), labels)


def rows_are(release: Release, described: type[LineDescription]) -> str:
    """What the bins are, and whether the records had a say. Public numbers tell: the noisy number of records, or a public one."""
    manifest = release.manifest
    mechanism = described.from_manifest(manifest, release.columns).mechanism(
        guarantee_from(manifest["guarantee"])
    )
    rules = [mechanism.rule(line["number"]) for line in manifest["lines"]]
    kinds = [rule.halves for rule in rules]
    if all(kinds):
        return "Rows are the ends of bins that were found privately: narrow where there are many records."
    public = (
        "each step of the public grid"
        if all(rule.single for rule in rules)
        else "public: even parts or each step of the grid"
    )
    if not any(kinds):
        return f"Rows are the ends of bins. The records had no say in them: they are {public}."
    return "Rows are the ends of bins: found privately, narrow where there are many records, in groups with enough of them, and public in the others."


def open_bands(release: Release) -> list[str]:
    """Which groups have a band from 0 to 1, and why."""
    columns = release.columns
    if "low" not in columns:
        return []
    groups = columns.get("group", ("",) * len(columns["x"]))
    known: dict[str, bool] = {}
    last = max(columns["x"])
    for name, x, low, high in zip(groups, columns["x"], columns["low"], columns["high"], strict=True):
        known[name] = known.get(name, False) or (x != last and (low > 0 or high < 1))
    names = [name for name, some in known.items() if not some]
    where = f" of {', '.join(names)}" if any(names) else ""
    why = f"The band{where} is from 0 to 1: beside the noise there are too few records to say anything about shares, or none."
    return [why] if names else []


def _description(release: Release) -> dict[str, Any]:
    return release.manifest["description"]


def _end(release: Release) -> float:
    """Where the picture ends: where all lines have reached 99 %, if that is before the middle of an even grid."""
    xs, shares = (np.array(release.columns[name], np.float64) for name in ("x", "value"))
    last = float(xs.max())
    below = xs[shares < _REACHED].max(initial=-np.inf)
    reached = float(xs[xs > below].min(initial=last))
    start = float(Fraction(_description(release)["bounds"][0]))
    return (
        reached if reached - start < (last - start) / 2 and _description(release)["grid"] != "log" else last
    )


def _parts(
    release: Release,
) -> dict[str, tuple[list[float], list[float], tuple[list[float], list[float]] | None]]:
    """Corners of the line and of the band by group, from the low end of the grid on."""
    columns, stated = release.columns, _description(release)
    groups = columns.get("group", ("",) * len(columns["x"]))
    start = float(Fraction(stated["bounds"][0]))
    names = list(dict.fromkeys(groups))[:_SHOWN]
    end = _end(release)
    result: dict[str, Any] = {}
    for name in names:
        rows = [at for at, group in enumerate(groups) if group == name]
        rows = [at for at in rows if float(columns["x"][at]) <= end]
        xs, ys = ([float(columns[column][at]) for at in rows] for column in ("x", "value"))
        band = None
        if "low" in columns:
            low, high = ([float(columns[column][at]) for at in rows] for column in ("low", "high"))
            band = ([0.0, *low], [high[0], *high])
        result[str(name)] = ([min(start, xs[0]), *xs], [0.0, *ys], band)
    return result
