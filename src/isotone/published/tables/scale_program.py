"""The linear program over scales.

Which scales, how much of each, in which column.

    minimise    Σ weight · (scale · cost of its column)
    such that   Σ weight · scale = 1 in every row,   Σ over a column of weight · (z·scale) = its target.

Any feasible point is private whatever its weights (docs/theory/tables.md, section 6). There are ``n·2^(n-1)``
possible (scale, column) pairs; the program holds a pool of them and grows it by exact pricing until none can
improve it, which also proves a lower bound on the optimum over all of them.
"""

from __future__ import annotations

from collections.abc import Iterable

import highspy
import numpy as np
from numpy.typing import NDArray

from isotone.errors import IsotoneError
from isotone.published.tables.pricing import best_ratio
from isotone.published.tables.terms import ListedTerms

__all__ = ["ScaleProgram"]

_LEAST, _COARSE, _CALM = 1e-6, 1e-8, 0.8

Rises = NDArray[np.bool_]


class ScaleProgram:
    """A growing pool of scales for given z, target and costs ``cost[i, j]`` (weights of true counts included)."""

    def __init__(
        self,
        z: NDArray[np.float64],
        target: NDArray[np.float64],
        cost: NDArray[np.float64],
        epsilon: float,
    ) -> None:
        self.z, self.target, self.cost, self.epsilon = z, target, cost, epsilon
        self.n = len(z)
        self.wanted = np.flatnonzero(target > 0)
        self.place = {int(j): self.n + k for k, j in enumerate(self.wanted)}  # its row in the program
        self.pool: dict[tuple[int, bytes], tuple[NDArray[np.float64], Rises]] = {}
        self.solver = _quiet_solver()
        sides = np.concatenate([np.ones(self.n), target[self.wanted]])
        none, floats = np.zeros(0, np.int32), np.zeros(0)
        self.solver.addRows(len(sides), sides, sides, 0, np.zeros(len(sides), np.int32), none, floats)
        self.sides = sides
        self.lower_bound = -np.inf

    def add(self, column: int, rises: Rises) -> bool:
        """Put the scale that rises at the given steps into the pool of a column.

        Returns False if it is there already.
        """
        key = (column, rises.tobytes())
        if column not in self.place or key in self.pool:
            return False
        values = _values(rises, self.epsilon)
        # in units of the probability it carries, so that the solver's tolerances mean the same for all
        self.pool[key] = (values / max(values @ self.z, _LEAST), rises)
        values = self.pool[key][0]
        entries = np.append(values, values @ self.z)
        rows = np.append(np.arange(self.n), self.place[column]).astype(np.int32)
        self.solver.addCol(
            float(values @ self.cost[:, column]), 0.0, highspy.kHighsInf, len(rows), rows, entries
        )
        return True

    def add_all(self, scales: Iterable[tuple[int, Rises]]) -> None:
        """Put many scales into the pool."""
        for column, rises in scales:
            self.add(column, rises)

    def solve(self, tolerance: float = 1e-9, rounds: int = 1000) -> None:
        """Grow the pool until the best of it is within ``tolerance`` of the best of all, or nothing is new."""
        gap = np.inf
        for _ in range(rounds):
            self._run()
            # the prices of the moment swing wildly; those nearer to the best bound so far find better scales
            grown = self._grow(self.duals + _CALM * (self.steady - self.duals)) or self._grow(self.duals)
            gap = (self.value - self.lower_bound) / max(1.0, abs(self.value))
            if gap <= tolerance or (not grown and gap <= _COARSE):
                return
            if not grown:
                break
        raise IsotoneError(
            f"The linear program over scales was solved only to within {gap:.1g} of the optimum: rounding is too "
            "coarse for this distribution. Use constructor='optimal' or 'heuristic'."
        )

    def terms(self) -> ListedTerms:
        """The optimum's terms, their weights solved for once more in full precision."""
        positive = self._refined(np.flatnonzero(self.weights > 0))
        kept, weights, _ = min(positive, self._refined(self.basic), key=lambda found: found[2])
        keys = list(self.pool)
        columns = np.array([keys[k][0] for k in kept], dtype=np.int64)
        scales = [self.pool[keys[k]] for k in kept]
        tops = np.array([values.max() for values, _ in scales])
        patterns = np.array([rises for _, rises in scales]).reshape(len(kept), self.n - 1)
        return ListedTerms(columns, weights * tops, patterns)

    def _refined(self, used: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float64], float]:
        """Which of the scales used have a positive weight, these weights, and how far they are from feasible."""
        keys = list(self.pool)
        weights = self.weights[used]
        system = np.array([self._coefficients(keys[k]) for k in used]).T
        length = np.linalg.norm(system, axis=0)
        kept = np.arange(len(used))
        while True:
            part = system[:, kept] / length[kept]
            solved = weights[kept] * length[kept]
            for _ in range(3):
                solved = solved + np.linalg.lstsq(part, self.sides - part @ solved, rcond=None)[0]
            if np.all(solved > 0) or len(kept) <= 1:
                break
            kept = kept[solved > 0]  # a weight that should be 0 and came out below
        residual = float(np.max(np.abs(part @ solved - self.sides)))
        return used[kept], (solved / length[kept]).astype(np.float64), residual

    def _coefficients(self, key: tuple[int, bytes]) -> NDArray[np.float64]:
        values = self.pool[key][0]
        row = np.zeros(len(self.sides))
        row[: self.n] = values
        row[self.place[key[0]]] = values @ self.z
        return row

    def _run(self) -> None:
        """Solve from where the last round ended.

        If that fails, solve from the start, and then with looser tolerances.
        """
        for tolerance, afresh in ((1e-10, False), (1e-10, True), (1e-9, True), (1e-8, True)):
            if afresh:
                self.solver.clearSolver()
            self.solver.setOptionValue("primal_feasibility_tolerance", tolerance)
            self.solver.setOptionValue("dual_feasibility_tolerance", tolerance)
            self.solver.run()
            status = self.solver.getModelStatus()
            if status == highspy.HighsModelStatus.kOptimal:
                self._keep()
                return
        raise IsotoneError(
            "The linear program over scales could not be solved "
            f"({self.solver.modelStatusToString(status)}). Use constructor='optimal' or 'heuristic'."
        )

    def _keep(self) -> None:
        """Remember the solution.

        The solver forgets it when a column is added.
        """
        solution, statuses = self.solver.getSolution(), self.solver.getBasis().col_status
        self.value = float(self.solver.getObjectiveValue())
        self.weights = np.array(solution.col_value, dtype=np.float64)
        self.duals = np.array(solution.row_dual, dtype=np.float64)
        self.basic = np.array(
            [k for k, status in enumerate(statuses) if status == highspy.HighsBasisStatus.kBasic],
            dtype=np.int64,
        )
        if self.lower_bound == -np.inf:
            self.steady = self.duals

    def _grow(self, duals: NDArray[np.float64]) -> bool:
        """Add the best scale of each column at these prices, if it is any better at the prices of the moment.

        The prices prove a lower bound on the optimum over all scales; the best is kept.
        """
        prices = duals[: self.n]
        bound, grown = float(np.sum(prices)), False
        for j in self.wanted:
            at = self.place[int(j)]
            ratio, rises = best_ratio(self.cost[:, j] - prices, self.z, self.epsilon, float(duals[at]))
            bound += self.target[j] * ratio
            now = self._ratio_now(int(j), rises)
            if now < self.duals[at] - 1e-12 * max(1.0, abs(float(self.duals[at]))):
                grown = self.add(int(j), rises) or grown
        if bound > self.lower_bound:
            self.lower_bound, self.steady = bound, duals
        return grown

    def _ratio_now(self, column: int, rises: Rises) -> float:
        values = _values(rises, self.epsilon)
        return float(values @ (self.cost[:, column] - self.duals[: self.n]) / (values @ self.z))


def _values(rises: Rises, epsilon: float) -> NDArray[np.float64]:
    """The scale that rises at the given steps, with its highest entry 1."""
    heights = np.concatenate([[0.0], np.cumsum(np.where(rises, 1.0, -1.0))])
    return np.exp(epsilon * (heights - heights.max()))


def _quiet_solver() -> highspy.Highs:
    solver = highspy.Highs()
    solver.silent()
    for name, value in (
        ("threads", 1),
        ("presolve", "off"),  # the basis of one round starts the next
        ("solver", "simplex"),
        ("simplex_strategy", 4),  # primal: more columns keep a basis feasible
        ("simplex_scale_strategy", 0),  # scales are scaled as they should be; any other scaling fails often
        ("small_matrix_value", 1e-12),
    ):
        solver.setOptionValue(name, value)
    return solver
