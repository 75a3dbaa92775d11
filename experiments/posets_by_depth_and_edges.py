"""5,000 random posets of ten elements, by depth and by number of edges (Figure 5 of the counts paper).

The published pictures have no numbers; they span depths 5 to 10 and 20 to 30 edges, and the text says "up to a 4x
reduction in error" and that both are counted on the transitive reduction. Reductions of such digraphs have 9 to
13 edges: what spans 20 to 30 is the number of arcs *before* the reduction. Both are drawn here; groups of fewer
than 100 posets are left out, as there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from _posets import simulated_ratio
from common import save_figure, write_table
from isotone.mechanism import Progress
from isotone.order import Poset
from isotone.order.building import random_dag

D = 10
PUBLISHED_SPAN = {"depth": (5, 10), "arcs": (20, 30)}


def run(out: Path, quick: bool, progress: Progress) -> None:
    posets, draws, least = (120, 100, 8) if quick else (5_000, 1_000, 100)
    rng = np.random.default_rng(0)
    columns: dict[str, list[float]] = {name: [] for name in ("depth", "covers", "arcs", "ratio")}
    for k in range(posets):
        progress(k / posets, f"poset {k}")
        arcs = random_dag(D, rng)
        P = Poset(range(D), arcs.tolist())
        columns["depth"].append(P.height)
        columns["covers"].append(len(P.cover_pairs))
        columns["arcs"].append(len(arcs))
        columns["ratio"].append(simulated_ratio(P, draws, rng))
    grouped = {name: group(columns[name], columns["ratio"], least) for name in ("depth", "covers", "arcs")}
    write_table(
        out,
        "posets_by_depth_and_edges",
        {
            "by": [name for name, rows in grouped.items() for _ in rows],
            "value": [row[0] for rows in grouped.values() for row in rows],
            "posets": [row[1] for rows in grouped.values() for row in rows],
            "mean": [row[2] for rows in grouped.values() for row in rows],
            "standard_error": [row[3] for rows in grouped.values() for row in rows],
        },
    )
    figure = Figure(figsize=(11, 3.8), layout="constrained")
    labels = {"depth": "depth", "covers": "edges of the transitive reduction", "arcs": "arcs of the digraph"}
    for axes, name in zip(figure.subplots(1, 3, sharey=True), grouped, strict=True):
        draw(axes, name, labels[name], grouped[name])
    save_figure(figure, out, "posets_by_depth_and_edges")
    progress(1.0, "done")


def group(
    keys: Sequence[float], ratios: Sequence[float], least: int
) -> list[tuple[float, int, float, float]]:
    """For each key with enough posets: the key, their number, mean ratio and its standard error."""
    groups: dict[float, list[float]] = defaultdict(list)
    for key, ratio in zip(keys, ratios, strict=True):
        groups[key].append(ratio)
    return [
        (key, len(values), float(np.mean(values)), float(np.std(values) / np.sqrt(len(values))))
        for key, values in sorted(groups.items())
        if len(values) >= least
    ]


def draw(axes: Axes, name: str, label: str, rows: Sequence[tuple[float, int, float, float]]) -> None:
    """One panel: mean ratio by key, the published span and the published best."""
    axes.errorbar([r[0] for r in rows], [r[2] for r in rows], [r[3] for r in rows], fmt="o-", ms=4)
    axes.axhline(0.25, color="C3", ls=":", label="published best: 4 ×")
    if name in PUBLISHED_SPAN:
        axes.axvspan(*PUBLISHED_SPAN[name], color="C3", alpha=0.08, label="published span")
    axes.set(xlabel=label, ylim=0)
    if name == "depth":
        axes.set_ylabel("squared error over that of ℓ∞")
    axes.legend(loc="lower left")
