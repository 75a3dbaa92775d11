"""The page of the comparison and its picture, from the stored rows."""

from __future__ import annotations

import importlib
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks._rivals import costs
from benchmarks._rivals.about import CALIBRATION, COMMAND, CURVES, RIVALS
from benchmarks._rivals.comparison import EVEN, MARK, Comparison, comparisons, ratio
from benchmarks._rivals.published import CLOSE, reproduced
from benchmarks._rivals.rows import STORED, Row, read, times
from benchmarks._rivals.tables import WANTED
from isotone.mechanism import Progress

__all__ = [
    "COSTS",
    "SECTIONS",
    "body",
    "compute",
    "median",
    "write_page",
]

SECTIONS = {
    "counts": "Counts over an order",
    "hierarchies": "Hierarchies that add up",
    "breakdowns": "Breakdowns with margins",
    "tables": "Tables of counts",
    "curves": "Curves",
}
NOTES = {
    "counts": (
        "Rows of people compare after consistency, as private-pgm's model is consistent by itself; the others do not depend on data, and "
        "need no consistency to be compared. With δ every rival may also use noise that does not need it. What isotone's certificate leaves possible for Gaussian noise of any shape counts as a rival that a convex programme has found. On two chains isotone's plan takes a matrix mechanism itself, with sums across both chains. "
        "Such sums are public, and the rival may take them too: a draw, where the published search for each chain by itself is 8 % behind.",
    ),
    "breakdowns": (
        "OpenDP's contingency table measures margins and fits a graphical model of people that is never negative; isotone's margins "
        "are set to 0 where they are below, in that row. With values as `keys` OpenDP keeps a place for missing values of each attribute, to which its fit "
        "gives people; `cuts` have none. These rows are means of few draws; their number was doubled from four to eight after the first had been looked at. Best shares in place of margins alike were tried in one draw only, with no gain, and not with L-BFGS.",
    ),
    "tables": (
        "The first column is the default, which serves both the counts and their distribution. Who needs one of them only takes the end of the scale, which is a public choice: "
        "an emphasis of 0 for an estimate or a single count, of 1 for the distance of the distributions. "
        "Posterior means that are rounded come closer to single counts and give up the distribution; every way may publish them, isotone too. "
        "Who wants the distribution alone has a choice at the end of what is possible, a share of 1, at which categories go by lot; the rival with all of ε on the histogram takes it as its public rule.",
        "The table of schools was left out of an earlier version of this page, after its ratios had been seen; it is back.",
    ),
    "curves": (
        f"Held-out populations, ways and seeds are those of `{CURVES}`, at 300 to 5,000 records, with the first ten data sets of each cell of that experiment, as there are some four hundred choices to try on each; the scores are those of `{CALIBRATION}`, which this command runs. "
        "[The scores of a classifier with all ways and standard errors](calibration.md).",
    ),
}
"""What else is to be known about a section."""
COLUMN = "the emphasis for the column"
COSTS = "costs"
"""Costs are no errors, and stand apart from the comparisons."""


def compute(section: str, quick: bool, progress: Progress) -> Iterator[Row]:
    """The rows of a section, made again."""
    return importlib.import_module(f"benchmarks._rivals.{section}").rows(quick, progress)


def body(stored: Mapping[str, Sequence[Row]]) -> str:
    """The page below its title, from what is stored."""
    found = {name: comparisons(stored[name]) for name in SECTIONS if stored.get(name)}
    parts = [
        runs_of(stored),
        _INTRODUCTION,
        "![How the best rival of each comparison does](rivals.png)",
        _glance(with_emphasis(found)),
    ]
    parts += [_section(name, found[name]) for name in SECTIONS if name in found]
    if stored.get(COSTS):
        parts.append(costs.section(stored[COSTS]))
    parts.append(_rivals(stored))
    return "\n\n".join(parts)


