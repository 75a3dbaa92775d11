"""How much consistency with the order reduces the error of a release: equal weights, variances, covariance.

Truth: real counts of the 2021 health survey, scaled to surveys of other sizes, and of dependencies among Debian
packages, counted in samples of real records. Noise: the poset mechanism at ε = 1 (what matters is ε times the number
of records). Each projection is onto the monotone, non-negative vectors.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from common import DATA, read_table, save_figure, write_table
from isotone.counts import PosetMechanism
from isotone.mechanism import Progress
from isotone.order import Poset, project, project_covariance
from survey_table import codebook_sections

Floats = NDArray[np.float64]
Sample = Callable[[int], Floats]
METHODS = ("clip", "equal", "variance", "covariance")


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
    P: Poset, sample: Sample, records: int, repeats: int, draws: int, rng: np.random.Generator
) -> Floats:
    """Mean squared error of each method over that of the raw release."""
    m = PosetMechanism(P, 1)
    covariance = np.cov(np.asarray(m.simulate(draws, rng)).T)
    weights = 1 / np.diag(covariance)
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
    sizes = [30, 1_000] if quick else [10, 30, 100, 300, 1_000, 5_000]
    repeats, draws = (10, 4_000) if quick else (300, 40_000)
    cases = {"survey, 11 questions": survey()}
    for size in (12,) if quick else (12, 25, 35):
        cases[f"Debian, {size} most needed"] = debian(0, size, rng)
        cases[f"Debian, {size} less needed"] = debian(40, size, rng)
    columns: dict[str, list[Any]] = {name: [] for name in ("case", "records", *METHODS)}
    for done, (case, (P, sample)) in enumerate(cases.items()):
        for k, records in enumerate(sizes):
            progress((done + k / len(sizes)) / len(cases), f"{case}, {records} records")
            ratios = errors(P, sample, records, repeats, draws, rng)
            columns["case"].append(case)
            columns["records"].append(records)
            for method, ratio in zip(METHODS, ratios, strict=True):
                columns[method].append(round(float(ratio), 4))
    write_table(out, "consistency", columns)
    figure = Figure(figsize=(3.2 * min(4, len(cases)), 3.2 * -(-len(cases) // 4)), layout="constrained")
    grid = figure.subplots(-(-len(cases) // 4), min(4, len(cases)), sharey=True, squeeze=False)
    for axes, case in zip(grid.flat, cases, strict=False):
        here = [i for i, name in enumerate(columns["case"]) if name == case]
        for method in METHODS:
            axes.plot(sizes, [columns[method][i] for i in here], "o-", ms=3, label=method)
        axes.axhline(1, color="0.5", lw=1)
        axes.set(title=case, xscale="log", xlabel="records (ε = 1)")
        axes.title.set_fontsize("small")
    for axes in grid.flat[len(cases) :]:
        axes.axis("off")
    grid[0, 0].set_ylabel("squared error over raw")
    grid[0, 0].legend(fontsize="small")
    save_figure(figure, out, "consistency")
    progress(1.0, "done")
