"""Isotonic least squares on chains, forests and any order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isotone.array_types import Floats, Ints
from isotone.errors import InputError, IsotoneError
from isotone.kernels import kernel
from isotone.order.closure import heaviest_filter

if TYPE_CHECKING:
    from isotone.order.poset import Poset

# Isotonic regression on a chain by pooling adjacent violators.
#
# Definition: given values ``y`` and weights ``w > 0`` along a chain, the nondecreasing ``f`` that minimises
# ``Σ w (f − y)²``. Complexity: O(n). Reference: Barlow, Bartholomew, Bremner and Brunk 1972, chapter 1.


@kernel(steps=lambda values, weights: 2 * values.size)
def pool_adjacent_violators(values: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """The nondecreasing vector closest to ``values``, listed from the bottom of the chain to its top.

    Block means are kept as a mean and a total weight, and a merge moves the mean by a convex combination:
    so values with a large common offset lose no digits.
    """
    n = values.size
    mean = np.empty(n)
    weight = np.empty(n)
    first = np.empty(n + 1, np.int64)
    blocks = 0
    for i in range(n):
        mean[blocks], weight[blocks], first[blocks] = values[i], weights[i], i
        while blocks > 0 and mean[blocks - 1] >= mean[blocks]:
            total = weight[blocks - 1] + weight[blocks]
            mean[blocks - 1] += (mean[blocks] - mean[blocks - 1]) * (weight[blocks] / total)
            weight[blocks - 1] = total
            blocks -= 1
        blocks += 1
    first[blocks] = n
    fitted = np.empty(n)
    for b in range(blocks):
        fitted[first[b] : first[b + 1]] = mean[b]
    return fitted


# Isotonic regression on a forest by merging blocks from the leaves up.
#
# Definition: each element has at most one upper cover, its parent, and ``f(x) ≤ f(parent of x)`` is asked of
# the ``f`` that minimises ``Σ w (f − y)²``. Complexity: O(n log n), with one mergeable heap of child blocks per
# block. Reference: Pardalos and Xue 1999, "Algorithms for a class of isotonic regression problems".
#
# Why it is right: suppose the subtrees below ``x`` are solved. Adding ``x`` as a block of its own breaks the
# order only where a child block lies above it; pooling the highest such block with ``x`` is forced, and hands
# its own child blocks over to the pool. When no child block lies above the pool, every block is a weighted
# mean, blocks increase upward, and the multipliers on the pooled covers are nonnegative: that is optimality.


@kernel
def _meld(
    a: int,
    b: int,
    mean: NDArray[np.float64],
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    rank: NDArray[np.int64],
    spine: NDArray[np.int64],
) -> int:
    """Meld two leftist max-heaps (by block mean) in O(log n). -1 is the empty heap."""
    depth = 0
    while a >= 0 and b >= 0:
        if mean[a] < mean[b]:
            a, b = b, a
        spine[depth] = a
        depth += 1
        a = right[a]
    root = a if a >= 0 else b
    while depth > 0:
        depth -= 1
        top = spine[depth]
        right[top] = root
        if left[top] < 0 or (right[top] >= 0 and rank[left[top]] < rank[right[top]]):
            left[top], right[top] = right[top], left[top]
        rank[top] = 1 + (rank[right[top]] if right[top] >= 0 else 0)
        root = top
    return root


@kernel(steps=lambda parents, bottom_up, values, weights: 8 * values.size)
def merge_up_the_forest(
    parents: NDArray[np.int64],
    bottom_up: NDArray[np.int64],
    values: NDArray[np.float64],
    weights: NDArray[np.float64],
) -> NDArray[np.float64]:
    """The monotone vector closest to ``values`` on a forest.

    ``parents[x]`` is the upper cover of ``x`` or -1; ``bottom_up`` lists every element before its parent.
    A block is named after its highest element.
    """
    n = values.size
    mean = values.copy()
    weight = weights.copy()
    below = np.full(n, -1, np.int64)  # heap of the blocks directly under each block
    left = np.full(n, -1, np.int64)
    right = np.full(n, -1, np.int64)
    rank = np.ones(n, np.int64)
    spine = np.empty(max(n, 1), np.int64)
    pooled_into = np.full(n, -1, np.int64)
    for k in range(n):
        x = int(bottom_up[k])
        while below[x] >= 0 and mean[below[x]] >= mean[x]:
            block = int(below[x])
            total = weight[x] + weight[block]
            mean[x] += (mean[block] - mean[x]) * (weight[block] / total)
            weight[x] = total
            pooled_into[block] = x
            rest = _meld(int(left[block]), int(right[block]), mean, left, right, rank, spine)
            below[x] = _meld(rest, int(below[block]), mean, left, right, rank, spine)
        parent = int(parents[x])
        if parent >= 0:
            below[parent] = _meld(int(below[parent]), x, mean, left, right, rank, spine)
    fitted = np.empty(n)
    for k in range(n - 1, -1, -1):
        x = bottom_up[k]
        fitted[x] = mean[x] if pooled_into[x] < 0 else fitted[pooled_into[x]]
    return fitted


# Isotonic regression on any order by recursive minimum cuts.
#
# Definition: the ``f``, monotone on the order, that minimises ``Σ w (f − y)²``. A convex set of elements with
# weighted mean ``m`` either is one level of ``f`` (namely ``m``), or splits: the filter of largest total
# ``Σ w (y − m)`` lies above ``m`` and the rest below, and the two parts no longer touch. That filter is a
# minimum cut of the cover graph, and a set whose best filter has total 0 carries a flow that saturates every
# excess: these flows are the multipliers of the optimality conditions.
# Complexity: one maximum flow per level set; in practice a few times the cost of one flow on the whole order.
# Reference: Spouge, Wan and Wilbur 2003, "Least squares isotonic regression in two dimensions".
#
# Flows are computed on integers: the excesses are scaled to a total of about 2**60, so a cut is exact and a
# filter is overlooked only if it would gain less than 2**-50 of the total excess.

_TOTAL_BITS = 60
_NOISE = 2 ** (_TOTAL_BITS - 50)


def _integer_excess(
    values: NDArray[np.float64], weights: NDArray[np.float64], mean: float
) -> NDArray[np.int64]:
    """``w (y − mean)`` on a common integer scale, with total exactly zero."""
    excess = weights * (values - mean)
    magnitude = float(np.sum(np.abs(excess)))
    if magnitude == 0.0:
        return np.zeros(values.size, np.int64)
    scaled = np.rint(np.ldexp(excess, _TOTAL_BITS - int(np.frexp(magnitude)[1]))).astype(np.int64)
    scaled[np.argmax(np.abs(scaled))] -= scaled.sum()
    return scaled


def _weighted_mean(values: NDArray[np.float64], weights: NDArray[np.float64]) -> float:
    """The weighted mean, with one correction step so that a common offset costs no digits."""
    total = float(np.sum(weights))
    mean = float(np.dot(weights, values)) / total
    return mean + float(np.dot(weights, values - mean)) / total


def _components(size: int, covers: NDArray[np.int64]) -> NDArray[np.int64]:
    """A component number for each of ``size`` elements linked by ``covers``."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    links = coo_matrix((np.ones(len(covers), np.int8), (covers[:, 0], covers[:, 1])), shape=(size, size))
    return connected_components(links, directed=False)[1].astype(np.int64)


