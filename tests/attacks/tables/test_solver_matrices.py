"""A matrix from a linear-programming solver with default tolerances is not private; ours from the same program is."""

import math

import numpy as np
from scipy.optimize import linprog

from isotone.audit import audit_exact
from isotone.privacy.guarantee import Guarantee
from isotone.tables import fixed_point
from isotone.tables.matrices.geometric import loss_matrix

N, EPSILON = 30, 1
Z = np.exp(-0.3 * np.arange(N)) / np.exp(-0.3 * np.arange(N)).sum()


def solved_by_default() -> np.ndarray:
    """The program of Kohli and Laskowski as one would write it down, given to HiGHS with nothing set."""
    a = math.exp(-EPSILON)
    index = np.arange(N * N).reshape(N, N)
    rows: list[np.ndarray] = []
    for i in range(N - 1):
        for j in range(N):
            for here, there in ((i, i + 1), (i + 1, i)):
                row = np.zeros(N * N)
                row[index[here, j]], row[index[there, j]] = a, -1.0
                rows.append(row)
    equal = [np.zeros(N * N) for _ in range(2 * N)]
    for k in range(N):
        equal[k][index[k]] = 1.0
        equal[N + k][index[:, k]] = Z
    cost = (Z[:, None] * loss_matrix("absolute", N)).ravel()
    found = linprog(
        cost,
        A_ub=np.array(rows),
        b_ub=np.zeros(len(rows)),
        A_eq=np.array(equal),
        b_eq=np.append(np.ones(N), Z),
    )
    assert found.status == 0
    return found.x.reshape(N, N)


def test_the_solvers_matrix_is_caught_with_a_witness():
    found = audit_exact(solved_by_default(), claimed=Guarantee.pure(EPSILON))
    assert found.broken
    assert found.loss > 1.5
    assert abs(found.neighbour[0] - found.statistic[0]) == 1


def test_ours_from_the_same_program_is_not():
    for constructor in ("lp", "optimal", "heuristic"):
        found = audit_exact(fixed_point(Z, EPSILON, constructor=constructor))
        assert not found.broken, constructor
        assert found.loss > 0.999
