"""Independent references for isotonic regression, and random orders to try them on."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations

import highspy
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from isotone.order import Poset


def sparse_poset(size: int, chance: float, rng: np.random.Generator) -> Poset:
    """A random order: each pair in turn is related with the given chance, names shuffled."""
    names = rng.permutation(size).tolist()
    related = np.argwhere(np.triu(rng.random((size, size)) < chance, 1)).tolist()
    return Poset(range(size), [(names[a], names[b]) for a, b in related])


def _closed_sets(P: Poset, upward: bool) -> list[frozenset[int]]:
    below = P.leq_matrix() if upward else P.leq_matrix().T
    subsets = (frozenset(s) for k in range(len(P) + 1) for s in combinations(range(len(P)), k))
    return [s for s in subsets if all(j in s for i in s for j in range(len(P)) if below[i, j])]


def minimax_projection(P: Poset, values: Sequence[float], weights: Sequence[float]) -> list[Fraction]:
    """The projection in rationals: max over filters of min over ideals of the mean of what they share."""
    w = [Fraction(x) for x in weights]
    total = [Fraction(x) * a for x, a in zip(values, w, strict=True)]
    filters, ideals = _closed_sets(P, True), _closed_sets(P, False)

    def mean(items: frozenset[int]) -> Fraction:
        return sum((total[i] for i in items), Fraction(0)) / sum((w[i] for i in items), Fraction(0))

    return [
        max(min(mean(up & down) for down in ideals if x in down) for up in filters if x in up)
        for x in range(len(P))
    ]


def quadratic_program(
    P: Poset, values: NDArray[np.float64], hessian: NDArray[np.floating]
) -> NDArray[np.float64]:
    """``min (f−y)'H(f−y)/2`` over monotone f, by the general-purpose solver HiGHS."""
    n, pairs = len(P), P.cover_pairs
    lower = np.tril(hessian).astype(np.float64)
    model = highspy.HighsModel()
    lp = model.lp_
    lp.num_col_, lp.num_row_ = n, len(pairs)
    lp.col_cost_ = -(hessian @ values)
    lp.col_lower_, lp.col_upper_ = np.full(n, -highspy.kHighsInf), np.full(n, highspy.kHighsInf)
    lp.row_lower_, lp.row_upper_ = np.zeros(len(pairs)), np.full(len(pairs), highspy.kHighsInf)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = np.arange(0, 2 * len(pairs) + 1, 2)
    lp.a_matrix_.index_ = pairs.ravel()
    lp.a_matrix_.value_ = np.tile([-1.0, 1.0], len(pairs))
    model.hessian_.dim_ = n
    model.hessian_.format_ = highspy.HessianFormat.kTriangular
    model.hessian_.start_ = np.concatenate(([0], np.cumsum(np.arange(n, 0, -1))))
    model.hessian_.index_ = np.concatenate([np.arange(k, n) for k in range(n)])
    model.hessian_.value_ = np.concatenate([lower[k:, k] for k in range(n)])
    solver = highspy.Highs()
    solver.silent()
    solver.passModel(model)
    solver.run()
    return np.array(solver.getSolution().col_value)


def optimality_gap(
    P: Poset, fitted: NDArray[np.float64], gradient: NDArray[np.floating], tight: float
) -> float:
    """How far ``gradient`` is from a nonnegative combination of the covers that are tight at ``fitted``.

    Zero for a monotone ``fitted`` means that it is optimal (the Karush–Kuhn–Tucker conditions): the gradient
    of the squared distance must be ``Σ λ (e_upper − e_lower)``. Infinite if ``fitted`` is not monotone.
    """
    pairs = P.cover_pairs
    rise = fitted[pairs[:, 1]] - fitted[pairs[:, 0]]
    if np.any(rise < 0):
        return float("inf")
    active = pairs[rise <= tight]
    n, m = len(P), len(active)
    covers = np.zeros((n, m))
    covers[active[:, 1], np.arange(m)] += 1.0
    covers[active[:, 0], np.arange(m)] -= 1.0
    one = np.ones((n, 1))
    result = linprog(
        np.append(np.zeros(m), 1.0),
        A_ub=np.block([[covers, -one], [-covers, -one]]),
        b_ub=np.concatenate((gradient, -gradient)),
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    return float(result.fun)