def _on_forest(
    covers: NDArray[np.int64], values: NDArray[np.float64], weights: NDArray[np.float64]
) -> NDArray[np.float64] | None:
    """The projection if every element has at most one upper cover, else None. Elements come bottom-up."""
    size = values.size
    if np.any(np.bincount(covers[:, 0], minlength=size) > 1):
        return None
    if len(covers) == size - 1 and np.array_equal(np.sort(covers[:, 1]), np.arange(1, size)):
        return pool_adjacent_violators(values, weights)  # a chain, listed from bottom to top
    parents = np.full(size, -1, np.int64)
    parents[covers[:, 0]] = covers[:, 1]
    return merge_up_the_forest(parents, np.arange(size), values, weights)


def project_convex_sets(
    covers: NDArray[np.int64], values: NDArray[np.float64], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The monotone vector closest to ``values``, for elements numbered bottom-up.

    ``covers`` holds rows (lower, upper) with lower < upper. Forests, upright or upside down, are solved
    directly wherever they appear among the parts; other parts are cut.
    """
    fitted = np.empty(values.size)
    parts = [(np.arange(values.size), covers)]
    while parts:
        members, links = parts.pop()
        y, w = values[members], weights[members]
        direct = _on_forest(links, y, w)
        if direct is None:
            upside_down = _on_forest((members.size - 1 - links)[:, ::-1], -y[::-1], w[::-1])
            direct = None if upside_down is None else -upside_down[::-1]
        if direct is None and bool(np.all(y[links[:, 0]] <= y[links[:, 1]])):
            direct = y
        if direct is not None:
            fitted[members] = direct
            continue
        label = _components(members.size, links)
        if label.max() == 0:
            mean = _weighted_mean(y, w)
            gain, above = heaviest_filter(_integer_excess(y, w, mean), links)
            if gain <= _NOISE + members.size:
                fitted[members] = mean
                continue
            label = above.astype(np.int64)
        parts.extend(_split(members, links, label))
    return fitted


def _split(
    members: NDArray[np.int64], links: NDArray[np.int64], label: NDArray[np.int64]
) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """The parts of equal label, each with its members (still bottom-up) and the covers inside it."""
    order = np.argsort(label, kind="stable")
    sizes = np.bincount(label)
    starts = np.concatenate(([0], np.cumsum(sizes)))
    position = np.empty(members.size, np.int64)
    position[order] = np.arange(members.size) - np.repeat(starts[:-1], sizes)
    inside = links[label[links[:, 0]] == label[links[:, 1]]]
    inside = inside[np.argsort(label[inside[:, 0]], kind="stable")]
    ends = np.concatenate(([0], np.cumsum(np.bincount(label[inside[:, 0]], minlength=sizes.size))))
    return [
        (members[order[starts[k] : starts[k + 1]]], position[inside[ends[k] : ends[k + 1]]])
        for k in range(sizes.size)
    ]


# Least squares onto the monotone functions on a partial order.
#
# Definition: ``project(P, y)`` is the ``f`` with ``f(a) ≤ f(b)`` whenever ``a ≤ b`` that minimises
# ``Σ w (f − y)²``; it exists and is unique. Exact methods, chosen by the shape of the order: pooling on chains,
# merging on forests, minimum cuts elsewhere. Reference: Robertson, Wright and Dykstra 1988, chapter 1.

LARGEST_WEIGHT_RATIO = 1e9


def project(
    P: Poset,
    values: ArrayLike,
    weights: ArrayLike | None = None,
    lower: float | None = None,
    upper: float | None = None,
) -> NDArray[np.float64]:
    """The monotone function on ``P`` closest to ``values`` in weighted least squares.

    ``values`` and ``weights`` have one entry per element, in the order of ``P.elements``. Weights must be
    positive, with a ratio of at most 1e9 between largest and smallest. ``lower`` and ``upper`` bound every
    value of the result: clipping the unbounded solution gives exactly the bounded one. The result is exactly
    monotone, and within about 1e-12 of the range of the values (times the ratio of the weights, in the worst
    case) of the exact solution. An array subclass survives: a simulated array stays simulated.

    Complexity: O(n) on chains, O(n log n) on forests, a few maximum flows elsewhere.

    >>> from isotone.order import Poset, project
    >>> survey = Poset(["hyp", "twice", "meds"], [("twice", "hyp"), ("meds", "hyp")])
    >>> project(survey, [10, 16, 3])
    array([13., 13.,  3.])
    """
    y = one_per_element(values, len(P), "values")
    w = np.ones(len(P)) if weights is None else one_per_element(weights, len(P), "weights")
    _check_weights(w)
    bounds = check_bounds(lower, upper)
    order = P.canonical.positions  # a linear extension
    covers = P.canonical.order.cover_pairs
    fitted = np.empty(len(P))
    fitted[order] = project_bottom_up(covers, y[order], w[order])
    return like(values, np.clip(fitted, *bounds))


def project_bottom_up(
    covers: NDArray[np.int64], values: NDArray[np.float64], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The projection for elements numbered along a linear extension.

    The input is not checked.
    """
    if np.all(values[covers[:, 0]] <= values[covers[:, 1]]):
        return values.copy()
    offset = float(np.median(values))
    fitted = project_convex_sets(covers, values - offset, weights / weights.max()) + offset
    return _exactly_monotone(covers, fitted)


def _exactly_monotone(covers: NDArray[np.int64], fitted: NDArray[np.float64]) -> NDArray[np.float64]:
    """Remove violations of the size of a rounding error.

    Each value is raised to those below it.
    """
    if np.all(fitted[covers[:, 0]] <= fitted[covers[:, 1]]):
        return fitted
    for below, above in covers[np.argsort(covers[:, 1], kind="stable")]:
        fitted[above] = max(fitted[above], fitted[below])
    return fitted


def one_per_element(values: ArrayLike, size: int, name: str) -> NDArray[np.float64]:
    """``values`` as floats, refused unless there is one finite number per element."""
    try:
        array = np.array(values, dtype=np.float64, subok=False)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be numbers, one for each of the {size} elements.") from None
    if array.shape != (size,):
        raise InputError(
            f"{name} must hold one number for each of the {size} elements, in the order of P.elements; "
            f"its shape is {array.shape}."
        )
    if not np.all(np.isfinite(array)):
        raise InputError(
            f"{name} must be finite numbers: infinities and NaN have no least-squares projection."
        )
    return array


def check_bounds(lower: float | None, upper: float | None) -> tuple[float, float]:
    """The bounds as numbers (infinite where not given), refused unless lower ≤ upper."""
    low = -np.inf if lower is None else float(lower)
    high = np.inf if upper is None else float(upper)
    if not low <= high:
        raise InputError(f"lower must not exceed upper, and neither may be NaN; got {lower!r} and {upper!r}.")
    return low, high


def like(values: ArrayLike, result: NDArray[np.float64]) -> NDArray[np.float64]:
    """``result`` in the array type of ``values``.

    A simulated array stays marked as simulated.
    """
    if isinstance(values, np.ndarray) and type(values) is not np.ndarray:
        return result.view(type(values))
    return result


def _check_weights(weights: NDArray[np.float64]) -> None:
    if weights.size and not weights.min() > 0:
        raise InputError(
            "weights must all be above 0: an element without weight has no unique projection. Leave it out "
            "with P.induced(...), or give it a small weight."
        )
    if weights.size and weights.max() / weights.min() > LARGEST_WEIGHT_RATIO:
        raise InputError(
            f"The largest weight is {weights.max() / weights.min():.3g} times the smallest; beyond "
            f"{LARGEST_WEIGHT_RATIO:g} floating point cannot tell the light elements apart from rounding. "
            "Bring the weights closer together."
        )


# Monotone projection in the norm of a known covariance.
#
# Definition: given ``y = f + noise`` with noise of covariance Σ, the monotone ``f`` that minimises
# ``(f − y)' Σ⁻¹ (f − y)``: generalised least squares and consistency with the order in one step. In coordinates in which Σ
# is the identity it is the shortest move that meets all constraints, which a problem of nonnegative least squares says.
# Reference: Lawson and Hanson 1974, chapter 23 (least distance programming).


def project_covariance(
    P: Poset,
    values: ArrayLike,
    covariance: ArrayLike | None = None,
    *,
    precision: ArrayLike | None = None,
    lower: float | None = None,
    upper: float | None = None,
) -> NDArray[np.float64]:
    """The monotone function on ``P`` closest to ``values`` in the norm of their covariance.

    Give either the ``covariance`` of the values or its inverse, the ``precision``: symmetric, positive
    definite, one row per element in the order of ``P.elements``. A diagonal covariance is the same as
    :func:`project` with weights. ``lower`` and ``upper`` bound every value of the result; unlike there,
    they are part of the problem (clipping afterwards would not be optimal). For some hundreds of elements.

    >>> from isotone.order import Poset, project_covariance
    >>> project_covariance(Poset.chain("ab"), [1, 0], [[1, 0.5], [0.5, 1]])
    array([0.5, 0.5])
    """
    y = one_per_element(values, len(P), "values")
    bounds = check_bounds(lower, upper)
    root = np.linalg.cholesky(_covariance(covariance, precision, len(P)))
    plus, minus, floors = _constraints(P, *bounds)
    padded = np.append(
        root, np.zeros((1, len(P))), axis=0
    )  # the last coordinate is the constant 0 of the bounds
    start = np.append(y, 0.0)
    pull, missing = padded[plus] - padded[minus], floors - (start[plus] - start[minus])
    scale = np.linalg.norm(pull, axis=1)  # the standard deviation of each constraint
    fitted = y + root @ _shortest(pull / scale[:, None], missing / scale)
    return like(values, project(P, fitted, lower=lower, upper=upper))  # removes rounding, nothing else


def _shortest(G: Floats, h: Floats) -> Floats:
    """The shortest z with ``G z ≥ h``, where there is any."""
    if not np.any(h > 0):
        return np.zeros(G.shape[1])
    from scipy.optimize import nnls

    system = np.append(G, h[:, None] / np.abs(h).max(), axis=1).T
    try:
        weights, _ = nnls(system, np.append(np.zeros(G.shape[1]), 1.0), maxiter=50 * sum(G.shape))
    except RuntimeError:
        raise IsotoneError(
            "The projection did not converge: the covariance is too close to singular for floating point. "
            "Give a better conditioned one, or use project() with weights."
        ) from None
    active = weights > 0
    return np.linalg.lstsq(G[active], h[active], rcond=None)[0].astype(np.float64)


def _constraints(P: Poset, low: float, high: float) -> tuple[Ints, Ints, Floats]:
    """Every constraint as ``f[plus] − f[minus] ≥ floor``.

    Position n stands for the constant 0.
    """
    pairs = P.cover_pairs
    size = len(P)
    minimal = (
        np.flatnonzero(np.bincount(pairs[:, 1], minlength=size) == 0) if np.isfinite(low) else pairs[:0, 0]
    )
    maximal = (
        np.flatnonzero(np.bincount(pairs[:, 0], minlength=size) == 0) if np.isfinite(high) else pairs[:0, 0]
    )
    plus = np.concatenate((pairs[:, 1], minimal, np.full(len(maximal), size)))
    minus = np.concatenate((pairs[:, 0], np.full(len(minimal), size), maximal))
    floors = np.concatenate((np.zeros(len(pairs)), np.full(len(minimal), low), np.full(len(maximal), -high)))
    return plus, minus, floors


def _covariance(covariance: ArrayLike | None, precision: ArrayLike | None, size: int) -> Floats:
    """The covariance as a checked matrix, from whichever of the two was given."""
    if (covariance is None) == (precision is None):
        raise InputError("Give either covariance or precision, and not both.")
    name, values = ("covariance", covariance) if precision is None else ("precision", precision)
    matrix = np.array(values, dtype=np.float64, subok=False)
    if matrix.shape != (size, size) or not np.all(np.isfinite(matrix)):
        raise InputError(
            f"{name} must be a {size} × {size} matrix of finite numbers; its shape is {matrix.shape}."
        )
    if not np.allclose(matrix, matrix.T, rtol=1e-9, atol=1e-12 * float(np.max(np.abs(matrix)))):
        raise InputError(f"{name} must be symmetric.")
    try:
        factor = np.linalg.cholesky((matrix + matrix.T) / 2)
    except np.linalg.LinAlgError:
        raise InputError(f"{name} must be positive definite.") from None
    if precision is None:
        return (matrix + matrix.T) / 2
    inverse = np.linalg.inv(factor)
    return inverse.T @ inverse