def _glance(found: Mapping[str, Sequence[Comparison]]) -> str:
    lines = [
        "## At a glance",
        "",
        f"How many comparisons isotone wins, draws (within {100 * (EVEN - 1):.2g} per cent or two standard errors) and loses against the *best* of all rivals, "
        f"and how many are on populations that none of its constants were chosen with (those without {MARK}).",
        "",
        "| | comparisons | public rules: won, drawn, lost | in hindsight: won, drawn, lost | not seen before | of these lost in hindsight |",
        "|---|---|---|---|---|---|",
    ]
    shown = {SECTIONS.get(name, f"{SECTIONS['tables']}, {COLUMN}"): each for name, each in found.items()}
    for name, each in shown.items():
        new = [one for one in each if not one.ours.seen]
        cells = [f"{len(each)}", _tally(each, "public"), _tally(each, "hindsight"), f"{len(new)}"]
        cells.append(f"{sum(one.best('hindsight').outcome == 'lost' for one in new)}")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join([*lines, "", _extremes(shown)])


def with_emphasis(found: Mapping[str, Sequence[Comparison]]) -> dict[str, Sequence[Comparison]]:
    """The sections, and tables once more with the emphasis for whoever needs one column only."""
    shown: dict[str, Sequence[Comparison]] = {}
    for name, each in found.items():
        shown[name] = each
        if name == "tables":
            shown["tables,\none column"] = [_by_emphasis(one) for one in each]
    return shown


def _by_emphasis(one: Comparison) -> Comparison:
    """The same with the emphasis of isotone for whoever needs this error to be small."""
    return Comparison(one.rows, WANTED[one.ours.measure])


def _tally(each: Sequence[Comparison], kind: str) -> str:
    counted = Counter(one.best(kind).outcome for one in each)
    return ", ".join(str(counted[outcome]) for outcome in ("won", "drawn", "lost"))


def _section(name: str, found: Sequence[Comparison]) -> str:
    parts = [f"## {SECTIONS[name]}", f"`{COMMAND.format(name)}`", *NOTES.get(name, ())]
    if any("draws" in row.how and math.isnan(row.error) for one in found for row in one.rows):
        parts.append(_BEFORE)
    names = list(dict.fromkeys(row.rival for one in found for row in one.rows if row is not one.ours))
    lines = ["| | isotone | " + " | ".join(names) + " |", "|---|" + "---|" * (len(names) + 1)]
    for one in found:
        by_name = {row.rival: row for row in one.rows}
        cells = [f"{one.ours.public:.3g} ({one.ours.rival.split(', ', 1)[1]})"]
        cells += [_cell(by_name.get(each), one.ours) for each in names]
        lines.append(f"| {one.name} | " + " | ".join(cells) + " |")
    return "\n\n".join([*parts, "\n".join(lines)])


def _cell(row: Row | None, ours: Row) -> str:
    if row is None or row is ours:
        return ""
    if math.isnan(row.public):
        return row.how
    found = ratio(row, ours, "public")
    text = f"**{found.value:.2f} ×**{found.doubt}"
    if not math.isnan(row.hindsight):
        found = ratio(row, ours, "hindsight")
        text += f" ({found.value:.2f} ×{found.doubt}, {row.chosen})"
    return text


