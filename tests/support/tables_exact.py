"""The mechanisms of tables in exact rationals and as plain linear programs, to check the fast ones against."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linprog

from isotone.tables.two_stage import TwoStageMechanism

Matrix = list[list[Fraction]]


def exact_geometric(n: int, ratio: Fraction) -> Matrix:
    """The truncated geometric mechanism with ``a = ratio``."""
    if n == 1:
        return [[Fraction(1)]]
    ends, inside = 1 / (1 + ratio), (1 - ratio) / (1 + ratio)
    return [[(ends if k in (0, n - 1) else inside) * ratio ** abs(i - k) for k in range(n)] for i in range(n)]


def exact_optimum(z: list[Fraction], target: list[Fraction], ratio: Fraction) -> Matrix:
    """Geometric noise and the comonotone coupling, straight from the definition."""
    n, m = len(z), len(target)
    noise = exact_geometric(n, ratio)
    source = [sum((z[i] * noise[i][k] for i in range(n)), Fraction(0)) for k in range(n)]
    before = [sum(source[:k], Fraction(0)) for k in range(n + 1)]
    reached = [sum(target[:j], Fraction(0)) for j in range(m + 1)]
    coupling = [
        [
            max(Fraction(0), min(before[k + 1], reached[j + 1]) - max(before[k], reached[j])) / source[k]
            for j in range(m)
        ]
        for k in range(n)
    ]
    return product(noise, coupling)


def exact_heuristic(z: list[Fraction], order: list[int], ratio: Fraction) -> Matrix:
    """Algorithm 1 of Kohli and Laskowski 2026, as printed."""
    n = len(z)
    matrix = [[Fraction(0)] * n for _ in range(n)]
    rest, need = [Fraction(1)] * n, list(z)
    for j in order:
        while need[j] > 0:
            rises = [i < j for i in range(n - 1)]
            for i in range(n - 1):
                if rest[i + 1] == (rest[i] * ratio if rises[i] else rest[i] / ratio):
                    rises[i] = not rises[i]
            scale = [Fraction(1)]
            for up in rises:
                scale.append(scale[-1] / ratio if up else scale[-1] * ratio)
            most = need[j] / sum((a * b for a, b in zip(z, scale, strict=True)), Fraction(0))
            for i, up in enumerate(rises):
                inner, outer = (i + 1, i) if up else (i, i + 1)
                slope = scale[inner] - ratio * scale[outer]
                if rest[inner] - ratio * rest[outer] < most * slope:
                    most = (rest[inner] - ratio * rest[outer]) / slope
            for i in range(n):
                matrix[i][j] += most * scale[i]
                rest[i] -= most * scale[i]
            need[j] -= most * sum((a * b for a, b in zip(z, scale, strict=True)), Fraction(0))
    return matrix


def product(a: Matrix, b: Matrix) -> Matrix:
    columns = list(zip(*b, strict=True))
    return [[sum((x * y for x, y in zip(row, c, strict=True)), Fraction(0)) for c in columns] for row in a]


def cost(matrix: Matrix, z: list[Fraction], loss: Matrix) -> Fraction:
    return sum(
        (z[i] * c * t for i, row in enumerate(matrix) for t, c in zip(row, loss[i], strict=True)), Fraction(0)
    )


def solve(
    cost: NDArray[np.float64],
    epsilon: float,
    z: NDArray[np.float64] | None = None,
    target: NDArray[np.float64] | None = None,
) -> float:
    """The least ``sum(cost * T)`` over ε-DP matrices, with ``zT = target`` if ``z`` is given, by HiGHS."""
    n = len(cost)
    ratio, identity = np.exp(-epsilon), sparse.identity(n)
    here, following = sparse.eye(n - 1, n), sparse.eye(n - 1, n, k=1)
    private = sparse.vstack(
        [sparse.kron(ratio * here - following, identity), sparse.kron(ratio * following - here, identity)]
    )
    rows, sides = [sparse.kron(identity, np.ones((1, n)))], [np.ones(n)]
    if z is not None and target is not None:
        rows.append(sparse.kron(z[None, :], identity))
        sides.append(target)
    found = linprog(
        cost.ravel(),
        A_ub=private.tocsc() if n > 1 else None,
        b_ub=np.zeros(2 * n * (n - 1)) if n > 1 else None,
        A_eq=sparse.vstack(rows).tocsc(),
        b_eq=np.concatenate(sides),
        method="highs-ds",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert found.status == 0, found.message
    return float(found.fun)


def shapes(n: int, rng: np.random.Generator) -> dict[str, NDArray[np.float64]]:
    """Distributions that are hard in different ways, on ``n`` counts."""
    i = np.arange(n)
    found = {
        "uniform": np.ones(n),
        "bell": np.exp(-(((i - n / 2) / (n / 8 + 1)) ** 2)),
        "falling": 0.7**i + 1e-300,
        "zero-inflated": np.where(i == 0, n, 1.0 / (1 + i)),
        "rough": rng.exponential(size=n) ** 4,
        "with holes": rng.exponential(size=n) * (rng.random(n) < 0.4) + (i == n - 1),
        "two ends": 1.0 * ((i == 0) | (i == n - 1)),
        "one point": 1.0 * (i == n // 3),
    }
    return {name: p / p.sum() for name, p in found.items()}


def assert_steps_cost_epsilon(
    mechanism: TwoStageMechanism, size: int, gaps: Iterable[int], top: int | None = None
) -> None:
    """What every step pays, in exact fractions, if these gaps between thresholds are filled after a first look.

    A step across a threshold pays for it and for the noise of the count, any other for the noise alone. Where counts have no bound, the
    thresholds of the climb pay half, and steps beyond pay for the number of cases there. A person pays for all of its steps.
    """
    first = mechanism.measurement(size, top)
    climbed, others = first.places[: first.climbed], first.places[first.climbed :]
    ends = [-1, *sorted(first.places), first.upper]
    filled = [at for gap in sorted(gaps) if gap < len(ends) - 1 for at in range(ends[gap] + 1, ends[gap + 1])]
    spent = first.with_finer(tuple(filled)) if first.finer_share else first
    assert not set(spent.places) & set(spent.finer)
    assert len(set(spent.places)) == len(spent.places)
    line = spent.line
    for step in range(-1, first.upper + 1):
        noise = line.unit * (line.weights[step] if 0 <= step < first.upper else line.outside)
        measured = spent.rate * (step in others) + spent.finer_rate * (step in spent.finer)
        measured += first.step / 2 * (step in climbed)
        if first.climbed and not 0 <= step < first.upper:
            measured += first.step / 10
        assert noise > 0
        assert mechanism.unit.steps * (noise + measured) == mechanism.epsilon
