"""How to split ε between distribution and counts: the published table of best shares, and rules fitted again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from _tables import COLOURS, EPSILONS, HELD_OUT, SYNTHETIC, Errors, Table, as_published, average, errors, load
from common import save_figure, write_table
from isotone.mechanism import Progress
from isotone.published.tables.row_by_row import (
    PUBLISHED,
    WHOLE_TABLE,
    RowByRowMechanism,
    Rule,
    even_split_table,
)

SHARES = tuple(round(0.1 * k, 1) for k in range(1, 10))
FINE = (0.03, 0.06, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5)
PUBLISHED_BEST = {  # Kohli and Laskowski 2026, Table 3
    "uniform": (0.8, 0.8, 0.4, 0.3, 0.3, 0.2, 0.2, 0.1, 0.1, 0.1, 0.1),
    "left-skewed": (0.4, 0.3, 0.3, 0.3, 0.2, 0.2, 0.1, 0.1, 0.1, 0.1, 0.1),
    "right-skewed": (0.5, 0.4, 0.3, 0.2, 0.2, 0.2, 0.2, 0.1, 0.1, 0.1, 0.1),
    "bimodal": (0.7, 0.8, 0.5, 0.4, 0.3, 0.3, 0.1, 0.1, 0.1, 0.1, 0.1),
    "zero-inflated": (0.3, 0.3, 0.3, 0.2, 0.2, 0.2, 0.1, 0.1, 0.1, 0.1, 0.1),
    "top-inflated": (0.4, 0.3, 0.3, 0.3, 0.3, 0.2, 0.2, 0.1, 0.1, 0.1, 0.1),
}

Run = Callable[[Table, float, float, np.random.Generator], NDArray[np.int64]]


def published(table: Table, epsilon: float, share: float, rng: np.random.Generator) -> NDArray[np.int64]:
    return as_published(table, epsilon, rng, split=share, constructor="heuristic")


def rows(table: Table, epsilon: float, share: float, rng: np.random.Generator) -> NDArray[np.int64]:
    return RowByRowMechanism(table.upper, epsilon, share).simulate(table.counts, rng)


def whole(table: Table, epsilon: float, share: float, rng: np.random.Generator) -> NDArray[np.int64]:
    return even_split_table(table.counts, table.upper, epsilon, rng, share)


FRAMEWORKS: dict[str, tuple[Run, tuple[float, ...]]] = {
    "published": (published, SHARES),
    "rows": (rows, (0.05, *SHARES)),
    "table": (whole, FINE),
}


DRAWS = {"published": 10, "rows": 30, "table": 3}


def measure(run: Run, table: Table, epsilon: float, share: float, draws: int, seed: int) -> Errors:
    rng = np.random.default_rng(seed)
    return average([errors(run(table, epsilon, share, rng), table) for _ in range(draws)])


def objective(found: Errors) -> float:
    """The published objective: a percent of one error is worth a percent of the other."""
    return float(np.log(max(found.count, 1e-12)) + np.log(max(found.wasserstein, 1e-12)))


def best_share(by_share: dict[float, Errors], most: float = np.inf) -> float:
    """The share with the least objective among those whose count error is at most ``most``."""
    allowed = {share: found for share, found in by_share.items() if found.count <= most} or by_share
    return min(allowed, key=lambda share: objective(allowed[share]))


def run(out: Path, quick: bool, progress: Progress) -> None:
    epsilons = EPSILONS[4:9:4] if quick else EPSILONS
    names = SYNTHETIC[:1] if quick else SYNTHETIC
    draws = {"published": 2, "rows": 2, "table": 1} if quick else DRAWS
    found: dict[str, list[tuple[str, float, float, Errors]]] = {key: [] for key in FRAMEWORKS}
    best: dict[str, list[tuple[str, float, float]]] = {key: [] for key in FRAMEWORKS}
    for at, name in enumerate(names):
        table = load(name)
        for step, epsilon in enumerate(epsilons):
            progress((at + step / len(epsilons)) / (len(names) + 1), f"{name}, ε = {epsilon:.2f}")
            most = measure(rows, table, epsilon, PUBLISHED.share(epsilon), draws["rows"], step).count
            for key, (framework, shares) in FRAMEWORKS.items():
                kept = shares[::3] if quick else shares
                by_share = {f: measure(framework, table, epsilon, f, draws[key], step) for f in kept}
                found[key] += [(name, epsilon, f, e) for f, e in by_share.items()]
                best[key].append((name, epsilon, best_share(by_share, most if key == "table" else np.inf)))
    _write_measured(out, found)
    fitted = {
        key: Rule.fitted([e for _, e, _ in rows_], [f for _, _, f in rows_]) for key, rows_ in best.items()
    }
    _write_best(out, names, epsilons, best, fitted)
    _judge(out, quick, fitted, progress)
    _draw(out, epsilons, best, fitted)
    progress(1.0, "done")


def few(out: Path) -> None:
    """The first share of every framework, of the first table and ε of a full run."""
    name, epsilon = SYNTHETIC[0], EPSILONS[0]
    found = {
        key: [(name, epsilon, share, measure(framework, load(name), epsilon, share, DRAWS[key], 0))]
        for key, (framework, (share, *_)) in FRAMEWORKS.items()
    }
    _write_measured(out, found)


def _write_measured(out: Path, found: dict[str, list[tuple[str, float, float, Errors]]]) -> None:
    lines = [(key, *line) for key, some in found.items() for line in some]
    write_table(
        out,
        "measured",
        {
            "framework": [line[0] for line in lines],
            "data": [line[1] for line in lines],
            "epsilon": [f"{line[2]:.4g}" for line in lines],
            "share": [line[3] for line in lines],
            "count_error": [f"{line[4].count:.6g}" for line in lines],
            "wasserstein": [f"{line[4].wasserstein:.6g}" for line in lines],
        },
    )


def _write_best(
    out: Path,
    names: tuple[str, ...],
    epsilons: tuple[float, ...],
    best: dict[str, list[tuple[str, float, float]]],
    fitted: dict[str, Rule],
) -> None:
    lookup = {key: {(name, epsilon): share for name, epsilon, share in some} for key, some in best.items()}
    cells = [(name, epsilon) for name in names for epsilon in epsilons]
    write_table(
        out,
        "best_shares",
        {
            "data": [name for name, _ in cells],
            "epsilon": [f"{epsilon:.2f}" for _, epsilon in cells],
            "in_the_paper": [PUBLISHED_BEST[name][EPSILONS.index(epsilon)] for name, epsilon in cells],
            **{key: [lookup[key][cell] for cell in cells] for key in best},
        },
    )
    rules = {"in the paper": PUBLISHED, **fitted, "table, in use": WHOLE_TABLE}
    write_table(
        out,
        "rules",
        {
            "rule": list(rules),
            "floor": [f"{rule.floor:.3f}" for rule in rules.values()],
            "rise": [f"{rule.rise:.3f}" for rule in rules.values()],
            "decay": [f"{rule.decay:.2f}" for rule in rules.values()],
        },
    )


def _judge(out: Path, quick: bool, fitted: dict[str, Rule], progress: Progress) -> None:
    """The rules on the tables they were not fitted to, by the objective, lower is better."""
    names, epsilons = (HELD_OUT[:1], (0.48,)) if quick else (HELD_OUT, (0.1, 0.2, 0.48, 1.0, 2.0, 5.0))
    draws = 2 if quick else 60
    lines: dict[str, list[str]] = {
        "data": [],
        "epsilon": [],
        "published_rule": [],
        "refitted_rule": [],
        "gain_of_refitting": [],
    }
    for at, name in enumerate(names):
        table = load(name)
        for step, epsilon in enumerate(epsilons):
            progress(0.9 + 0.1 * (at + step / len(epsilons)) / len(names), f"{name}, ε = {epsilon:.2f}")
            old, new = (
                objective(measure(rows, table, epsilon, rule.share(epsilon), draws, 100 + step))
                for rule in (PUBLISHED, fitted["rows"])
            )
            lines["data"].append(name)
            lines["epsilon"].append(f"{epsilon:g}")
            lines["published_rule"].append(f"{old:.3f}")
            lines["refitted_rule"].append(f"{new:.3f}")
            lines["gain_of_refitting"].append(f"{old - new:.3f}")
    write_table(out, "held_out", lines)


def _draw(
    out: Path,
    epsilons: tuple[float, ...],
    best: dict[str, list[tuple[str, float, float]]],
    fitted: dict[str, Rule],
) -> None:
    figure = Figure(figsize=(13, 4), layout="constrained")
    panels = figure.subplots(1, 3, sharey=True)
    grid = np.geomspace(epsilons[0], epsilons[-1], 200)
    titles = {
        "published": "as published: cyclic Laplace, heuristic",
        "rows": "rows: cumulative, optimal matrix",
        "table": "whole table, count error at most that of rows",
    }
    for panel, (key, some) in zip(panels, best.items(), strict=True):
        panel.plot(
            [e for _, e, _ in some],
            [f for _, _, f in some],
            "o",
            alpha=0.4,
            color=COLOURS[key],
            label="best share",
        )
        if key != "table":
            values = [f for name in {n for n, _, _ in some} for f in PUBLISHED_BEST[name]]
            at = [e for _ in {n for n, _, _ in some} for e in EPSILONS]
            panel.plot(at, values, "x", color="black", alpha=0.5, label="best share in the paper")
        panel.plot(grid, [fitted[key].share(e) for e in grid], color=COLOURS[key], label="fitted here")
        panel.plot(grid, [PUBLISHED.share(e) for e in grid], "--", color="black", label="rule in the paper")
        if key == "table":
            panel.plot(
                grid, [WHOLE_TABLE.share(e) for e in grid], ":", color=COLOURS[key], label="rule in use"
            )
        panel.set(xscale="log", title=titles[key], xlabel="ε")
        panel.legend()
    panels[0].set_ylabel("share of ε for the distribution")
    save_figure(figure, out, "tables_split")
