"""How much consistency with the order reduces the error of a release: equal weights, variances, covariance.

Truth: real counts of the 2021 health survey, scaled to surveys of other sizes, and of dependencies among Debian
packages, counted in samples of real records. Noise: the poset mechanism at ε = 1 and order-shaped Gaussian noise at
ρ = 1/2 (what matters is ε times the number of records). Each projection is onto the monotone, non-negative vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from common import DATA, read_table, save_figure, write_table
from isotone.counts import OrderGaussianMechanism, PosetMechanism
from isotone.counts.mechanism import AdditiveMechanism
from isotone.mechanism import Progress, no_progress
from isotone.order import Poset, project, project_covariance
from survey_table import codebook_sections

Floats = NDArray[np.float64]
Sample = Callable[[int], Floats]
METHODS = ("clip", "equal", "variance", "covariance")
SIZES = (10, 30, 100, 300, 1_000, 5_000)
REPEATS, DRAWS = 300, 40_000
NOISES: dict[str, Callable[[Poset], AdditiveMechanism]] = {
    "poset": lambda P: PosetMechanism(P, 1),
    "order Gaussian": lambda P: OrderGaussianMechanism(P, rho="1/2"),
}


def survey() -> tuple[Poset, Sample]:
    """The eleven questions of the codebook; counts in proportion to the real ones."""
    rows = read_table(DATA / "survey" / "nhis2021_counts.csv")
    counts = np.array([float(row["yes"]) for row in rows]) / float(rows[0]["n"])
    return codebook_sections(3), lambda records: np.rint(counts * records)


def debian(first: int, size: int, rng: np.random.Generator) -> tuple[Poset, Sample]:
    """``size`` packages, starting with the ``first`` most needed; counts of a random sample of real records."""
    path = DATA / "orders" / "debian_records_sample.parquet"
    table = (
        duckdb.connect().execute("select * exclude (package) from read_parquet(?)", [str(path)]).fetchnumpy()
    )
    names = list(table)
    answers = np.column_stack(list(table.values())).astype(float)
    covers = read_table(DATA / "orders" / "debian_top200_covers.csv")
    everything = Poset(names, [(row["package"], row["requires"]) for row in covers])
    by_need = np.argsort(-answers.sum(axis=0), kind="stable")
    P = everything.induced([names[i] for i in by_need[first : first + size]])
    answers = answers[:, [names.index(str(name)) for name in P.elements]]
    return P, lambda records: answers[rng.choice(len(answers), records, replace=False)].sum(axis=0)


def errors(
    m: AdditiveMechanism,
    sample: Sample,
    records: int,
    repeats: int,
    covariance: Floats,
    rng: np.random.Generator,
) -> Floats:
    """Mean squared error of each method over that of the raw release."""
    P, weights = m.P, 1 / np.diag(covariance)
    squares: list[list[float]] = []
    for _ in range(repeats):
        truth = sample(records)
        noisy = truth + np.asarray(m.simulate(1, rng))[0]
        results = (
            noisy,
            np.maximum(noisy, 0),
            project(P, noisy, lower=0),
            project(P, noisy, weights, lower=0),
            project_covariance(P, noisy, covariance, lower=0),
        )
        squares.append([float(np.sum((result - truth) ** 2)) for result in results])
    means = np.mean(squares, axis=0)
    return means[1:] / means[0]


def run(out: Path, quick: bool, progress: Progress) -> None:
    rng = np.random.default_rng(0)
    sizes = SIZES[1:5:3] if quick else SIZES
    cases = {"survey, 11 questions": survey()}
    if not quick:
        cases["Debian, 12 less needed"] = debian(40, 12, rng)
        cases["Debian, 25 most needed"] = debian(0, 25, rng)
        cases["Debian, 35 less needed"] = debian(40, 35, rng)
    repeats, draws = (10, 4_000) if quick else (REPEATS, DRAWS)
    columns = measured(cases, sizes, repeats, draws, rng, progress)
    write_table(out, "consistency", columns)
    save_figure(picture(columns, sizes, list(cases)), out, "consistency")
    progress(1.0, "done")


def few(out: Path) -> None:
    """The first case of a full run, which its random numbers begin with."""
    cases, rng = {"survey, 11 questions": survey()}, np.random.default_rng(0)
    write_table(out, "consistency", measured(cases, SIZES, REPEATS, DRAWS, rng, no_progress))


def measured(
    cases: dict[str, tuple[Poset, Sample]],
    sizes: Sequence[int],
    repeats: int,
    draws: int,
    rng: np.random.Generator,
    progress: Progress,
) -> dict[str, list[Any]]:
    """A row for every case, noise and number of records."""
    columns: dict[str, list[Any]] = {name: [] for name in ("noise", "case", "records", *METHODS)}
    for done, (case, (P, sample)) in enumerate(cases.items()):
        for half, (noise, make) in enumerate(NOISES.items()):
            m = make(P)
            covariance = np.cov(np.asarray(m.simulate(draws, rng)).T)
            for k, records in enumerate(sizes):
                progress((done + (half + k / len(sizes)) / 2) / len(cases), f"{noise}, {case}, {records}")
                ratios = errors(m, sample, records, repeats, covariance, rng)
                entries = (noise, case, records, *(round(float(ratio), 4) for ratio in ratios))
                for name, entry in zip(columns, entries, strict=True):
                    columns[name].append(entry)
    return columns


def picture(columns: dict[str, list[Any]], sizes: Sequence[int], cases: list[str]) -> Figure:
    """One panel for each noise and case: error over that of the raw release, by number of records."""
    figure = Figure(figsize=(3.2 * len(cases), 6), layout="constrained")
    grid = figure.subplots(len(NOISES), len(cases), sharey=True, squeeze=False)
    for axes_row, noise in zip(grid, NOISES, strict=True):
        for axes, case in zip(axes_row, cases, strict=True):
            here = [
                i
                for i in range(len(columns["case"]))
                if (columns["noise"][i], columns["case"][i]) == (noise, case)
            ]
            for method in METHODS:
                axes.plot(sizes, [columns[method][i] for i in here], "o-", ms=3, label=method)
            axes.axhline(1, color="0.5", lw=1)
            axes.set(xscale="log", xlabel="records")
            axes.set_title(f"{noise}: {case}", fontsize="small")
        axes_row[0].set_ylabel("squared error over raw")
    grid[0, 0].legend(fontsize="small")
    return figure
