"""Counts over time: root mean squared errors of the whole series, and all rivals at their best, in one run."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from isotone.counts import PosetMechanism
from isotone.mechanism import Progress
from isotone.order import Poset
from isotone.privacy.guarantee import Guarantee
from isotone.series import plan_series

Matrix = NDArray[np.float64]

_SURVEY = [(1, 0), (2, 1), (3, 0), *((i, 4) for i in range(5, 11)), *((i, 11) for i in (12, 13, 14))]
_ENUMERABLE = 5_000
"""Histories up to which strategies over all of them are optimised."""


def _survey(n: int) -> Poset:
    return Poset(range(n), [(a, b) for a, b in _SURVEY if a < n])


CASES: list[tuple[str, Callable[[], Poset], int]] = [
    ("4 stages × 12", lambda: Poset.chain(range(4)), 12),
    ("3 stages × 24", lambda: Poset.chain(range(3)), 24),
    ("4 stages × 52", lambda: Poset.chain(range(4)), 52),
    ("11 questions × 12", lambda: _survey(11), 12),
    ("15 questions × 52", lambda: _survey(15), 52),
]


def run(quick: bool, progress: Progress) -> str:
    """Plan every case under ε = 1 and ρ = ½, and optimise every rival for it."""
    rows = [
        "| case | isotone: all / last / new | CPU s to open | a draw | counter per stage | joint Laplace strategy | "
        "p-identity on histories | relations in time alone | waves | ρ = ½: isotone | Kronecker | counter per stage | waves |",
        "|" + "---|" * 13,
    ]
    cases = CASES[:1] if quick else CASES
    for number, (name, order, periods) in enumerate(cases):
        progress(number / len(cases), name)
        rows.append(_row(name, order(), periods, 10 if quick else 2.5 * len(order()) * periods))
    progress(1.0, "done")
    return "\n".join(rows) + _NOTES


def _row(name: str, P: Poset, periods: int, seconds: float) -> str:
    m, n = len(P), len(P) * periods
    begun = time.process_time()
    plan = plan_series(P, periods, Guarantee.pure(1))
    plan.best.half_widths(0.95)  # all that an opening computes
    planned = time.process_time()
    plan.best.draw()
    drawn = time.process_time()
    best, others = plan.rows[0], ", ".join(f"{row.name} {row.all:.3g}" for row in plan.rows[1:])
    gaussian = plan_series(P, periods, Guarantee.zcdp("1/2")).rows[0]
    chains = PosetMechanism(Poset.product(Poset.chain(range(periods)), Poset.antichain(P.elements)), 1)
    ellipse = plan_series(Poset.antichain("a"), periods, Guarantee.zcdp("1/2")).best.error().rmse
    gaussian_counter = min(_counter(periods, True), ellipse)
    histories = _histories(P, periods)
    joint = cells = kronecker = "–"
    if histories is not None:
        joint, cells = f"{_joint(histories, n, m, seconds):.3g}", f"{_identity(histories, n, m, seconds):.3g}"
        kronecker = f"{_kronecker(P, periods, histories):.4g}"
    wave, gaussian_wave = PosetMechanism(P, 1).error().rmse * periods, _gaussian_wave(P, periods)
    return (
        f"| {name} | **{best.all:.3g}** / {best.last:.3g} / {best.changes:.3g} ({best.name}; {others or 'no other'}) "
        f"| {planned - begun:.1f} | {1e3 * (drawn - planned):.0f} ms | {_counter(periods, False) * m:.3g} | {joint} | {cells} "
        f"| {chains.error().rmse:.3g} | {wave:.3g} | **{gaussian.all:.4g}** / {gaussian.last:.4g} / {gaussian.changes:.4g} "
        f"| {kronecker} | {gaussian_counter * m**0.5:.3g} | {gaussian_wave:.3g} |"
    )


def _gaussian_wave(P: Poset, periods: int) -> float:
    return plan_series(P, 1, Guarantee.zcdp("1/2")).rows[0].all * periods**0.5


def _counter(periods: int, gaussian: bool) -> float:
    """The best continual counter of one stage: b-ary trees with shares by level and least squares, at ε = 1 or ρ = ½."""
    sums, found = np.tril(np.ones((periods, periods))), np.inf
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

        def error(weights: Matrix, measured: Matrix = measured, levels: NDArray[np.int64] = levels) -> float:
            w = np.exp(weights - weights.max())
            w = w / np.sqrt((w**2).sum()) if gaussian else w / w.sum()
            precision = w[levels] ** 2 * (1.0 if gaussian else 0.5)
            covariance = np.linalg.inv((measured * precision[:, None]).T @ measured)
            return float(np.log(np.einsum("ij,jk,ik->", sums, covariance, sums) / periods))

        for seed in range(4):
            start_at = np.random.default_rng(seed).normal(size=levels.max() + 1) * (0.1 if seed == 0 else 1.5)
            made = minimize(error, start_at, method="Nelder-Mead", options={"maxiter": 400 * start_at.size})
            found = min(found, float(np.exp(made.fun / 2)))
    return found


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


def _kronecker(P: Poset, periods: int, V: Matrix) -> float:
    """The ellipse of the stages times the square-root factor of time, as strong as the stages gain, at its exact sensitivity."""
    within = np.linalg.inv(plan_series(P, 1, Guarantee.zcdp("1/2")).best.covariance())
    column = np.cumprod([1.0, *((2 * j - 1) / (2 * j) for j in range(1, periods))])
    root = np.array([[column[i - j] if i >= j else 0.0 for j in range(periods)] for i in range(periods)])
    m, best = len(P), np.inf
    for share in np.linspace(0, 1, 21):
        M = (1 - share) * np.eye(m) + share * m * within / np.trace(within)
        strategy = np.kron(np.linalg.inv(root), np.linalg.cholesky(M).T)
        longest = float(((strategy @ V) ** 2).sum(axis=0).max())
        trace = float(np.trace(np.linalg.inv(M)) * np.sum(root**2))
        best = min(best, math.sqrt(trace * longest / len(V)))
    return best


def _joint(V: Matrix, n: int, m: int, seconds: float) -> float:
    """One Laplace strategy for all counts, with the least error over all histories, from three starts."""
    T = n // m
    changes = np.kron(np.eye(T) - np.eye(T, k=-1), np.eye(m))
    cells = np.eye(m) - np.eye(m, k=-1)  # of a chain, whose first stage is the last one reached
    inside = np.kron(np.eye(T)[[T // 2 - 1, T - 1]], cells)
    best = np.inf
    for seed, rows in enumerate(([changes, 0.5 * inside], [changes], [np.eye(n)])):
        rng = np.random.default_rng(5 + seed)
        strategy = np.vstack([*rows, 0.02 * rng.normal(size=(n // 2, n))])
        begun, part = time.process_time(), seconds * (0.7 if seed == 0 else 0.15)
        for power in (16, 64, 256, 1024) * 4:

            def error(
                x: Matrix, power: int = power, shape: tuple[int, ...] = strategy.shape
            ) -> tuple[float, Matrix]:
                B = x.reshape(shape)
                Z = B @ V
                S = np.sqrt(Z * Z + (1e-3 / power) ** 2)
                lengths = S.sum(axis=0)
                top = lengths.max()
                q = (lengths / top) ** power
                G = np.linalg.inv(B.T @ B)
                trace = np.trace(G)
                slope = (Z / S) * ((lengths / top) ** (power - 1) / top / q.sum())
                value = np.log(trace) + 2 * (np.log(top) + np.log(q.sum()) / power)
                return float(value), (-2 * B @ (G @ G) / trace + 2 * slope @ V.T).ravel()

            strategy = minimize(
                error, strategy.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": 1500}
            ).x.reshape(strategy.shape)
            best = min(
                best,
                float(
                    np.sqrt(2 * np.trace(np.linalg.inv(strategy.T @ strategy)) / n)
                    * np.abs(strategy @ V).sum(axis=0).max()
                ),
            )
            if power == 1024:  # away from this local optimum, and once more
                strategy *= 1 + 0.02 * rng.normal(size=strategy.shape)
            if time.process_time() - begun > part:
                break
    return best


def _identity(V: Matrix, n: int, m: int, seconds: float) -> float:
    """HDMM's p-identity over whole histories as exclusive cells, with the least error of all counts."""
    W, cells, best, T = V.T.copy(), V.shape[1], np.inf, n // m
    steps = np.diff(np.concatenate([np.zeros((1, m, cells)), V.reshape(T, m, cells)]), axis=0)
    begun = time.process_time()
    for seed, (extra, sizes) in enumerate(
        [(n // 4, (1,)), (n // 2, (1,)), (n // 4, (1, T // 4)), (n // 2, ())]
    ):
        rng = np.random.default_rng(1 + seed)
        known = [3 * steps[t : t + k, s].sum(axis=0) for k in sizes for s in range(m) for t in range(0, T, k)]
        start = np.vstack([*known, rng.uniform(0, 0.3, size=(extra, cells))])
        start += rng.uniform(0, 0.05, size=start.shape)

        def error(x: Matrix, shape: tuple[int, int] = start.shape) -> tuple[float, Matrix]:
            Th = x.reshape(shape)
            Y = W * (1 + Th.sum(axis=0))[:, None]
            B = Th @ Y
            X = np.linalg.solve(np.eye(len(Th)) + Th @ Th.T, B)
            value = float(np.sum(Y**2) - np.sum(B * X))
            slope = -2 * X @ Y.T + 2 * X @ (X.T @ Th) + np.sum(W * (2 * Y - 2 * Th.T @ X), axis=1)[None, :]
            return float(np.log(value)), (slope / value).ravel()

        bounds = [(0, None)] * start.size
        made = minimize(
            error, start.ravel(), jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 1500}
        )
        best = min(best, float(np.sqrt(2 * np.exp(made.fun) / n)))
        if time.process_time() - begun > seconds:
            break
    return best


_NOTES = """

Root mean squared errors at ε = 1, or ρ = ½, add-remove, for a person's whole history; *last* is that of the last period, *new* that of
what is new from period to period. CPU s to open is for the plan of all candidates, with errors and intervals of the best one, in a process that has compiled its kernels. Rivals: a continual counter for each stage with its part of the budget (the best b-ary tree with optimal
shares of its levels and least squares; under ρ also the ellipse of one stage); one Laplace strategy for all counts, optimised over all histories, and p-identity over histories, where these
can be listed, local optima of a few starts; under ρ the ellipse of the stages times the square-root factor of time, at its exact sensitivity; noise for the relations in time alone; a release for each period with its part of the budget (waves).
On a plain chain of stages at one time noise shaped by the order is Laplace noise on what is between two stages, added up: there is nothing to win.
What is new from one period to the next is best known from one draw of the product, which the plan picks with `matters="changes"`.
"""
