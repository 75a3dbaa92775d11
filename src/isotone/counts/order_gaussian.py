"""Gaussian noise shaped by the order: the ellipse of a poset, its dense integer strategy, and the mechanism."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isotone.array_types import Floats, Ints
from isotone.counts.ellipse import (
    LARGEST_CHAIN_OF_DIFFERENCES,
    ChainEllipse,
    DenseEllipse,
    EllipseCertificate,
    filter_bound,
    fit_chain,
    fit_chain_differences,
    fit_dense,
    fit_dense_nonnegative,
)
from isotone.counts.ellipse_forest import (
    ForestEllipse,
    fit_forest,
    fold_forest,
    forest_bound,
    forest_strategy,
    plain_strategy,
)
from isotone.counts.mechanism import (
    ConcentratedMechanism,
    Counts,
    LinearCounts,
    check_counts,
    check_records,
    deviation,
    gaussian_variance,
)
from isotone.errors import InputError
from isotone.kernels import kernel
from isotone.linear.strategy import Embedded, Gaussian, Square, nearest_plane
from isotone.mechanism import Error, Progress, no_progress
from isotone.noise.simulate import Simulated
from isotone.order import Poset
from isotone.order.closure import heaviest_filter, never_together
from isotone.privacy.checks import whole_number
from isotone.privacy.draws import ExactDraws, require_exact
from isotone.privacy.guarantee import Neighbours, adjacency, checked_neighbours

# The integer strategy of any order, as a dense upper triangle.
#
# Elements come bottom-up and the root last.
#
# In the Gram matrix G = Q'Q the incomparable pairs are almost zero, and G almost satisfies the identity of the
# family, so the exact squared length of Qv is a constant plus small terms, which are bounded one by one
# (docs/theory/gaussian.md, section 3). On a chain the lengths themselves are computed.

_SHIFT = 12


@dataclass(frozen=True)
class DenseStrategy:
    """The strategy Q as an upper triangle.

    ``bottom_up[i]`` is the element of row and column i. The root, if any, is last.
    """

    matrix: NDArray[np.int32]
    bottom_up: Ints
    rooted: bool
    sensitivity_squared: int

    @property
    def rows(self) -> int:
        """One for each element, and one for the root if it is kept."""
        return len(self.matrix)

    @property
    def _places(self) -> Ints:
        """The element of each row, and the root after the elements."""
        return np.append(self.bottom_up, self.bottom_up.size) if self.rooted else self.bottom_up

    def _inverse(self) -> Floats:
        from scipy.linalg import get_lapack_funcs

        (dtrtri,) = get_lapack_funcs(("trtri",), dtype=np.float64)
        inverse, failed = dtrtri(self.matrix.astype(np.float64, order="F"), overwrite_c=1)
        if failed:
            raise AssertionError("a strategy has no zero on its diagonal")
        return inverse

    def variances(self) -> Floats:
        """Diagonal of (Q'Q)⁻¹."""
        result = np.empty(self.rows)
        result[self._places] = np.einsum("ij,ij->i", *2 * (self._inverse(),))
        return result

    def covariance(self) -> Floats:
        """(Q'Q)⁻¹ on the elements."""
        half = self._inverse()[: self.bottom_up.size]
        result = np.empty((self.bottom_up.size,) * 2)
        result[np.ix_(self.bottom_up, self.bottom_up)] = half @ half.T
        return result

    def solve_integers(self, noise: Ints) -> Ints:
        """Nearest-plane rounding from the root down, then the fraction that is left."""
        from scipy.linalg import solve_triangular

        whole, left = nearest_plane(_nearest, (self.matrix.astype(np.int64),), noise[self._places])
        fraction = solve_triangular(self.matrix.astype(np.float64), left.astype(np.float64))
        result = np.empty(self.rows, np.int64)
        result[self._places] = whole + np.rint(fraction).astype(np.int64)
        return result

    def solve(self, noise: Floats) -> Floats:
        """``Q⁻¹ noise`` for each row."""
        from scipy.linalg import solve_triangular

        result = np.empty_like(noise)
        columns = np.ascontiguousarray(noise[:, self._places].T)
        result[:, self._places] = solve_triangular(self.matrix.astype(np.float64), columns).T
        return result

    def multiply(self, counts: Floats) -> Floats:
        """``Q counts`` for each row."""
        result = np.empty_like(counts)
        result[:, self._places] = counts[:, self._places] @ self.matrix.T.astype(np.float64)
        return result

    def diagonal(self) -> Floats:
        """The diagonal, by element."""
        result = np.empty(self.rows)
        result[self._places] = np.diag(self.matrix)
        return result

    def root_column(self) -> Floats:
        """The last column, by element."""
        result = np.zeros(self.rows)
        if self.rooted:
            result[self._places] = self.matrix[:, -1]
        return result


def dense_strategy(
    ellipse: DenseEllipse,
    leq: NDArray[np.bool_],
    bottom_up: Ints,
    bits: int,
    neighbours: Neighbours = "add-remove",
    max_size: int | None = None,
    apart: NDArray[np.bool_] | None = None,
) -> DenseStrategy | None:
    """The ellipse on an integer scale of ``2**bits``, or None if that is too coarse to be invertible.

    ``leq`` is the order of the elements numbered bottom-up, ``bottom_up`` their positions among the counts.
    """
    Q = _rounded_factor(ellipse.precision, ellipse.root_scale, bits)
    if Q is None:
        return None
    gram = exact_gram(Q)
    longest = _longest(gram, leq, max_size, apart)
    exchanges = adjacency(neighbours).exchanges
    if not exchanges and ellipse.root_scale > 0:
        return DenseStrategy(Q, bottom_up, True, longest)
    if exchanges:
        # of two records that exclude each other no cut bounds the difference: twice the longest always does
        longest = (
            4 * longest if apart is not None else min(4 * longest, _longest_difference(gram, leq, max_size))
        )
    return DenseStrategy(np.ascontiguousarray(Q[:-1, :-1]), bottom_up, False, longest)


def causal_strategy(
    ellipse: DenseEllipse, leq: NDArray[np.bool_], bits: int, neighbours: Neighbours = "add-remove"
) -> DenseStrategy | None:
    """The same with rows that look back in time alone.

    The elements are numbered by time, and row i looks at elements up to i: a lower triangle, kept as an upper one of the
    elements in reverse. The row of the root, which looks at all of them, is never measured, and without it |Qv|² is only
    smaller. Under replacement the number of records is known, and the root is left out before the factor is taken.
    """
    n, exchanges = len(leq), adjacency(neighbours).exchanges
    later_first = np.arange(n, -1, -1)[int(exchanges) :]
    Q = _rounded_factor(ellipse.precision[np.ix_(later_first, later_first)], 1.0, bits)
    if Q is None:
        return None
    gram = np.zeros((n + 1, n + 1), np.int64)
    gram[np.ix_(later_first, later_first)] = exact_gram(Q)
    if not exchanges:
        rows = np.ascontiguousarray(Q[1:, 1:])
        return DenseStrategy(rows, later_first[1:], False, _longest(gram, leq, None))
    # what these numbers are does not matter to the bound, only to how close it is
    gram[:n, n] = np.rint(ellipse.precision[:n, n] * 4.0**bits).astype(np.int64)
    gram[n, n] = int(4**bits)
    longest = min(4 * _longest(gram, leq, None), _longest_difference(gram, leq, None))
    return DenseStrategy(Q, later_first, False, longest)


def chain_strategy(
    ellipse: ChainEllipse, bottom_up: Ints, bits: int, neighbours: Neighbours = "add-remove"
) -> DenseStrategy | None:
    """The same for a chain, with the number of records tied to the top element."""
    n = bottom_up.size
    half = ellipse.vectors[::-1] * np.sqrt(ellipse.values)
    precision = np.zeros((n + 1, n + 1))
    precision[:n, :n] = half @ half.T
    if adjacency(neighbours).exchanges:
        return _chain_differences(precision[:n, :n], bottom_up, bits)
    precision[n - 1, n - 1] += 1.0  # the number of records is that of the top plus noise of its own
    precision[n - 1, n] = precision[n, n - 1] = -1.0
    precision[n, n] = 1.0
    Q = _rounded_factor(precision, 1.0, bits)
    return None if Q is None else DenseStrategy(Q, bottom_up, True, int(_longest_prefix(Q)))


def _chain_differences(precision: Floats, bottom_up: Ints, bits: int) -> DenseStrategy | None:
    """The strategy for replacing a record of a chain.

    The change is the difference of two prefixes.
    """
    Q = _rounded_factor(precision, 1.0, bits)
    if Q is None:
        return None
    gram = exact_gram(np.cumsum(Q[:, ::-1], axis=1, dtype=np.int64))
    squares = np.diag(gram)
    farthest = max(int(np.max(row + squares - 2 * inner)) for row, inner in zip(squares, gram, strict=True))
    return DenseStrategy(Q, bottom_up, False, max(int(squares.max()), farthest))  # the empty prefix is zero


def _rounded_factor(precision: Floats, root_scale: float, bits: int) -> NDArray[np.int32] | None:
    """The upper triangle R with R'R = precision, times ``2**bits``, rounded.

    The root's column is rescaled.
    """
    from scipy.linalg import get_lapack_funcs

    (dpotrf,) = get_lapack_funcs(("potrf",), dtype=np.float64)
    factor, failed = dpotrf(precision, lower=0, clean=1)
    if failed:
        return None
    factor = np.ascontiguousarray(factor)
    factor *= 2.0**bits
    factor[:, -1] *= root_scale  # 0: the number of records is no coordinate
    Q = np.rint(factor).astype(np.int32)
    singular = np.diag(Q)[:-1].min(initial=1) <= 0 or (Q[-1, -1] <= 0 and root_scale > 0)
    return None if singular else Q


def exact_gram(Q: NDArray[np.integer]) -> Ints:
    """``Q'Q`` in exact 64-bit integers, at the speed of floating-point products.

    Entries below 2**31 are split into halves of at most 16 bits, whose products sum to less than 2**53.
    """
    high = (Q.astype(np.int64) + (1 << 15)) >> 16
    low = (Q - (high << 16)).astype(np.float64)
    high = high.astype(np.float64)
    mixed = high.T @ low
    gram = np.rint(high.T @ high).astype(np.int64) << 16
    gram += np.rint(mixed).astype(np.int64)
    gram += np.rint(mixed.T).astype(np.int64)
    gram <<= 16
    gram += np.rint(low.T @ low).astype(np.int64)
    return gram


def _longest(
    gram: Ints, leq: NDArray[np.bool_], max_size: int | None, apart: NDArray[np.bool_] | None = None
) -> int:
    """A bound on v'Gv over records.

    The root's square, what each element adds, and the incomparable pairs.
    """
    n = len(leq)
    positive = np.sort(np.maximum(_terms(gram, leq), 0))[::-1][: n if max_size is None else max_size]
    together = leq if apart is None else leq | apart  # pairs that no record has together add nothing
    return int(gram[n, n]) + _total(positive) + _incomparable(gram[:n, :n], together)


def _terms(gram: Ints, leq: NDArray[np.bool_]) -> Ints:
    """What each element adds to v'Gv when it joins everything above it, incomparable pairs aside."""
    n = len(leq)
    above = leq & ~np.eye(n, dtype=np.bool_)
    return np.diag(gram)[:n] + 2 * gram[:n, n] + 2 * np.sum(np.where(above, gram[:n, :n], 0), axis=1)


def _longest_difference(gram: Ints, leq: NDArray[np.bool_], max_size: int | None) -> int:
    """A bound on d'Gd for the difference d of two filters of at most ``max_size`` elements.

    Up to small terms it is twice the sum of −G over pairs x < y with y in both filters, or the root, and x in
    one: for positive ties the weight of a filter that a minimum cut finds (docs/theory/gaussian.md, section 3).
    """
    n = len(leq)
    terms = _terms(gram, leq)
    small = np.sort(np.maximum(terms, 0))[::-1][: n if max_size is None else 2 * max_size]
    lower, upper = np.nonzero(leq & ~np.eye(n, dtype=np.bool_))
    ties = _shifted_up(np.maximum(-gram[lower, upper], 0))
    to_root = _shifted_up(np.maximum(-gram[:n, n], 0))
    weights = np.zeros(n, np.int64)
    np.add.at(weights, upper, ties)
    np.subtract.at(weights, lower, ties)
    gain, _ = heaviest_filter(weights - to_root, np.column_stack((lower, upper)))
    crossing = (int(gain) + _total(to_root)) << _SHIFT
    apart = np.where(np.triu(~(leq | leq.T)), np.abs(gram[:n, :n]), 0)
    return _total(small) + 2 * crossing + 2 * _total(apart)


def _shifted_up(numbers: Ints) -> Ints:
    """Nonnegative numbers divided by ``2**_SHIFT`` and rounded up, so that their sums fit 64 bits."""
    return -(-numbers >> _SHIFT)


def _incomparable(inner: Ints, leq: NDArray[np.bool_]) -> int:
    return 2 * _total(np.where(np.triu(~(leq | leq.T)), np.maximum(inner, 0), 0))


def _total(numbers: Ints) -> int:
    """The exact sum of 64-bit integers, which may need more than 64 bits."""
    return (int(np.sum(numbers >> 32)) << 32) + int(np.sum(numbers & 0xFFFFFFFF))


@kernel(steps=lambda Q: len(Q) ** 2)
def _longest_prefix(Q: NDArray[np.int32]) -> int:
    """The largest |Qv|² on a chain, where a record is the root and some elements below it in a row."""
    n = Q.shape[0]
    squares = np.zeros(n, np.int64)
    for i in range(n):
        total = np.int64(0)
        for j in range(n - 1, -1, -1):
            if j < i:
                squares[j] += total * total
            else:
                total += np.int64(Q[i, j])
                squares[j] += total * total
    return squares.max()


@kernel(steps=lambda Q, noise, *_: noise.size**2)
def _nearest(Q: Ints, noise: Ints, result: Ints, limit: float) -> bool:
    """Integers k, from the last row up, and what is left of ``noise − Q k``, at most half a pivot each: rows of ``result``.

    False if some sum may exceed ``limit``; see :func:`nearest_plane`.
    """
    whole, left = result[0], result[1]
    for i in range(noise.size - 1, -1, -1):
        rest, reach = noise[i], abs(float(noise[i]))
        for j in range(i + 1, noise.size):
            reach += abs(float(Q[i, j]) * float(whole[j]))
            rest -= Q[i, j] * whole[j]
        if reach > limit:
            return False
        pivot = Q[i, i]
        whole[i] = (2 * rest + pivot) // (2 * pivot)
        left[i] = rest - whole[i] * pivot
    return True


# The order-shaped ellipse of a poset.
#
# Which method fits it, and the result.
#
# Chains have a method of their own, forests are eliminated sparsely, other orders are dense up to a thousand
# elements; beyond, a forest inside the order is used, which forgets relations and is therefore private for more
# records than it need be. An element that needs more than ``max_size`` yeses has a count of zero, whatever the
# data: it is left out here and released as zero.

LARGEST_DENSE = 1000
LARGEST_CHAIN = 5000
_LARGEST_FILTER_BOUND = 400
"""Up to this size the lower bound is searched filter by filter; larger forests have a cheaper one."""


@dataclass(frozen=True, eq=False)
class Ellipse:
    """A fitted ellipse. ``active`` holds the elements that can be yes at all, in the order of the counts."""

    active: Ints
    method: str
    max_size: int | None
    neighbours: Neighbours
    ellipse: ForestEllipse | DenseEllipse | ChainEllipse
    bottom_up: Ints
    leq: NDArray[np.bool_] | None
    apart: NDArray[np.bool_] | None = None

    def strategy(self, bits: int) -> Square | None:
        """The ellipse on an integer scale of ``2**bits``. None if that is too coarse."""
        if isinstance(self.ellipse, ForestEllipse):
            return forest_strategy(self.ellipse, bits, self.neighbours, self.max_size)
        if isinstance(self.ellipse, ChainEllipse):
            return chain_strategy(self.ellipse, self.bottom_up, bits, self.neighbours)
        if self.leq is None:
            raise AssertionError("a dense ellipse keeps its order")
        order = self.leq, self.bottom_up, bits, self.neighbours, self.max_size
        return dense_strategy(self.ellipse, *order, self.apart)

    @cached_property
    def lower_bound(self) -> float | None:
        """A total variance that no Gaussian of sensitivity 1 can beat.

        None where none is known: forests of more than 400 elements if records are bounded or replaced, chains
        of more than 1,000 if they are replaced, and forests inside larger orders.
        """
        if isinstance(self.ellipse, ChainEllipse):
            replaced_as_added = (
                adjacency(self.neighbours).exchanges and self.active.size > LARGEST_CHAIN_OF_DIFFERENCES
            )
            return None if replaced_as_added else self.ellipse.lower_bound
        if self.apart is not None:
            return None
        if self.leq is not None:
            return filter_bound(self.leq, self._presence(), self.max_size, self.neighbours)
        plain = self.max_size is None and not adjacency(self.neighbours).exchanges and self.method == "forest"
        if isinstance(self.ellipse, ForestEllipse) and plain:
            return forest_bound(self.ellipse)
        return None

    def _presence(self) -> NDArray[np.float64]:
        """How often each element is in the random filter behind the bound, bottom-up."""
        if isinstance(self.ellipse, ForestEllipse):
            return self.ellipse.presence[self.ellipse.forest.node - 1][self.bottom_up]
        if isinstance(self.ellipse, DenseEllipse):
            return self.ellipse.presence
        raise AssertionError("a chain has its own bound")


def shape_of(
    P: Poset,
    max_size: int | None = None,
    neighbours: Neighbours = "add-remove",
    progress: Progress = no_progress,
) -> Ellipse:
    """The nearly smallest ellipse for records over ``P`` with at most ``max_size`` yeses. Results are kept."""
    largest = None if max_size is None else whole_number(max_size, "max_size")
    bounded = largest if largest is not None and largest < len(P) else None
    return _shape_of(_CacheKey(P, progress), P.elements, bounded, checked_neighbours(neighbours))


def best_strategy(shape: Ellipse, bits: int, coordinates: int) -> tuple[Square, str]:
    """The shaped strategy or independent noise, whichever has the smaller total variance, and its name."""
    size = shape.active.size
    plain = plain_strategy(size, bits, min(coordinates, size))
    shaped = shape.strategy(bits)
    if shaped is None or _cost(shaped, size) >= _cost(plain, size):
        return plain, "independent"
    return shaped, shape.method


def _cost(strategy: Square, size: int) -> float:
    return float(strategy.variances()[:size].sum()) * strategy.sensitivity_squared


class _CacheKey:
    """A poset as a cache key, with a progress report that is no part of it."""

    def __init__(self, P: Poset, progress: Progress) -> None:
        self.P, self.progress = P, progress

    def __hash__(self) -> int:
        return hash(self.P)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _CacheKey) and self.P == other.P


