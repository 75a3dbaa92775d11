"""One picture of all comparisons: the ratio of the best rival to isotone, by public rules and in hindsight."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from benchmarks._rivals.comparison import Comparison

__all__ = ["draw"]

COLOURS = {"public": "#1f5fa8", "hindsight": "#d98c2b"}
LABELS = {"public": "best rival by public rules", "hindsight": "best rival in hindsight"}


def draw(found: Mapping[str, Sequence[Comparison]], path: Path) -> None:
    """A row of points for each section, one for each comparison, hollow where the population was looked at; left of 1 the best rival is better."""
    figure = Figure(figsize=(9, 1.2 + 0.7 * len(found)), layout="constrained")
    axes = figure.subplots()
    rng = np.random.default_rng(0)
    for place, each in enumerate(found.values()):
        for shift, (kind, colour) in zip((-0.16, 0.16), COLOURS.items(), strict=True):
            for seen in (False, True):
                ratios = [one.best(kind).value for one in each if one.ours.seen == seen]
                across = place + shift + rng.uniform(-0.1, 0.1, len(ratios))
                inside = "white" if seen else colour
                axes.plot(ratios, across, "o", ms=4, color=colour, mfc=inside, alpha=0.7)
    axes.axvline(1, color="#111111", lw=1)
    axes.set_xscale("log")
    axes.set_xticks(
        [0.1, 0.2, 0.5, 0.7, 1, 1.5, 2, 3, 5], ["0.1", "0.2", "0.5", "0.7", "1", "1.5", "2", "3", "5"]
    )
    axes.set_yticks(range(len(found)), list(found))
    axes.set_ylim(len(found) - 0.5, -0.5)
    axes.minorticks_off()
    axes.grid(False)
    axes.set_xlabel("error of the best rival, as a multiple of isotone's (below 1 the rival is better)")
    axes.spines[["top", "right"]].set_visible(False)
    for kind, colour in COLOURS.items():
        axes.plot([], [], "o", ms=4, color=colour, label=LABELS[kind])
    axes.plot([], [], "o", ms=4, color="#555555", mfc="white", label="populations that were looked at (◆)")
    axes.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)
    figure.savefig(path, dpi=110, metadata={"Software": None})
