"""The report of counts."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from isotone import svg as charts
from isotone.counts import LaplaceMechanism
from isotone.counts.independent import IndependentMechanism
from isotone.inference import NOT_KNOWN
from isotone.order.drawing import hasse_figure
from isotone.order.layout import nested_order
from isotone.release.description import Answers
from isotone.release.kinds.counts.derived import draws_of, labels_of, questions_of
from isotone.release.kinds.kind import Page, draw_bars
from isotone.release.manifest import guarantee_from, order_from, rebuild_count_mechanism
from isotone.svg import NestedRow, nested_dots

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from isotone.release.result import Release

_MOST = 25  # bars of groups
_DOTS = 200  # names of a nested picture
_LONGEST = 80  # letters of a label in a picture
_READABLE = 30  # more elements than this are drawn as nested dots: no diagram of them can be read


_CONFLICT = {
    "first": "A record with several options of which it may have one keeps the first of them in the published sequence; "
    "a yes that needs an option and has none is taken back.",
    "drop": "A record with several options of which it may have one, or without one that it needs, is left out.",
}


class CountsPage(Page):
    """Values on a Hasse diagram with their intervals."""

    lead: ClassVar[str] = "How many say yes to each question, or have each item."
    sequence_name: ClassVar[str] = "the order"

    def sequence(self, release: Release) -> list[tuple[int, int]]:
        """Every element below the first one that it implies, in each group."""
        nested, names = nested_order(release.order), release.columns["element"]
        size = len(nested)
        if len(names) % size or [str(x) for x in release.order.elements] * (len(names) // size) != [*names]:
            return super().sequence(release)
        return [(start + x, depth) for start in range(0, len(names), size) for x, depth in nested]

    def caption(self, release: Release, level: str) -> str:
        """Values and intervals."""
        if "group" in release.columns:
            return f"Released values with their {level} intervals."
        if len(release.order) > _READABLE:
            return f"Released values (dots) and their {level} intervals (lines). What is indented implies what it stands below."
        return (
            f"Released counts with their {level} intervals, in brackets or as lines. {_diagram(release)[1]} On a line of the diagram "
            "stands the share that the lower count has in the upper one, with an interval of its own that allows for the noise alone. "
            "Where noise made that share impossible, only the interval stands there."
        ) + _joined(release)

    def accuracy(self, release: Release, level: str) -> list[str]:
        """Intervals, negative values, and Laplace noise to compare with."""
        text = [
            f"Each interval contains the true value with a probability of {level}. The uncertainty shown is that "
            "of the noise alone, whose law is public; errors in the data itself, and that it may be a sample of a larger "
            "population, are not part of it."
        ]
        text += _together(release, level)
        if min(release.columns["value"], default=0) < 0:
            text.append(
                "Noise can make a released value negative. It is published as it was drawn, because changing it would "
                "bias sums and averages. The true count is not negative, so intervals start at 0."
            )
        text += _derivation(release, level)
        other = _comparison(release)
        return text if other is None else [*text, other]

    def rules(self, release: Release) -> list[str]:
        """Answers, and records that break the order."""
        rules, description = release.manifest["description"]["answers"], release.manifest["description"]
        broken = {"close": "is completed: a yes makes all that it implies a yes", "drop": "is left out"}
        words = [
            *_questions(release),
            f"Yes is: {', '.join(rules['yes'])}. An answer that is missing or cannot be read counts as {rules['missing']}.",
            f"A record that breaks the order {broken[rules['on_violation']]}.",
        ]
        if description["order"].get("choices"):
            words.append(_CONFLICT[rules["on_conflict"]])
        recipe = draws_of(release.manifest)[0].mechanism
        if "catch_all" in recipe:
            words.append(
                f"There are {recipe['records']:,} records, as the publisher states: this number was not read off the data and has no "
                f"noise. {recipe['catch_all']} is what all others leave of it, so that a wrong number shows there alone."
            )
        waves = release.manifest.get("waves")
        if waves:
            words.append(
                f"This is one of {waves['planned']} releases that are planned. What all of them guarantee together: "
                f"{guarantee_from(waves['together'])}."
            )
        if description["max_size"]:
            words.append(
                f"A record keeps at most {description['max_size']} yeses, those nearest to the top of the order."
            )
        return words

    def size(self, release: Release) -> tuple[float, float]:
        """As large as the diagram needs."""
        P = release.order
        if "group" in release.columns or len(P) > _READABLE:
            return super().size(release)
        return max(6.0, 1.5 * P.width), 0.4 + 1.3 * P.height

    def draw(self, release: Release, ax: Axes) -> None:
        """A Hasse diagram, or bars where it could not be read."""
        columns = release.columns
        P = release.order
        if "group" in columns or len(P) > _READABLE:
            rows, names, label = _largest(release)
            draw_bars(ax, names, columns, rows, label)
            return
        words = labels_of(release.manifest)
        labels: dict[Any, str] = {
            x: f"{_short(words[x])}\n{value:,}\n({low:,} to {high:,})"
            for x, value, low, high in zip(
                columns["element"], columns["value"], columns["low"], columns["high"], strict=True
            )
        }
        P.plot(ax, labels=labels)

    def svg(self, release: Release) -> str:
        """A Hasse diagram with nested dots for narrow screens, or these alone where a diagram could not be read."""
        columns, P = release.columns, release.order
        if "group" in columns:
            rows, names, label = _largest(release)
            value, low, high = ([float(columns[key][i]) for i in rows] for key in ("value", "low", "high"))
            return charts.bars(names, value, low, high, label)
        dots = f'<div class="tall">{_nested(release)}</div>'
        if len(P) > _READABLE:
            return dots
        diagram, _ = _diagram(release)
        return f'<div class="wide">{diagram}</div><div class="narrow">{dots}</div>' if len(P) > 1 else diagram


def _diagram(release: Release) -> tuple[str, str]:
    """The Hasse diagram, and how it is read."""
    columns = release.columns
    triples = zip(columns["value"], columns["low"], columns["high"], strict=True)
    values = [f"{value:,.8g}\n({low:,}\xa0to\xa0{high:,})" for value, low, high in triples]
    labels = {x: _short(label) for x, label in labels_of(release.manifest).items()}
    title = "Hasse diagram of the released counts"
    return hasse_figure(release.order, values=values, labels=labels, edges=_edges(release), title=title)


def _together(release: Release, level: str) -> list[str]:
    """That one release has more or fewer intervals that hold than another, where that is so."""
    words = (
        f"The errors of one release go together: in one release more, or fewer, than {level} of the intervals may hold. {level} is "
        "the average over releases."
    )
    return [words] if _go_together(release) else []


def _go_together(release: Release) -> bool:
    """Whether the noise on the counts of a release is not independent, which is known without any data."""
    manifest = release.manifest
    if manifest.get("derived") or len(next(iter(release.columns.values()), ())) < 2:
        return False
    if manifest.get("measured") is not None:
        return True  # least squares mix the cells of all margins
    P = order_from(manifest["description"]["order"])
    return not isinstance(rebuild_count_mechanism(P, manifest["mechanism"]), IndependentMechanism)


def _joined(release: Release) -> str:
    """What the lines across options mean, if there are any."""
    kinds = {choice.kind for choice in release.order.choices}
    sentences = {
        "exclusive": "A dashed line joins answers of which a record has at most one.",
        "partition": "A line joins answers of which a record has exactly one, so that they add up.",
    }
    return "".join(f" {words}" for kind, words in sentences.items() if kind in kinds)


def _short(label: str) -> str:
    """A label for a picture, which breaks it at words. The table has all of it."""
    return textwrap.shorten(label, _LONGEST, placeholder=" …")


def _nested(release: Release) -> str:
    """A dot for each element, nested as the order is, for all, or the largest with what is above them."""
    columns, P = release.columns, release.order
    labels, nested = labels_of(release.manifest), nested_order(P)
    largest = sorted(range(len(P)), key=lambda i: -columns["value"][i])[:_DOTS]
    shown = {*largest} if len(P) > _DOTS else {*range(len(P))}
    rows = [
        NestedRow(
            labels[str(P.elements[i])], depth, *(float(columns[key][i]) for key in ("value", "low", "high"))
        )
        for i, depth in nested
        if i in shown
    ]
    few = "" if len(rows) == len(P) else f" (the {_DOTS} largest)"
    return nested_dots(rows, f"released count{few}")


def _questions(release: Release) -> list[str]:
    """What counts as a yes to each question that has a rule of its own."""
    manifest = release.manifest
    answers = Answers.of(manifest["description"]["answers"]).words
    return [
        f"A yes to {question.shown!r}: {question.in_words(answers)}."
        for question in questions_of(manifest).values()
        if question.has_own_rule
    ]


def _edges(release: Release) -> dict[tuple[str, str], str]:
    """The share of each count in the one above it, as it is written at the line, in brackets what is not known."""
    words = {pair: result.percent() for pair, result in release.shares().items()}
    return {pair: f"({word})" if word == NOT_KNOWN else word for pair, word in words.items()}


def _derivation(release: Release, level: str) -> list[str]:
    """What was derived, and what that changes for a reader."""
    derived = release.manifest.get("derived")
    if not derived:
        return []
    if derived["how"] == "given":
        return [
            f"The values are adjusted by a number of records that whoever derived them states as public ("
            f"{derived['records']}); the release as drawn is in the column raw. They are right if that number is, as the "
            f"rules count records. To a reader who knows it the guarantee is: {derived['promise']}."
        ]
    if derived["how"] == "consistent":
        return [
            f"The values are the nearest that could be true: not negative, and following the order. All intervals hold at "
            f"once with a probability of {level}. The release as drawn is in the column raw."
        ]
    costs = "; ".join(f"{name}: {guarantee_from(cost)}" for name, cost in derived["costs"].items())
    return [f"The values combine {len(derived['of'])} releases. What they cost, for each data set: {costs}."]


def _largest(release: Release) -> tuple[list[int], list[str], str]:
    """The rows with the largest values, their names, and what the picture shows."""
    value = np.array(release.columns["value"])
    labels = labels_of(release.manifest)
    names = [_short(labels[name]) for name in release.columns["element"]]
    if "group" in release.columns:
        names = [f"{group}: {name}" for group, name in zip(release.columns["group"], names, strict=True)]
    rows = np.argsort(-value, kind="stable")[:_MOST].tolist()
    few = "" if len(rows) == len(value) else f" (the {_MOST} largest)"
    return rows, [names[i] for i in rows], f"released count, with interval{few}"


def _comparison(release: Release) -> str | None:
    """The error of plain Laplace noise with the same guarantee, or None where it does not compare.

    Only what is known without the data: the errors of two mechanisms whose noise does not depend on it.
    """
    if release.manifest.get("derived"):
        return None
    P = order_from(release.manifest["description"]["order"])
    ours = rebuild_count_mechanism(P, release.manifest["mechanism"])
    guarantee = ours.guarantee
    if guarantee.kind != "pure":
        return None
    if type(ours) is LaplaceMechanism:
        return "This is Laplace noise."
    setting = {"contributions": ours.contributions, "max_size": ours.max_size}
    plain = LaplaceMechanism(P, guarantee.epsilon, neighbours=guarantee.neighbours, **setting)
    ratio = plain.error().rmse / max(ours.error().rmse, 1e-9)
    if ratio < 1.005:
        return None
    how = ", by simulation" if ours.error().method == "simulated" else ""
    return f"With the same budget, the typical error of Laplace noise would have been {ratio:.3g} times as large{how}."


# The report of a breakdown, with small charts, one for each margin, for the element that a reader picks.

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
        recipe = release.manifest.mechanism
        names = [" × ".join(margin) or "total" for margin in release.manifest["description"]["margins"]]
        shares = dict(zip(names, map(Fraction, recipe["shares"]), strict=True))
        text = [
            f"Each interval contains the true value with a probability of at least {level}. The uncertainty shown is that "
            "of the noise alone, whose law is public; errors in the data itself are not part of it.",
            *_together(release, level),
            "Noise was added to whole numbers in every cell of the margins that were measured. All values here are the best "
            "estimates from all of them together, so that they are no whole numbers, and cells add up to their margins.",
            _shares_in_words({name: share for name, share in shares.items() if share}),
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
        rows = _largest_rows(np.array(release.columns["value"], dtype=np.float64), np.array(own, np.int64))
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


def _shares_in_words(shares: Mapping[str, Fraction]) -> str:
    """What each margin had of the budget.

    >>> _shares_in_words({"region": Fraction(58, 625), "region × sex": Fraction(567, 625)})
    'Of the privacy budget region had 9.28 %, region × sex had 90.7 %. Margins without a share are sums of these.'
    >>> _shares_in_words({"region × sex": Fraction(1)})
    'All of the privacy budget went to region × sex. The other margins are sums of it.'
    """
    if len(shares) == 1:
        return f"All of the privacy budget went to {next(iter(shares))}. The other margins are sums of it."
    parts = ", ".join(f"{name} had {100 * float(share):.3g} %" for name, share in shares.items())
    return f"Of the privacy budget {parts}. Margins without a share are sums of these."


def _panel(release: Release, values: NDArray[np.float64], element: str, margins: dict[str, Ints]) -> str:
    """The charts of one element, one for each margin."""
    parts: list[str] = []
    words = labels_of(release.manifest)
    for margin, result in margins.items():
        rows = _largest_rows(values, result)
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
    result: dict[str, dict[str, Ints]] = {element: {} for element in elements}
    for margin in margins:
        for element in elements:
            rows = next(parts)
            if len(rows):
                result[element][margin] = rows
    return result


def _places(release: Release, name: str, words: list[str]) -> Ints:
    """The place of the word of each row in a list."""
    known = {word: place for place, word in enumerate(words)}
    column = release.columns[name]
    return np.fromiter(map(known.__getitem__, column), np.int64, len(column))


def _largest_rows(values: NDArray[np.float64], rows: Ints) -> list[int]:
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
