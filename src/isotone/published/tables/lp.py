"""Linear programs over private matrices with a fixed point."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from fractions import Fraction
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from isotone.errors import InputError, IsotoneError
from isotone.kernels import kernel
from isotone.privacy.guarantee import Unit
from isotone.published.tables.scales import (
    ScaleMechanism,
    ScaleProgram,
    decompose,
    require_scales,
    scale_mechanism,
    single_peak,
)
from isotone.tables.matrices.factored import comonotone
from isotone.tables.matrices.geometric import Loss, loss_matrix, push_through

__all__ = [
    "NEVER",
    "Solver",
    "full_program",
    "linear_program",
    "peel",
]


# The optimum for any loss by linear programming, as a sum of scales.
#
# The result is truly private, or an error is raised.
#
# What a solver returns is private only up to its tolerances: zeros stand beside positive entries, an infinite
# privacy loss. So its matrix is never used. The scales that its columns suggest go into the program over
# scales, whose every solution is private, and which exact pricing drives to the optimum.

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


# The heuristic constructor's loop (Algorithm 1 of Kohli and Laskowski 2026), so that it survives rounding.
#
# The algorithm fills one column after another with scales, and keeps what is missing from every row sum, the
# *residual* r. Four things are done differently from the printed loop (docs/theory/tables.md, section 7):
#
# - Which steps of the residual are bound is state, never read off floats. At a bound step every later scale
#   has the residual's ratio.
# - A scale s is kept as a share ``t = s/r`` of the residual together with ``1 - t``, a sum of positive parts.
#   Taking ``q`` of it leaves ``1 - q·t = (1-q) + q·(1-t)`` of each row, a sum of positive parts again; and a
#   step binds when its inner row keeps ``a·(r_outer/r_inner - a)/(1 - a²)``. Nothing is ever subtracted from a
#   residual, so the smallest ones, which decide what binds next, keep their digits.
# - When a step binds, the block on its inner side is set from the outer neighbour, so that bound ratios do not
#   drift.
# - A residual is ``mantissa · 2^(-500·scale)``: it falls far below the smallest float and still matters.
#
# Shares below 2^-70 change no digit of the residual: the sweep of a scale ends there.

NEVER = np.int64(1 << 62)
_BIG, _SMALL = 2.0**500, 2.0**-500
_FAINT = 2.0**-70
_SPENT = 1e-15
_EMPTY = 1e-140


Peeled = tuple[
    NDArray[np.int64], NDArray[np.float64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]
]
"""Column, value at the highest row and level at row 0 of each term; for each step from which term on it is bound, and
in which direction (1 up, -1 down)."""


@kernel(nogil=True)
def peel(
    z: NDArray[np.float64],
    target: NDArray[np.float64],
    order: NDArray[np.int64],
    epsilon: float,
    costs: NDArray[np.float64],
) -> tuple[Peeled, float]:
    """Fill the columns in ``order`` so that rows sum to 1 and ``z`` becomes ``target``.

    There are at most ``2n - 1`` terms. Also the expected cost under ``z``, where publishing j for i costs
    ``costs[i, j]``.
    """
    n, count = z.shape[0], order.shape[0]
    residual, scale = np.ones(n), np.zeros(n, np.int64)
    bound, bound_from = np.zeros(n - 1, np.int64), np.full(n - 1, NEVER)
    leftward = np.full(n - 1, -1)  # whether scales rise or fall over a step to the left of their column
    share, lost = np.zeros(n), np.ones(n)  # of the scale at hand: s/r and 1 - s/r
    columns, values, levels = np.empty(2 * n, np.int64), np.empty(2 * n), np.empty(2 * n, np.int64)
    used, expected = 0, 0.0
    waiting = np.zeros(count + 1)  # what this column and the later ones still need
    for c in range(count - 1, -1, -1):
        waiting[c] = waiting[c + 1] + target[order[c]]
    for c in range(count):
        j = order[c]
        mass = _mass(z, residual, scale)
        need = target[j] * mass / waiting[c]
        whole = need
        last = c == count - 1 or mass < _EMPTY
        while need > _SPENT * whole or last:
            keep, step, low, high, top, height = _sweep(j, epsilon, residual, scale, bound, share, lost)
            holds, cost = 0.0, 0.0
            for i in range(low, high + 1):
                if scale[i] == 0:
                    held = z[i] * residual[i] * share[i]
                    holds += held
                    cost += held * costs[i, j]
            spared = 0.0 if last or holds <= need else 1.0 - need / holds
            binds = step >= 0 and keep > spared
            keep = min(keep, 1.0) if binds else spared
            # rows beyond the sweep hold less than 2^-70 of the scale: they are not the highest, or nothing is high
            highest = share[top] * residual[top] if scale[top] == 0 else 0.0
            value = (1.0 - keep) * highest
            if highest >= _FAINT and value > 0.0:
                columns[used], values[used], levels[used] = j, value, height - np.sum(leftward[:j])
                used += 1
            need -= (1.0 - keep) * holds
            expected += (1.0 - keep) * cost
            _shrink(residual, scale, share, lost, keep, low, high)
            if not binds:
                break
            bound[step], bound_from[step] = 1 if step >= j else -1, used
            leftward[step] = 1 if step < j else -1
            _tie(step, j, epsilon, residual, scale, bound)
        if last:
            break
    return (columns[:used].copy(), values[:used].copy(), levels[:used].copy(), bound_from, bound), expected


@kernel
def _mass(z: NDArray[np.float64], residual: NDArray[np.float64], scale: NDArray[np.int64]) -> float:
    """``z`` times the residual.

    What has left the range of floats counts as 0.
    """
    total = 0.0
    for i in range(z.shape[0]):
        if scale[i] == 0:
            total += z[i] * residual[i]
    return total


@kernel
def _ratio(residual: NDArray[np.float64], scale: NDArray[np.int64], i: int, k: int) -> float:
    """Residual i over residual k, which are neighbours.

    Their scales differ by at most 1.
    """
    ratio = residual[i] / residual[k]
    if scale[i] == scale[k]:
        return ratio
    return ratio * _SMALL if scale[i] > scale[k] else ratio * _BIG


@kernel
def _sweep(
    j: int,
    epsilon: float,
    residual: NDArray[np.float64],
    scale: NDArray[np.int64],
    bound: NDArray[np.int64],
    share: NDArray[np.float64],
    lost: NDArray[np.float64],
) -> tuple[float, int, int, int, int, int]:
    """The scale with its peak at j, but for bound steps, as shares of the residual with ``share[j] = 1``.

    Returns what row j keeps when the first step binds, that step (-1 if none does), the first and last row
    that the sweep reached, the highest of these rows, and how many steps it is above row j.
    """
    n = residual.shape[0]
    ratio, gap = np.exp(-epsilon), -np.expm1(-2 * epsilon)
    keep, step = -1.0e300, -1
    share[j], lost[j] = 1.0, 0.0
    low = high = top = j
    height = 0
    for side in (1, -1):
        inner, here, gone, climb = j, 1.0, 0.0, 0
        while here >= _FAINT:
            outer = inner + side
            if outer < 0 or outer == n:
                break
            at = min(inner, outer)
            if bound[at] == 0:
                rise = _ratio(residual, scale, outer, inner)
                kept = ratio * (rise - ratio) / gap - gone
                if kept > keep * here:
                    keep, step = kept / here, at
                damped = min(ratio / rise, 1.0)
                gone += here * (1.0 - damped)
                here *= damped
                climb -= 1
            else:
                climb += bound[at] * side
                if climb > height:
                    height, top = climb, outer
            share[outer], lost[outer] = here, gone
            inner = outer
        low, high = min(low, inner), max(high, inner)
    return keep, step, low, high, top, height


@kernel
def _shrink(
    residual: NDArray[np.float64],
    scale: NDArray[np.int64],
    share: NDArray[np.float64],
    lost: NDArray[np.float64],
    keep: float,
    low: int,
    high: int,
) -> None:
    """Take the scale off the residual so that the row of its column keeps ``keep`` of what it had."""
    for i in range(low, high + 1):
        left = residual[i] * (keep + (1.0 - keep) * lost[i])
        if 0.0 < left < _SMALL:
            left *= _BIG
            scale[i] += 1
        residual[i] = left


@kernel
def _tie(
    step: int,
    j: int,
    epsilon: float,
    residual: NDArray[np.float64],
    scale: NDArray[np.int64],
    bound: NDArray[np.int64],
) -> None:
    """Set the block of rows that bound steps join to the inner side of ``step`` from the outer neighbour."""
    outer, inner = (step + 1, step) if step >= j else (step, step + 1)
    factor = np.exp(-epsilon) * _ratio(residual, scale, outer, inner)
    toward = 1 if inner > outer else -1
    i = inner
    while True:
        residual[i] *= factor
        following = i + toward
        if following < 0 or following == residual.shape[0] or bound[min(i, following)] == 0:
            break
        i = following
