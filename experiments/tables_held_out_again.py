"""The default table release on a second set of tables, which its constants were not chosen on.

Errors are held against plain clamped noise and against the even split before, by the same seeds. Every draw is a row of
``draws.csv`` as soon as it is made, and a run that was interrupted goes on from there.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from _held_out_again import SECOND, real_again, second
from _tables import Table
from common import add_rows, save_figure, write_table
from isotone.mechanism import Progress
from isotone.tables.smooth import many_systems
from tables_frontier import EPSILONS, once, usual

DRAWS = 25
MORE = 50  # where there are fewer than 500 categories, and runs differ much
KEYS = ("table", "epsilon", "seed")
ERRORS = ("estimate", "distance", "even_distance", "plain_estimate", "plain_distance")
AIMS = {
    ("estimate", "plain_estimate"): 1.0,
    ("distance", "even_distance"): 1.2,
    ("distance", "plain_distance"): None,
}
"""The largest ratio of two errors that was aimed at, as a geometric mean over the made tables; the last had no aim."""

Found = dict[tuple[str, str], dict[str, NDArray[np.float64]]]


def run(out: Path, quick: bool, progress: Progress) -> None:
    """Write every draw, then what it says of each table and of the aims, with a picture."""
    made, real = [second(name) for name in SECOND], real_again()
    groups = {"second held-out set": made[-1:] if quick else made, "real": real[-1:] if quick else real}
    epsilons = EPSILONS[2:3] if quick else EPSILONS
    tables = [table for each in groups.values() for table in each]
    draws = {table.name: 2 if quick else MORE if len(table.counts) < 500 else DRAWS for table in tables}
    with many_systems():
        found = _read(_draw(out / "draws.csv", tables, epsilons, draws, progress))
    _by_table(out, found)
    _aims(out, {group: [table.name for table in each] for group, each in groups.items()}, epsilons, found)
    _picture(out, found, epsilons)
    progress(1.0, "done")


def _draw(
    path: Path, tables: Sequence[Table], epsilons: Sequence[str], draws: dict[str, int], progress: Progress
) -> list[dict[str, str]]:
    """All draws, and those that the file does not have yet first."""
    by_name, most = {table.name: table for table in tables}, max(draws.values())
    cases = product(range(most), by_name, epsilons)
    missing = ((name, epsilon, str(seed)) for seed, name, epsilon in cases if seed < draws[name])

    def make(name: str, epsilon: str, seed: str) -> list[str]:
        progress(int(seed) / most, f"draw {int(seed) + 1}")
        table = by_name[name]
        ours, even, plain = (
            once(table, epsilon, way, int(seed)) for way in (usual(table, epsilon), "even", "plain")
        )
        errors = [ours.estimate, ours.distance, even.distance, plain.estimate, plain.distance]
        return [f"{each:.4g}" for each in errors]

    return add_rows(path, KEYS, ERRORS, missing, make)


def _read(rows: list[dict[str, str]]) -> Found:
    """The errors of every draw, by table and ε."""
    found: Found = {}
    for case in dict.fromkeys((row["table"], row["epsilon"]) for row in rows):
        some = [row for row in rows if (row["table"], row["epsilon"]) == case]
        found[case] = {name: np.array([float(row[name]) for row in some]) for name in ERRORS}
    return found


def ratio(one: NDArray[np.float64], two: NDArray[np.float64]) -> tuple[float, float]:
    """The logarithm of the ratio of two means over the same seeds, and its standard error."""
    apart = one / one.mean() - two / two.mean()
    return float(np.log(one.mean() / two.mean())), float(apart.std(ddof=1) / len(apart) ** 0.5)


def _by_table(out: Path, found: Found) -> None:
    """The ratios of each table."""
    rows: list[tuple[object, ...]] = []
    for (table, epsilon), errors in found.items():
        ratios = [np.exp(ratio(errors[one], errors[two])[0]) for one, two in AIMS]
        rows.append((table, epsilon, len(errors["estimate"]), *(f"{x:.3f}" for x in ratios)))
    _store(
        out,
        "tables",
        "table epsilon draws estimate_of_plain distance_of_even distance_of_plain",
        rows,
    )


def _aims(out: Path, groups: dict[str, list[str]], epsilons: Sequence[str], found: Found) -> None:
    """Geometric means over the tables of a group, with standard errors over draws."""
    rows: list[tuple[object, ...]] = []
    for (group, names), ((one, two), aim), epsilon in product(groups.items(), AIMS.items(), epsilons):
        logs = np.array([ratio(found[name, epsilon][one], found[name, epsilon][two]) for name in names])
        mean = float(np.exp(logs[:, 0].mean()))
        error = mean * float(np.sqrt(np.sum(logs[:, 1] ** 2))) / len(names)
        met = "" if aim is None else "yes" if mean <= aim else "no"
        rows.append((group, one, two, epsilon, aim or "", f"{mean:.3f}", f"{error:.3f}", met))
    _store(out, "aims", "group error of epsilon aim found standard_error met", rows)


def _store(out: Path, file: str, names: str, rows: list[tuple[object, ...]]) -> None:
    write_table(out, file, {name: [row[at] for row in rows] for at, name in enumerate(names.split())})


def _picture(out: Path, found: Found, epsilons: Sequence[str]) -> None:
    """Both ratios of every table against ε."""
    figure = Figure(figsize=(9.6, 4.2), layout="constrained")
    titles = ("error of an estimate, of that of plain noise", "distance, of that of the even split")
    for axis, title, ((one, two), aim) in zip(figure.subplots(1, 2), titles, AIMS.items(), strict=False):
        for at, table in enumerate(dict.fromkeys(table for table, _ in found)):
            cases = [found[table, epsilon] for epsilon in epsilons]
            ratios = [np.exp(ratio(errors[one], errors[two])[0]) for errors in cases]
            axis.plot(epsilons, ratios, marker="osD^v<>"[at % 7], lw=0.8, ms=4, label=table)
        axis.axhline(aim or 1.0, color="black", lw=0.8, ls="--")
        axis.set_yscale("log")
        axis.set_xlabel("ε")
        axis.set_title(title, fontsize=10)
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside right center", fontsize=7)
    save_figure(figure, out, "tables_held_out_again")
