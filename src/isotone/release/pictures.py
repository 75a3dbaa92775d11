"""Pictures of a release: what people would rather see than read. Only published numbers are drawn."""

from __future__ import annotations

import io
import re
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from isotone.release.result import Release

__all__ = ["draw", "svg"]

_INK, _SOFT = "#1f4e79", "#9dbbd6"
_BARS = 400  # of a distribution: more would not be told apart
_READABLE = 60  # more elements than this are drawn as bars: no diagram of them can be read


def draw(release: Release, ax: Axes | None = None) -> Axes:
    """Draw a release on ``ax`` (a new axis unless given)."""
    if ax is None:
        import matplotlib.pyplot as plt

        _, ax = plt.subplots(figsize=_size(release), layout="constrained")
    {"counts": _counts, "table": _table, "curve": _curve}[release.kind](release, ax)
    return ax


def svg(release: Release) -> str:
    """The picture as an SVG element, the same for the same release."""
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    out = io.StringIO()
    style: dict[Any, Any] = {"svg.fonttype": "none", "svg.hashsalt": "isotone", "font.family": "sans-serif"}
    style |= {"font.sans-serif": ["DejaVu Sans"]}  # comes with matplotlib, so that every machine has it
    with mpl.rc_context():
        mpl.rcdefaults()  # a person's own settings do not change the page
        mpl.rcParams.update({**style, "text.parse_math": False})  # a dollar sign in a name is a dollar sign
        figure = Figure(figsize=_size(release), layout="constrained")
        FigureCanvasSVG(figure)
        draw(release, figure.subplots())
        figure.savefig(out, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = re.sub(r"<metadata>.*?</metadata>", "", out.getvalue(), flags=re.DOTALL)
    return text[text.index("<svg") :]


def _size(release: Release) -> tuple[float, float]:
    if release.kind == "counts" and "group" not in release.columns and len(release.order) <= _READABLE:
        P = release.order
        return max(6.0, 1.5 * P.width), 0.4 + 1.3 * P.height
    return 7.5, 4.5


def _counts(release: Release, ax: Axes) -> None:
    columns = release.columns
    P = release.order
    if "group" in columns or len(P) > _READABLE:
        _bars(release, ax)
        return
    labels: dict[Any, str] = {
        x: f"{str(x).replace('_', ' ')}\n{value:,}\n({low:,} to {high:,})"
        for x, value, low, high in zip(
            columns["element"], columns["value"], columns["low"], columns["high"], strict=True
        )
    }
    P.plot(ax, labels=labels)


def _bars(release: Release, ax: Axes) -> None:
    """Largest first; too many for a diagram."""
    value = np.array(release.columns["value"])
    names = release.columns["element"]
    if "group" in release.columns:
        names = tuple(f"{group}: {name}" for group, name in zip(release.columns["group"], names, strict=True))
    shown = np.argsort(-value, kind="stable")[:25]
    place = np.arange(len(shown))[::-1]
    half = np.array(release.columns["high"])[shown] - value[shown]
    ax.barh(place, value[shown], color=_SOFT, xerr=np.maximum(half, 0), ecolor=_INK)
    ax.set_yticks(place, [str(names[i]) for i in shown])
    ax.set_xlabel("released count, with interval" + ("" if len(shown) == len(value) else " (the 25 largest)"))


def _table(release: Release, ax: Axes) -> None:
    value = np.array(release.columns["value"])
    upper = int(release.manifest["upper"])
    released = np.bincount(value, minlength=upper + 1)[: upper + 1] / max(len(value), 1)
    starts = np.arange(
        0, upper + 1, -(-(upper + 1) // _BARS)
    )  # neighbouring counts share a bar if there are many
    width = int(starts[1]) if len(starts) > 1 else 1
    places = starts + (width - 1) / 2
    ax.bar(places, np.add.reduceat(released, starts), 0.9 * width, color=_SOFT, label="released table")
    private = np.add.reduceat(np.array(release.manifest["distribution"]), starts)
    ax.step(places, private, where="mid", color=_INK, label="private distribution")
    ax.legend(frameon=False)
    ax.set_xlabel("count")
    ax.set_ylabel("share of categories")


def _curve(release: Release, ax: Axes) -> None:
    ax.plot(release.columns["x"], release.columns["value"], color=_INK, linewidth=2)
    ax.set_xlabel(str(release.manifest["x"]))
    ax.set_ylabel(str(release.manifest["y"]))
    ax.set_ylim(*(float(Fraction(end)) for end in release.manifest["y_range"]))
    ax.grid(alpha=0.3)
