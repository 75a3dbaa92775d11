"""Distribution privatisers compared: Wasserstein-1 and Kolmogorov-Smirnov distance against the number of counts."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
from matplotlib.figure import Figure

from _tables import Table, load, top_coded_schools
from common import save_figure, write_table
from isotone.mechanism import Progress
from isotone.tables import simulate_distribution

METHODS: dict[str, tuple[str, Literal["isotonic", "clip"], str, str]] = {
    "cumulative, isotonic (ours)": ("cumulative", "isotonic", "#d62728", "-"),
    "cumulative, clipped": ("cumulative", "clip", "#d62728", ":"),
    "cyclic Laplace, clipped (published)": ("cyclic-laplace", "clip", "#8c564b", "-"),
    "cyclic Laplace, isotonic": ("cyclic-laplace", "isotonic", "#8c564b", ":"),
    "Privelet, clipped": ("privelet", "clip", "#2ca02c", "-"),
    "hierarchical, clipped": ("hierarchical", "clip", "#1f77b4", "-"),
    "Laplace, clipped": ("laplace", "clip", "#7f7f7f", "-"),
}


def distances(
    table: Table, method: str, post: Literal["isotonic", "clip"], draws: int
) -> tuple[float, float]:
    truth = np.cumsum(np.bincount(table.counts, minlength=table.upper + 1)) / len(table.counts)
    rng = np.random.default_rng(table.upper)
    found: list[tuple[float, float]] = []
    for _ in range(draws):
        z = simulate_distribution(table.counts, table.upper, 1, method, post=post, rng=rng)  # pyright: ignore[reportArgumentType]
        gap = np.abs(np.cumsum(z.probabilities.view(np.ndarray)) - truth)
        found.append((float(gap.sum()), float(gap.max())))
    wasserstein, kolmogorov = np.mean(found, axis=0)
    return float(wasserstein), float(kolmogorov)


def run(out: Path, quick: bool, progress: Progress) -> None:
    sizes = (10, 40) if quick else (5, 10, 20, 40, 81, 160, 320, 640, 1000)
    tables = [top_coded_schools(n - 1) for n in sizes] + [load("crime")]
    lines: list[tuple[str, int, str, float, float]] = []
    for at, table in enumerate(tables):
        progress(at / len(tables), f"{table.name}, n = {table.upper + 1}")
        for words, (method, post, _, _) in METHODS.items():
            wasserstein, kolmogorov = distances(table, method, post, 3 if quick else 100)
            lines.append((table.name, table.upper + 1, words, wasserstein, kolmogorov))
    write_table(
        out,
        "distances",
        {
            "data": [line[0] for line in lines],
            "n": [line[1] for line in lines],
            "privatiser": [line[2] for line in lines],
            "wasserstein": [f"{line[3]:.5g}" for line in lines],
            "kolmogorov_smirnov": [f"{line[4]:.5g}" for line in lines],
        },
    )
    _compare(out, lines)
    _draw(out, sizes, lines)
    progress(1.0, "done")


def _compare(out: Path, lines: list[tuple[str, int, str, float, float]]) -> None:
    """How much better ours is than the published one."""
    ours, theirs = "cumulative, isotonic (ours)", "cyclic Laplace, clipped (published)"
    by_key = {(data, n, words): w for data, n, words, w, _ in lines}
    keys = [(data, n) for data, n, words, _, _ in lines if words == ours]
    write_table(
        out,
        "gain_over_published",
        {
            "data": [data for data, _ in keys],
            "n": [n for _, n in keys],
            "wasserstein_ratio": [f"{by_key[(*key, theirs)] / by_key[(*key, ours)]:.2f}" for key in keys],
        },
    )


def _draw(out: Path, sizes: tuple[int, ...], lines: list[tuple[str, int, str, float, float]]) -> None:
    figure = Figure(figsize=(11, 4.2), layout="constrained")
    panels = figure.subplots(1, 2)
    for panel, (position, words) in zip(
        panels, ((3, "Wasserstein-1"), (4, "Kolmogorov-Smirnov")), strict=True
    ):
        for name, (_, _, colour, style) in METHODS.items():
            values = [line[position] for line in lines if line[0] == "schools" and line[2] == name]
            panel.plot(sizes, values, style, marker=".", color=colour, label=name)
        panel.set(xscale="log", yscale="log", xlabel="n, the number of counts", ylabel=f"{words} distance")
    panels[0].set_title("schools, top-coded at n-1, ε = 1")
    panels[1].legend(fontsize=8)
    save_figure(figure, out, "tables_privatisers")
