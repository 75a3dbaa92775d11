"""Poset mechanism against the cube on chains of up to 50 elements (Figure 3 of the counts paper).

The published picture has no numbers; its text says "up to over an order of magnitude near d = 50". On a chain
the mechanism is Laplace noise on a histogram, so the ratio is 3/(d+2) exactly; hierarchical sums, which the
paper does not consider, are better from some length on.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from _posets import cube_error, ratio_to_cube
from common import save_figure, write_table
from isotone.counts import HierarchicalMechanism, PosetMechanism
from isotone.mechanism import Progress
from isotone.order import Poset

TRIALS = 100  # as published


def run(out: Path, quick: bool, progress: Progress) -> None:
    dimensions = [1, 2, 10, 50] if quick else [1, 2, 3, 4, *range(5, 51, 5)]
    rng = np.random.default_rng(0)
    columns: dict[str, list[float]] = {
        name: [] for name in ("d", "exact", "error()", "hundred_trials", "hierarchical")
    }
    for done, d in enumerate(dimensions):
        progress(done / len(dimensions), f"chain of {d}")
        P = Poset.chain(range(d))
        noise = np.asarray(PosetMechanism(P, 1).simulate(TRIALS, rng))
        columns["d"].append(d)
        columns["exact"].append(3 / (d + 2))
        columns["error()"].append(ratio_to_cube(P)[0])
        columns["hundred_trials"].append(float(np.mean(np.sum(noise**2, axis=1))) / cube_error(d))
        columns["hierarchical"].append(HierarchicalMechanism(P, 1).error().total / cube_error(d))
    write_table(out, "path_posets", columns)
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    axes.plot(columns["d"], columns["exact"], label="poset mechanism, exact: 3 / (d + 2)")
    axes.plot(columns["d"], columns["hundred_trials"], ".", color="C0", label="100 trials, as published")
    axes.plot(
        columns["d"], columns["hierarchical"], "--", color="C2", label="hierarchical sums, best branching"
    )
    axes.axhline(0.1, color="C3", ls=":", label="published: below 0.1 near d = 50")
    axes.set(xlabel="length of the chain d", ylabel="squared error over that of ℓ∞", yscale="log")
    axes.set_title("Chains")
    axes.legend()
    save_figure(figure, out, "path_posets")
    progress(1.0, "done")
