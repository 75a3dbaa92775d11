"""Count mechanisms that keep a distribution: time to build, count error, and time to release a million counts."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from isotone.mechanism import Progress
from isotone.published.tables.lp import full_program, is_private
from isotone.tables import CountMechanism, fixed_point, truncated_geometric, unfixed_optimum
from isotone.tables.matrices.geometric import loss_matrix

EPSILON = "0.5"


def run(quick: bool, progress: Progress) -> str:
    """Every constructor on the same distributions; the best of a few turns counts."""
    sizes = [21, 81, 300] if quick else [21, 51, 81, 200, 2_000, 10_000, 100_000, 1_000_000]
    full = 21 if quick else 81
    rows = [
        "| counts | closed form | heuristic (sandwich) | ÷ closed form | HiGHS simplex | HiGHS interior point "
        "| our linear program | error: heuristic ÷ optimum | solvers' matrices private? |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for number, n in enumerate(sizes):
        progress(0.8 * number / len(sizes), f"{n} counts")
        rows.append(_constructors(n, full, quick))
    progress(0.8, "releases")
    table = _releases(10_000 if quick else 1_000_000)
    progress(1.0, "done")
    return "\n".join(rows) + _NOTES + table


_NOTES = f"""

ε = {EPSILON}; a distribution with zero inflation and a long tail. The linear programs minimise the absolute error, for which the closed form
is the optimum; they are there for comparison, and for losses that have no closed form. *Solvers' matrices*: whether what HiGHS returns for the full
program satisfies the ratio constraint within one part in a million; ours come from sums of scales and satisfy it exactly. A dash: not run (the full
program has n² variables and 2n² constraints; ours over scales is for at most 500 counts; the heuristic is O(n²)).

"""


def _zero_inflated(n: int) -> NDArray[np.float64]:
    i = np.arange(1, n, dtype=np.float64)
    tail = sum(
        weight * p * np.exp(i * np.log1p(-p)) for weight, p in ((0.7, 0.3), (0.25, 0.05), (0.05, 0.01))
    )
    z = np.concatenate([[0.53], 0.47 * tail / np.sum(tail)]) + 1e-12 / n
    return z / z.sum()


def _constructors(n: int, full: int, quick: bool) -> str:
    z = _zero_inflated(n)
    turns = 3 if quick else 7
    best, closed = _timed(lambda: fixed_point(z, EPSILON), turns)
    cells = [f"{n:,}", _show(best)]
    if n <= 10_000:
        t, heuristic = _timed(
            lambda: fixed_point(z, EPSILON, constructor="heuristic", selector="sandwich"),
            3 if n <= 2_000 else 1,
        )
        excess = f"{heuristic.count_error(z) / closed.count_error(z):.3f}"
        cells += [_show(t), f"{t / best:,.0f}×"]
    else:
        excess = "–"
        cells += ["–", "–"]
    private: list[str] = []
    for solver in ("simplex", "interior-point"):
        if n <= full:
            t, raw = _timed(lambda s=solver: _solver_matrix(z, s), 1)
            private.append("yes" if is_private(np.maximum(raw, 0), float(EPSILON), 1e-6) else "no")
            cells.append(_show(t))
        else:
            cells.append("–")
    if n <= 200:
        t, _ = _timed(lambda: fixed_point(z, EPSILON, constructor="lp", solver="column-generation"), 1)
        cells.append(_show(t))
    else:
        cells.append("–")
    return "| " + " | ".join([*cells, excess, " / ".join(private) or "–"]) + " |"


def _solver_matrix(
    z: NDArray[np.float64], solver: Literal["simplex", "interior-point"]
) -> NDArray[np.float64]:
    return full_program(z, z, z[:, None] * loss_matrix("absolute", len(z)), float(EPSILON), solver)


def _releases(size: int) -> str:
    n = 81
    z = _zero_inflated(n)
    rng = np.random.default_rng(1)
    counts = rng.choice(n, size, p=z)
    dense = fixed_point(z, EPSILON).matrix()
    mechanisms: dict[str, CountMechanism] = {
        "closed form": fixed_point(z, EPSILON),
        "closed form, 1,000,000 different counts": fixed_point(_zero_inflated(10**6), EPSILON),
        "heuristic (sum of scales)": fixed_point(z, EPSILON, constructor="heuristic", selector="sandwich"),
        "unfixed optimum": unfixed_optimum(z, EPSILON),
        "truncated geometric": truncated_geometric(n, EPSILON),
    }
    rows = [
        f"| releasing {size:,} counts | exact, cryptographic bits | seeded floats (`simulate`) | exact ÷ floats |",
        "|---|---|---|---|",
    ]
    for name, mechanism in mechanisms.items():
        exact, _ = _timed(lambda m=mechanism: m.release(counts), 3)
        floats, _ = _timed(lambda m=mechanism: m.simulate(counts, np.random.default_rng(2)), 3)
        rows.append(f"| {name} | {_show(exact)} | {_show(floats)} | {exact / floats:.1f}× |")
    plain, _ = _timed(lambda: _plain(counts, dense, rng), 1)
    rows.append(f"| inverse CDF on the dense matrix, numpy floats | – | {_show(plain)} | – |")
    return "\n".join(rows)


def _plain(
    counts: NDArray[np.int64], matrix: NDArray[np.float64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """What one would write first: for each count a search in the cumulative row of the matrix."""
    ceilings = np.cumsum(matrix, axis=1)
    return (rng.random(len(counts))[:, None] >= ceilings[counts]).sum(axis=1)


def _timed(work: Callable[[], Any], turns: int) -> tuple[float, Any]:
    """The best of several turns, and the result of the last; the first of more than one only warms up."""
    best, result = math.inf, None
    for turn in range(turns + (turns > 1)):
        start = time.perf_counter()
        result = work()
        if turn or turns == 1:
            best = min(best, time.perf_counter() - start)
    return best, result


def _show(seconds: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} µs"
