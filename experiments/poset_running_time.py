"""Time to draw one sample of the poset mechanism on random posets (Figure 7 of the counts paper).

Published: less than half a second for any d up to 50, on two CPUs, ten random posets for each d and ten samples
each. Here one thread; the tables (built once per order) and the draws are timed apart, and the release is the exact
integer one from cryptographic bits. Times are of this machine; the picture says which it was.
"""

from __future__ import annotations

import platform
from pathlib import Path
from time import perf_counter

import numpy as np
from matplotlib.figure import Figure

from common import save_figure, write_table
from isotone.counts import PosetMechanism
from isotone.mechanism import Progress
from isotone.order import Poset

PUBLISHED_BOUND = 0.5


def run(out: Path, quick: bool, progress: Progress) -> None:
    dimensions = [5, 20] if quick else [5, 10, 15, 20, 25, 30, 35, 40, 45, 50]
    posets, samples = (2, 2) if quick else (10, 10)
    rng = np.random.default_rng(0)
    PosetMechanism(Poset.random_dag(6, rng), 1).release(np.zeros(6, dtype=np.int64))  # compiles
    columns: dict[str, list[float | str]] = {
        name: [] for name in ("d", "tables_s", "release_s", "simulated_draw_s", "slowest_tables_s", "exact")
    }
    for done, d in enumerate(dimensions):
        tables, releases, draws, exact = [], [], [], 0
        for k in range(posets):
            progress((done + k / posets) / len(dimensions), f"d = {d}")
            P = Poset.random_dag(d, rng)
            start = perf_counter()
            m = PosetMechanism(P, 1)
            tables.append(perf_counter() - start)
            exact += str(getattr(m, "method", "exact")) == "exact"
            start = perf_counter()
            for _ in range(samples):
                m.release(np.zeros(d, dtype=np.int64))
            releases.append((perf_counter() - start) / samples)
            start = perf_counter()
            m.simulate(1_000, rng)
            draws.append((perf_counter() - start) / 1_000)
        columns["d"].append(d)
        columns["tables_s"].append(float(np.mean(tables)))
        columns["release_s"].append(float(np.mean(releases)))
        columns["simulated_draw_s"].append(float(np.mean(draws)))
        columns["slowest_tables_s"].append(max(tables))
        columns["exact"].append(f"{exact} of {posets}")
    write_table(out, "poset_running_time", columns)
    figure = Figure(figsize=(6.5, 4), layout="constrained")
    axes = figure.subplots()
    axes.plot(columns["d"], columns["tables_s"], "s-", label="tables, once per order")
    axes.plot(columns["d"], columns["release_s"], "o-", label="exact integer release")
    axes.plot(columns["d"], columns["simulated_draw_s"], "^-", label="simulated draw, in batches of 1,000")
    axes.axhline(PUBLISHED_BOUND, color="C3", ls=":", label="published: below 0.5 s")
    axes.set(xlabel="dimension d", ylabel="average seconds", yscale="log")
    axes.set_title(f"Random posets, one thread, {platform.machine()}")
    figure.legend(fontsize="small", loc="outside lower center", ncols=2)
    save_figure(figure, out, "poset_running_time")
    progress(1.0, "done")
