"""Counts over time: root mean squared errors of the whole series, and all rivals at their best, in one run."""

from __future__ import annotations

import itertools
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from benchmarks._rows import Rows
from isotone.counts import PosetMechanism
from isotone.mechanism import Progress
from isotone.order import Poset
from isotone.privacy.guarantee import Guarantee
from isotone.reading.records import RecordSource
from isotone.series import plan_series
from isotone.series.register import HistoryRules, Register, random_key

Matrix = NDArray[np.float64]

_SURVEY = [(1, 0), (2, 1), (3, 0), *((i, 4) for i in range(5, 11)), *((i, 11) for i in (12, 13, 14))]
_ENUMERABLE = 5_000
"""Histories up to which strategies over all of them are optimised."""
_ROUNDS, _STEPS = 3, 1500
"""How often the smoothed maximum is sharpened anew for a strategy over all histories, and steps for each sharpness."""
_TRIED, _LAST = 100, 1200
"""Steps of each start of a p-identity over all histories, and of the best one."""
_AIMS = {
    "ε = 1": (9.2, 8.2, 15.8, 19.7, 53.5),
    "ρ = ½": tuple(1.001 * x for x in (2.570, 2.430, 3.268, 3.992, 6.511)),
}
"""What the study before the code was written aimed at, case by case."""


def _survey(n: int) -> Poset:
    return Poset(range(n), [(a, b) for a, b in _SURVEY if a < n])


CASES: dict[str, tuple[Callable[[], Poset], int]] = {
    "3 stages × 24": (lambda: Poset.chain(range(3)), 24),
    "4 stages × 12": (lambda: Poset.chain(range(4)), 12),
    "4 stages × 52": (lambda: Poset.chain(range(4)), 52),
    "11 questions × 12": (lambda: _survey(11), 12),
    "15 questions × 52": (lambda: _survey(15), 52),
}


class Figures(NamedTuple):
    """Root mean squares of the errors of all counts, of the last period, and of what is new from period to period."""

    all: float
    last: float
    changes: float
    spread: float = 0.0
    """The standard error of the square of ``all``, relative to it, or more than that, where it is simulated."""

    def times(self, factor: float) -> Figures:
        """The same with noise that is so many times larger."""
        return Figures(*(factor * x for x in self[:3]))

    def __str__(self) -> str:
        sure = self.spread < 0.002 and (self.spread > 0 or self.all < 8)
        words = " / ".join(f"{x:.{4 if sure else 3}g}" for x in self[:3])
        return f"{words} (± {50 * self.spread:.1f} %)" if self.spread else words


def figures(covariance: Matrix, periods: int) -> Figures:
    """The errors that noise of this covariance has, counts period by period."""
    variance = np.diag(covariance).reshape(periods, -1)
    m = variance.shape[1]
    both = np.diag(covariance, -m).reshape(periods - 1, m) if periods > 1 else np.zeros((0, m))
    changes = np.concatenate((variance[:1], variance[1:] + variance[:-1] - 2 * both))
    return Figures(*(float(np.sqrt(np.mean(part))) for part in (variance, variance[-1], changes)))


def run(quick: bool, progress: Progress) -> str:
    """Plan every case under ε = 1 and ρ = ½, and optimise every rival for it. Finished rows outlive an interruption."""
    cases = ["4 stages × 12"] if quick else list(CASES)
    rows = Rows("series quick" if quick else "series")
    found: dict[str, dict[str, dict[str, Any]]] = {"ε = 1": {}, "ρ = ½": {}}
    for number, name in enumerate(cases):
        for kind, made in found.items():
            made[name] = {}
            for row, make in _methods(name, kind == "ρ = ½", 0.1 if quick else 1.0).items():
                progress(number / len(cases), f"{name}, {kind}: {row}")
                made[name] |= json.loads(
                    rows.get(f"{name} {kind} {row}", lambda make=make: json.dumps(make()))
                )
    people = [rows.get(f"{n}", lambda n=n: _alone(n)) for n in ((10**5,) if quick else (10**6, 10**7))]
    rows.done()
    progress(1.0, "done")
    tables = "\n\n".join(f"## {kind}\n\n{_table(made, _AIMS[kind])}" for kind, made in found.items())
    load = f"When this page was written {os.getloadavg()[2]:.0f} jobs shared the {os.cpu_count()} cores."
    return f"{_HEAD}\n\n{tables}\n\n{_NOTES.strip()} {load}\n\n{_RIVALS}\n\n{_MANY}\n" + "\n".join(people)


