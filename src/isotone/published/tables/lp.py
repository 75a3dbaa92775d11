"""Published linear programs and loops over private matrices with a fixed point, and the polytopes they live in."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
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
    patterns,
    require_scales,
    scale_mechanism,
    single_peak,
)
from isotone.tables.matrices.factored import comonotone
from isotone.tables.matrices.geometric import Loss, loss_matrix, push_through

__all__ = [
    "NEVER",
    "Polytope",
    "Solver",
    "fixed_polytope",
    "fixed_representation",
    "full_program",
    "has_fixed_point",
    "is_extreme",
    "is_private",
    "linear_program",
    "peel",
    "unfixed_polytope",
    "unfixed_representation",
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
    result = linprog(
        cost.ravel(),
        A_ub=privacy if n > 1 else None,
        b_ub=np.zeros(2 * (n - 1) * n) if n > 1 else None,
        A_eq=equal,
        b_eq=np.concatenate([np.ones(n), target]),
        method="highs-ds" if solver == "simplex" else "highs-ipm",
        options={"primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9},
    )
    if result.x is None:
        raise IsotoneError(f"The linear program could not be solved: {result.message}")
    return result.x.reshape(n, n)


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


# The polytopes of private count mechanisms.
#
# Membership, extreme points, and all vertices of the small ones.
#
# U holds the ε-DP transition matrices, F those of them that keep a distribution z. Every matrix of either is
# ΨB with Ψ the scales and B a matrix of weights; these weights form the representation polytopes R_U and R_F
# (docs/theory/tables.md, section 6). Vertices are enumerated in exact arithmetic, so ``a = exp(-ε)`` is given
# as a rational: ``Fraction(1, 2)`` is ε = ln 2.

Row = list[Fraction]
_MOST_ENTRIES = 200_000


def is_private(matrix: NDArray[np.float64], epsilon: float, tolerance: float = 1e-9) -> bool:
    """Whether rows sum to 1 and neighbouring entries of every column are within a factor ``exp(ε)``.

    Ratios are compared, so a zero beside a positive entry is caught however small the entry is.
    """
    if bool(np.any(matrix < 0)) or bool(np.any(np.abs(matrix.sum(axis=1) - 1) > tolerance)):
        return False
    above, below = matrix[:-1], matrix[1:]
    bound = math.exp(epsilon) * (1 + tolerance)
    return bool(np.all(above <= bound * below) and np.all(below <= bound * above))


def has_fixed_point(matrix: NDArray[np.float64], z: NDArray[np.float64], tolerance: float = 1e-9) -> bool:
    """Whether ``z·matrix = z``."""
    return bool(np.all(np.abs(z @ matrix - z) <= tolerance))


def is_extreme(
    matrix: NDArray[np.float64],
    epsilon: float,
    z: NDArray[np.float64] | None = None,
    tolerance: float = 1e-9,
) -> bool:
    """Whether a private matrix is an extreme point of F (of U if ``z`` is None).

    It is when the constraints that are tight at it leave no direction to move in: when their rank is n².
    """
    n = matrix.shape[0]
    if not is_private(matrix, epsilon, tolerance):
        return False
    if z is not None and not has_fixed_point(matrix, z, tolerance):
        return False
    ratio = math.exp(-epsilon)
    rows = [np.kron(np.eye(n), np.ones((1, n)))]
    if z is not None:
        rows.append(np.kron(z[None, :], np.eye(n)))
    for i, j in itertools.product(range(n - 1), range(n)):
        for inner, outer in ((i, i + 1), (i + 1, i)):
            if ratio * matrix[inner, j] >= matrix[outer, j] * (1 - tolerance):
                tight = np.zeros((n, n))
                tight[inner, j], tight[outer, j] = ratio, -1.0
                rows.append(tight.reshape(1, -1))
    return int(np.linalg.matrix_rank(np.vstack(rows), tol=1e-7)) == n * n


@dataclass(frozen=True)
class Polytope:
    """A polytope in exact rationals.

    ``{x : equalities·x = sides, inequalities·x <= 0}``.
    """

    equalities: list[Row]
    sides: Row
    inequalities: list[Row]

    @property
    def dimension(self) -> int:
        """The number of directions that the equalities leave."""
        return len(self.inequalities[0]) - len(_reduced(self.equalities))

    def vertices(self) -> list[tuple[Fraction, ...]]:
        """All extreme points, by trying every set of inequalities that could meet in one.

        >>> half = Fraction(1, 2)
        >>> len(fixed_polytope([Fraction(1, 3)] * 3, half).vertices()), len(unfixed_polytope(3, half).vertices())
        (36, 27)
        """
        tight, rows = self.dimension, self.inequalities
        if math.comb(len(rows), tight) > _MOST_ENTRIES:
            raise InputError(
                f"Enumerating vertices means {math.comb(len(rows), tight)} linear systems: too many. This is for "
                "very small tables, to see what the polytopes look like."
            )
        result: dict[tuple[Fraction, ...], None] = {}
        base = _reduced([[*row, side] for row, side in zip(self.equalities, self.sides, strict=True)])
        for chosen in itertools.combinations(rows, tight):
            x = _solved(base, chosen)
            if x is not None and all(_dot(row, x) <= 0 for row in rows):
                result[x] = None
        return list(result)


def unfixed_polytope(n: int, ratio: Fraction) -> Polytope:
    """The polytope U of private transition matrices on n counts.

    Neighbouring entries are within ``ratio``. Matrices are row by row in x.
    """
    return Polytope(_row_sums(n), [Fraction(1)] * n, _privacy(n, ratio))


def fixed_polytope(z: Sequence[Fraction], ratio: Fraction) -> Polytope:
    """The polytope F of matrices in U that keep the distribution ``z``."""
    n = len(z)
    keep = [[z[i] if column == j else Fraction(0) for i in range(n) for column in range(n)] for j in range(n)]
    return Polytope(_row_sums(n) + keep, [Fraction(1)] * n + list(z), _privacy(n, ratio))


def unfixed_representation(n: int, ratio: Fraction) -> Polytope:
    """The polytope R_U of weights whose matrix is in U.

    Non-negative weights of all scales in all columns, scale by scale in x.
    """
    psi = _exact_scales(n, ratio)
    sums = [[s[i] for s in psi for _ in range(n)] for i in range(n)]
    return Polytope(sums, [Fraction(1)] * n, _non_negative(len(psi) * n))


def fixed_representation(z: Sequence[Fraction], ratio: Fraction) -> Polytope:
    """The polytope R_F of weights whose matrix is in F."""
    n = len(z)
    psi = _exact_scales(n, ratio)
    unfixed = unfixed_representation(n, ratio)
    keep = [
        [_dot(z, s) if column == j else Fraction(0) for s in psi for column in range(n)] for j in range(n)
    ]
    return Polytope(unfixed.equalities + keep, unfixed.sides + list(z), unfixed.inequalities)


def _exact_scales(n: int, ratio: Fraction) -> list[Row]:
    result: list[Row] = []
    for pattern in patterns(n):
        values = [Fraction(1)]
        for p in pattern:
            values.append(values[-1] / ratio if p > 0 else values[-1] * ratio)
        result.append([v / sum(values) for v in values])
    return result


def _row_sums(n: int) -> list[Row]:
    return [[Fraction(int(row == i)) for row in range(n) for _ in range(n)] for i in range(n)]


def _privacy(n: int, ratio: Fraction) -> list[Row]:
    rows: list[Row] = []
    for i, j in itertools.product(range(n - 1), range(n)):
        for inner, outer in ((i, i + 1), (i + 1, i)):
            row = [Fraction(0)] * (n * n)
            row[inner * n + j], row[outer * n + j] = ratio, Fraction(-1)
            rows.append(row)
    return rows


def _non_negative(size: int) -> list[Row]:
    return [[Fraction(-int(k == t)) for k in range(size)] for t in range(size)]


def _dot(a: Sequence[Fraction], b: Sequence[Fraction]) -> Fraction:
    return sum((x * y for x, y in zip(a, b, strict=True)), Fraction(0))


def _reduced(rows: Sequence[Row]) -> list[Row]:
    """The rows in reduced echelon form, without those that depend on others."""
    basis: list[Row] = []
    for row in rows:
        _insert(basis, row)
    return basis


def _insert(basis: list[Row], row: Sequence[Fraction]) -> bool:
    """Add a row to a basis in reduced echelon form.

    Returns False if it was dependent.
    """
    rest = list(row)
    for held in basis:
        factor = rest[_lead(held)]
        if factor:
            rest = [x - factor * y for x, y in zip(rest, held, strict=True)]
    if not any(rest):
        return False
    lead = _lead(rest)
    rest = [x / rest[lead] for x in rest]
    for k, held in enumerate(basis):
        factor = held[lead]
        if factor:
            basis[k] = [x - factor * y for x, y in zip(held, rest, strict=True)]
    basis.append(rest)
    return True


def _lead(row: Sequence[Fraction]) -> int:
    return next(k for k, x in enumerate(row) if x)


def _solved(base: Sequence[Row], tight: Sequence[Row]) -> tuple[Fraction, ...] | None:
    """The only point where the equalities hold and the chosen inequalities are tight.

    None if there is not exactly one.
    """
    basis = list(base)
    for row in tight:
        if not _insert(basis, [*row, Fraction(0)]):
            return None
    size = len(basis[0]) - 1
    x = [Fraction(0)] * size
    for row in basis:
        lead = _lead(row)
        if lead == size:
            return None
        x[lead] = row[size]
    return tuple(x)
