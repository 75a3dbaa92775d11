"""The orders that the benchmark of large prime parts looks at, and the CPU time of a task."""

from __future__ import annotations

import csv
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np

from isotone.order import Poset

__all__ = ["cpu_seconds", "debian", "layers", "random_order", "two_levels"]

DATA = Path(__file__).resolve().parent.parent / "data"
T = TypeVar("T")


def two_levels(n: int, degree: float) -> Poset:
    """Half of the elements below and half above, each pair related with the same probability."""
    rng = np.random.default_rng(n)
    pairs = np.argwhere(rng.random((n // 2, n // 2)) < 2 * degree / n)
    return Poset(range(n), [(int(x), n // 2 + int(z)) for x, z in pairs])


def random_order(n: int, degree: float) -> Poset:
    """Each earlier element lies below each later one with the same probability, and what follows by transitivity."""
    rng = np.random.default_rng(n)
    pairs = np.argwhere(np.triu(rng.random((n, n)) < 2 * degree / n, k=1))
    return Poset(range(n), [(int(x), int(y)) for x, y in pairs])


def layers(k: int) -> Poset:
    """Three levels, each element below its two neighbours of the next."""
    pairs = [
        (level * k + i, (level + 1) * k + j % k) for level in (0, 1) for i in range(k) for j in (i, i + 1)
    ]
    return Poset(range(3 * k), pairs)


def debian() -> Poset:
    """The dependencies among 200 Debian packages."""
    with (DATA / "orders" / "debian_top200_covers.csv").open(newline="", encoding="utf-8") as file:
        pairs = [(row["package"], row["requires"]) for row in csv.DictReader(file)]
    return Poset(dict.fromkeys(name for pair in pairs for name in pair), pairs)


def cpu_seconds(task: Callable[[], T]) -> tuple[float, T]:
    """The CPU seconds that a task takes in this process, and its result."""
    started = time.process_time()
    result = task()
    return max(time.process_time() - started, 1e-4), result