@lru_cache(maxsize=8)
def _shape_of(
    call: _CacheKey, elements: tuple[Any, ...], max_size: int | None, neighbours: Neighbours
) -> Ellipse:
    # equal posets may list their elements differently, and arrays follow the list: it is part of the key
    P, progress = call.P, call.progress
    if P.choices and len(P) <= LARGEST_DENSE:
        return _exclusive_shape(P, neighbours, progress)
    if not P.is_forest and len(P) <= LARGEST_DENSE:
        return _dense_shape(P.leq_matrix(), np.asarray(P.linear_order), max_size, neighbours, progress)
    parents = np.full(len(P), -1, np.int64)
    parents[P.cover_pairs[::-1, 0]] = P.cover_pairs[::-1, 1]  # one upper cover each: the first
    depth = np.zeros(len(P), np.int64)
    for x in P.linear_order[::-1].tolist():
        depth[x] = 1 + (depth[parents[x]] if parents[x] >= 0 else 0)
    # an element this deep has at least as many above it in the order itself
    active = np.arange(len(P)) if max_size is None else np.flatnonzero(depth <= max_size)
    max_size = None if max_size is None or max_size >= active.size else max_size
    place = np.full(len(P) + 1, -1, np.int64)
    place[active] = np.arange(active.size)
    if int(depth[active].max()) == active.size and max_size is None:
        return _chain_shape(active, np.argsort(-depth[active]), neighbours, progress)
    method = "forest" if P.is_forest else "forest inside the order"
    return _forest_shape(active, place[parents[active]], method, max_size, neighbours, progress)