def _methods(name: str, gaussian: bool, scale: float) -> dict[str, Callable[[], dict[str, Any]]]:
    """What is measured in one case, each part by itself. Errors are lists, all else is text."""
    order, periods = CASES[name]
    P = order()
    guarantee, m = Guarantee.zcdp("1/2") if gaussian else Guarantee.pure(1), len(P)
    histories = _histories(P, periods)

    def alone() -> Figures:
        within_time = Poset.product(Poset.chain(range(periods)), Poset.antichain(P.elements))
        return figures(PosetMechanism(within_time, 1).covariance(), periods)

    def counter() -> Figures:
        best = _counter(periods, gaussian)
        if gaussian:
            one = plan_series(Poset.antichain("a"), periods, guarantee).best.covariance()
            best = min(best, figures(one, periods))
        return best.times(m**0.5 if gaussian else m)

    def waves() -> Figures:
        one = plan_series(P, 1, guarantee).rows[0].all
        each = one * (periods**0.5 if gaussian else periods)
        return Figures(each, each, each * math.sqrt(2 - 1 / periods))  # independent noise in each period

    rivals: dict[str, Callable[[], Figures]] = {}
    if histories is not None and gaussian:
        rivals["stages times square root of time"] = lambda: _kronecker(P, periods, histories)
    elif histories is not None:
        rivals["one Laplace strategy over all histories"] = lambda: _joint(
            histories, len(histories), m, scale
        )
        rivals["p-identity over all histories"] = lambda: _identity(histories, len(histories), m, scale)
    if not gaussian:
        rivals["relations in time alone"] = alone
    rivals |= {"a counter for each stage": counter, "waves: a release for each period": waves}
    every: dict[str, Callable[[], dict[str, Any]]] = {"isotone": lambda: _planned(P, periods, guarantee)}
    return every | {row: lambda row=row, make=make: {row: make()} for row, make in rivals.items()}


def closed(people: int) -> str:
    """Two closings of four stages with so many people, whose rows are others the second time, and the largest memory of this process."""
    P, cells, old = Poset.chain(["s3", "s2", "s1", "s0"]), list[str](), None
    register = Register(P, HistoryRules(unit="id"), None, random_key())
    with tempfile.TemporaryDirectory() as place:
        for week in (0, 1):
            rows, new = Path(place) / f"rows{week}.parquet", Path(place) / f"register{week}.parquet"
            stage = f"'s' || CAST(hash(i + {week}) % 4 AS VARCHAR)"
            duckdb.execute(f"COPY (SELECT i AS id, {stage} AS stage FROM range({people}) r(i)) TO '{rows}'")
            begun, source = time.process_time(), RecordSource(rows, element="stage")
            register.grown(source, source.open(P, register.rules, None), old, new)
            memory = _largest_memory()
            cells.append(f"{time.process_time() - begun:.0f} s, {memory:.1f} GB")
            old = new
        return f"| {people:,} | {' | '.join(cells)} | {new.stat().st_size / 1e6:.0f} MB |"  # pyright: ignore[reportPossiblyUnboundVariable]


def _largest_memory() -> float:
    """The largest memory of this process so far, in GB. What the system says of resources counts the process before it, too."""
    line = next(x for x in Path("/proc/self/status").read_text().splitlines() if x.startswith("VmHWM"))
    return int(line.split()[1]) / 2**20


def _alone(people: int) -> str:
    """:func:`closed` in a process of its own."""
    code = f"from benchmarks.series import closed; print(closed({people}))"
    said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    return said.strip().splitlines()[-1]  # before it how far the file is, where that takes long


