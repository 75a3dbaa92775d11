"""Both errors of the table release, and small tables, on tuned tables and on tables seen while tuning."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from _held_out import SHAPES, held_out, real
from _tables import SYNTHETIC, Table, load, top_coded_flu
from common import add_rows, save_figure, write_table
from isotone.mechanism import Progress
from isotone.published.tables.row_by_row import even_split_table
from isotone.tables import TwoStageMechanism, truncated_geometric
from isotone.tables.smooth import many_systems
from isotone.tables.thresholds import POINTS, default_emphasis

EPSILONS = ("0.1", "0.3", "1", "2")
PRESETS = ("counts", "both", "distribution")
DRAWS = 10
FEWER = 4  # draws of ``both`` where it is not the default: it has no aim of its own
NAMES = ("estimate", "value", "distance")
SMALL_SIZES = (2, 5, 10, 20, 49)
AIMS: dict[tuple[str, str, str], tuple[float, ...]] = {
    ("tuned", "default", "estimate"): (0.73, 0.91, 0.92, 0.97),
    ("tuned", "default", "distance"): (0.09, 0.17, 0.44, 0.60),
    ("tuned", "counts", "estimate"): (0.70, 0.84, 0.92, 0.97),
    ("tuned", "distribution", "distance"): (0.09, 0.17, 0.33, 0.55),
    ("seen while choosing", "default", "estimate"): (1.0, 1.0, 1.0, 1.0),
    ("seen while choosing", "default", "distance of that of the even split"): (1.2, 1.2, 1.2, 1.2),
}
"""What was aimed at before, by group, preset and error relative to plain noise, for each ε."""


@dataclass(frozen=True)
class Found:
    """Root mean square errors, and distance of distributions."""

    estimate: float
    value: float
    distance: float


def tuned() -> list[Table]:
    """The tables of ``data/``, and five more on which constants were chosen."""
    rng = np.random.default_rng(77)
    made = {
        "poisson": (rng.poisson(4, 2000), 30),
        "zero or poisson": (np.where(rng.random(2000) < 0.6, 0, rng.poisson(12, 2000)), 50),
        "pareto": (np.floor(rng.pareto(1.2, 1500)), 100),
        "two bumps": (
            np.where(rng.random(2000) < 0.5, rng.poisson(5, 2000), rng.binomial(60, 0.7, 2000)),
            60,
        ),
    }
    g = rng.gamma(2, 12, 2000)
    made["round numbers"] = (np.where(rng.random(2000) < 0.5, np.round(g / 10) * 10, np.round(g)), 100)
    files = [load(name) for name in ("crime", "schools", *SYNTHETIC)]
    extra = [Table(name, np.minimum(c, top).astype(np.int64), top) for name, (c, top) in made.items()]
    return [*files, top_coded_flu(50), *extra]


def distance(one: NDArray[np.int64], two: NDArray[np.int64]) -> float:
    """Wasserstein-1 between two tables of one size."""
    return float(np.mean(np.abs(np.sort(one) - np.sort(two))))


def once(table: Table, epsilon: str, preset: str, seed: int) -> Found:
    """The errors of one seeded run of a preset, of plain clamped noise or of the even split."""
    rng, counts = np.random.default_rng(seed), table.counts
    if preset == "plain":
        values = np.asarray(truncated_geometric(table.upper + 1, epsilon).simulate(counts, rng))
        estimate = values
    elif preset == "even":
        values = np.asarray(even_split_table(counts, table.upper, epsilon, rng))
        estimate = values
    else:
        chosen: Any = preset
        full = TwoStageMechanism(table.upper, epsilon, chosen).simulate_in_full(counts, rng)
        values, estimate = np.asarray(full.values), full.estimates
    squares = [float(np.sqrt(np.mean((each - counts) ** 2))) for each in (estimate, values)]
    return Found(squares[0], squares[1], distance(values, counts))


def usual(table: Table, epsilon: str) -> str:
    """The point of the scale that a release takes unless told otherwise."""
    emphasis = default_emphasis(Fraction(epsilon), table.upper, len(table.counts))
    return next(name for name, point in POINTS.items() if point == emphasis)


Line = tuple[str, str, str, str, Found, Found]


def groups() -> dict[str, list[Table]]:
    """Tables on which constants were chosen, those seen while choosing, and real ones."""
    return {"tuned": tuned(), "seen while choosing": [held_out(name) for name in SHAPES], "real": real()}


def run(out: Path, quick: bool, progress: Progress) -> None:
    """Write every run, every error, the geometric means relative to plain noise, and small tables."""
    tables = {(group, t.name): t for group, some in groups().items() for t in (some[1:2] if quick else some)}
    cases = list(_cases(tables, EPSILONS[2:3] if quick else EPSILONS, 1 if quick else DRAWS))

    def make(group: str, name: str, epsilon: str, preset: str, seed: str) -> list[str]:
        progress(cases.index((group, name, epsilon, preset, seed)) / len(cases), name)
        found = once(tables[group, name], epsilon, preset, int(seed))
        return [f"{getattr(found, each):.5g}" for each in NAMES]

    keys = ("group", "table", "epsilon", "preset", "seed")
    with many_systems():
        rows = add_rows(out / "draws.csv", keys, NAMES, cases, make)
    lines = _lines(rows, tables)
    _write(out, lines)
    means = _means(out, lines)
    _aims(out, means)
    _small(out, quick)
    _picture(out, lines)
    progress(1.0, "done")


def _cases(
    tables: dict[tuple[str, str], Table], epsilons: Sequence[str], draws: int
) -> Iterator[tuple[str, str, str, str, str]]:
    """All runs, the first of every table first; four times as many where categories are few and runs differ much."""
    for seed in range(16 * draws):
        for ((group, name), table), epsilon in product(tables.items(), epsilons):
            default = usual(table, epsilon)
            many = draws * (4 if len(table.counts) < 500 and draws > 1 else 1)
            for preset in dict.fromkeys([default, *(PRESETS if group == "tuned" else ("even",)), "plain"]):
                few = min(draws, FEWER) * many // draws if preset == "both" != default else many
                if seed < (4 * many if preset == "plain" else few):
                    yield group, name, epsilon, preset, str(seed)


def _lines(rows: list[dict[str, str]], tables: dict[tuple[str, str], Table]) -> list[Line]:
    """Means over the runs of each table, ε and preset, with those of plain noise; the default once more by its name."""
    found: dict[tuple[str, str, str], dict[str, Found]] = {}
    runs: dict[tuple[str, str, str, str], list[list[float]]] = {}
    for row in rows:
        key = row["group"], row["table"], row["epsilon"], row["preset"]
        runs.setdefault(key, []).append([float(row[name]) for name in NAMES])
    for (group, table, epsilon, preset), errors in runs.items():
        found.setdefault((group, table, epsilon), {})[preset] = Found(*np.mean(errors, axis=0).tolist())
    lines: list[Line] = []
    for (group, table, epsilon), each in found.items():
        plain, default = each.pop("plain"), usual(tables[group, table], epsilon)
        named = {"default": each[default], **each}
        shown = [name for name in named if group == "tuned" or name in ("default", "even")]
        lines += [(group, table, epsilon, preset, named[preset], plain) for preset in shown]
    return lines


def _picture(out: Path, lines: list[Line]) -> None:
    """Both errors relative to plain noise, a point for every preset and ε: left and low is better."""
    figure = Figure(figsize=(8.4, 3.6), layout="constrained")
    for axis, group in zip(figure.subplots(1, 2, sharey=True), ("tuned", "seen while choosing"), strict=True):
        for preset, marker in zip(PRESETS if group == "tuned" else ("default",), "osD", strict=False):
            means: list[tuple[float, float]] = []
            for epsilon in dict.fromkeys(line[2] for line in lines):
                some = [line[4:] for line in lines if (line[0], line[2], line[3]) == (group, epsilon, preset)]
                logs = [
                    (np.log(f.estimate / p.value), np.log(max(f.distance / p.distance, 1e-9)))
                    for f, p in some
                ]
                means.append(tuple(np.exp(np.mean(logs, axis=0)).tolist()))
            axis.loglog(*zip(*means, strict=True), marker=marker, lw=0.8, label=preset)
        axis.set_title(group)
        axis.set_xlabel("error of a count, of that of plain noise")
    figure.axes[0].set_ylabel("distance of distributions, of that of plain noise")
    figure.axes[0].legend(fontsize=8)
    save_figure(figure, out, "means")


def _write(out: Path, lines: list[Line]) -> None:
    columns: dict[str, list[object]] = {
        "group": [line[0] for line in lines],
        "table": [line[1] for line in lines],
        "epsilon": [line[2] for line in lines],
        "preset": [line[3] for line in lines],
    }
    for name in NAMES:
        columns[name] = [f"{getattr(line[4], name):.5g}" for line in lines]
    for name in ("value", "distance"):
        columns[f"plain_{name}"] = [f"{getattr(line[5], name):.5g}" for line in lines]
    write_table(out, "measured", columns)


Means = dict[tuple[str, str, str], dict[str, float]]


def _means(out: Path, lines: list[Line]) -> Means:
    """Geometric means over the tables, relative to plain clamped noise at the same ε."""
    means: Means = {}
    for group, epsilon, preset in dict.fromkeys((line[0], line[2], line[3]) for line in lines):
        some = [line[4:] for line in lines if (line[0], line[2], line[3]) == (group, epsilon, preset)]
        ratios = [(f.estimate / p.value, f.value / p.value, f.distance / p.distance) for f, p in some]
        logs = np.mean(np.log(np.maximum(ratios, 1e-9)), axis=0)
        means[group, epsilon, preset] = dict(zip(NAMES, np.exp(logs).tolist(), strict=True))
    columns: dict[str, list[object]] = {
        name: [key[at] for key in means] for at, name in enumerate(("group", "epsilon", "preset"))
    }
    for name in NAMES:
        columns[name] = [f"{each[name]:.3f}" for each in means.values()]
    write_table(out, "means", columns)
    return means


def _aims(out: Path, means: Means) -> None:
    """Each aim with what was found."""
    rows: list[tuple[object, ...]] = []
    for (group, preset, error), aims in AIMS.items():
        for epsilon, aim in zip(EPSILONS, aims, strict=True):
            if (group, epsilon, preset) not in means:
                continue
            mean = means[group, epsilon, preset]
            even = means.get((group, epsilon, "even"), {"distance": 1.0})
            found = mean[error] if error in mean else mean["distance"] / even["distance"]
            rows.append((group, preset, error, epsilon, aim, f"{found:.3f}", "yes" if found <= aim else "no"))
    names = ("group", "preset", "error", "epsilon", "aim", "found", "met")
    write_table(out, "aims", {name: [row[at] for row in rows] for at, name in enumerate(names)})


def _small(out: Path, quick: bool) -> None:
    """The largest ratio to plain noise over the shapes, for tables of few categories, in expectation and exactly."""
    rows: list[tuple[object, ...]] = []
    for size in SMALL_SIZES[:2] if quick else SMALL_SIZES:
        for epsilon in EPSILONS[2:3] if quick else EPSILONS:
            worst = 0.0
            for name in SHAPES:
                table = held_out(name, size)
                n, mechanism = table.upper + 1, TwoStageMechanism(table.upper, epsilon)
                ours = mechanism.measurement(size).channel()
                plain = truncated_geometric(n, epsilon).matrix()
                square = (np.arange(n) - table.counts[:, None]) ** 2
                errors = [float(np.sum(each[table.counts] * square)) for each in (ours, plain)]
                worst = max(worst, (errors[0] / errors[1]) ** 0.5)
            rows.append((size, epsilon, f"{worst:.6f}"))
    names = ("categories", "epsilon", "worst")
    write_table(out, "small", {name: [row[at] for row in rows] for at, name in enumerate(names)})
