"""What answers to readers cost: a law, a share, and all shares together."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from isotone.counts import PosetMechanism
from isotone.inference import Measured
from isotone.mechanism import Progress
from isotone.order import Poset


def tree(size: int) -> Poset:
    """A random tree, the same every time."""
    rng = np.random.default_rng(7)
    return Poset(range(size), [(i, int(rng.integers(0, i))) for i in range(1, size)])


def cpu(task: Callable[[], Any], times: int) -> float:
    """The least CPU time of a task, in seconds: what it costs on a machine that does nothing else."""
    found: list[float] = []
    for _ in range(times):
        start = time.process_time()
        task()
        found.append(time.process_time() - start)
    return min(found)


def run(quick: bool, progress: Progress) -> str:
    lines: list[str] = []
    sizes = [15] if quick else [15, 60, 201, 1_000]
    for done, size in enumerate(sizes):
        progress(done / len(sizes), f"{size} elements")
        P = tree(size)
        m = PosetMechanism(P, 1)
        law = m.law(total=True)
        counts = np.array([2_000.0 * 0.8 ** int(P.height - level) for level in P.levels])
        found = Measured(
            P, np.append(counts, 3_000), law, np.append(m.error().variance, 1.0), m.covariance, has_total=True
        )
        covers = P.covers
        pairs = covers[:: max(1, len(covers) // 10)][:10]
        drawn = cpu(lambda m=m: m.law(total=True), 2)
        one = cpu(lambda found=found, pairs=pairs: [found.share(a, b, 0.95) for a, b in pairs], 3) / len(
            pairs
        )
        several = cpu(lambda found=found, covers=covers: found.shares(covers, 0.95), 2)
        lines.append(
            f"| {size:,} | {law.size:,} | {drawn:.2f} s | {1000 * one:.1f} ms | {len(covers):,} in {several:.2f} s |"
        )
    progress(1.0, "done")
    return (
        "CPU time, on random trees with the order's own noise at ε = 1. A law is drawn once for a release; each further "
        "question uses it again.\n\n| elements | draws of the law | the law | one share | shares together |\n|---|---|---|---|---|\n"
        + "\n".join(lines)
        + "\n"
    )
