"""The report of counts."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from isotone.counts import LaplaceMechanism
from isotone.inference.estimates import AT_THE_LIMIT, NOT_KNOWN
from isotone.order.drawing import hasse_svg
from isotone.order.layout import nested_order
from isotone.reading.questions import Answers
from isotone.release.kinds.counts.asked import labels_of, questions_of
from isotone.release.kinds.counts.combining import draws_of
from isotone.release.kinds.page import Page, draw_bars
from isotone.release.manifest import guarantee_from, order_from
from isotone.release.recipes import rebuild_count_mechanism
from isotone.svg import charts
from isotone.svg.charts import NestedRow, nested_dots

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from isotone.release.result import Release

__all__ = ["CountsPage"]

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
            f"Released values, in brackets or as lines the {level} intervals. An answer below implies the ones above it; at the "
            "lines of the diagram stands the share of those above, with its own interval, from noise alone. "
            "Limit: the released ratio is impossible, so that none is shown."
        ) + _joined(release)

    def accuracy(self, release: Release, level: str) -> list[str]:
        """Intervals, negative values, and Laplace noise to compare with."""
        text = [
            f"Each interval contains the true value with a probability of {level}. The uncertainty shown is that "
            "of the noise alone, whose law is public; errors in the data itself, and that it may be a sample of a larger "
            "population, are not part of it."
        ]
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
        rules = release.manifest["rules"]
        broken = {"close": "is completed: a yes makes all that it implies a yes", "drop": "is left out"}
        words = [
            *_asked(release),
            f"Yes is: {', '.join(rules['yes'])}. An answer that is missing or cannot be read counts as {rules['missing']}.",
            f"A record that breaks the order {broken[rules['on_violation']]}.",
        ]
        if "on_conflict" in rules:
            words.append(_CONFLICT[rules["on_conflict"]])
        said = draws_of(release.manifest)[0].mechanism
        if "catch_all" in said:
            words.append(
                f"There are {said['records']:,} records, as the publisher states: this number was not read off the data and has no "
                f"noise. {said['catch_all']} is what all others leave of it, so that a wrong number shows there alone."
            )
        waves = release.manifest.get("waves")
        if waves:
            words.append(
                f"This is one of {waves['planned']} releases that are planned. What all of them guarantee together: "
                f"{guarantee_from(waves['together'])}."
            )
        if rules.get("max_size"):
            words.append(
                f"A record keeps at most {rules['max_size']} yeses, those nearest to the top of the order."
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
        triples = zip(columns["value"], columns["low"], columns["high"], strict=True)
        values = [f"{value:,.8g}\n({low:,}\xa0to\xa0{high:,})" for value, low, high in triples]
        labels = {x: _short(label) for x, label in labels_of(release.manifest).items()}
        title = "Hasse diagram of the released counts"
        diagram = hasse_svg(P, values=values, labels=labels, edges=_edges(release), title=title)
        return f'<div class="wide">{diagram}</div><div class="narrow">{dots}</div>' if len(P) > 1 else diagram


def _joined(release: Release) -> str:
    """What the lines across options mean, if there are any."""
    kinds = {choice.kind for choice in release.order.choices}
    said = {
        "exclusive": "A dashed line joins answers of which a record has at most one.",
        "partition": "A line joins answers of which a record has exactly one, so that they add up.",
    }
    return "".join(f" {words}" for kind, words in said.items() if kind in kinds)


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


def _asked(release: Release) -> list[str]:
    """What counts as a yes to each question that has a rule of its own."""
    manifest = release.manifest
    answers = Answers(tuple(manifest["rules"]["yes"]), missing=manifest["rules"]["missing"])
    return [
        f"A yes to {question.shown!r}: {question.in_words(answers)}."
        for question in questions_of(manifest).values()
        if question.has_own_rule
    ]


def _edges(release: Release) -> dict[tuple[str, str], str]:
    """The share of each count in the one above it, as it is written at the line, in brackets what is not known."""
    words = {pair: found.percent() for pair, found in release.shares().items()}
    # "at the limit (75 to 100)" is wider than a box
    short = {pair: word.replace(f"{AT_THE_LIMIT} (", "limit (") for pair, word in words.items()}
    return {pair: f"({word})" if word == NOT_KNOWN else word for pair, word in short.items()}


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
    P = order_from(release.manifest["order"])
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
