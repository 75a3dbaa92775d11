"""Pictures of the desk. They follow the colours of the page, and each has a table or a list beside it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from isotone.desk.figures.budget import Account
from isotone.order import Poset
from isotone.order.drawing import hasse_svg
from isotone.svg.charts import bars
from isotone.svg.elements import MARK, Axis, below, element, picture, text, wrapped

__all__ = ["budget_bar", "guessed_bars", "order_picture", "simulated_dots"]

_WIDTH, _HEIGHT, _NARROW = 720.0, 64.0, 480.0
_LARGEST = 250
"""Larger orders are not drawn while one types."""


def _plain(svg: str) -> Markup:
    """A picture without a style of its own, which the policy of the pages refuses."""
    return Markup(re.sub(r' style="[^"]*"', "", svg, count=1))


def order_picture(P: Poset, labels: Mapping[str, str]) -> Markup:
    """The diagram of an order, with its labels where there are any."""
    if len(P) > _LARGEST:
        return Markup("<p>The diagram is left out: there are more than 250 elements.</p>")
    shown = {name: label for name, label in labels.items() if name in P}
    return _plain(
        hasse_svg(
            P, labels=shown, title=f"Diagram of {len(P)} elements; an answer below implies those above it"
        )
    )


def budget_bar(account: Account) -> Markup:
    """The total as a bar, with its charges, this release and what is left."""
    parts, x, room = [], 1.0, _WIDTH - 2
    for name, share in account.shares:
        width = max(min(share, 1.0) * room, 0.0)
        ours = name == "this release"
        parts.append(
            element("rect", x=x, y=8, width=width, height=28, fill=MARK, fill_opacity=0.15 if ours else 0.6,
                    stroke=MARK, stroke_width=1.5, stroke_dasharray="4 3" if ours else "none")
        )  # fmt: skip
        label = "this" if ours else name.removeprefix("charge ")
        if width > 8.0 * len(label) + 8:
            parts.append(text(x + width / 2, 54, label, 13, text_anchor="middle"))
        x += width
    parts.append(element("rect", x=1, y=8, width=room, height=28, fill="none", stroke="currentColor"))
    return _plain(
        picture(parts, _WIDTH, _HEIGHT, f"{account.spent} spent of {account.total}, {account.left} left")
    )


def guessed_bars(rows: Sequence[Mapping[str, Any]]) -> Markup:
    """Guessed counts with the intervals that a release would have."""
    shown = rows[:60]
    guesses = [float(row["guess"]) for row in shown]
    lows = [max(guess - row["half"], 0.0) for guess, row in zip(guesses, shown, strict=True)]
    highs = [guess + row["half"] for guess, row in zip(guesses, shown, strict=True)]
    names = [str(row["label"] or row["name"]) for row in shown]
    return _plain(bars(names, guesses, lows, highs, "guessed count, with the interval of a release"))


def simulated_dots(rows: Sequence[Mapping[str, Any]], noise: NDArray[Any]) -> Markup:
    """Simulated releases of guessed counts, a dot each."""
    shown = rows[:60]
    values = np.array([float(row["guess"]) for row in shown])[:, None] + noise[:, : len(shown)].T
    low, high = float(min(values.min(), 0.0)), float(max(values.max(), 1.0))
    left, row_height, top = 210.0, 34.0, 12.0
    across = Axis(low, high, left, _NARROW - 18)
    bottom = top + row_height * len(shown)
    parts = list(below(across, bottom, top, "guessed count with simulated noise"))
    for k, row in enumerate(shown):
        y = top + row_height * (k + 0.5)
        lines = wrapped(str(row["label"] or row["name"]), (left - 14) / 13, 2)
        first = y + 4 - 7.5 * (len(lines) - 1)
        parts += [text(left - 8, first + 15 * i, line, 13, text_anchor="end") for i, line in enumerate(lines)]
        parts += [
            element("circle", cx=across.at(float(value)), cy=y, r=4, fill=MARK, fill_opacity=0.45)
            for value in values[k]
        ]
    words = f"SIMULATED releases of guessed counts: {noise.shape[0]} for each name, on an axis from {low:,.0f} to {high:,.0f}"
    return _plain(picture(parts, _NARROW, bottom + 52, words))
