"""Hierarchies that add up: errors of the tree field and of Gaussian trees against noise on leaves and on levels."""

from __future__ import annotations

import csv
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from isotone.counts import PosetMechanism, TreeFieldMechanism, TreeGaussianMechanism, TreeLaplaceMechanism
from isotone.counts.mechanism import cared_error
from isotone.mechanism import Error, Progress
from isotone.order import Poset

DATA = Path(__file__).resolve().parent.parent / "data"
COUNTIES = (
    "67 30 15 75 58 64 8 3 1 67 159 5 44 102 92 99 105 120 64 16 24 14 83 87 82 115 56 93 17 10 21 33 62 100 53 88 77 36 "
    "67 5 46 66 95 254 29 14 133 39 55 72 23"
)
"""How many counties each of 51 states has: 3,143 in all."""
CARES = ("nodes", "levels", "worst")


def run(quick: bool, progress: Progress) -> str:
    """Build every case once for each care, and release once."""
    trees: dict[str, Callable[[], Poset]] = {
        "NAICS": naics,
        "nation, 51, 3,143": nation,
        "binary, depth 10": binary,
    }
    rows = [
        "| ε = 1 | care | leaves only | levels alike + least squares | **tree field** | draws | plan | release |",
        "|---|---|---|---|---|---|---|---|",
    ]
    gaussian = [
        "| ρ = ½ | care | **Gaussian tree** | above the best shares | plan | release |",
        "|---|---|---|---|---|---|",
    ]
    chosen = list(trees.items())[: 1 if quick else None]
    for number, (name, make) in enumerate(chosen):
        progress(number / len(chosen), name)
        P = make()
        for care in CARES:
            rows.append(_pure(name, P, care))
            gaussian.append(_gaussian(name, P, care))
    large = [
        "| ε = 1, tree field | nodes | care | error | draws | plan | release, mean of 5 | the slowest |",
        "|---|---|---|---|---|---|---|---|",
    ]
    if not quick:
        progress(0.9, "a hundred thousand nodes")
        nodes = tracts()
        large += [_large(nodes, care) for care in CARES]
    progress(1.0, "done")
    return "\n".join([*rows, "", *gaussian, "", *large, "", *_choices()]) + "\n\n" + _NOTES


def _large(P: Poset, care: str) -> str:
    started = time.process_time()
    field = TreeFieldMechanism(P, 1, care=care)
    planned = time.process_time()
    taken: list[float] = []
    for _ in range(5):
        before = time.process_time()
        field.release(np.zeros(len(P), np.int64))
        taken.append(time.process_time() - before)
    return (
        f"| nation, states, counties, tracts | {len(P):,} | {care} | {_shown(cared_error(P, care), field.error())} "
        f"| {field.node_law.draws:,.0f} | {planned - started:.1f} s | {np.mean(taken):.1f} s | {max(taken):.1f} s |"
    )


def _pure(name: str, P: Poset, care: str) -> str:
    wanted = cared_error(P, care)
    leaves = TreeFieldMechanism(P, 1, shares=dict.fromkeys(P.minimal, 1))
    levels = TreeLaplaceMechanism(P, 1)
    started = time.process_time()
    field = TreeFieldMechanism(P, 1, care=care)
    planned = time.process_time()
    field.release(np.zeros(len(P), np.int64))
    released = time.process_time()
    errors = [_shown(wanted, m.error()) for m in (leaves, levels, field)]
    return (
        f"| {name} | {care} | {errors[0]} | {errors[1]} | **{errors[2]}** | {field.node_law.draws:,.0f} "
        f"| {planned - started:.1f} s | {1e3 * (released - planned):.0f} ms |"
    )


def _gaussian(name: str, P: Poset, care: str) -> str:
    started = time.process_time()
    m = TreeGaussianMechanism(P, rho="1/2", care=care)
    planned = time.process_time()
    m.release(np.zeros(len(P), np.int64))
    released = time.process_time()
    gap = "–" if np.isnan(m.gap) else f"{100 * max(m.gap, 0.0):.4f} %"
    return (
        f"| {name} | {care} | **{_shown(cared_error(P, care), m.error())}** | {gap} | {planned - started:.1f} s "
        f"| {1e3 * (released - planned):.0f} ms |"
    )


def choices() -> dict[str, Poset]:
    """Surveys with exclusive options."""
    survey = [-1, 0, 1, 0, -1, *[4] * 6, -1, *[11] * 3]
    parents = {x: None if up < 0 else up for x, up in enumerate(survey)}
    questions: dict[str, str | None] = {f"q{i}": None for i in range(5)}
    questions |= {f"q{i}o{j}": f"q{i}" for i in range(5) for j in range(10)}
    return {
        "survey of 15, two questions exclusive": Poset.from_mapping(
            parents, children={4: "exclusive", 11: "exclusive"}
        ),
        "5 questions × 10 options": Poset.from_mapping(questions, children="exclusive"),
    }


def _choices() -> list[str]:
    """Exclusive options against options that may be combined."""
    rows = ["| ε = 1 | options combined | **options exclusive** |", "|---|---|---|"]
    for name, P in choices().items():
        free, exclusive = (PosetMechanism(order, 1).error().rmse for order in (P.forget_choices(), P))
        rows.append(f"| {name} | {free:.3f} | **{exclusive:.3f}** |")
    return rows


def _shown(wanted: Callable[[Error], float], error: Error) -> str:
    return f"{wanted(error):.3f}"


def naics() -> Poset:
    """The codes of industries."""
    with (DATA / "orders" / "naics.csv").open(encoding="utf-8") as file:
        return Poset.from_mapping(
            {row["code"]: row["parent"] or None for row in csv.DictReader(file)}, children="partition"
        )


def nation() -> Poset:
    """A nation, its states and their counties."""
    sizes = dict(enumerate(map(int, COUNTIES.split())))
    states = dict.fromkeys((f"s{s}" for s in sizes), "nation")
    return Poset.from_mapping(
        states | {f"s{s}c{c}": f"s{s}" for s, size in sizes.items() for c in range(size)},
        children="partition",
    )


def tracts() -> Poset:
    """The same nation with 1 to 61 tracts in each county."""
    up, counties = dict.fromkeys((f"s{s}" for s in range(51)), "nation"), 0
    for s, size in enumerate(map(int, COUNTIES.split())):
        for c in range(size):
            up[f"s{s}c{c}"] = f"s{s}"
            up |= {f"s{s}c{c}t{t}": f"s{s}c{c}" for t in range(1 + 37 * counties % 61)}
            counties += 1
    return Poset.from_mapping(up, children="partition")


def binary(depth: int = 10) -> Poset:
    """A complete binary tree."""
    return Poset.from_mapping({x: x // 2 for x in range(2, 2 ** (depth + 1))}, children="partition")


_NOTES = (
    "Errors are the root of the mean variance over all nodes, of the mean over levels, and of the worst node, exact and by the "
    'mechanism\'s own law (`error()`). Each care has its own shares. "Leaves only" is what any library with noise on the leaves, '
    'added up, has; "levels alike" is two-sided geometric noise with as much for each level and least squares. Times are CPU '
    "times of one core."
)