def _chain_shape(active: Ints, bottom_up: Ints, neighbours: Neighbours, progress: Progress) -> Ellipse:
    n = active.size
    if n > LARGEST_CHAIN:
        raise InputError(
            f"Gaussian noise shaped by a chain is available up to {LARGEST_CHAIN} elements; this one has {n}. "
            "Use HierarchicalMechanism for longer chains."
        )
    if adjacency(neighbours).exchanges and n <= LARGEST_CHAIN_OF_DIFFERENCES:
        ellipse = fit_chain_differences(n, progress=progress)
    else:
        ellipse = fit_chain(n, tolerance=1e-6 if n <= LARGEST_DENSE else 1e-4, progress=progress)
    return Ellipse(active, "chain", None, neighbours, ellipse, bottom_up, None)


def _forest_shape(
    active: Ints,
    parents: Ints,
    method: str,
    max_size: int | None,
    neighbours: Neighbours,
    progress: Progress,
) -> Ellipse:
    forest = fold_forest(parents)
    ellipse = fit_forest(forest, max_size, progress=progress)
    bottom_up = forest.top_down[::-1]
    leq = None
    if active.size <= _LARGEST_FILTER_BOUND and method == "forest":
        leq = np.eye(active.size, dtype=np.bool_)
        for x in forest.top_down.tolist():
            if parents[x] >= 0:
                leq[x] |= leq[parents[x]]
        leq = leq[np.ix_(bottom_up, bottom_up)]
    return Ellipse(active, method, max_size, neighbours, ellipse, bottom_up, leq)


