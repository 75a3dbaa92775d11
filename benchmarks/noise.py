"""Exact noise: isotone against OpenDP's samplers, with numpy's float noise for context."""

from __future__ import annotations

import importlib.metadata
import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from opendp.domains import atom_domain, vector_domain
from opendp.measurements import make_gaussian, make_laplace, make_noisy_max
from opendp.measures import max_divergence
from opendp.metrics import l1_distance, l2_distance, linf_distance
from opendp.mod import enable_features

from isotone import noise
from isotone.mechanism import Progress
from isotone.privacy.draws import SeededDraws

CELLS = 100_000
CANDIDATES = 1_000_000


@dataclass(frozen=True)
class Task:
    """One job, done by isotone, by OpenDP where it can, and in seeded floats (fast, and not private)."""

    name: str
    items: int
    ours: Callable[[], Any]
    opendp: Callable[[], Any] | None
    floats: Callable[[], Any]


def run(quick: bool, progress: Progress) -> str:
    """Time every task: the samplers take turns, and the best turn of each counts."""
    enable_features("contrib")
    share = 20 if quick else 1
    tasks = _tasks(CELLS // share, CANDIDATES // share)
    rounds = 2 if quick else 5
    rows = [
        "| task | isotone | OpenDP | OpenDP ÷ isotone | numpy floats | isotone ÷ numpy |",
        "|---|---|---|---|---|---|",
    ]
    for number, task in enumerate(tasks):
        progress(number / len(tasks), task.name)
        samplers = [task.ours, task.floats] + ([task.opendp] if task.opendp else [])
        best = _best_of(rounds, samplers)
        ours, floats = best[0], best[1]
        theirs = f"{_show(best[2], task.items)} | **{best[2] / ours:.0f}×**" if task.opendp else "– | –"
        rows.append(
            f"| {task.name} | {_show(ours, task.items)} | {theirs} | {_show(floats, task.items)} "
            f"| {ours / floats:.1f}× |"
        )
    progress(1.0, "done")
    return "\n".join(rows) + _notes()


def _tasks(cells: int, candidates: int) -> list[Task]:
    rng = np.random.default_rng(0)
    zeros = [0] * cells
    lengths = np.arange(5000)
    scores = rng.integers(0, 10**6, candidates)
    listed = (-scores).tolist()
    tasks: list[Task] = []
    for epsilon in (Fraction(1), Fraction(1, 100)):
        laplace = make_laplace(
            vector_domain(atom_domain(T=int)), l1_distance(T=int), scale=float(1 / epsilon)
        )
        tasks.append(
            Task(
                f"two-sided geometric, ε = {float(epsilon):g}, {cells:,} cells",
                cells,
                lambda epsilon=epsilon: noise.two_sided_geometrics(epsilon, cells),
                lambda laplace=laplace: laplace(zeros),
                lambda epsilon=epsilon: np.rint(rng.laplace(scale=float(1 / epsilon), size=cells)),
            )
        )
    gaussian = make_gaussian(vector_domain(atom_domain(T=int)), l2_distance(T=int), scale=10.0)
    noisy_max = make_noisy_max(
        vector_domain(atom_domain(T=int)), linf_distance(T=int), max_divergence(), scale=1000.0
    )
    return [
        *tasks,
        Task(
            f"discrete Gaussian, σ = 10, {cells:,} cells",
            cells,
            lambda: noise.discrete_gaussians(Fraction(100), cells),
            lambda: gaussian(zeros),
            lambda: np.rint(rng.normal(scale=10, size=cells)),
        ),
        Task(
            f"exactly rounded Gaussian, σ = 10, {cells:,} cells",
            cells,
            lambda: noise.rounded_gaussians(Fraction(100), cells),
            None,
            lambda: np.rint(rng.normal(scale=10, size=cells)),
        ),
        Task(
            "5,000 rounded sums of up to 5,000 shared exponentials",
            5000,
            lambda: noise.rounded_exponential_sums(Fraction(1), lengths, lengths[::-1].copy()),
            None,
            lambda: _float_sums(rng, lengths),
        ),
        Task(
            f"exponential mechanism, {candidates:,} candidates",
            candidates,
            lambda: noise.choose_exponential(scores, Fraction(1, 1000)),
            lambda: noisy_max(listed),
            lambda: SeededDraws(rng).choice(scores, Fraction(1, 1000)),
        ),
    ]


def _float_sums(rng: np.random.Generator, lengths: np.ndarray) -> np.ndarray:
    up, down = (np.append(0.0, np.cumsum(rng.standard_exponential(lengths.size))) for _ in range(2))
    return np.rint(up[lengths] - down[lengths[::-1]])


def _best_of(rounds: int, samplers: list[Callable[[], Any]]) -> list[float]:
    """Seconds of the best of several turns of each sampler, after one turn to compile and build tables."""
    best = [float("inf")] * len(samplers)
    for turn in range(rounds + 1):
        for place, sampler in enumerate(samplers):
            start = time.perf_counter()
            sampler()
            if turn > 0:
                best[place] = min(best[place], time.perf_counter() - start)
    return best


def _show(seconds: float, items: int) -> str:
    return f"{seconds * 1e3:.1f} ms ({items / seconds / 1e6:.3g} M/s)"


def _notes() -> str:
    return (
        f"\n\nOpenDP is version {importlib.metadata.version('opendp')}, called on Python lists, as its interface "
        "asks. For the choice it runs `make_noisy_max`, its counterpart of ours (permute-and-flip noise; same "
        "purpose, not the same distribution). isotone's samplers are exact and cryptographic. The numpy column "
        "is seeded float noise, rounded: it leaks through its low bits and must not be released; it is there "
        "to show what exactness costs. M/s: million cells (or candidates) a second.\n"
    )
