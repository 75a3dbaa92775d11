"""Running time against the number of counts: every constructor, from linear programs to the closed form."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from _tables import Table, published_distribution, top_coded_homicides
from common import save_figure, write_table
from isotone.mechanism import Progress
from isotone.published.tables.lp import full_program
from isotone.tables import TwoStageMechanism, fixed_point, staircase, truncated_geometric, unfixed_optimum
from isotone.tables.matrices.geometric import loss_matrix

EPSILON = round(math.log(2), 6)
Method = Callable[[Table, np.random.Generator], object]


def program(solver: str) -> Method:
    def publish(table: Table, rng: np.random.Generator) -> object:
        z, rest = published_distribution(table, EPSILON, rng)
        p = np.asarray(z.probabilities).view(np.ndarray)
        cost = p[:, None] * loss_matrix("absolute", len(p))
        matrix = np.maximum(full_program(p, p, cost, float(rest), solver), 0)  # pyright: ignore[reportArgumentType]
        cumulative = np.cumsum(matrix, axis=1)
        cumulative /= cumulative[:, -1:]
        draws = rng.random(len(table.counts))
        return [np.searchsorted(cumulative[c], u) for c, u in zip(table.counts, draws, strict=True)]

    return publish


def heuristic(table: Table, rng: np.random.Generator) -> object:
    z, rest = published_distribution(table, EPSILON, rng)
    return fixed_point(z, rest, constructor="heuristic", selector="sandwich").simulate(table.counts, rng)


def closed_form(table: Table, rng: np.random.Generator) -> object:
    z, rest = published_distribution(table, EPSILON, rng)
    return fixed_point(z, rest).simulate(table.counts, rng)


def unfixed(table: Table, rng: np.random.Generator) -> object:
    z, rest = published_distribution(table, EPSILON, rng)
    return unfixed_optimum(z, rest).simulate(table.counts, rng)


def geometric(table: Table, rng: np.random.Generator) -> object:
    return truncated_geometric(table.upper + 1, EPSILON).simulate(table.counts, rng)


def stairs(table: Table, rng: np.random.Generator) -> object:
    return staircase(table.upper + 1, EPSILON).simulate(table.counts, rng)


def whole(table: Table, rng: np.random.Generator) -> object:
    return TwoStageMechanism(table.upper, EPSILON).simulate(table.counts, rng)


METHODS: dict[str, tuple[Method, str, str]] = {
    "linear program, simplex": (program("simplex"), "#e377c2", "-"),
    "linear program, interior point": (program("interior-point"), "#ff7f0e", "-"),
    "heuristic (sandwich)": (heuristic, "#8c564b", "-"),
    "closed form (ours)": (closed_form, "#1f77b4", "-"),
    "whole table (ours)": (whole, "#d62728", "-"),
    "two-stage unfixed optimum": (unfixed, "#2ca02c", "--"),
    "truncated geometric": (geometric, "#7f7f7f", "--"),
    "staircase": (stairs, "#bcbd22", ":"),
}


def seconds(method: Method, table: Table, rounds: int) -> float:
    """The least of a few timings: what the work takes when nothing else runs."""
    taken: list[float] = []
    for turn in range(rounds):
        rng = np.random.default_rng(turn)
        start = time.perf_counter()
        method(table, rng)
        taken.append(time.perf_counter() - start)
        if taken[-1] > 1:
            break
    return min(taken)


def run(out: Path, quick: bool, progress: Progress) -> None:
    sizes = (5, 10) if quick else (5, 10, 20, 40, 80, 160, 320, 640, 1000, 2000, 5000, 10_000)
    patience = 0.5 if quick else 30.0
    lines: list[tuple[str, int, float]] = []
    for at, (name, (method, _, _)) in enumerate(METHODS.items()):
        method(top_coded_homicides(4), np.random.default_rng(0))  # compile
        for step, n in enumerate(sizes):
            progress((at + step / len(sizes)) / len(METHODS), f"{name}, n = {n}")
            taken = seconds(method, top_coded_homicides(n - 1), 1 if quick else 5)
            lines.append((name, n, taken))
            if taken * 8 > patience:  # the next size would take too long
                break
    write_table(
        out,
        "seconds",
        {
            "method": [line[0] for line in lines],
            "n": [line[1] for line in lines],
            "seconds": [f"{line[2]:.3g}" for line in lines],
        },
    )
    _draw(out, lines)
    progress(1.0, "done")


def _draw(out: Path, lines: list[tuple[str, int, float]]) -> None:
    figure = Figure(figsize=(7, 4.6), layout="constrained")
    panel = figure.subplots()
    for name, (_, colour, style) in METHODS.items():
        points = [(n, taken) for method, n, taken in lines if method == name]
        panel.plot(*zip(*points, strict=True), style, marker=".", color=colour, label=name)
    panel.plot(
        [2000],
        [10],
        "*",
        markersize=12,
        color="#8c564b",
        mec="black",
        label="heuristic in the paper, at most",
    )
    panel.set(
        xscale="log",
        yscale="log",
        xlabel="n, the number of counts",
        ylabel="seconds for the whole table",
        title="homicides in 3,136 counties, top-coded at n-1, ε = ln 2",
    )
    panel.legend(fontsize=8)
    save_figure(figure, out, "tables_running_time")
