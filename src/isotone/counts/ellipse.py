"""Nearly smallest ellipses of chains and of dense orders, with lower bounds that certify them."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isotone.array_types import Bools, Floats
from isotone.kernels import kernel
from isotone.mechanism import Progress, no_progress
from isotone.privacy.guarantee import Neighbours, adjacency

# Minimising a smooth convex function that is defined on an open set only.
#
# L-BFGS (Nocedal 1980) with a backtracking line search that also steps back from points outside the set. No
# clock is read: the result depends on the arguments alone.

Objective = Callable[[Floats], tuple[float, Floats] | None]
"""The value and the gradient at a point, or None where the function is not defined."""

_MEMORY = 20
_LOOK_BACK = 10


def descend(
    objective: Objective,
    start: Floats,
    *,
    steps: int,
    tolerance: float,
    progress: Progress = no_progress,
    what: str = "optimising",
) -> Floats:
    """The best point found from ``start``, which must be inside the set.

    Stops when ten steps together lower the value by less than ``tolerance``, or after ``steps`` steps.
    """
    x = start
    first = objective(x)
    if first is None:
        raise ValueError("the starting point is outside the set")
    value, gradient = first
    moves: deque[tuple[Floats, Floats, float]] = deque(maxlen=_MEMORY)
    history = [value]
    for step in range(steps):
        progress(step / steps, what)
        direction = _direction(gradient, moves)
        slope = _dot(gradient, direction)
        if slope >= 0:
            if not moves:
                break
            moves.clear()
            continue
        result = _line_search(objective, x, value, direction, slope)
        if result is None:
            if not moves:
                break
            moves.clear()
            continue
        point, value, new_gradient = result
        move, change = point - x, new_gradient - gradient
        curvature = _dot(move, change)
        if curvature > 1e-14 * math.sqrt(_dot(move, move) * _dot(change, change)):
            moves.append((move, change, curvature))
        x, gradient = point, new_gradient
        history.append(value)
        if len(history) > _LOOK_BACK and history[-1 - _LOOK_BACK] - value < tolerance:
            break
    progress(1.0, what)
    return x


def _direction(gradient: Floats, moves: deque[tuple[Floats, Floats, float]]) -> Floats:
    """The quasi-Newton direction.

    It is minus the gradient, corrected by the curvature of past moves.
    """
    if not moves:
        return -gradient * min(1.0, 0.1 / (float(np.linalg.norm(gradient)) + 1e-300))
    q = gradient.copy()
    shares: list[float] = []
    for move, change, curvature in reversed(moves):
        share = _dot(move, q) / curvature
        _add(q, -share, change)
        shares.append(share)
    _, change, curvature = moves[-1]
    q *= curvature / _dot(change, change)
    for (move, change, curvature), share in zip(moves, reversed(shares), strict=True):
        _add(q, share - _dot(change, q) / curvature, move)
    return np.negative(q, out=q)


# Compiled, not numpy: products in fresh memory cost more than the sums, and BLAS would wake its threads each time.
@kernel(fastmath=True, steps=lambda a, b: 16 * a.size)
def _dot(a: Floats, b: Floats) -> float:
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total


@kernel(steps=lambda a, factor, b: 16 * a.size)
def _add(a: Floats, factor: float, b: Floats) -> None:
    for i in range(a.size):
        a[i] += factor * b[i]


def _line_search(
    objective: Objective, x: Floats, value: float, direction: Floats, slope: float
) -> tuple[Floats, float, Floats] | None:
    """A point along ``direction`` that is inside and lower by a fair share of what the slope predicts."""
    length = 1.0
    while length > 1e-12:
        point = x + length * direction
        result = objective(point)
        if result is not None and result[0] <= value + 1e-4 * length * slope:
            return point, result[0], result[1]
        length *= 0.5 if result is not None else 0.3
    return None


# The order-shaped ellipse of any order, with dense matrices.
#
# The precision matrix M of docs/theory/gaussian.md, section 2, has a free entry for each comparable pair, the
# virtual root on top included. The trace of the covariance and its gradient come from one Cholesky factor:
# O(n³) time an evaluation, O(n²) memory.


@dataclass(frozen=True)
class DenseEllipse:
    """A precision matrix on elements numbered bottom-up, with the virtual root last.

    ``root_scale``, ``trace`` and ``presence`` are as in :class:`~isotone.counts.ellipse_forest.ForestEllipse`.
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
        result = family.evaluate(x[:-1] / scale, x[-1])
        if result is None:
            return None
        trace, by_tie, by_logit, _ = result
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
        result = family.evaluate(np.square(x[:-1]) / scale, x[-1])
        if result is None:
            return None
        trace, by_tie, by_logit, _ = result
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
        result = self.evaluate(ties, logit)
        if result is None:
            return None
        trace, _, _, weight = result
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


