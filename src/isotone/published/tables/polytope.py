"""The polytopes of private count mechanisms.

Membership, extreme points, and all vertices of the small ones.

U holds the ε-DP transition matrices, F those of them that keep a distribution z. Every matrix of either is
ΨB with Ψ the scales and B a matrix of weights; these weights form the representation polytopes R_U and R_F
(docs/theory/tables.md, section 6). Vertices are enumerated in exact arithmetic, so ``a = exp(-ε)`` is given
as a rational: ``Fraction(1, 2)`` is ε = ln 2.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from isotone.errors import InputError
from isotone.published.tables.scales import patterns

__all__ = [
    "Polytope",
    "fixed_polytope",
    "fixed_representation",
    "has_fixed_point",
    "is_extreme",
    "is_private",
    "unfixed_polytope",
    "unfixed_representation",
]

Row = list[Fraction]
_MOST = 200_000


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
        if math.comb(len(rows), tight) > _MOST:
            raise InputError(
                f"Enumerating vertices means {math.comb(len(rows), tight)} linear systems: too many. This is for "
                "very small tables, to see what the polytopes look like."
            )
        found: dict[tuple[Fraction, ...], None] = {}
        base = _reduced([[*row, side] for row, side in zip(self.equalities, self.sides, strict=True)])
        for chosen in itertools.combinations(rows, tight):
            x = _solved(base, chosen)
            if x is not None and all(_dot(row, x) <= 0 for row in rows):
                found[x] = None
        return list(found)


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
    found: list[Row] = []
    for pattern in patterns(n):
        values = [Fraction(1)]
        for p in pattern:
            values.append(values[-1] / ratio if p > 0 else values[-1] * ratio)
        found.append([v / sum(values) for v in values])
    return found


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
