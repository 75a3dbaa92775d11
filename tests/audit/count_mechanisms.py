"""Count mechanisms that keep a distribution: exact optimality over all scales, hard shapes, long samples."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from isotone.published.tables.scales import ScaleMechanism, patterns, row_sums
from isotone.tables import fixed_point
from isotone.tables.matrices.geometric import loss_matrix
from tests.support.chisquare import FALSE_ALARM, chi_square_p
from tests.support.rational_simplex import minimum
from tests.support.tables_exact import cost, exact_optimum, shapes, solve


def _rational_distribution(n: int, rng: np.random.Generator) -> list[Fraction]:
    while True:
        parts = [int(v) for v in rng.integers(1, 13, n) * (rng.random(n) < 0.7)]
        if sum(parts):
            return [Fraction(v, sum(parts)) for v in parts]


def _monge(n: int, rng: np.random.Generator) -> list[list[Fraction]]:
    kind = int(rng.integers(3))
    if kind < 2:
        return [[Fraction(abs(i - j) ** (kind + 1)) for j in range(n)] for i in range(n)]
    mixed, rows, columns = rng.integers(0, 4, (n, n)), rng.integers(-5, 6, n), rng.integers(-5, 6, n)
    return [[Fraction(int(rows[i] + columns[j] - mixed[i:, j:].sum())) for j in range(n)] for i in range(n)]


def audit_the_closed_form_is_optimal_in_exact_arithmetic_over_all_scales() -> str:
    rng, cases = np.random.default_rng(1), 150
    for _ in range(cases):
        n = int(rng.integers(2, 6))
        ratio = Fraction(*[(1, 2), (2, 3), (1, 3), (9, 10), (1, 20)][int(rng.integers(5))])
        z = _rational_distribution(n, rng)
        target = z if rng.random() < 0.5 else _rational_distribution(n, rng)
        loss = _monge(n, rng)
        pool: list[tuple[list[Fraction], int]] = []
        for pattern in patterns(n):
            scale = [Fraction(1)]
            for p in pattern:
                scale.append(scale[-1] / ratio if p > 0 else scale[-1] * ratio)
            pool += [(scale, j) for j in range(n)]
        mass = [sum((a * b for a, b in zip(z, s, strict=True)), Fraction(0)) for s, _ in pool]
        rows = [[s[i] for s, _ in pool] for i in range(n)]
        rows += [
            [m if j == k else Fraction(0) for m, (_, j) in zip(mass, pool, strict=True)] for k in range(n)
        ]
        costs = [sum((z[i] * loss[i][j] * s[i] for i in range(n)), Fraction(0)) for s, j in pool]
        assert minimum(rows, [Fraction(1)] * n + target, costs) == cost(
            exact_optimum(z, target, ratio), z, loss
        )
    return f"{cases} cases, equal as rationals"


def audit_the_closed_form_equals_highs_on_a_thousand_cases() -> str:
    rng, cases, worst = np.random.default_rng(2), 1000, 0.0
    for _ in range(cases):
        n, epsilon = int(rng.integers(2, 13)), float(rng.uniform(0.01, 4))
        z = rng.dirichlet(np.full(n, rng.uniform(0.1, 2))) + 1e-6  # HiGHS calls tiny probabilities infeasible
        z /= z.sum()
        values = np.concatenate([[0.0], np.cumsum(np.sort(rng.normal(size=2 * n - 2)))])
        i = np.arange(n)
        loss = values[i[:, None] - i[None, :] + n - 1]
        found = fixed_point(z, epsilon).count_error(z, loss)
        worst = max(
            worst, abs(found - solve(z[:, None] * loss, epsilon, z, z)) / max(1.0, np.abs(loss).max())
        )
    assert worst <= 1e-9
    return f"{cases} cases, largest difference {worst:.1e}"


def audit_the_heuristic_is_sound_up_to_ten_thousand_counts() -> str:
    worst = np.zeros(2)
    for n in (80, 500, 2_000, 10_000):
        for z in shapes(n, np.random.default_rng(n)).values():
            for epsilon in (0.01, 0.1, 1.0, 5.0, 20.0) if n <= 2_000 else (0.01, 1.0, 20.0):
                for selector in ("max", "min", "sandwich") if n <= 500 else ("sandwich",):
                    t = fixed_point(z, epsilon, constructor="heuristic", selector=selector)
                    assert isinstance(t, ScaleMechanism)
                    sums = float(np.abs(row_sums(t.terms, epsilon) - 1).max())
                    worst = np.maximum(worst, [sums, t.fixed_point_error(z)])
    assert worst.max() <= 1e-12
    return f"row sums within {worst[0]:.1e}, distribution within {worst[1]:.1e}"


def audit_forty_million_released_counts_follow_the_matrix() -> str:
    n, each = 8, 5_000_000
    z = shapes(n, np.random.default_rng(3))["rough"]
    found = []
    for name in ("optimal", "heuristic"):
        t = fixed_point(z, "0.6", constructor=name, selector="sandwich")  # type: ignore[arg-type]
        near = fixed_point(z, "0.588", constructor=name, selector="sandwich").matrix()  # type: ignore[arg-type]
        right, wrong = [], []
        for i in range(n):
            seen = np.bincount(t.release(np.full(each, i)), minlength=n)
            right.append(chi_square_p(seen, t.matrix()[i]))
            wrong.append(chi_square_p(seen, near[i]))
        assert min(right) > FALSE_ALARM / n, (name, right)
        assert min(wrong) < FALSE_ALARM, f"two percent go unnoticed: {wrong}"
        found.append(f"{name}: smallest p = {min(right):.2g}")
    return "; ".join(found)


def audit_linear_programs_over_scales_reach_their_bound_on_hard_shapes() -> str:
    worst, cases = 0.0, 0
    for n in (21, 51):
        for z in shapes(n, np.random.default_rng(n)).values():
            for epsilon in (0.1, 1.0, 5.0):
                for loss in ("zero-one", np.sqrt(loss_matrix("absolute", n))):
                    t = fixed_point(z, epsilon, constructor="lp", loss=loss)
                    worst = max(worst, t.fixed_point_error(z))
                    cases += 1
                    assert t.privacy_loss() <= epsilon * (1 + 1e-12)
                    assert t.count_error(z, loss) <= fixed_point(z, epsilon).count_error(z, loss) + 1e-8
    return f"{cases} programs, distribution kept within {worst:.1e}"
