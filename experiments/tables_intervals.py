"""How many intervals of 95 % hold in tables of few categories, over fifty releases and in the worst of them; and in large ones.

Every release is a row of ``draws.csv`` as soon as it is made, and a run that was interrupted goes on from there. Tables of fewer
than fifty categories are computed, not simulated.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from _held_out import held_out
from _held_out_again import real_again, second
from _held_out_third import FEW, FOURTH, THIRD, third
from _tables import Table
from common import add_rows, save_figure, write_table
from isotone.mechanism import Progress
from isotone.tables import TwoStageMechanism
from isotone.tables.published_table import from_noise
from isotone.tables.smooth import many_systems
from tables_frontier import EPSILONS
from tables_frontier import groups as large

RELEASES = 50
KEYS = ("set", "table", "categories", "epsilon")


def groups() -> dict[str, list[Table]]:
    """Tables of 200 to 400 categories: one seen while choosing, the second set, the third and the fourth."""
    again = [second(name) for name in ("conway-maxwell", "in pairs", "far from zero")]
    return {
        "seen": [held_out("left tail")],
        "second": [*again, real_again()[1]],
        "third": [third(name) for name in THIRD],
        "fourth": [third(name) for name in FOURTH],
    }


def run(out: Path, quick: bool, progress: Progress) -> None:
    """Write every release, the share that holds by table, one release of large tables, and what is expected of the smallest."""
    epsilons, releases = (EPSILONS[2:3], 1) if quick else (EPSILONS, RELEASES)
    with many_systems():
        rows = _releases(out / "draws.csv", groups(), quick, releases, progress)
        _releases(out / "large.csv", large(), quick, 1, progress)
    names = (*KEYS, "releases", "held", "worst", "width")
    found: list[tuple[object, ...]] = []
    for case in dict.fromkeys(tuple(row[key] for key in KEYS) for row in rows):
        some = [row for row in rows if tuple(row[key] for key in KEYS) == case]
        held = [float(row["held"]) for row in some]
        width = np.mean([float(row["width"]) for row in some])
        found.append((*case, len(some), f"{np.mean(held):.4f}", f"{min(held):.4f}", f"{width:.2f}"))
    write_table(out, "intervals", {name: [row[at] for row in found] for at, name in enumerate(names)})
    _few(out, epsilons)
    _picture(out, found)
    progress(1.0, "done")


def _releases(
    path: Path, some: dict[str, list[Table]], quick: bool, releases: int, progress: Progress
) -> list[dict[str, str]]:
    """So many releases of each table at each ε, each a row: the share of intervals that hold, and their mean width."""
    tables = {(group, table.name): table for group, each in some.items() for table in each}
    cases = [
        (group, name, str(len(table.counts)), epsilon, str(seed))
        for seed in range(releases)
        for (group, name), table in list(tables.items())[: 1 if quick else None]
        for epsilon in (EPSILONS[2:3] if quick else EPSILONS)
    ]

    def make(group: str, name: str, _: str, epsilon: str, seed: str) -> list[str]:
        progress(int(seed) / releases, name)
        table, rng = tables[group, name], np.random.default_rng(int(seed))
        low, high = TwoStageMechanism(table.upper, epsilon).simulate_in_full(table.counts, rng).interval()
        held = np.mean((low <= table.counts) & (table.counts <= high))
        return [f"{held:.4f}", f"{np.mean(high - low + 1):.3f}"]

    return add_rows(path, (*KEYS, "seed"), ("held", "width"), cases, make)


def _few(out: Path, epsilons: tuple[str, ...]) -> None:
    """The expected share that holds in tables of fewer than fifty categories, exactly, and the mean width."""
    rows: list[tuple[object, ...]] = []
    for name, epsilon in product(FEW, epsilons):
        table = third(name)
        measured = TwoStageMechanism(table.upper, epsilon).measurement(len(table.counts))
        held = width = 0.0
        for count in table.counts.tolist():
            errors, law = measured.errors(count)
            low, high = from_noise(count + errors, measured, 0.95)
            held += float(law @ ((low <= count) & (count <= high))) / len(table.counts)
            width += float(law @ (high - low + 1)) / len(table.counts)
        rows.append((name, len(table.counts), table.upper, epsilon, f"{held:.5f}", f"{width:.2f}"))
    names = ("table", "categories", "upper", "epsilon", "held", "width")
    write_table(out, "few", {name: [row[at] for row in rows] for at, name in enumerate(names)})


def _picture(out: Path, found: list[tuple[object, ...]]) -> None:
    """The share that holds on average and in the worst release."""
    figure = Figure(figsize=(8.4, 3.8), layout="constrained")
    axis = figure.subplots()
    for at, table in enumerate(dict.fromkeys(row[1] for row in found)):
        some = [row for row in found if row[1] == table]
        places = [at + 0.18 * (EPSILONS.index(str(row[3])) - 1.5) for row in some]
        for column, marker, colour in ((5, "o", "C0"), (6, "v", "C3")):
            axis.plot(places, [float(str(row[column])) for row in some], marker, ms=4, color=colour)
    for level in (0.92, 0.94, 0.98):
        axis.axhline(level, color="black", lw=0.7, ls="--")
    names = list(dict.fromkeys(f"{row[1]}, {row[2]}" for row in found))
    axis.set_xticks(range(len(names)), names, rotation=30, ha="right", fontsize=8)
    axis.set_ylabel("share of intervals of 95 % that hold")
    axis.set_title("mean (circles) and worst of the releases (triangles), ε = 0.1, 0.3, 1, 2", fontsize=10)
    save_figure(figure, out, "tables_intervals")
