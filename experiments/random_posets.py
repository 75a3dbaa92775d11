"""Poset mechanism against the cube on uniformly random digraphs of up to 40 vertices (Figure 4 of the counts paper).

The published picture has no numbers; its text says that the advantage widens with d, "increasing to over 90 %
at d = 40". Orders are drawn as there: uniform labelled acyclic digraphs (Melançon, Dutour and Bousquet-Mélou
2001), 100 for each d.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from _posets import simulated_ratio
from common import save_figure, write_table
from isotone.mechanism import Progress
from isotone.order import Poset


def run(out: Path, quick: bool, progress: Progress) -> None:
    dimensions = [5, 20, 40] if quick else [5, 10, 15, 20, 25, 30, 35, 40]
    posets, draws = (6, 200) if quick else (100, 2_000)
    rng = np.random.default_rng(0)
    columns: dict[str, list[float]] = {
        name: [] for name in ("d", "mean", "standard_error", "least", "largest")
    }
    for done, d in enumerate(dimensions):
        ratios: list[float] = []
        for k in range(posets):
            progress((done + k / posets) / len(dimensions), f"d = {d}")
            ratios.append(simulated_ratio(Poset.random_dag(d, rng), draws, rng))
        columns["d"].append(d)
        columns["mean"].append(float(np.mean(ratios)))
        columns["standard_error"].append(float(np.std(ratios, ddof=1) / np.sqrt(posets)))
        columns["least"].append(min(ratios))
        columns["largest"].append(max(ratios))
    write_table(out, "random_posets", columns)
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    axes.fill_between(columns["d"], columns["least"], columns["largest"], alpha=0.2, label="least to largest")
    axes.errorbar(
        columns["d"], columns["mean"], columns["standard_error"], fmt="o-", label="mean of 100 posets"
    )
    axes.plot([40], [0.1], "v", color="C3", ms=9, label="published: below 0.1 at d = 40")
    axes.set(xlabel="number of elements d", ylabel="squared error over that of ℓ∞", ylim=0)
    axes.set_title("Random posets")
    axes.legend()
    save_figure(figure, out, "random_posets")
    progress(1.0, "done")
