"""Noise over a poset: isotone's exact sampler against the published one, and growth with the number of elements."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from isotone.counts import PosetMechanism
from isotone.counts.sampler import noise_rows
from isotone.mechanism import Progress
from isotone.order import Poset
from isotone.order.bipartitions.counting import tables

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "benchmarks" / "counts_speed.png"

sys.path.append(str(ROOT / "experiments"))  # experiments import each other by bare names; so does this
from _published import PublishedSampler, plain_noise  # noqa: E402

SURVEY = [(1, 0), (2, 1), (3, 0), *((k, 4) for k in range(5, 11)), *((k, 11) for k in range(12, 15))]


def run(quick: bool, progress: Progress) -> str:
    """Draws a second side by side, then growth from 10 to 5,000 elements."""
    rounds, draws = (2, 2_000) if quick else (7, 20_000)
    text = [
        "One thread. *Plain*: the published sampler transcribed in numpy and lists, one draw at a time. *Compiled*: the same "
        "algorithm in numba, in batches. Both are not uniform, hence not private; isotone's draws are exactly uniform. Times "
        "are microseconds a draw of the whole noise vector, float, in batches; the best of several turns taken in turn.",
        "",
        "| order | n | isotone | compiled | isotone ÷ compiled | plain | plain ÷ isotone |",
        "|---|---|---|---|---|---|---|",
    ]
    orders = _side_by_side()
    for k, (name, P) in enumerate(orders.items()):
        progress(k / len(orders) / 2, name)
        ours, compiled, plain = _three_samplers(P, rounds, draws)
        text.append(
            f"| {name} | {len(P)} | {ours:.2f} | {compiled:.2f} | **{ours / compiled:.1f}** "
            f"| {plain:.0f} | **{plain / ours:.0f}×** |"
        )
    growth = _growth(quick, progress)
    text += [
        "",
        "Growth. *Tables* are built once per order; *release* is the exact integer release from cryptographic bits.",
        "",
    ]
    text += ["| order | n | tables, ms | release, ms | simulated draw, µs |", "|---|---|---|---|---|"]
    text += [f"| {name} | {n} | {a:.1f} | {b:.2f} | {c:.1f} |" for name, n, a, b, c in growth]
    if not quick:
        PICTURE.parent.mkdir(parents=True, exist_ok=True)
        _picture(growth).savefig(PICTURE, dpi=110, bbox_inches="tight", metadata={"Software": None})
        text += ["", "![growth](counts_speed.png)"]
    progress(1.0, "done")
    return "\n".join(text)


def _side_by_side() -> dict[str, Poset]:
    return {
        "health survey": Poset(range(15), SURVEY),
        "chain": Poset.chain(range(50)),
        "random DAG": Poset.random_dag(40, np.random.default_rng(1)),
        "another random DAG": Poset.random_dag(50, np.random.default_rng(2)),
        "antichain": Poset.antichain(range(50)),
        "binary tree": _binary_tree(50),
    }


def _binary_tree(n: int) -> Poset:
    return Poset(range(n), [(k, (k - 1) // 2) for k in range(1, n)])


def _three_samplers(P: Poset, rounds: int, draws: int) -> tuple[float, float, float]:
    """Microseconds a draw: isotone, the published algorithm compiled, and plain."""
    rng, m, published = np.random.default_rng(0), PosetMechanism(P, 1), PublishedSampler(P)

    def compiled() -> None:
        noise_rows(P, *published.simulate(draws, rng), rng.standard_exponential((draws, len(P))))

    few = max(5, draws // 2_000)

    def plain() -> None:
        for _ in range(few):
            plain_noise(P, rng)

    jobs: list[tuple[Callable[[], object], int]] = [
        (lambda: m.simulate(draws, rng), draws),
        (compiled, draws),
        (plain, few),
    ]
    best = [np.inf] * 3
    for _ in range(rounds + 1):  # the first turn may compile
        best = [min(old, _microseconds(job) / count) for old, (job, count) in zip(best, jobs, strict=True)]
    return best[0], best[1], best[2]


def _microseconds(job: Callable[[], object]) -> float:
    start = time.process_time()
    job()
    return (time.process_time() - start) * 1e6


def _growth(quick: bool, progress: Progress) -> list[tuple[str, int, float, float, float]]:
    """(order, n, tables in ms, release in ms, simulated draw in µs)."""
    sizes = (10, 100) if quick else (10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
    families: dict[str, Callable[[int], Poset]] = {
        "chain": lambda n: Poset.chain(range(n)),
        "antichain": lambda n: Poset.antichain(range(n)),
        "binary tree": _binary_tree,
        "random forest": lambda n: _random_forest(n, np.random.default_rng(n)),
        "random DAG": lambda n: Poset.random_dag(n, np.random.default_rng(n)),
    }
    rows: list[tuple[str, int, float, float, float]] = []
    for k, (name, family) in enumerate(families.items()):
        for n in (
            sizes if name != "random DAG" else [size for size in (10, 20, 30, 40, 50) if size <= max(sizes)]
        ):
            progress(0.5 + (k + n / 5000) / len(families) / 2, f"{name}, {n} elements")
            P = family(n)
            P.decomposition()
            building = min(_microseconds(lambda P=P: tables(P)) for _ in range(2)) / 1e3
            m = PosetMechanism(P, 1)
            zeros, draws = np.zeros(n, np.int64), max(10, min(1_000, 100_000 // n))
            releasing = min(_microseconds(lambda m=m, z=zeros: m.release(z)) for _ in range(5)) / 1e3
            rng = np.random.default_rng(0)
            drawing = (
                min(_microseconds(lambda m=m, d=draws, rng=rng: m.simulate(d, rng)) for _ in range(3)) / draws
            )
            rows.append((name, n, building, releasing, drawing))
    return rows


def _random_forest(n: int, rng: np.random.Generator) -> Poset:
    """Each element but some roots lies below a random earlier one."""
    parents = [int(rng.integers(-1, k)) if k else -1 for k in range(n)]
    return Poset(range(n), [(k, parent) for k, parent in enumerate(parents) if parent >= 0])


def _picture(growth: list[tuple[str, int, float, float, float]]) -> Figure:
    figure = Figure(figsize=(11, 3.6), layout="constrained")
    titles = ("tables, ms", "exact release, ms", "simulated draw, µs")
    for column, (axes, title) in enumerate(zip(figure.subplots(1, 3), titles, strict=True)):
        for name in dict.fromkeys(row[0] for row in growth):
            rows = [row for row in growth if row[0] == name]
            axes.loglog([row[1] for row in rows], [row[2 + column] for row in rows], "o-", ms=3, label=name)
        axes.set(xlabel="elements", title=title)
        axes.grid(alpha=0.3)
    figure.axes[0].legend(fontsize="small")
    return figure
