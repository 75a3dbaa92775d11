"""The integer strategy of any order, as a dense upper triangle.

Elements come bottom-up and the root last.

In the Gram matrix G = Q'Q the incomparable pairs are almost zero, and G almost satisfies the identity of the
family, so the exact squared length of Qv is a constant plus small terms, which are bounded one by one
(docs/theory/gaussian.md, section 3). On a chain the lengths themselves are computed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isotone.array_types import Floats, Ints
from isotone.counts.ellipse.chain_ellipse import ChainEllipse
from isotone.counts.ellipse.dense import DenseEllipse
from isotone.kernels import kernel
from isotone.linear.strategy import nearest_plane
from isotone.order.closure import heaviest_filter
from isotone.privacy.adjacency import Neighbours, adjacency

__all__ = ["DenseStrategy", "causal_strategy", "chain_strategy", "dense_strategy", "exact_gram"]

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
def _nearest(Q: Ints, noise: Ints, whole: Ints, left: Ints, limit: float) -> bool:
    """Integers k, from the last row up, and what is left of ``noise − Q k``, at most half a pivot each.

    False if some sum may exceed ``limit``; see :func:`nearest_plane`.
    """
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
