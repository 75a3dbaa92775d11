"""Best shares of ε by other errors: mean squared error of counts, total variation and Kolmogorov-Smirnov distance.

Kohli and Laskowski 2026, Appendix F: the published framework, 100 simulations a cell. Given a privatised distribution
the errors of counts are computed, and the published distribution is drawn by a multinomial for each count.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from _tables import EPSILONS, HELD_OUT, SYNTHETIC, Table, load, published_distribution
from common import save_figure, write_table
from isotone.mechanism import Progress
from isotone.published.tables.row_by_row import PUBLISHED, Rule
from isotone.tables import fixed_point
from tables_split import PUBLISHED_BEST, SHARES

COUNT = ("absolute", "squared")
DISTANCE = ("wasserstein", "variation", "kolmogorov")
PAIRS = tuple((count, distance) for count in COUNT for distance in DISTANCE)
Errors = dict[str, float]
Cell = tuple[str, float, float]


def measure(table: Table, epsilon: float, share: float, draws: int) -> Errors:
    """The mean of each error over simulations, which are the same whatever else is measured."""
    key = ((*SYNTHETIC, *HELD_OUT).index(table.name), round(1000 * epsilon), round(10_000 * share))
    rng = np.random.default_rng(key)
    size, counts = len(table.counts), np.bincount(table.counts, minlength=table.upper + 1)
    places = np.arange(table.upper + 1)
    off = np.abs(places[:, None] - places)
    total = np.zeros(5)
    for _ in range(draws):
        z, rest = published_distribution(table, epsilon, rng, share)
        matrix = fixed_point(z, rest, constructor="heuristic", selector="sandwich").matrix()
        matrix /= matrix.sum(axis=1, keepdims=True)
        change = (rng.multinomial(counts, matrix).sum(axis=0) - counts) / size
        gap = np.abs(np.cumsum(change))
        moved = counts @ (matrix * off) / size
        squared = counts @ (matrix * off**2) / size
        total += (moved.sum(), squared.sum(), gap.sum(), np.abs(change).sum() / 2, gap.max())
    return dict(zip((*COUNT, *DISTANCE), (total / draws).tolist(), strict=True))


def objective(found: Errors, count: str, distance: str) -> float:
    """The published objective, of any two errors."""
    return float(np.log(max(found[count], 1e-12)) + np.log(max(found[distance], 1e-12)))


def run(out: Path, quick: bool, progress: Progress) -> None:
    names, epsilons = (SYNTHETIC[:1], EPSILONS[8:9]) if quick else (SYNTHETIC, EPSILONS)
    shares, draws = (SHARES[::4], 4) if quick else (SHARES, 100)
    tables = {name: load(name) for name in names}
    cells = [(name, epsilon, share) for name in names for epsilon in epsilons for share in shares]
    found: dict[Cell, Errors] = {}
    for at, cell in enumerate(cells):
        progress(at / len(cells), f"{cell[0]}, ε = {cell[1]:.2f}")
        found[cell] = measure(tables[cell[0]], cell[1], cell[2], draws)
    write(out, names, epsilons, shares, found)
    progress(1.0, "done")


def write(
    out: Path,
    names: Sequence[str],
    epsilons: Sequence[float],
    shares: Sequence[float],
    found: dict[Cell, Errors],
) -> None:
    """The data and the picture of what was measured."""
    best = {
        pair: {
            (name, epsilon): min(shares, key=lambda f: objective(found[name, epsilon, f], *pair))
            for name in names
            for epsilon in epsilons
        }
        for pair in PAIRS
    }
    _write_measured(out, found)
    _write_best(out, best)
    if len(epsilons) > 3:  # a rule has three parameters
        _write_rules(out, names, best)
    _draw(out, epsilons, best)


def _write_measured(out: Path, found: dict[Cell, Errors]) -> None:
    write_table(
        out,
        "measured",
        {
            "data": [cell[0] for cell in found],
            "epsilon": [f"{cell[1]:.4g}" for cell in found],
            "share": [f"{cell[2]:.4g}" for cell in found],
            **{key: [f"{errors[key]:.6g}" for errors in found.values()] for key in (*COUNT, *DISTANCE)},
        },
    )


Best = dict[tuple[str, str], dict[tuple[str, float], float]]


def _write_best(out: Path, best: Best) -> None:
    cells = list(best[PAIRS[0]])
    write_table(
        out,
        "best_shares",
        {
            "data": [name for name, _ in cells],
            "epsilon": [f"{epsilon:.2f}" for _, epsilon in cells],
            "in_the_paper": [PUBLISHED_BEST[name][EPSILONS.index(epsilon)] for name, epsilon in cells],
            **{"_".join(pair): [best[pair][cell] for cell in cells] for pair in PAIRS},
        },
    )


def _write_rules(out: Path, names: Sequence[str], best: Best) -> None:
    """The rule of thumb fitted for each pair of errors, and how often a best share rises from one ε to the next."""
    rules = {pair: Rule.fitted([e for _, e in some], list(some.values())) for pair, some in best.items()}
    rises = {
        pair: sum(some[name, high] > some[name, low] for name in names for low, high in pairwise(EPSILONS))
        for pair, some in best.items()
    }
    write_table(
        out,
        "rules",
        {
            "count_error": [pair[0] for pair in PAIRS],
            "distribution_error": [pair[1] for pair in PAIRS],
            "floor": [f"{rules[pair].floor:.3f}" for pair in PAIRS],
            "rise": [f"{rules[pair].rise:.3f}" for pair in PAIRS],
            "decay": [f"{rules[pair].decay:.2f}" for pair in PAIRS],
            "steps_where_the_share_rises": [rises[pair] for pair in PAIRS],
            "steps": [len(names) * (len(EPSILONS) - 1) for _ in PAIRS],
        },
    )


def _draw(out: Path, epsilons: Sequence[float], best: Best) -> None:
    figure = Figure(figsize=(11, 6), layout="constrained")
    panels = figure.subplots(2, 3, sharex=True, sharey=True)
    grid = np.geomspace(EPSILONS[0], EPSILONS[-1], 200)
    for panel, pair in zip(panels.flat, PAIRS, strict=True):
        some = best[pair]
        for name in dict.fromkeys(name for name, _ in some):
            panel.plot(epsilons, [some[name, e] for e in epsilons], ".-", alpha=0.6, label=name)
        panel.plot(grid, [PUBLISHED.share(e) for e in grid], "--", color="black", label="rule in the paper")
        panel.set(xscale="log", title=" and ".join(pair))
    for panel in panels[1]:
        panel.set_xlabel("ε")
    for panel in panels[:, 0]:
        panel.set_ylabel("best share of ε")
    panels[0][0].legend(fontsize=7)
    save_figure(figure, out, "tables_split_errors")