# The smallest ellipse of a chain.
#
# A chain of n elements has n nonempty filters, the prefixes from the top. With probability ``p_k`` on prefix k
# the second moments V have a tridiagonal inverse, so one symmetric tridiagonal eigenproblem gives the lower
# bound ``(tr V^½)²`` on every Gaussian's total variance, and the ellipse V^½ itself is optimal when every prefix
# has the same length in its norm. Raising the probability of long prefixes makes them equal
# (docs/theory/gaussian.md, section 4). O(n²) time a step.

_STEPS = 30
_COARSEST = 200
_REFINE = 4


@dataclass(frozen=True)
class ChainEllipse:
    """An ellipse of a chain, elements from the top down, scaled to sensitivity 1.

    Its precision is ``vectors · diag(values) · vectors'``; ``trace`` is that of its covariance and
    ``lower_bound`` what no Gaussian can beat.
    """

    vectors: Floats
    values: Floats
    trace: float
    lower_bound: float


def fit_chain(n: int, *, tolerance: float = 1e-4, progress: Progress = no_progress) -> ChainEllipse:
    """The ellipse whose trace is within ``tolerance``, relatively, of the smallest."""
    sizes = [n]
    while sizes[-1] > _REFINE * _COARSEST:
        sizes.append(sizes[-1] // _REFINE)
    p = 1 / np.sqrt(np.arange(sizes[-1], 0, -1) - 0.5)
    for size in reversed(sizes[1:]):
        p = equalise(_state, _stretch(p, size), _STEPS, tolerance, no_progress).weights
    result = equalise(_state, _stretch(p, n), _STEPS, tolerance, progress)
    return result.ellipse


@dataclass(frozen=True)
class WeightedChanges:
    """Weights of what a record may change, eigenvalues and eigenvectors of V^½, and the squared lengths of the changes."""

    weights: Floats
    roots: Floats
    vectors: Floats
    lengths: Floats

    @property
    def ellipse(self) -> ChainEllipse:
        """The ellipse V^½, scaled to sensitivity 1."""
        total, longest = float(self.roots.sum()), float(self.lengths.max())
        return ChainEllipse(self.vectors, np.reciprocal(self.roots * longest), total * longest, total**2)


def equalise(
    weighted: Callable[[Floats], WeightedChanges],
    weights: Floats,
    steps: int,
    tolerance: float,
    progress: Progress,
) -> WeightedChanges:
    """Weights under which all changes in use have almost the same length, and none is longer."""
    state = weighted(weights)
    for step in range(steps):
        progress(step / steps, "shaping the noise")
        mean = float(state.roots.sum())
        if state.lengths.max() <= mean * (1 + tolerance):
            break
        state = weighted(state.weights * np.square(state.lengths / mean))
    progress(1.0, "shaping the noise")
    return state


def _state(p: Floats) -> WeightedChanges:
    from scipy.linalg import eigh_tridiagonal

    p = p / p.sum()
    inverse = np.reciprocal(p)
    diagonal = inverse.copy()
    diagonal[1:] += inverse[:-1]
    values, vectors = eigh_tridiagonal(diagonal, -inverse[:-1])  # of the inverse of V
    roots = 1 / np.sqrt(values)
    return WeightedChanges(p, roots, vectors, np.square(np.cumsum(vectors, axis=0)) @ (1 / roots))


def _stretch(p: Floats, size: int) -> Floats:
    """A profile for ``size`` prefixes with the shape of ``p``, which goes like ``(n − k + ½)^-½``."""
    if p.size == size:
        return p
    shape = p * np.sqrt(np.arange(p.size, 0, -1) - 0.5)
    place = (np.arange(size) + 0.5) / size * p.size - 0.5
    return np.interp(place, np.arange(p.size), shape) / np.sqrt(np.arange(size, 0, -1) - 0.5)


# The smallest ellipse of a chain when a record is replaced.
#
# The change is then the difference of two prefixes, and the number of records is public. With probabilities on
# the pairs of prefixes the second moments V of the change give the lower bound ``(tr V^½)²``, and V^½ is optimal
# when all pairs in use are equally far apart, and the others nearer (docs/theory/gaussian.md, section 4). All pairs
# are kept as a weighted graph on the prefixes: O(n³) time a step.

LARGEST_CHAIN_OF_DIFFERENCES = 1000
_DIFFERENCE_STEPS = 60


def fit_chain_differences(
    n: int, *, tolerance: float = 1e-3, progress: Progress = no_progress
) -> ChainEllipse:
    """The ellipse whose trace is within ``tolerance`` of the smallest.

    The tolerance is relative. Elements come from the top down.
    """
    place = np.arange(n + 1)
    far = np.abs(place[:, None] - place) / (n + 1.0)  # a start that favours distant pairs
    return equalise(_difference_state, far, _DIFFERENCE_STEPS, tolerance, progress).ellipse


def _difference_state(weights: Floats) -> WeightedChanges:
    weights = weights * (2 / weights.sum())  # each pair stands twice in the matrix
    laplacian = np.diag(weights.sum(axis=1)) - weights
    # prefix k holds elements 0 … k-1: column sums from below turn pairs of prefixes into pairs of elements
    V = np.cumsum(np.cumsum(laplacian[:0:-1, :0:-1], axis=0), axis=1)[::-1, ::-1]
    values, vectors = np.linalg.eigh(V)
    roots = np.sqrt(np.maximum(values, 1e-15))
    points = np.zeros((len(weights), len(weights) - 1))
    np.cumsum(vectors / np.sqrt(roots), axis=0, out=points[1:])
    squares = np.sum(points**2, axis=1)
    apart = np.maximum(squares[:, None] + squares - 2 * points @ points.T, 0.0)
    return WeightedChanges(weights, roots, vectors, apart)


# The lower bound on every Gaussian from an explicit list of changes, reweighted and extended.
#
# The bound ``(tr V^½)²`` of docs/theory/gaussian.md, section 6, holds for every distribution on the changes that
# one record can make: filters, or differences of two where a record is replaced. For a given list the best
# weights are the fixed point of ``p ← p·(length/mean)²``, where lengths are measured in the norm of V^-½; changes
# that are too long in that norm, found by local search, join the list.

_WORK = 4e9
"""About as many multiplications go into the reweighting of one round."""


def filter_bound(
    leq: Bools,
    presence: Floats,
    max_size: int | None = None,
    neighbours: Neighbours = "add-remove",
    rounds: int | None = None,
) -> float:
    """The bound for filters of at most ``max_size`` elements.

    ``leq[i, j]`` says that i lies below j.

    The first filters are drawn from independent gates with about the given presence, by a fixed seed.
    """
    n = len(leq)
    rounds = rounds or (15 if n <= 60 else 6)
    largest = n if max_size is None else min(max_size, n)
    size = int(np.clip(2e8 / n**2, 4 * n, 40 * n + 200))
    updates = int(np.clip(_WORK / (size * n**2), 6, 25))
    rng = np.random.default_rng(0)
    gained = _draw(leq, presence, largest, size, rng)
    lost = np.zeros_like(gained)
    exchanges = adjacency(neighbours).exchanges
    if exchanges:  # from nothing, and from another filter
        lost = np.concatenate((lost, gained[rng.permutation(len(gained))]))
        gained = np.concatenate((gained, gained))
    weights = np.full(len(gained), 1 / len(gained))
    best = 0.0
    for _ in range(rounds):
        weights, total = _reweigh(_difference(gained, lost), weights, updates)
        best = max(best, total**2)
        _, lengths, metric = _measure(_difference(gained, lost), weights)
        longest = np.argsort(-lengths)[: min(8 * n, 1000)]
        more, less = _climb(leq, gained[longest], lost[longest], metric, largest), lost[longest]
        if exchanges:
            less = _climb(leq, less, more, metric, largest)
        keep = weights > 1e-3 / len(weights)
        gained, lost, weights = _merge((gained[keep], lost[keep]), weights[keep], (more, less))
    return best


def _difference(gained: Bools, lost: Bools) -> Floats:
    return gained.astype(np.float64) - lost


def _reweigh(points: Floats, weights: Floats, updates: int) -> tuple[Floats, float]:
    """Better weights after some steps of the fixed point, and the largest tr V^½ met on the way."""
    best, chosen = 0.0, weights
    for _ in range(updates):
        total, lengths, _ = _measure(points, weights)
        if total > best:
            best, chosen = total, weights
        weights = weights * np.square(lengths / total)
        weights /= weights.sum()
    return chosen, best


def _measure(points: Floats, weights: Floats) -> tuple[float, Floats, Floats]:
    """tr V^½, the squared length of each point in the norm of V^-½, and V^-½."""
    values, axes = np.linalg.eigh((points.T * weights) @ points)
    roots = np.sqrt(np.maximum(values, 1e-14))
    lengths = np.square(points @ axes) @ (1 / roots)
    return float(np.sqrt(np.maximum(values, 0)).sum()), lengths, (axes / roots) @ axes.T


def _draw(leq: Bools, presence: Floats, largest: int, size: int, rng: np.random.Generator) -> Bools:
    """Random nonempty filters of at most ``largest`` elements, and every principal one that small."""
    n = len(leq)
    above = leq.astype(np.float64)
    gates = np.exp(np.minimum(np.linalg.solve(above, np.log(np.clip(presence, 1e-9, 1))), -1e-3))
    shut = (rng.random((size, n)) >= gates).astype(np.float64)
    drawn = shut @ above.T == 0
    # those too large are cut: elements with few above them are kept first, at random among equals
    keys = np.where(drawn, rng.random((size, n)) + above.sum(axis=1), np.inf)
    kept = drawn & (np.argsort(np.argsort(keys, axis=1), axis=1) < largest)
    candidates = np.concatenate((kept, leq[leq.sum(axis=1) <= largest]))
    return np.unique(candidates[candidates.any(axis=1)], axis=0)


def _climb(leq: Bools, filters: Bools, others: Bools, metric: Floats, largest: int) -> Bools:
    """Filters moved away from the ``others`` by greedy steps.

    Each step adds or removes the element that helps most.
    """
    strict = (leq & ~np.eye(len(leq), dtype=np.bool_)).astype(np.float64)
    needed, diagonal = strict.sum(axis=1), np.diag(metric)
    current = filters.copy()
    points = current.astype(np.float64)
    slope, held, resting = 2 * (points - others) @ metric, points @ strict.T, points @ strict
    every = np.arange(len(current))
    for _ in range(len(leq)):
        addable = ~current & (held == needed) & (current.sum(axis=1, keepdims=True) < largest)
        removable = current & (resting == 0)
        gain = np.where(addable, diagonal + slope, np.where(removable, diagonal - slope, -np.inf))
        choice = np.argmax(gain, axis=1)
        rows = np.flatnonzero(gain[every, choice] > 1e-9)
        if rows.size == 0:
            break
        x = choice[rows]
        sign = np.where(current[rows, x], -1.0, 1.0)[:, None]
        current[rows, x] ^= True
        slope[rows] += 2 * sign * metric[x]
        held[rows] += sign * strict[:, x].T
        resting[rows] += sign * strict[x]
    return current


def _merge(
    old: tuple[Bools, Bools], weights: Floats, new: tuple[Bools, Bools]
) -> tuple[Bools, Bools, Floats]:
    """The list with new changes added at a small weight, each change once."""
    n = old[0].shape[1]
    both = np.concatenate((np.hstack(old), np.hstack(new)))
    weight = np.concatenate((0.9 * weights / weights.sum(), np.full(len(new[0]), 0.1 / len(new[0]))))
    unique, place = np.unique(both, axis=0, return_inverse=True)
    merged = np.bincount(place.ravel(), weight, len(unique))
    return unique[:, :n], unique[:, n:], merged / merged.sum()


# What is known about the quality of an ellipse.


@dataclass(frozen=True)
class EllipseCertificate:
    """How good a Gaussian mechanism's covariance is, at sensitivity 1.

    ``sensitivity_squared`` is the exact integer that the noise is calibrated to, on the strategy's own scale.
    ``trace`` is the total variance at sensitivity 1; ``lower_bound`` one that no Gaussian can beat (None where
    none was computed); ``independent`` that of independent noise.

    >>> print(EllipseCertificate("forest", 2**56, 77.8, 76.6, 225.0))
    forest: total variance 77.8 at sensitivity 1 (independent noise: 225); within 1.57 % of the best Gaussian
    """

    method: str
    sensitivity_squared: int
    trace: float
    lower_bound: float | None
    independent: float

    @property
    def gap(self) -> float | None:
        """The relative excess over the lower bound. 0.004 reads "within 0.4 % of optimal"."""
        return None if self.lower_bound is None else self.trace / self.lower_bound - 1

    def __str__(self) -> str:
        known = (
            "no bound computed" if self.gap is None else f"within {100 * self.gap:.2f} % of the best Gaussian"
        )
        return (
            f"{self.method}: total variance {self.trace:.6g} at sensitivity 1 "
            f"(independent noise: {self.independent:.6g}); {known}"
        )