def _exclusive_shape(P: Poset, neighbours: Neighbours, progress: Progress) -> Ellipse:
    """The shape where some elements exclude each other. Records are of any size."""
    bottom_up = np.asarray(P.linear_order)
    leq, apart = (matrix[np.ix_(bottom_up, bottom_up)] for matrix in (P.leq_matrix(), never_together(P)))
    ellipse = fit_dense(leq, apart=apart, progress=progress)
    return Ellipse(np.arange(len(P)), "dense", None, neighbours, ellipse, bottom_up, leq, apart)


def _dense_shape(
    leq: NDArray[np.bool_],
    linear_order: Ints,
    max_size: int | None,
    neighbours: Neighbours,
    progress: Progress,
) -> Ellipse:
    possible = np.ones(len(leq), np.bool_) if max_size is None else leq.sum(axis=1) <= max_size
    active = np.flatnonzero(possible)
    kept = linear_order[possible[linear_order]]
    max_size = None if max_size is None or max_size >= active.size else max_size
    inner = leq[np.ix_(kept, kept)]
    fit = fit_dense_nonnegative if adjacency(neighbours).exchanges else fit_dense
    ellipse = fit(inner, max_size, progress=progress)
    return Ellipse(active, "dense", max_size, neighbours, ellipse, np.searchsorted(active, kept), inner)


