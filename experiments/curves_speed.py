"""Time to fit a private curve, by number of records, method and loss.

Writes ``times.csv`` and a picture, in processor seconds of one core. Compiled kernels are warmed up first; the goals (3 s for our own and 10 s for the
threshold method at a million records) are drawn as lines.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from common import save_figure, write_table
from isotone.curves import PrivateIsotonicRegression
from isotone.mechanism import Progress

CASES = [
    ("auto", "squared"),
    ("auto", "absolute"),
    ("threshold", "squared"),
    ("threshold", "absolute"),
]


def _fit(method: str, loss: str, n: int) -> float:
    rng = np.random.default_rng(n)
    x = rng.random(n)
    y = np.clip(x + rng.normal(0, 0.1, n), 0, 1)
    model = PrivateIsotonicRegression(1, (0, 1), (0, 1), method=method, loss=loss, public_n=n)
    start = time.process_time()
    model.fit(x, y)
    return time.process_time() - start


def run(out: Path, quick: bool, progress: Progress) -> None:
    sizes = (1_000, 3_000) if quick else (10_000, 100_000, 1_000_000)
    columns: dict[str, list[Any]] = {"method": [], "loss": [], "n": [], "cpu_seconds": []}
    figure = Figure(figsize=(6, 4))
    axis = figure.subplots()
    for done, (method, loss) in enumerate(CASES):
        _fit(method, loss, 500)
        times = []
        for n in sizes:
            progress(done / len(CASES), f"{method}, {loss} loss, {n} records")
            times.append(min(_fit(method, loss, n) for _ in range(2)))
            for name, value in zip(columns, (method, loss, n, round(times[-1], 4)), strict=True):
                columns[name].append(value)
        axis.loglog(sizes, times, marker="o", label=f"{method}, {loss}")
    axis.axhline(3, color="C0", ls=":", label="goal, auto (10⁶)")
    axis.axhline(10, color="C2", ls=":", label="goal, threshold (10⁶)")
    axis.set_xlabel("records")
    axis.set_ylabel("processor seconds")
    axis.legend(fontsize=8)
    write_table(out, "times", columns)
    save_figure(figure, out, "times")
    progress(1.0, "done")