def _table(found: Mapping[str, Mapping[str, Any]], aims: Sequence[float]) -> str:
    """A column for each case, a row for each method. The best of all counts stands in bold."""
    names = dict.fromkeys(name for column in found.values() for name in column)
    errors = {
        case: {name: Figures(*x) for name, x in column.items() if isinstance(x, list)}
        for case, column in found.items()
    }
    best = [min(column.values()) for column in errors.values()]
    lines = [f"| | {' | '.join(found)} |", "|" + "---|" * (len(found) + 1)]
    aimed = dict(zip(CASES, aims, strict=True))
    lines.append(f"| *all counts, at most* | {' | '.join(f'{aimed[case]:.4g}' for case in found)} |")
    for name in sorted(names, key=lambda name: name.startswith("CPU")):
        cells = [errors[case].get(name, column.get(name, "–")) for case, column in found.items()]
        marked = (
            f"**{cell}**" if cell == first else f"{cell}" for cell, first in zip(cells, best, strict=True)
        )
        lines.append(f"| {name} | {' | '.join(marked)} |")
    return "\n".join(lines)


def _planned(P: Poset, periods: int, guarantee: Guarantee) -> dict[str, Any]:
    """The candidates of isotone, how long an opening takes, and how long the draw of its noise."""
    begun = time.process_time()
    plan = plan_series(P, periods, guarantee)
    plan.best.half_widths(0.95)  # all that an opening computes
    planned = time.process_time()
    plan.best.draw()
    drawn = time.process_time()
    rows: dict[str, Any] = {}
    for row in sorted(plan.rows, key=lambda row: row.name != "two scales"):
        stated = row.mechanism.error()
        simulated = stated.standard_error.size > 0
        spread = float(np.max(stated.standard_error / stated.variance)) if simulated else 0.0
        error = row.all
        if simulated and row.name == "product":
            error, spread = _surer(row.mechanism.noise)
        rows[f"isotone, {_NAMES[row.name]}"] = Figures(error, row.last, row.changes, spread)
    return {
        **rows,
        "CPU seconds of an opening": f"{planned - begun:.1f}",
        "CPU seconds of a draw": f"{drawn - planned:.3f}",
    }


def _surer(noise: Any) -> tuple[float, float]:
    """The error of all counts from more draws than a plan takes, and the standard error of its square relative to it."""
    draws, order = noise.sampler, noise.sampler.order
    rows = draws.simulate(160_000, np.random.default_rng(35))
    blocks = draws.given(order, *rows).mean(axis=1).reshape(200, -1).mean(axis=1) / float(noise.rate) ** 2
    square = float(blocks.mean())
    return math.sqrt(square), float(blocks.std(ddof=1)) / math.sqrt(200) / square


_NAMES = {
    "two scales": "noise on two scales",
    "product": "one draw of the product",
    "causal Gaussian": "the ellipse of the product",
}


@cache
def _counter(periods: int, gaussian: bool) -> Figures:
    """The best continual counter of one stage: b-ary trees with shares by level and least squares, at ε = 1 or ρ = ½."""
    sums, best = np.tril(np.ones((periods, periods))), Figures(np.inf, np.inf, np.inf)
    for arity in (2, 3, 4, 5, 7):
        if arity >= periods:
            continue
        rows, level, size = list[Matrix](), list[int](), 1
        while True:
            for start in range(0, periods, size):
                row = np.zeros(periods)
                row[start : start + size] = 1
                rows.append(row)
                level.append(len(set(level)) if start == 0 else level[-1])
            if size >= periods:
                break
            size *= arity
        measured, levels = np.array(rows), np.array(level)

        def covariance(
            weights: Matrix, measured: Matrix = measured, levels: NDArray[np.int64] = levels
        ) -> Matrix:
            w = np.exp(weights - weights.max())
            w = w / np.sqrt((w**2).sum()) if gaussian else w / w.sum()
            precision = w[levels] ** 2 * (1.0 if gaussian else 0.5)
            return sums @ np.linalg.inv((measured * precision[:, None]).T @ measured) @ sums.T

        for seed in range(3):
            start_at = np.random.default_rng(seed).normal(size=levels.max() + 1) * (0.1 if seed == 0 else 1.5)
            made = minimize(
                lambda w, of=covariance: float(np.log(np.trace(of(w)))),
                start_at,
                method="Nelder-Mead",
                options={"maxiter": 200 * start_at.size},
            )
            best = min(best, figures(covariance(made.x), periods))
    return best