def _rivals(stored: Mapping[str, Sequence[Row]]) -> str:
    versions: dict[str, str] = {}
    for row in (row for name in SECTIONS for row in stored.get(name, ())):
        versions[row.rival] = row.version or versions.get(row.rival, "")
    lines = [
        "## Who they are",
        "",
        "| rival | version | its public rule | what is chosen in hindsight | command |",
        "|---|---|---|---|---|",
    ]
    for each in RIVALS:
        here = [version for name, version in versions.items() if name.startswith(each.name) and version]
        version = here[0] if here else each.version
        cells = [each.name, version, each.rule, each.hindsight, f"`{each.command}`"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _extremes(found: Mapping[str, Sequence[Comparison]]) -> str:
    """The worst and the median comparison of each section, by whatever is best in hindsight."""
    lines = [
        "Ratios of the best rival in hindsight to isotone, by section; of an even number of comparisons the median is the geometric mean of the two in the middle.",
        "",
        "| | least | median | most | the least is |",
        "|---|---|---|---|---|",
    ]
    for name, each in found.items():
        ordered = sorted(each, key=lambda one: one.best("hindsight").value)
        values = [one.best("hindsight").value for one in ordered]
        cells = [f"{value:.2f} ×" for value in (values[0], median(values), values[-1])]
        worst = ordered[0].best("hindsight")
        lines.append(f"| {name} | " + " | ".join(cells) + f" | {ordered[0].name} ({worst.rival}) |")
    return "\n".join(lines)


def median(values: Sequence[float]) -> float:
    """The middle one of ratios, or the geometric mean of the two in the middle.

    >>> median([4.0, 0.5, 1.0]), median([1.0, 4.0])
    (1.0, 2.0)
    """
    ordered = sorted(values)
    low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    return math.sqrt(low * high)


def _published() -> str:
    lines = [
        "## Whether the optimiser is any good",
        "",
        "The matrix mechanism's optimiser is our own. Before it is compared with, it has to reach errors that the authors of HDMM published, "
        f"within {100 * CLOSE:.0f} % (`benchmarks/_rivals/published.py`). They are root mean squared errors of a query at noise of variance 1, from one start with the rows stated. "
        "For Laplace noise these are the authors' own, a sixteenth of the cells. Their figures for Gaussian noise come from a convex programme, not from p-Identity, and 16 rows were tried first there, which are 4 and 5 % above them. "
        "The error in two dimensions is the square of that in one, so these two are one search. "
        "The source is [their repository](https://github.com/dpcomp-org/hdmm) with the results of their experiments; the tables of their papers were not at hand.",
        "",
        "| workload | rows | published | where | ours | ratio |",
        "|---|---|---|---|---|---|",
    ]
    for each, ours in reproduced():
        cells = [each.name, f"{each.rows}", f"{each.error:.4f}", f"`{each.source}`", f"{ours:.4f}"]
        lines.append("| " + " | ".join([*cells, f"{ours / each.error:.3f}"]) + " |")
    return "\n".join(lines)


def runs_of(stored: Mapping[str, Sequence[Row]]) -> str:
    """Whether all rows are of one run of the command, and how long it took."""
    runs = {row.run for rows in stored.values() for row in rows}
    if len(runs) != 1 or "" in runs:
        return "The rows of this page are **not** of one run: sections were made at different times, some rows within a section too (`run` in the files says which)."
    (name,) = runs
    took = times(name)
    end = f", which took {sum(took.values()) / 60:.0f} CPU minutes" if took else ""
    return f"All rows of this page are of one run, {name} (day and time, hash of the sources){end}."


def write_page(folder: Path = STORED) -> str:
    """Draw the picture and return the body of the page, with the published errors that the optimiser reaches."""
    from benchmarks._rivals.picture import draw

    stored = {section: read(section, folder) for section in (*SECTIONS, COSTS)}
    draw(
        with_emphasis({name: comparisons(stored[name]) for name in SECTIONS if stored[name]}),
        folder.parent / "rivals.png",
    )
    return f"{body(stored)}\n\n{_published()}"


_BEFORE = (
    "Ratios of draws without ± are from before draws were paired and their standard errors kept: whether those are won or lost beyond "
    "chance is not known, and they are counted as if they were exact."
)
_INTRODUCTION = (
    "Each kind of release against the best that can be had otherwise, not only against what is usual. A rival makes its own choices by "
    "a rule that reads no data; where a parameter has no such rule, the value that would have been best on this very case stands beside "
    f"it in brackets. Ratios are to isotone's error: below 1 the rival is better. Cases with {MARK} were looked at while constants of isotone were "
    "chosen, or before a rule was changed; the others were not. Of the curves that were held out, a table by population had pointed at an idea "
    "before, and losses on rare labels and heaped x at a later one; constants were chosen with other populations.\n\n"
    "Errors are exact, by formula or linear algebra, wherever that is possible; else they are means over seeded draws, and ratios have standard errors (±). "
    "In tables all ways draw their noise of counts from the same numbers. The best of several rivals, or of several values in hindsight, is chosen by the same draws, which favours the rival. "
    "isotone is used as its plan proposes, without a look at the data. Rows are kept in `docs/benchmarks/rivals/*.csv`, with how each "
    "was found. `python -m benchmarks rivals` makes all of this page again, one section at a time with the command below its heading, and goes on where it was interrupted; "
    "environments for other libraries are made below `.cache`."
)
