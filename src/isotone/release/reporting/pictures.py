"""Pictures of a release: what people would rather see than read. Only published numbers are drawn."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, Any

from isotone.release.kinds import kind_named

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from isotone.release.result import Release

__all__ = ["draw", "svg"]


def draw(release: Release, ax: Axes | None = None) -> Axes:
    """Draw a release on ``ax`` (a new axis unless given)."""
    if ax is None:
        import matplotlib.pyplot as plt

        _, ax = plt.subplots(figsize=kind_named(release.kind).page.size(release), layout="constrained")
    kind_named(release.kind).page.draw(release, ax)
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
        figure = Figure(figsize=kind_named(release.kind).page.size(release), layout="constrained")
        FigureCanvasSVG(figure)
        draw(release, figure.subplots())
        figure.savefig(out, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = re.sub(r"<metadata>.*?</metadata>", "", out.getvalue(), flags=re.DOTALL)
    return text[text.index("<svg") :]