def _histories(P: Poset, periods: int) -> Matrix | None:
    """Every history as a column, counts period by period; None if there are too many."""
    leq = P.leq_matrix()
    flags = (np.array(bits) for bits in itertools.product((0, 1), repeat=len(P)) if len(P) <= 8)
    filters = [f for f in flags if all(f[y] for x in np.flatnonzero(f) for y in np.flatnonzero(leq[x]))]
    found: list[list[int]] = [[i] for i in range(len(filters))]
    for _ in range(periods - 1):
        found = [[*h, j] for h in found for j in range(len(filters)) if np.all(filters[h[-1]] <= filters[j])]
        if not found or len(found) > _ENUMERABLE:
            return None
    return np.array([np.concatenate([filters[i] for i in h]) for h in found if any(filters[h[-1]])]).T.astype(
        float
    )


def _kronecker(P: Poset, periods: int, V: Matrix) -> Figures:
    """The ellipse of the stages times the square-root factor of time, as strong as the stages gain, at its exact sensitivity."""
    within = np.linalg.inv(plan_series(P, 1, Guarantee.zcdp("1/2")).best.covariance())
    column = np.cumprod([1.0, *((2 * j - 1) / (2 * j) for j in range(1, periods))])
    root = np.array([[column[i - j] if i >= j else 0.0 for j in range(periods)] for i in range(periods)])
    m, best = len(P), Figures(np.inf, np.inf, np.inf)
    for share in np.linspace(0, 1, 21):
        M = (1 - share) * np.eye(m) + share * m * within / np.trace(within)
        strategy = np.kron(np.linalg.inv(root), np.linalg.cholesky(M).T)
        longest = float(((strategy @ V) ** 2).sum(axis=0).max())
        best = min(best, figures(longest * np.kron(root @ root.T, np.linalg.inv(M)), periods))
    return best


