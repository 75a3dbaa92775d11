"""Orders with large prime parts: what relaxing costs, and the time to plan, to draw, to release and to verify."""

from __future__ import annotations

import csv
import json
import resource
import subprocess
import sys
import tempfile
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
RECORDS = 1000
SEEDS = (1, 2, 3, 4)
T = TypeVar("T")

SPEC = """
[data]
path = "records.csv"
[privacy]
epsilon = 1
ledger = "records.ledger"
[order]
elements = {elements}
relations = {relations}
mechanism = "PosetMechanism"
{relaxation}[output]
folder = "out"
"""


def run(quick: bool, progress: Progress) -> str:
    """Build every sampler once, draw from it, and plan, release and verify with it in processes of their own."""
    for order in (_two_levels(60, 3.0), _layers(12)):  # load the compiled kernels
        build_sampler(order, relax(order, steps=1, reach=64), no_progress).draw(ExactDraws())
        _seconds(lambda order=order: build_sampler(order, None, no_progress).draw(ExactDraws()))
    rows = [
        "| order | method | squared error | sampler | a draw | plan | release | plan ÷ release | verify |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    cases, kept = _cases(quick), Rows("prime")
    for number, (name, order, whole) in enumerate(cases):
        progress(number / len(cases), name)
        rows.append(
            kept.get(
                name, lambda name=name, order=order, whole=whole: _row(name, order().canonical.order, whole)
            )
        )
    rows.append(
        "\nCPU seconds of one run. The squared error is that of the order itself times the number given, with its standard error; 1 is exact. "
        "*Sampler* is the search, where there is one, with the choice of the relations that rejection restores, within a process that has "
        "loaded its code. *Plan*, *release* and *verify* are the commands, for some of the orders, each a process of its own with all that it loads. The plan makes the draws that the "
        "intervals are known from and writes what it found; the release reads that."
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


def _row(name: str, P: Poset, whole: bool) -> str:
    built, made = _seconds(lambda: build_sampler(P, None, no_progress))
    made.draw(ExactDraws())
    drawn, _ = _seconds(lambda: [made.draw(ExactDraws()) for _ in range(DRAWS)])
    method = made.method
    cost = "1" if method.cost_error == 0 else f"{method.cost:.3f} ± {method.cost_error:.3f}"
    row = f"| {name} | {method.name} | {cost} | {built:.2f} s | {1e3 * drawn / DRAWS:.1f} ms |"
    if not whole:
        return f"{row} | | | |"
    plan, release, verify = _commands(P, made.relaxation is not None)
    return f"{row} {plan:.1f} s | {release:.1f} s | {plan / release:.1f}× | {verify:.1f} s |"


def _commands(P: Poset, relaxed: bool) -> tuple[float, float, float]:
    """The CPU seconds of planning, releasing and verifying counts of random records."""
    Q = P.rename(lambda name: f"q{name}")
    records = Q.close_all(np.random.default_rng(0).random((RECORDS, len(Q))) < 0.02)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        with (place / "records.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([Q.elements, *records.astype(int).tolist()])
        order = {"elements": json.dumps(Q.elements), "relations": json.dumps(Q.covers)}
        (place / "spec.toml").write_text(SPEC.format(**order, relaxation=""), encoding="utf-8")
        _command(place, "ledger", "create", "records.ledger", "--epsilon", "1")
        plan = _command(place, "plan", "spec.toml", *(["--found", "found.json"] if relaxed else []))
        found = 'relaxation = "found.json"\n' if relaxed else ""
        (place / "spec.toml").write_text(SPEC.format(**order, relaxation=found), encoding="utf-8")
        return plan, _command(place, "release", "spec.toml"), _command(place, "verify", "out")


def _command(place: Path, *arguments: str) -> float:
    """The CPU seconds of a command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-m", "isotone", *arguments], cwd=place, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _seconds(task: Callable[[], T]) -> tuple[float, T]:
    started = time.process_time()
    result = task()
    return max(time.process_time() - started, 1e-4), result


def _cases(quick: bool) -> list[tuple[str, Callable[[], Poset], bool]]:
    """Names and orders, and whether the commands are timed as well."""
    cases: list[tuple[str, Callable[[], Poset], bool]] = [
        ("two levels of 100, mean degree 3", lambda: _two_levels(100, 3.0), False)
    ]
    if quick:
        return cases
    return [
        *cases,
        ("two levels of 200, mean degree 3", lambda: _two_levels(200, 3.0), True),
        ("two levels of 400, mean degree 3", lambda: _two_levels(400, 3.0), False),
        ("two levels of 200, mean degree 25", lambda: _two_levels(200, 25.0), False),
        *(
            (f"random order of 120, mean degree {d}", lambda d=d: _random(120, d), d == 2)
            for d in range(1, 7)
        ),
        ("200 Debian packages", _debian, True),
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
