"""The order-shaped ellipse of a forest, by multifrontal elimination.

The precision matrix M of docs/theory/gaussian.md, section 2, has an entry for each element and ancestor, the
virtual root included. Eliminating elements from the leaves up fills nothing in: what remains of an element is a
matrix on its ancestors, handed to its parent. In preorder one such matrix per depth is alive, so an evaluation
of the trace and its gradient takes O(Σ depth²) time and O(Σ depth) memory (section 5).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isotone.array_types import Floats, Ints
from isotone.counts.ellipse.descent import descend
from isotone.counts.ellipse.grove import Grove
from isotone.kernels import kernel
from isotone.mechanism import Progress, no_progress

__all__ = ["ForestEllipse", "fit_forest"]

_NEARLY = 1 + 1e-4
"""The number of records is given up as a coordinate where it helps by less than this."""


@dataclass(frozen=True)
class ForestEllipse:
    """The factor of a forest's precision matrix, ``M = Σ_x pivot_x (e_x − Σ_a share_xa e_a)²``.

    ``root_scale`` is the number that the count of records is multiplied with: 1 unless sizes are bounded, and 0
    where it is no coordinate at all. ``trace`` is that of the covariance of all counts. ``presence`` are the
    marginals of the random filter that the gradient defines, from which the lower bound is built (section 6).
    """

    grove: Grove
    pivot: Floats
    share: Floats
    root_scale: float
    trace: float
    presence: Floats


def fit_forest(
    grove: Grove,
    max_size: int | None = None,
    *,
    steps: int = 400,
    tolerance: float | None = None,
    progress: Progress = no_progress,
) -> ForestEllipse:
    """The nearly smallest ellipse of the family.

    The trace is convex in the ties, and every iterate is valid.

    The default tolerance is finer for forests of up to 10,000 nodes than for larger ones.
    """
    from scipy.special import expit

    if tolerance is None:
        tolerance = 1e-6 if grove.nodes <= 10_000 else 1e-5
    below = _elements_below(grove)
    bound = 0.0 if max_size is None else 1.0 / max_size
    s = 1.0 if max_size is None else min(0.9, (max_size / float(below[0])) ** 0.5)
    mass = s * s * below / below[0] + (1 - s * s) * bound  # about the diagonal of M
    scale = np.repeat(np.sqrt(grove.copies / mass), grove.width)

    def unpack(x: Floats) -> tuple[Floats, float]:
        return x[:-1] / scale, 1.0 if max_size is None else float(expit(x[-1]))

    def objective(x: Floats) -> tuple[float, Floats] | None:
        a, s = unpack(x)
        trace, gradient, by_scale, *_ = _evaluate(*_arrays(grove), a, s, bound)
        if not (trace > 0 and np.isfinite(trace)):
            return None
        slope = 0.0 if max_size is None else by_scale * s * (1 - s)
        return float(np.log(trace)), np.append(gradient / scale, slope) / trace

    begin = np.append(_start(grove, below, s, bound) * scale, np.log(s / (1 - s)) if s < 1 else 0.0)
    best = descend(
        objective, begin, steps=steps, tolerance=tolerance, progress=progress, what="shaping the noise"
    )
    a, s = unpack(best)
    fitted = _ellipse(grove, a, s, bound)
    if max_size is None:
        return fitted
    a[grove.start[1:-1]] = 0.0
    rootless = _ellipse(grove, a, 0.0, bound)
    return rootless if rootless.trace <= fitted.trace * _NEARLY else fitted


def _start(grove: Grove, below: Floats, s: float, bound: float) -> Floats:
    """Ties to the parent alone that are surely inside the set.

    A mixture, with weight s², of ties in proportion to the subtree, and of ties for bounded records that
    leave every pivot at least half of the bound: siblings together take at most a quarter from their parent.
    """
    children = np.bincount(grove.parent[1:], grove.times[1:], grove.nodes)
    ties = np.zeros(int(grove.start[-1]))
    to_parent = grove.start[2:] - 1
    ties[to_parent] = 0.5 * s * s * below[1:] / below[0]
    ties[to_parent] += 0.5 * (1 - s * s) * bound / np.sqrt(children[grove.parent[1:]])
    at_top = grove.depth[1:] == 1
    ties[to_parent[at_top]] = 0.5 * s * below[1:][at_top] / below[0]  # the root's own scale is s
    return ties


def _ellipse(grove: Grove, ties: Floats, root_scale: float, bound: float) -> ForestEllipse:
    trace, _, _, pivot, share, weight = _evaluate(*_arrays(grove), ties, root_scale, bound)
    presence = weight[1:] / max(weight[0], weight.max())  # without ties to the root its own weight is zero
    return ForestEllipse(grove, pivot, share, root_scale, float(trace) if trace > 0 else np.inf, presence)


def _arrays(grove: Grove) -> tuple[Ints, Ints, Ints, Ints, Ints, Ints]:
    return grove.parent, grove.depth, grove.width, grove.start, grove.times, grove.copies


def _elements_below(grove: Grove) -> Floats:
    """How many elements lie in the subtree of one element of each node, itself included."""
    size = np.ones(grove.nodes)
    for x in range(grove.nodes - 1, 0, -1):
        size[grove.parent[x]] += grove.times[x] * size[x]
    return size


@kernel(steps=lambda parent, depth, width, *_: 4 * int(((width + 1) ** 2).sum()))
def _evaluate(
    parent: Ints,
    depth: Ints,
    width: Ints,
    start: Ints,
    times: Ints,
    copies: Ints,
    ties: Floats,
    root_scale: float,
    bound: float,
) -> tuple[float, Floats, float, Floats, Floats, Floats]:
    """Trace, gradient in the ties and in the root's scale, pivots, shares, and the diagonal of Z.

    Z = M⁻¹ E M⁻¹ (E: the identity on elements, 0 at the root) is minus the derivative of M⁻¹ in the direction
    E: every quantity of the elimination is carried along with its derivative (``…_d``). A trace of -1 says
    that M is not positive definite.
    """
    n = parent.size
    most = width.max() + 1
    front = np.zeros((depth.max() + 1, most, most))
    front_d = np.zeros_like(front)
    pivot, pivot_d = np.zeros(n), np.zeros(n)
    share, share_d = np.zeros(ties.size), np.zeros(ties.size)
    ground = bound * (1.0 - root_scale * root_scale)
    for x in range(n - 1, -1, -1):
        k, w, o = depth[x], width[x], start[x]
        diagonal = 1.0 if x == 0 else ground
        for j in range(w):
            front[k, w, j] -= ties[o + j]
            diagonal += 2.0 * ties[o + j] * (root_scale if j == 0 else 1.0)
        d = front[k, w, w] + diagonal
        dd = front_d[k, w, w] + (0.0 if x == 0 else 1.0)
        if not d > 0.0:
            return -1.0, share, 0.0, pivot, share, pivot_d
        pivot[x], pivot_d[x] = d, dd
        for j in range(w):
            share[o + j] = -front[k, w, j] / d
            share_d[o + j] = (-front_d[k, w, j] - share[o + j] * dd) / d
        if x > 0:
            _hand_over(
                front, front_d, k, w, int(width[parent[x]]), times[x], share[o : o + w], share_d[o : o + w]
            )
        front[k, : w + 1, : w + 1] = 0.0
        front_d[k, : w + 1, : w + 1] = 0.0
    gradient, weight = np.zeros(ties.size), np.zeros(n)
    trace, by_scale = 0.0, 0.0
    for x in range(n):  # the fronts now hold covariances of a node and its ancestors, from the root down
        k, w, o = depth[x], width[x], start[x]
        above = int(width[parent[x]]) if x > 0 else 0
        variance, variance_d = _take_over(
            front, front_d, k, w, above, pivot[x], pivot_d[x], share[o : o + w], share_d[o : o + w]
        )
        weight[x] = -variance_d
        if x > 0:
            trace += copies[x] * variance
            by_scale -= copies[x] * weight[x] * 2.0 * (ties[o] - root_scale * bound)
            gradient[o] = 2.0 * copies[x] * (-front_d[k, w, 0] - root_scale * weight[x])
            for j in range(1, w):
                gradient[o + j] = 2.0 * copies[x] * (-front_d[k, w, j] - weight[x])
    return trace, gradient, by_scale, pivot, share, weight


@kernel(inline="always")
def _hand_over(
    front: Floats,
    front_d: Floats,
    k: int,
    w: int,
    above: int,
    times: int,
    share: Floats,
    share_d: Floats,
) -> None:
    """Add what is left of a node at depth ``k``, once for each twin, to the front of its parent.

    Ancestor ``j`` of the node is in place ``j + shift`` of its parent's list; the root keeps place 0.
    """
    shift = 1 + above - w
    for i in range(w):
        to_i = i + shift if i > 0 else 0
        b, bd = share[i], share_d[i]
        front[k - 1, to_i, 0] += times * (front[k, i, 0] + b * front[k, w, 0])
        front_d[k - 1, to_i, 0] += times * (front_d[k, i, 0] + bd * front[k, w, 0] + b * front_d[k, w, 0])
        for j in range(1, i + 1):
            front[k - 1, to_i, j + shift] += times * (front[k, i, j] + b * front[k, w, j])
            front_d[k - 1, to_i, j + shift] += times * (
                front_d[k, i, j] + bd * front[k, w, j] + b * front_d[k, w, j]
            )


@kernel(inline="always")
def _take_over(
    front: Floats,
    front_d: Floats,
    k: int,
    w: int,
    above: int,
    pivot: float,
    pivot_d: float,
    share: Floats,
    share_d: Floats,
) -> tuple[float, float]:
    """Fill the covariances of a node at depth ``k`` from those of its parent.

    Returns its variance and derivative.
    """
    shift = 1 + above - w
    for i in range(w):
        to_i = i + shift if i > 0 else 0
        front[k, i, 0], front_d[k, i, 0] = front[k - 1, to_i, 0], front_d[k - 1, to_i, 0]
        front[k, 0, i], front_d[k, 0, i] = front[k, i, 0], front_d[k, i, 0]
        for j in range(1, w):
            front[k, i, j], front_d[k, i, j] = front[k - 1, to_i, j + shift], front_d[k - 1, to_i, j + shift]
    variance, variance_d = 1.0 / pivot, -pivot_d / pivot**2
    for i in range(w):
        c, cd = 0.0, 0.0
        for j in range(w):
            c += front[k, i, j] * share[j]
            cd += front_d[k, i, j] * share[j] + front[k, i, j] * share_d[j]
        front[k, w, i], front_d[k, w, i] = c, cd
        front[k, i, w], front_d[k, i, w] = c, cd
        variance += share[i] * c
        variance_d += share_d[i] * c + share[i] * cd
    front[k, w, w], front_d[k, w, w] = variance, variance_d
    return variance, variance_d