def _joint(V: Matrix, n: int, m: int, scale: float) -> Figures:
    """One Laplace strategy for all counts, with the least error over all histories.

    It starts at what is new in each stage and period, with whole stages at two periods. Slopes are computed with 32 bits, which is far
    quicker; the error and the sensitivity of what comes out with 64.
    """
    T, least = n // m, Figures(np.inf, np.inf, np.inf)
    changes = np.kron(np.eye(T) - np.eye(T, k=-1), np.eye(m))
    cells = np.eye(m) - np.eye(m, k=-1)  # of a chain, whose first stage is the last one reached
    inside = np.kron(np.eye(T)[[T // 2 - 1, T - 1]], cells)
    short = np.ascontiguousarray(V, dtype=np.float32)

    def error(x: Matrix, power: int) -> tuple[float, Matrix]:
        B = x.reshape(-1, n)
        Z = B.astype(np.float32) @ short
        S = np.sqrt(Z * Z + np.float32((1e-3 / power) ** 2))
        lengths = S.sum(axis=0).astype(np.float64)
        top = lengths.max()
        q = (lengths / top) ** power
        G = np.linalg.inv(B.T @ B)
        trace = np.trace(G)
        slope = Z / S * (q / lengths / q.sum()).astype(np.float32)
        value = np.log(trace) + 2 * (np.log(top) + np.log(q.sum()) / power)
        return float(value), (-2 * B @ (G @ G) / trace + 2 * (slope @ short.T)).ravel()

    rng = np.random.default_rng(5)
    strategy = np.vstack([changes, 0.5 * inside, 0.02 * rng.normal(size=(n // 2, n))])
    for _ in range(_ROUNDS):
        for power in (8, 32, 128, 512, 4096):
            options = {"maxiter": int(scale * _STEPS), "maxcor": 20, "maxfun": 10**6}
            made = minimize(
                error, strategy.ravel(), args=(power,), jac=True, method="L-BFGS-B", options=options
            )
            strategy = made.x.reshape(strategy.shape)
            strategy /= np.abs(strategy @ V).sum(axis=0).max()
            least = min(least, figures(2 * np.linalg.inv(strategy.T @ strategy), T))
        strategy *= 1 + 0.02 * rng.normal(size=strategy.shape)  # away from this local optimum, and once more
    return least


def _identity(V: Matrix, n: int, m: int, scale: float) -> Figures:
    """HDMM's p-identity over whole histories as exclusive cells, with the least error of all counts: the best of three starts goes on."""
    W, cells, T = V.T.copy(), V.shape[1], n // m
    steps = np.diff(np.concatenate([np.zeros((1, m, cells)), V.reshape(T, m, cells)]), axis=0)

    def parts(x: Matrix) -> tuple[Matrix, Matrix, Matrix, Matrix]:
        Th = (x * x).reshape(-1, cells)  # not below 0
        Y = W * (1 + Th.sum(axis=0))[:, None]
        B = Th @ Y
        return Th, Y, B, np.linalg.solve(np.eye(len(Th)) + Th @ Th.T, B)

    def error(x: Matrix) -> tuple[float, Matrix]:
        Th, Y, B, X = parts(x)
        value = float(np.sum(Y**2) - np.sum(B * X))
        slope = -2 * X @ Y.T + 2 * X @ (X.T @ Th) + np.sum(W * (2 * Y - 2 * Th.T @ X), axis=1)[None, :]
        return float(np.log(value)), 2 * x * slope.ravel() / value

    def better(x: Matrix, most: int) -> tuple[Figures, Matrix]:
        options = {"maxiter": int(scale * most), "maxcor": 20, "maxfun": 10**6}
        x = minimize(error, x, jac=True, method="L-BFGS-B", options=options).x
        _, Y, B, X = parts(x)
        return figures(2 * (Y.T @ Y - B.T @ X), T), x

    tried = list[tuple[Figures, Matrix]]()
    for seed, (extra, sizes) in enumerate([(n // 4, (1, T // 4)), (n // 2, (1,)), (n, ())]):
        rng = np.random.default_rng(1 + seed)
        known = [3 * steps[t : t + k, s].sum(axis=0) for k in sizes for s in range(m) for t in range(0, T, k)]
        start = np.vstack([*known, rng.uniform(0, 0.3, size=(extra, cells))])
        tried.append(better(np.sqrt(start + rng.uniform(0, 0.05, size=start.shape)).ravel(), _TRIED))
    _, best = min(tried, key=lambda pair: pair[0])
    return better(best, _LAST)[0]


_HEAD = """Errors of all counts / of the last period / of what is new from period to period, add-remove, for a person's whole history. The
least error of all counts in bold; above it what the study before the code aimed at. *± %* is the standard error of the first number, or
more than that, where errors are simulated; all others are exact, before or with rounding as each mechanism states them."""

_NOTES = """The seconds are those of one process on a machine that may be busy: of the plan with all its candidates, and with errors and intervals of
the best one, which is what an opening computes; and of the draw of all noise, which is made once for the whole series. Compiled code is
kept from runs before.
"""

_RIVALS = """Rivals. *One Laplace strategy over all histories*: any linear strategy whose largest L1 norm over all histories is one, optimised by
L-BFGS on a smoothed maximum: three rounds, each with 1,500 steps for each of five sharpnesses, from the start that the study before the
code ran longest. *p-identity over all histories*: the strategies of HDMM, with whole histories as exclusive cells; three starts of 100
steps, and 1,200 more from the best. Both are local optima, to be compared with those of the study (9.24 and 8.73, 10.8 and 9.43), and
only where histories can be listed: 4 stages × 52 have 367,289 of them. *Relations in time alone*: the same noise as isotone's, for stages
that know nothing of each other. *A counter for each stage*: the best b-ary tree with optimal shares of its levels and least squares,
under ρ also the ellipse of one stage, each with its part of the budget. *Stages times square root of time*: the ellipse of the stages, as
strong as it gains, times the square-root factor, at its exact sensitivity. *Waves*: a release of isotone for each period, with its part
of the budget.

On a plain chain of stages at one time noise shaped by the order is Laplace noise on what is between two stages, added up: there is
nothing to win. What is new from one period to the next is best known from one draw of the product where there is one; the plan picks
it by `matters="changes"`.

Lost at ε = 1: relations in time alone tell what is new better than the noise that is picked for all counts, in every case, and in both
surveys the last period, too."""

_MANY = """## Many people

What it takes to close a period of four stages from a Parquet file with a row for each person: the first time, and with the
register of the time before. CPU seconds, and the largest memory so far, of a process of its own, files of a few hundred MB included. What
does not fit into memory is spilled to disk.

| people | first period | second period | register |
|---|---|---|---|"""
