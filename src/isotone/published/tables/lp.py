"""The optimum for any loss by linear programming, as a sum of scales.

The result is truly private, or an error is raised.

What a solver returns is private only up to its tolerances: zeros stand beside positive entries, an infinite
privacy loss. So its matrix is never used. The scales that its columns suggest go into the program over
scales, whose every solution is private, and which exact pricing drives to the optimum.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from fractions import Fraction
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from isotone.errors import InputError, IsotoneError
from isotone.privacy.unit import Unit
from isotone.published.tables.scale_mechanism import ScaleMechanism, require_scales, scale_mechanism
from isotone.published.tables.scale_program import ScaleProgram
from isotone.published.tables.scales import decompose, single_peak
from isotone.tables.matrices.coupling import comonotone
from isotone.tables.matrices.geometric import push_through
from isotone.tables.matrices.losses import Loss, loss_matrix

__all__ = ["Solver", "full_program", "linear_program"]

Solver = Literal["auto", "simplex", "interior-point", "column-generation"]
_FULL = 24
_MOST = 500


def linear_program(
    z: NDArray[np.float64],
    target: NDArray[np.float64],
    epsilon: Fraction,
    unit: Unit,
    loss: Loss,
    solver: Solver = "auto",
    simulated: bool = False,
) -> ScaleMechanism:
    """The mechanism with the least expected loss that sends ``z`` to ``target``, for any loss.

    Guarantee: ε-DP (docs/theory/tables.md, sections 6 to 8). ``simplex`` and ``interior-point`` solve the full
    program in the n² entries first and take the scales that its columns suggest; ``column-generation`` starts
    from the closed form. All end in the same program over scales, solved to optimality.
    """
    if solver not in get_args(Solver):
        raise InputError(f"solver must be one of {', '.join(get_args(Solver))}, not {solver!r}.")
    n, step = len(z), float(unit.per_step(epsilon))
    if n > _MOST:
        raise InputError(
            f"The linear program is for at most {_MOST} counts, not {n}: use constructor='optimal'."
        )
    require_scales(step)
    program = ScaleProgram(z, target, z[:, None] * loss_matrix(loss, n), step)
    program.add_all(_closed_form(z, target, step))
    if solver in ("simplex", "interior-point"):
        program.add_all(_suggested(full_program(z, target, program.cost, step, solver), step))
    elif solver == "auto" and n <= _FULL:
        with suppress(IsotoneError):  # tiny probabilities look infeasible to it; column generation goes on
            program.add_all(_suggested(full_program(z, target, program.cost, step, "simplex"), step))
    program.solve()
    terms = program.terms()
    mechanism = scale_mechanism(terms, target, epsilon, unit, simulated)
    if float(np.max(np.abs(mechanism.output(z) - target))) > 1e-9:
        raise IsotoneError(
            "The linear program was solved too coarsely to keep the distribution. Use constructor='optimal' or "
            "'heuristic', or fewer counts."
        )
    return mechanism


def full_program(
    z: NDArray[np.float64],
    target: NDArray[np.float64],
    cost: NDArray[np.float64],
    epsilon: float,
    solver: Literal["simplex", "interior-point"],
) -> NDArray[np.float64]:
    """The solution of HiGHS for the program in the entries of the matrix.

    It is close to private, and not private.
    """
    from scipy import sparse
    from scipy.optimize import linprog

    n, ratio = len(z), np.exp(-epsilon)
    identity, steps = sparse.identity(n), sparse.diags_array(np.ones(n), offsets=0, shape=(n - 1, n))
    shifted = sparse.diags_array(np.ones(n - 1), offsets=1, shape=(n - 1, n))
    privacy = sparse.vstack(
        [sparse.kron(ratio * steps - shifted, identity), sparse.kron(ratio * shifted - steps, identity)]
    )
    equal = sparse.vstack([sparse.kron(identity, np.ones((1, n))), sparse.kron(z[None, :], identity)])
    found = linprog(
        cost.ravel(),
        A_ub=privacy if n > 1 else None,
        b_ub=np.zeros(2 * (n - 1) * n) if n > 1 else None,
        A_eq=equal,
        b_eq=np.concatenate([np.ones(n), target]),
        method="highs-ds" if solver == "simplex" else "highs-ipm",
        options={"primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9},
    )
    if found.x is None:
        raise IsotoneError(f"The linear program could not be solved: {found.message}")
    return found.x.reshape(n, n)


def _closed_form(
    z: NDArray[np.float64], target: NDArray[np.float64], epsilon: float
) -> Iterator[tuple[int, NDArray[np.bool_]]]:
    """The scales of the closed form.

    A feasible start, and the optimum for Monge losses.
    """
    remap = comonotone(push_through(z, epsilon), target)
    for peak, column in zip(remap.rows, remap.columns, strict=True):
        yield int(column), _rises(single_peak(len(z), int(peak)))


def _suggested(matrix: NDArray[np.float64], epsilon: float) -> Iterator[tuple[int, NDArray[np.bool_]]]:
    """Scales that nearly add up to the columns of a nearly private matrix."""
    for j, column in enumerate(matrix.T):
        if column.max() <= 1e-9:
            continue
        logs = np.log(np.maximum(column, 1e-12 * column.max()))
        for _, pattern in decompose(np.exp(_lipschitz(logs, epsilon)), epsilon, tolerance=1e-6):
            yield j, _rises(pattern)


def _lipschitz(logs: NDArray[np.float64], epsilon: float) -> NDArray[np.float64]:
    """The least vector above ``logs`` whose neighbouring entries differ by at most ε."""
    out = logs.copy()
    for i in range(1, len(out)):
        out[i] = max(out[i], out[i - 1] - epsilon)
    for i in range(len(out) - 2, -1, -1):
        out[i] = max(out[i], out[i + 1] - epsilon)
    return out


def _rises(pattern: tuple[int, ...]) -> NDArray[np.bool_]:
    return np.array(pattern, dtype=np.int64) > 0