# Gaussian noise shaped by the order.
#
# The choice where δ > 0 or zCDP is allowed and the order is not tiny.

_FINEST, _COARSEST = 28, 10
_LARGEST_DEVIATION = 41  # the exact samplers take standard deviations below 2**43
_LARGEST_COVARIANCE = 5000


@dataclass(frozen=True, init=False)
class OrderGaussianMechanism(ConcentratedMechanism, LinearCounts):
    """Counts over a poset with Gaussian noise whose covariance follows the order.

    Give ``epsilon`` and ``delta``, or ``rho``. The covariance is nearly the best that any Gaussian can have:
    ``certificate()`` says how nearly. ``max_size`` states that no record has more yeses than that; the noise
    is then never worse than independent noise with sensitivity √max_size.

    ``method`` says how the covariance was found: chain, forest, dense, forest inside the order, or independent.
    ``variance`` is that of the integer noise on the rows of ``strategy``, which is for the counts that can be yes at all.

    A release adds exact integer noise (discrete Gaussian for zCDP, the continuous Gaussian exactly rounded for
    (ε, δ)) to integer combinations of the counts, and solves back: post-processing, rounded to integers.

    Guarantee: (epsilon, delta)-DP or rho-zCDP for ``neighbours`` (docs/theory/gaussian.md, sections 3 and 7).
    Error: ``error()`` and ``covariance()`` are exact, before rounding to integers, and need no data.
    Cost: forests to 100,000 elements, chains to 5,000, other orders to 1,000; see ``counts/order_gaussian.py``.

    >>> from isotone.order import Poset
    >>> P = Poset(["hyp", "twice", "meds"], [("twice", "hyp"), ("meds", "hyp")])
    >>> m = OrderGaussianMechanism(P, rho="0.5")
    >>> m.release([120, 80, 33]).shape
    (3,)
    >>> round(m.error().total, 2)  # independent noise: 9.0
    4.95
    """

    method: str
    shape: Ellipse = field(repr=False, compare=False)
    strategy: Embedded = field(repr=False, compare=False)
    noise: Gaussian

    def _prepare(self) -> None:
        self._set(shape=shape_of(self.P.canonical.order, self.max_size, self.neighbours))
        self._scale(gaussian_variance(self.guarantee) * self.unit.changes**2)

    def _scale(self, multiplier: Fraction) -> None:
        """Noise with this variance at sensitivity 1."""
        bits, active = _scale_bits(multiplier), self.P.canonical.positions[self.shape.active]
        within, method = best_strategy(self.shape, bits, self.sensitivity.coordinates)
        variance = multiplier * within.sensitivity_squared
        self._set(method=method, noise=Gaussian(variance, self.guarantee.kind == "zcdp"))
        self._set(strategy=Embedded(within, active, len(self.P)))

    def _widen(self, share: Fraction) -> None:
        self._scale(self.variance / self.strategy.sensitivity / share)

    @property
    def variance(self) -> Fraction:
        """The variance of the integer noise on the rows of the strategy."""
        return self.noise.sigma2

    def error(self) -> Error:
        """The variance of the noise on each count, before rounding."""
        return Error(self._variances[: len(self.P)].copy())

    def covariance(self) -> NDArray[np.float64]:
        """The covariance of the noise, before rounding, in the order of ``P.elements``."""
        if len(self.P) > _LARGEST_COVARIANCE:
            raise InputError(
                f"The covariance of {len(self.P)} counts is too large a matrix; it is given up to "
                f"{_LARGEST_COVARIANCE}. Variances of any number are in error()."
            )
        return super().covariance()

    def covariance_error(self) -> float:
        """The covariance is exact."""
        return 0.0

    def certificate(self) -> EllipseCertificate:
        """The exact integer sensitivity, and how close the covariance is to the best of all Gaussians."""
        unit = self.strategy.within.variances()[: self.strategy.active.size]
        return EllipseCertificate(
            method=self.method,
            sensitivity_squared=self.strategy.sensitivity,
            trace=float(unit.sum()) * self.strategy.sensitivity,
            lower_bound=self.shape.lower_bound,
            independent=float(len(self.P) * self.sensitivity.coordinates),
        )

    def simulate(self, size: int, rng: np.random.Generator) -> Simulated:
        """Simulate ``size`` float draws of the noise, one per row, for planning only, as they are not private."""
        return super().simulate(size, rng)[:, : len(self.P)]

    def simulate_with_total(self, size: int, rng: np.random.Generator) -> Simulated:
        """Simulate the noise on the counts and, in the last column, on the number of records."""
        if not self.has_total:
            raise InputError("This noise does not cover the number of records.")
        return super().simulate(size, rng)

    def total_covariance(self) -> Error:
        """The covariance of the noise on each count with that on the number of records, before rounding."""
        if not self.has_total:
            raise InputError("This noise does not cover the number of records.")
        result, within, active = np.zeros(len(self.P)), self.strategy.within, self.strategy.active
        for start in range(0, within.rows, 512):
            rows = np.arange(start, min(start + 512, within.rows))
            unit = np.zeros((rows.size, within.rows))
            unit[np.arange(rows.size), rows] = 1.0
            solved = within.solve(unit)
            result[active] += solved[:, -1] @ solved[:, : active.size]
        return Error(result * self.noise.variance)

    def log_density(self, output: ArrayLike, counts: Counts | None = None) -> NDArray[np.float64]:
        """The log density of real outputs given the counts (or of noise), one per row.

        It is that of the continuous noise before rounding; with elements that no record can reach it is the
        density of the others, and minus infinity where those are not zero.
        """
        y = np.atleast_2d(deviation(self.P, output, counts))
        active, strategy = self.strategy.active, self.strategy.within
        padded = np.zeros((len(y), strategy.rows))
        padded[:, : active.size] = y[:, active]
        image, root = strategy.multiply(padded), strategy.root_column()
        squares = np.sum(image**2, axis=1)
        log_determinant = 2 * float(np.sum(np.log(strategy.diagonal())))
        if strategy.rooted:  # the number of records is integrated out
            squares -= (image @ root) ** 2 / float(root @ root)
            log_determinant -= math.log(float(root @ root))
        variance = self.noise.variance
        constant = (log_determinant - active.size * math.log(2 * math.pi * variance)) / 2
        impossible = np.any(np.delete(y, active, axis=1) != 0, axis=1)
        result = np.where(impossible, -np.inf, constant - squares / (2 * variance))
        return result.reshape(np.shape(output)[:-1])

    @property
    def has_total(self) -> bool:
        """Whether the number of records can be released as well, for free."""
        return self.strategy.within.rooted

    def release_with_total(self, counts: Counts, records: int) -> tuple[NDArray[np.int64], int]:
        """Release the counts and the number of records with noise.

        Together they are as private as the counts alone.

        The number of records is a further coordinate of the same noise (docs/theory/gaussian.md, section 2).
        """
        values = check_counts(self.P, counts)
        if not self.has_total:
            raise InputError(
                "This noise does not cover the number of records: where units are exchanged it is not protected, and "
                "independent noise has no place for it."
            )
        number = check_records(records, values)
        drawn = self._released(np.append(values, number), require_exact(ExactDraws()))
        return drawn[:-1], int(drawn[-1])

    def total_variance(self) -> float:
        """The variance of the released number of records, before rounding.

        Infinite if it is not released.
        """
        return float(self._variances[-1]) if self.has_total else math.inf

    def release_rows(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Release the counts of each row, with noise of its own."""
        return self._release_at_once(rows)


def _scale_bits(multiplier: Fraction) -> int:
    """The number of bits of the integer scale.

    As fine as the exact samplers allow, within reason.
    """
    deviation_bits = math.ceil(math.log2(multiplier.numerator / multiplier.denominator) / 2)
    bits = min(_FINEST, _LARGEST_DEVIATION - deviation_bits)
    if bits < _COARSEST:
        raise InputError(
            "This guarantee needs Gaussian noise with a standard deviation above 2**30 on every count. Ask for a "
            "weaker one: a larger epsilon, delta or rho, or fewer contributions."
        )
    return bits
