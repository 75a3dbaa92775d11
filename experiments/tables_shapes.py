"""The whole table on thirty shapes: both errors against row by row and the published framework."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from _tables import HELD_OUT, SYNTHETIC, Table, as_published, average, errors, load, top_coded_flu
from common import save_figure, write_table
from isotone.mechanism import Progress
from isotone.published.tables.row_by_row import RowByRowMechanism
from isotone.tables import TwoStageMechanism
from isotone.tables.smooth import many_systems

EPSILONS = (0.1, 0.48, 1.0, 5.0)
DRAWS = 15


def shapes() -> dict[str, Table]:
    rng = np.random.default_rng(5)
    gamma = rng.gamma(3, 12, 5000)

    def table(name: str, counts: np.ndarray, upper: int) -> Table:
        return Table(name, np.clip(counts, 0, upper).astype(np.int64), upper)

    found = [
        table("constant", np.full(3000, 7), 39),
        table("all at zero", np.zeros(1000), 19),
        table("all at the top", np.full(500, 19), 19),
        table("three atoms", rng.choice([3, 17, 40], 5000, p=[0.6, 0.3, 0.1]), 49),
        table("comb of 2", 2 * rng.integers(0, 25, 8000), 49),
        table("comb of 3, bell", 3 * rng.binomial(20, 0.4, 4000), 60),
        table("comb of 10", 10 * rng.integers(0, 10, 3000), 99),
        table("heaped at 10", np.where(rng.random(5000) < 0.8, 10 * np.round(gamma / 10), gamma), 99),
        table(
            "heaped at 5",
            np.where(rng.random(6000) < 0.6, 5 * np.round(rng.gamma(3, 8, 6000) / 5), rng.gamma(3, 8, 6000)),
            59,
        ),
        table(
            "bell and two spikes",
            np.where(rng.random(6000) < 0.5, rng.poisson(10, 6000), rng.choice([5, 25], 6000)),
            39,
        ),
        table("random weights", rng.choice(60, 5000, p=rng.dirichlet(np.full(60, 0.3))), 59),
        table("two far bells", rng.choice([0, 70], 4000) + rng.binomial(10, 0.5, 4000), 99),
        table(
            "one step",
            np.where(rng.random(4000) < 0.8, rng.integers(0, 10, 4000), rng.integers(10, 100, 4000)),
            99,
        ),
        table("97 % zeros", np.where(rng.random(4000) < 0.97, 0, rng.integers(1, 30, 4000)), 29),
        table("Zipf", rng.zipf(1.8, 5000) - 1, 199),
        table("wide and thin", rng.negative_binomial(2, 0.02, 2000), 499),
        table("three counts", rng.choice(3, 500, p=[0.7, 0.2, 0.1]), 2),
        table("200 categories", rng.binomial(19, 0.3, 200), 19),
        table("60 categories", rng.poisson(6, 60), 30),
        table("20 categories", rng.poisson(3, 20), 15),
        top_coded_flu(40),
    ]
    known = [load(name) for name in (*HELD_OUT, *SYNTHETIC)]
    return {t.name: t for t in (*found, *known)}


def run(out: Path, quick: bool, progress: Progress) -> None:
    tables = dict(list(shapes().items())[:2]) if quick else shapes()
    epsilons = (1.0,) if quick else EPSILONS
    draws = 2 if quick else DRAWS
    lines: list[dict[str, float | str]] = []
    for at, (name, table) in enumerate(tables.items()):
        for epsilon in epsilons:
            progress(at / len(tables), f"{name}, ε = {epsilon:g}")
            with many_systems():
                lines.append(_measure(table, epsilon, draws))
    write_table(out, "errors", {key: [line[key] for line in lines] for key in lines[0]})
    _draw(out, list(tables), epsilons, lines)
    progress(1.0, "done")


def few(out: Path) -> None:
    """One case of a full run."""
    line = _measure(shapes()["60 categories"], 1.0, DRAWS)
    write_table(out, "errors", {key: [value] for key, value in line.items()})


def _measure(table: Table, epsilon: float, draws: int) -> dict[str, float | str]:
    line: dict[str, float | str] = {"data": table.name, "categories": len(table.counts), "n": table.upper + 1}
    line["epsilon"] = epsilon
    ways = {
        "published": lambda rng: as_published(table, epsilon, rng),
        "rows": lambda rng: RowByRowMechanism(table.upper, epsilon).simulate(table.counts, rng),
        "auto": lambda rng: TwoStageMechanism(table.upper, epsilon).simulate(table.counts, rng),
    }
    for way, publish in ways.items():
        # few categories: what a single run says is mostly chance
        rng, times = np.random.default_rng(7), draws * (4 if len(table.counts) < 300 else 1)
        found = average([errors(publish(rng), table) for _ in range(times)])
        line[f"{way}_count"], line[f"{way}_wasserstein"] = f"{found.count:.4g}", f"{found.wasserstein:.4g}"
    return line


def _draw(
    out: Path, names: list[str], epsilons: tuple[float, ...], lines: list[dict[str, float | str]]
) -> None:
    figure = Figure(figsize=(9, 0.32 * len(names) + 1.5), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    by_key = {(line["data"], line["epsilon"]): line for line in lines}
    for panel, error in zip(panels, ("count", "wasserstein"), strict=True):
        ratio = np.array(
            [
                [
                    (float(by_key[n, e][f"auto_{error}"]) + 1e-9)
                    / (float(by_key[n, e][f"rows_{error}"]) + 1e-9)
                    for e in epsilons
                ]
                for n in names
            ]
        )
        panel.imshow(np.clip(ratio, 0.1, 10), norm=LogNorm(0.2, 5), cmap="RdBu_r", aspect="auto")
        for i, row in enumerate(ratio):
            for j, value in enumerate(row):
                colour = "white" if value < 0.35 else "black"
                panel.text(j, i, f"{value:.2f}", ha="center", va="center", fontsize=8, color=colour)
        panel.set_xticks(range(len(epsilons)), [f"ε = {e:g}" for e in epsilons])
        panel.set_title({"count": "count error", "wasserstein": "Wasserstein-1"}[error] + ", auto / rows")
        panel.grid(visible=False)
    panels[0].set_yticks(range(len(names)), names)
    save_figure(figure, out, "tables_shapes")
