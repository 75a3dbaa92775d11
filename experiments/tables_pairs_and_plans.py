"""Tables with public classes, pairs of counts, Gaussian noise for several contributions, and what plans predict.

Pairs are real: how many of the twenty most needed packages a package needs, and how many of the next twenty. The table with
public classes is made: populations of places, and events in proportion to them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from _held_out import held_out, packages
from _tables import Table, load
from common import save_figure, write_table
from isotone.mechanism import Progress
from isotone.privacy.guarantee import Guarantee
from isotone.tables import GaussianTableMechanism, TwoStageMechanism, truncated_geometric
from isotone.tables.pairs import simulate_pair
from isotone.tables.plan import plan
from isotone.tables.two_stage import population_bands, table_mechanism

UPPER = 20
CONTRIBUTIONS = (1, 5, 10, 20, 50)
DELTA = "1e-6"
CLASSES = (1, 6)
GAUSSIAN = "table contributions noise estimate value distance"
Floats = NDArray[np.float64]
Rows = list[tuple[object, ...]]


def rms(found: NDArray[np.generic], truth: NDArray[np.int64]) -> float:
    """The root of the mean squared error."""
    return float(np.sqrt(np.mean((np.asarray(found, np.float64) - truth) ** 2)))


def distance(one: NDArray[Any], two: NDArray[Any]) -> float:
    """Wasserstein-1 between two tables of one size."""
    return float(np.mean(np.abs(np.sort(one) - np.sort(two))))


def run(out: Path, quick: bool, progress: Progress) -> None:
    """Write classes.csv, pairs.csv, gaussian.csv and plans.csv with their picture."""
    draws = 1 if quick else 5
    progress(0.0, "public classes")
    _store(out, "classes", "epsilon classes estimate value distance rates", classes(quick, draws))
    progress(0.2, "pairs")
    names = "epsilon release value_1 value_2 estimate_1 estimate_2 joint correlation"
    _store(out, "pairs", names, pairs(("1",) if quick else ("0.3", "1"), draws))
    progress(0.5, "Gaussian noise")
    rows = gaussian(CONTRIBUTIONS[:1] if quick else CONTRIBUTIONS, 1 if quick else 3)
    _store(out, "gaussian", GAUSSIAN, rows)
    _picture(out, rows)
    progress(0.8, "plans")
    _store(out, "plans", "table epsilon count_error distance", plans(quick))
    progress(1.0, "done")


def few(out: Path) -> None:
    """Gaussian noise for one contribution, as in a full run."""
    _store(out, "gaussian", GAUSSIAN, gaussian(CONTRIBUTIONS[:1], 3))


def _store(out: Path, file: str, names: str, rows: Rows) -> None:
    write_table(out, file, {name: [row[at] for row in rows] for at, name in enumerate(names.split())})


def classes(quick: bool, draws: int) -> Rows:
    """Errors of counts and of rates per 100,000, without and with six classes of population."""
    rng = np.random.default_rng(2026)
    people = np.ceil(rng.lognormal(10.2, 1.4, 3000))
    counts = np.minimum(rng.poisson(people * rng.gamma(1.5, 2.5e-5, 3000)), 50)
    rows: Rows = []
    for epsilon in ("1",) if quick else ("0.1", "1"):
        for number in CLASSES[:1] if quick else CLASSES:
            bands = np.array(population_bands(people.tolist(), number))
            parts = [np.flatnonzero(bands == name) for name in dict.fromkeys(bands)]
            found: list[tuple[float, ...]] = []
            for seed in range(draws):
                rng = np.random.default_rng(seed)
                full = TwoStageMechanism(50, epsilon).simulate_in_full(counts, rng, parts)
                values = full.values.view(np.ndarray)
                rates = distance(1e5 * values / people, 1e5 * counts / people)
                errors = rms(full.estimates, counts), rms(values, counts), distance(values, counts)
                found.append((*errors, rates))
            rows.append((epsilon, number, *(f"{x:.4g}" for x in np.mean(found, axis=0))))
    return rows


def pairs(epsilons: tuple[str, ...], draws: int) -> Rows:
    """Errors of both columns, of their joint cumulative distribution, and their correlation."""
    answers = packages()[: 120 if draws == 1 else None]
    truth = np.column_stack([answers[:, :20].sum(axis=1), answers[:, 20:40].sum(axis=1)])
    lines: Rows = [("", "truth", "", "", "", "", "", f"{np.corrcoef(truth.T)[0, 1]:.3f}")]
    for epsilon in epsilons:
        found: dict[str, list[list[float]]] = {"plain noise": [], "columns apart": [], "pairs": []}
        for seed in range(draws):
            rng = np.random.default_rng(seed)
            plain = truncated_geometric(UPPER + 1, epsilon)
            noisy = np.column_stack([np.asarray(plain.simulate(column, rng)) for column in truth.T])
            mechanism = table_mechanism(UPPER, Guarantee.pure(epsilon), small="counts")
            made = simulate_pair(mechanism, truth[:, 0], truth[:, 1], rng)
            apart = made.table.values.view(np.ndarray).reshape(2, -1).T
            alone = made.table.estimates.reshape(2, -1).T
            found["plain noise"].append(_measured(noisy, noisy, truth))
            found["columns apart"].append(_measured(apart, alone, truth))
            found["pairs"].append(_measured(made.values, made.estimates, truth))
        for name, each in found.items():
            lines.append((epsilon, name, *(f"{x:.4g}" for x in np.mean(each, axis=0))))
    return lines


def _measured(values: NDArray[np.int64], estimates: NDArray[Any], truth: NDArray[np.int64]) -> list[float]:
    errors = [rms(each[:, side], truth[:, side]) for each in (values, estimates) for side in (0, 1)]
    joint = float(np.mean(np.abs(_law(values) - _law(truth))))
    together: NDArray[np.float64] = np.corrcoef(values[:, 0], values[:, 1])
    return [*errors, joint, float(together[0, 1])]


def _law(pairs: NDArray[np.int64]) -> Floats:
    """The joint cumulative distribution."""
    cells = np.zeros((UPPER + 1, UPPER + 1))
    np.add.at(cells, (pairs[:, 0], pairs[:, 1]), 1 / len(pairs))
    return cells.cumsum(axis=0).cumsum(axis=1)


def gaussian(contributions: tuple[int, ...], draws: int) -> Rows:
    """Geometric noise at ε = 1 against Gaussian noise at (1, 1e-6), a person at most once in a category."""
    rows: Rows = []
    tables = (load("crime"), held_out("half empty"))
    for table in tables if draws > 1 else tables[:1]:
        for k in contributions:
            for noise in ("geometric", "Gaussian"):
                made = (
                    TwoStageMechanism(table.upper, 1, contributions=k)
                    if noise == "geometric"
                    else GaussianTableMechanism(table.upper, Guarantee.approximate(1, DELTA), contributions=k)
                )
                found: list[tuple[float, ...]] = []
                for seed in range(draws):
                    full = made.simulate_in_full(table.counts, np.random.default_rng(seed))
                    values = full.values.view(np.ndarray)
                    errors = rms(full.estimates, table.counts), rms(values, table.counts)
                    found.append((*errors, distance(values, table.counts)))
                rows.append((table.name, k, noise, *(f"{x:.4g}" for x in np.mean(found, axis=0))))
    return rows


def _picture(out: Path, rows: Rows) -> None:
    figure = Figure(figsize=(8.4, 3.4), layout="constrained")
    for axis, (at, label) in zip(
        figure.subplots(1, 2), ((3, "error of an estimate"), (5, "distance of distributions")), strict=True
    ):
        for table in dict.fromkeys(row[0] for row in rows):
            for noise, style in (("geometric", "o-"), ("Gaussian", "s--")):
                some = [row for row in rows if (row[0], row[2]) == (table, noise)]
                axis.loglog(
                    [int(str(row[1])) for row in some],
                    [float(str(row[at])) for row in some],
                    style,
                    label=f"{table}, {noise}",
                )
        axis.set_xlabel("contributions of a person")
        axis.set_ylabel(label)
    figure.axes[0].legend(fontsize=8)
    save_figure(figure, out, "gaussian")


def plans(quick: bool) -> Rows:
    """What a plan says, given the true shape of a table, against the mean over releases of other seeds."""
    lines: Rows = []
    tables: list[Table] = [load("crime"), held_out("u-shaped"), held_out("half empty")]
    for table in tables[1:2] if quick else tables:
        shape = np.bincount(table.counts, minlength=table.upper + 1) / len(table.counts)
        for epsilon in ("1",) if quick else ("0.3", "1"):
            said = plan(shape, size=len(table.counts), epsilon=epsilon, draws=1 if quick else None)
            told = said["distribution"]
            mechanism = TwoStageMechanism(table.upper, epsilon, "distribution")
            found: list[tuple[float, float]] = []
            for seed in range(1 if quick else 60):
                values = mechanism.simulate(table.counts, np.random.default_rng(1000 + seed)).view(np.ndarray)
                found.append((float(np.mean(np.abs(values - table.counts))), distance(values, table.counts)))
            count, apart = np.mean(found, axis=0)
            ratios = told.count_error / count, told.wasserstein / apart
            lines.append((table.name, epsilon, *(f"{x:.3f}" for x in ratios)))
    return lines
