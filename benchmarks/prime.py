"""Orders with large prime parts: what relaxing costs, and the time to search and to draw."""

from __future__ import annotations

import csv
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np

from benchmarks._rows import Rows
from isotone.counts.sampling.choosing import build_sampler
from isotone.counts.sampling.relaxation import relax
from isotone.mechanism import Progress, no_progress
from isotone.order import Poset
from isotone.order.bipartitions.extended import tables
from isotone.privacy.draws import ExactDraws

DATA = Path(__file__).resolve().parent.parent / "data"
DRAWS = 10
SEEDS = (1, 2, 3, 4)
DEGREES = (2,)
T = TypeVar("T")


def run(quick: bool, progress: Progress) -> str:
    """Build every sampler once, and draw from it."""
    for order in (_two_levels(60, 3.0), _layers(12)):  # load the compiled kernels
        build_sampler(order, relax(order, steps=1, reach=64), no_progress).draw(ExactDraws())
        _seconds(lambda order=order: build_sampler(order, None, no_progress).draw(ExactDraws()))
    rows = [
        "| order | method | squared error | sampler | a draw |",
        "|---|---|---|---|---|",
    ]
    cases, kept = _cases(quick), Rows("prime-quick" if quick else "prime")
    for number, (name, order) in enumerate(cases):
        progress(number / len(cases), name)
        rows.append(kept.get(name, lambda name=name, order=order: _row(name, order().canonical.order)))
    rows.append(
        "\nCPU seconds of one run. The squared error is that of the order itself times the number given, with its standard error; 1 is exact. "
        "*Sampler* is the search, where there is one, with the choice of the relations that rejection restores, within a process that has "
        "loaded its code."
    )
    if not quick:
        progress(0.5, "other seeds")
        rows += ["", *SEEDS_HEAD]
        rows += [
            kept.get(f"seed {seed}", lambda seed=seed: _seed(_debian().canonical.order, seed))
            for seed in SEEDS
        ]
    kept.done()
    progress(1.0, "done")
    return "\n".join(rows) + "\n"


SEEDS_HEAD = (
    "## Debian packages, other seeds",
    "",
    "Every plan searches with seed 0, as in the table above.",
    "",
    "| seed | search | log count of the relaxed order | relations left out | a draw | squared error |",
    "|---|---|---|---|---|---|",
)


def _seed(P: Poset, seed: int) -> str:
    """A search that differs in its seed alone."""
    searched, found = _seconds(lambda: relax(P, seed=seed))
    made = build_sampler(P, found, no_progress)
    drawn, _ = _seconds(lambda: [made.draw(ExactDraws()) for _ in range(DRAWS)])
    count = tables(found.order(P)).log_count
    method = made.method
    return (
        f"| {seed} | {searched:.1f} s | {count:.2f} | {len(method.dropped)} of {int(P.leq_matrix().sum()) - len(P)} "
        f"| {1e3 * drawn / DRAWS:.0f} ms | {method.cost:.3f} ± {method.cost_error:.3f} |"
    )


def _row(name: str, P: Poset) -> str:
    built, made = _seconds(lambda: build_sampler(P, None, no_progress))
    made.draw(ExactDraws())
    drawn, _ = _seconds(lambda: [made.draw(ExactDraws()) for _ in range(DRAWS)])
    method = made.method
    cost = "1" if method.cost_error == 0 else f"{method.cost:.3f} ± {method.cost_error:.3f}"
    return f"| {name} | {method.name} | {cost} | {built:.2f} s | {1e3 * drawn / DRAWS:.1f} ms |"


def _seconds(task: Callable[[], T]) -> tuple[float, T]:
    started = time.process_time()
    result = task()
    return max(time.process_time() - started, 1e-4), result


def _cases(quick: bool) -> list[tuple[str, Callable[[], Poset]]]:
    cases: list[tuple[str, Callable[[], Poset]]] = [
        ("two levels of 100, mean degree 3", lambda: _two_levels(100, 3.0))
    ]
    if quick:
        return cases
    return [
        *cases,
        ("two levels of 200, mean degree 3", lambda: _two_levels(200, 3.0)),
        ("two levels of 400, mean degree 3", lambda: _two_levels(400, 3.0)),
        ("two levels of 200, mean degree 25", lambda: _two_levels(200, 25.0)),
        *((f"random order of 120, mean degree {d}", lambda d=d: _random(120, d)) for d in DEGREES),
        ("200 Debian packages", _debian),
    ]


def _two_levels(n: int, degree: float) -> Poset:
    rng = np.random.default_rng(n)
    pairs = np.argwhere(rng.random((n // 2, n // 2)) < 2 * degree / n)
    return Poset(range(n), [(int(x), n // 2 + int(z)) for x, z in pairs])


def _random(n: int, degree: float) -> Poset:
    """Each earlier element lies below each later one with the same probability, and what follows by transitivity."""
    rng = np.random.default_rng(n)
    pairs = np.argwhere(np.triu(rng.random((n, n)) < 2 * degree / n, k=1))
    return Poset(range(n), [(int(x), int(y)) for x, y in pairs])


def _layers(k: int) -> Poset:
    """Three levels, each element below its two neighbours of the next."""
    pairs = [
        (level * k + i, (level + 1) * k + j % k) for level in (0, 1) for i in range(k) for j in (i, i + 1)
    ]
    return Poset(range(3 * k), pairs)


def _debian() -> Poset:
    with (DATA / "orders" / "debian_top200_covers.csv").open(newline="", encoding="utf-8") as file:
        pairs = [(row["package"], row["requires"]) for row in csv.DictReader(file)]
    return Poset(dict.fromkeys(name for pair in pairs for name in pair), pairs)
