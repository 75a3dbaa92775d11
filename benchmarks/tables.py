"""Tables of counts: both errors and the time of a release, ours and what one would pick instead."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from isotone.mechanism import Progress
from isotone.published.tables.lp import full_program
from isotone.published.tables.row_by_row import RowByRowMechanism
from isotone.tables import TwoStageMechanism, fixed_point, privatize_distribution, truncated_geometric
from isotone.tables.matrices.geometric import loss_matrix

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "experiments"))
from experiments._tables import HELD_OUT, Errors, Table, as_published, average, errors, load

T = TypeVar("T")
Publish = Callable[[Table, float, np.random.Generator], NDArray[np.int64]]
WAYS: dict[str, Publish] = {
    "**whole table**": lambda t, e, rng: TwoStageMechanism(t.upper, e).simulate(t.counts, rng),
    "row by row": lambda t, e, rng: RowByRowMechanism(t.upper, e).simulate(t.counts, rng),
    "Kohli and Laskowski, best matrix": as_published,
    "truncated geometric": lambda t, e, rng: truncated_geometric(t.upper + 1, e).simulate(t.counts, rng),
}


def run(quick: bool, progress: Progress) -> str:
    parts = [_accuracy(quick, progress), _constructors(quick, progress), _releases(quick, progress)]
    progress(1.0, "done")
    return "\n\n".join(parts)


def _accuracy(quick: bool, progress: Progress) -> str:
    names, epsilons, draws = (("crime",), (1.0,), 2) if quick else (HELD_OUT, (0.1, 0.48, 1.0, 5.0), 15)
    lines = [
        "## Errors of a published table",
        "",
        "Mean error of a count / Wasserstein-1 distance of the distributions; in brackets as a ratio to Kohli and "
        "Laskowski's framework. Means over seeded simulations.",
        "",
        "| table, ε | " + " | ".join(WAYS) + " |",
        "|---|" + "---|" * len(WAYS),
    ]
    for at, name in enumerate(names):
        table = load(name)
        for epsilon in epsilons:
            progress(0.7 * at / len(names), f"{name}, ε = {epsilon:g}")
            found: dict[str, Errors] = {}
            for way, publish in WAYS.items():
                rng = np.random.default_rng(3)
                found[way] = average([errors(publish(table, epsilon, rng), table) for _ in range(draws)])
            base = found["Kohli and Laskowski, best matrix"]
            cells = [
                f"{e.count:.3g} / {e.wasserstein:.3g} ({e.count / base.count:.2f} / {e.wasserstein / base.wasserstein:.2f})"
                for e in found.values()
            ]
            lines.append(f"| {name}, {epsilon:g} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _constructors(quick: bool, progress: Progress) -> str:
    sizes = (10,) if quick else (20, 40, 80)
    lines = [
        "## Building a mechanism that keeps a distribution",
        "",
        "CPU seconds (best of three), and as a ratio to the closed form; count error as a ratio to the optimum. "
        "ε = ln 2, the distribution of homicides.",
        "",
        "| n | closed form | heuristic | simplex | interior point |",
        "|---|---|---|---|---|",
    ]
    for at, n in enumerate(sizes):
        progress(0.7 + 0.15 * at / len(sizes), f"constructors, n = {n}")
        counts = np.minimum(load("crime").counts, n - 1)
        z = (np.bincount(counts, minlength=n) + 0.01) / (len(counts) + 0.01 * n)
        z = z / z.sum()
        cost = z[:, None] * loss_matrix("absolute", n)
        rate = round(math.log(2), 6)
        closed, t = _timed(lambda z=z, rate=rate: fixed_point(z, rate))
        slow, h = _timed(lambda z=z, rate=rate: fixed_point(z, rate, constructor="heuristic"))
        simplex, one = _timed(lambda z=z, c=cost, rate=rate: full_program(z, z, c, rate, "simplex"), 1)
        interior, two = _timed(
            lambda z=z, c=cost, rate=rate: full_program(z, z, c, rate, "interior-point"), 1
        )
        best = t.count_error(z)
        cells = [f"{closed:.2g} s, error 1"]
        for taken, error in (
            (slow, h.count_error(z)),
            (simplex, float(np.sum(cost * one))),
            (interior, float(np.sum(cost * two))),
        ):
            cells.append(f"{taken:.2g} s ({taken / closed:.0f}×), error {error / best:.4f}")
        lines.append(f"| {n} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _releases(quick: bool, progress: Progress) -> str:
    progress(0.85, "releases")
    size = 10_000 if quick else 1_000_000
    counts = np.random.default_rng(0).negative_binomial(3, 0.01, size)
    z = privatize_distribution(counts, 999, "0.2")
    matrix, plain = fixed_point(z, "0.8"), truncated_geometric(1000, 1)
    whole, rows = TwoStageMechanism(999, 1), RowByRowMechanism(999, 1)
    times = {
        "truncated geometric": _timed(lambda: plain.release(counts))[0],
        "fixed point, distribution given": _timed(lambda: matrix.release(counts))[0],
        "both stages, row by row": _timed(lambda: rows.release(counts))[0],
        "both stages, whole table": _timed(lambda: whole.release(counts))[0],
    }
    base = times["truncated geometric"]
    lines = [
        f"## An exact release of {size:,} categories, counts 0..999, ε = 1",
        "",
        "Cryptographic bits and integer noise; CPU seconds, best of three.",
        "",
        "| mechanism | seconds | ratio |",
        "|---|---|---|",
        *(f"| {name} | {taken:.2f} | {taken / base:.1f} |" for name, taken in times.items()),
    ]
    return "\n".join(lines)


def _timed(action: Callable[[], T], rounds: int = 3) -> tuple[float, T]:
    action()  # compile
    taken: list[float] = []
    result = None
    for _ in range(rounds):
        start = time.process_time()
        result = action()
        taken.append(time.process_time() - start)
    assert result is not None
    return min(taken), result
