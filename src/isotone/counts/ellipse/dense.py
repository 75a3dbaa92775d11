"""The order-shaped ellipse of any order, with dense matrices.

The precision matrix M of docs/theory/gaussian.md, section 2, has a free entry for each comparable pair, the
virtual root on top included. The trace of the covariance and its gradient come from one Cholesky factor:
O(n³) time an evaluation, O(n²) memory.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isotone.array_types import Floats
from isotone.counts.ellipse.descent import descend
from isotone.mechanism import Progress, no_progress

__all__ = ["DenseEllipse", "fit_dense", "fit_dense_nonnegative"]


@dataclass(frozen=True)
class DenseEllipse:
    """A precision matrix on elements numbered bottom-up, with the virtual root last.

    ``root_scale``, ``trace`` and ``presence`` are as in :class:`~isotone.counts.ellipse.forest_ellipse.ForestEllipse`.
    """

    precision: Floats
    root_scale: float
    trace: float
    presence: Floats


def fit_dense(
    leq: NDArray[np.bool_],
    max_size: int | None = None,
    *,
    apart: NDArray[np.bool_] | None = None,
    steps: int = 300,
    tolerance: float = 1e-5,
    progress: Progress = no_progress,
) -> DenseEllipse:
    """The nearly smallest ellipse of the family.

    Elements are numbered bottom-up. Every iterate is valid. Pairs that are ``apart`` are in no record together, so that
    their entries are free.
    """
    family = _Family(leq, max_size, apart)
    ties, logit, scale = family.start()

    def objective(x: Floats) -> tuple[float, Floats] | None:
        found = family.evaluate(x[:-1] / scale, x[-1])
        if found is None:
            return None
        trace, by_tie, by_logit, _ = found
        return float(np.log(trace)), np.append(by_tie / scale, by_logit) / trace

    begin = np.append(ties * scale, logit)
    best = descend(
        objective, begin, steps=steps, tolerance=tolerance, progress=progress, what="shaping the noise"
    )
    return family.best_ellipse(best[:-1] / scale, float(best[-1]))


def fit_dense_nonnegative(
    leq: NDArray[np.bool_],
    max_size: int | None = None,
    *,
    steps: int = 300,
    tolerance: float = 1e-5,
    progress: Progress = no_progress,
) -> DenseEllipse:
    """The nearly smallest ellipse with nonnegative ties.

    Differences of filters are then bounded by a minimum cut.

    The ties are squares of the variables. They start small but positive where :func:`fit_dense` starts at 0.
    """
    family = _Family(leq, max_size)
    ties, logit, scale = family.start()

    def objective(x: Floats) -> tuple[float, Floats] | None:
        found = family.evaluate(np.square(x[:-1]) / scale, x[-1])
        if found is None:
            return None
        trace, by_tie, by_logit, _ = found
        return float(np.log(trace)), np.append(2 * x[:-1] * by_tie / scale, by_logit) / trace

    least = 1e-3 * float((ties * scale).max())
    begin = np.append(np.sqrt(np.maximum(ties * scale, least)), logit)
    while objective(begin) is None:
        least /= 10
        begin = np.append(np.sqrt(np.maximum(ties * scale, least)), logit)
    best = descend(
        objective, begin, steps=steps, tolerance=tolerance, progress=progress, what="shaping the noise"
    )
    return family.best_ellipse(np.square(best[:-1]) / scale, float(best[-1]))


_NEARLY = 1 + 1e-4
"""The number of records is given up as a coordinate where it helps by less than this."""


class _Family:
    """All precision matrices on the comparable pairs, as a function of the ties (minus the entries).

    Pairs that no record has together have entries too, which no diagonal entry makes up for.
    """

    def __init__(
        self, leq: NDArray[np.bool_], max_size: int | None, apart: NDArray[np.bool_] | None = None
    ) -> None:
        n = len(leq)
        rooted = np.ones((n + 1, n + 1), np.bool_)
        rooted[:n, :n] = leq
        rooted[n, :n] = False
        related = rooted.copy()
        if apart is not None:
            rooted[:n, :n] |= apart
        self.lower, self.upper = np.nonzero(np.triu(rooted, 1))
        self.related = related[self.lower, self.upper]
        self.to_root = self.upper == n
        self.size = n + 1
        self.max_size = max_size

    def start(self) -> tuple[Floats, float, Floats]:
        """Ties and logit inside the set, and the scale of the ties.

        Mass flows from the root along one cover each.
        """
        n = self.size - 1
        parent = np.full(n, n)
        for x, y in zip(self.lower[self.related][::-1], self.upper[self.related][::-1], strict=True):
            parent[x] = y  # ends as the lowest element above x, which covers it
        mass = np.ones(n + 1)
        for x in range(n):
            mass[parent[x]] += mass[x]
        s = 1.0 if self.max_size is None else min(0.9, (self.max_size / n) ** 0.5)
        # a mixture of independent noise for bounded records and of ties to one cover alone: surely inside
        ties = np.where(self.upper == parent[self.lower], 0.5 * s * s * mass[self.lower] / mass[n], 0.0)
        ties[self.to_root] /= s
        about = s * s * mass / mass[n] + (0.0 if self.max_size is None else (1 - s * s) / self.max_size)
        scale = 1 / np.sqrt(about[self.lower])  # about: the diagonal of M
        return ties, float(np.log(s / (1 - s))) if s < 1 else 0.0, scale

    def best_ellipse(self, ties: Floats, logit: float) -> DenseEllipse:
        """The ellipse at a point inside the set, without the root where that is as good."""
        fitted = self._ellipse(ties, logit)
        if fitted is None:
            raise AssertionError("every iterate is positive definite")
        if self.max_size is None:
            return fitted
        rootless = self._ellipse(np.where(self.to_root, 0.0, ties), -np.inf)
        return rootless if rootless is not None and rootless.trace <= fitted.trace * _NEARLY else fitted

    def _ellipse(self, ties: Floats, logit: float) -> DenseEllipse | None:
        found = self.evaluate(ties, logit)
        if found is None:
            return None
        trace, _, _, weight = found
        presence = weight[:-1] / weight.max()
        return DenseEllipse(self.matrix(ties, logit), self.root_scale(logit), trace, presence)

    def root_scale(self, logit: float) -> float:
        from scipy.special import expit

        return 1.0 if self.max_size is None else float(expit(logit))

    def matrix(self, ties: Floats, logit: float) -> Floats:
        s = self.root_scale(logit)
        bound = 0.0 if self.max_size is None else (1 - s * s) / self.max_size
        M = np.zeros((self.size, self.size))
        M[self.lower, self.upper] = -ties
        M[self.upper, self.lower] = -ties
        diagonal = bound + 2 * np.bincount(self.lower, self._made_up(s) * ties, self.size)
        diagonal[-1] = 1.0
        np.fill_diagonal(M, diagonal)
        return M

    def _made_up(self, s: float) -> Floats:
        """How much of each tie the diagonal makes up for."""
        return np.where(self.related, np.where(self.to_root, s, 1.0), 0.0)

    def evaluate(self, ties: Floats, logit: float) -> tuple[float, Floats, float, Floats] | None:
        """Trace, gradient in the ties and the logit of the root's scale, and the diagonal of Z = M⁻¹EM⁻¹."""
        covariance = inverse(self.matrix(ties, logit))
        if covariance is None:
            return None
        from scipy.linalg import get_blas_funcs

        (dsyrk,) = get_blas_funcs(("syrk",), dtype=np.float64)
        Z = dsyrk(1.0, covariance[:-1], trans=1)  # upper triangle; E leaves the root out
        weight = np.diag(Z).copy()
        s = self.root_scale(logit)
        gradient = 2 * (Z[self.lower, self.upper] - self._made_up(s) * weight[self.lower])
        by_logit = 0.0
        if self.max_size is not None:
            to_root = np.bincount(self.lower, np.where(self.to_root, ties, 0.0), self.size)[:-1]
            by_logit = -2 * float(weight[:-1] @ (to_root - s / self.max_size)) * s * (1 - s)
        return float(np.trace(covariance[:-1, :-1])), gradient, by_logit, weight


def inverse(M: Floats) -> Floats | None:
    """The inverse of a symmetric matrix, or None if it is not positive definite."""
    from scipy.linalg import get_lapack_funcs

    dpotrf, dpotri = get_lapack_funcs(("potrf", "potri"), dtype=np.float64)
    factor, failed = dpotrf(M, lower=1)
    if failed:
        return None
    half, failed = dpotri(factor, lower=1)
    if failed or not np.all(np.isfinite(np.diag(half))):
        return None
    return np.tril(half) + np.tril(half, -1).T
