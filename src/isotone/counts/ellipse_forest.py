"""The nearly smallest ellipse of a forest: its sparse rows, its lower bound and its integer strategy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from isotone.array_types import Floats, Ints
from isotone.counts.ellipse import descend
from isotone.kernels import kernel
from isotone.linear.strategy import nearest_plane
from isotone.mechanism import Progress, no_progress
from isotone.privacy.guarantee import Neighbours, adjacency

# A forest in preorder under a virtual root, with equal subtrees folded, for sparse elimination.
#
# Siblings with equal subtrees below them are *twins*. An optimal ellipse can be chosen that treats twins alike
# (docs/theory/gaussian.md, section 5), so one node stands for all of them. Taxonomies shrink severalfold, and an
# antichain of any size to a single node.

_WORK = 6e7
"""Above this many multiplications an evaluation is shortened by leaving out distant ancestors."""


class FoldedForest(NamedTuple):
    """A folded forest.

    Node 0 is the virtual root, and nodes come in preorder.

    ``node`` is the node of each element, ``parents`` the elements' own parents (-1: none) and ``top_down`` an
    order in which parents come first. ``times`` is how many twins a node stands for under one parent,
    ``copies`` how many elements in all. A node is tied to the root and its nearest ancestors, ``width`` of
    them, listed from the root down in places ``start[x] … start[x+1]-1`` of every ragged array.
    """

    parents: Ints
    top_down: Ints
    node: Ints
    parent: Ints
    depth: Ints
    times: Ints
    copies: Ints
    width: Ints
    start: Ints

    @property
    def nodes(self) -> int:
        """The number of nodes, the root included."""
        return self.parent.size


def fold_forest(parents: NDArray[np.integer]) -> FoldedForest:
    """The folded form of the forest in which ``parents`` is each element's upper cover, or -1."""
    above = parents.tolist()
    children: list[list[int]] = [[] for _ in range(len(above) + 1)]
    for x, p in enumerate(above):
        children[p].append(x)  # those without parent go to the last list, number -1
    top_down = children[-1].copy()
    for x in top_down:  # grows while it is walked
        top_down.extend(children[x])
    shape = _shapes(top_down, children)
    root = _fold(children, shape)
    node = np.empty(len(above), np.int64)
    for x in top_down:
        siblings = root.classes[0 if above[x] < 0 else int(node[above[x]])]
        node[x] = siblings[shape[x]]
    parent, times = np.array(root.parent), np.array(root.times)
    depth, copies = np.zeros_like(parent), np.ones_like(parent)
    for x in range(1, parent.size):
        depth[x] = depth[parent[x]] + 1
        copies[x] = copies[parent[x]] * times[x]
    width = np.minimum(depth, _affordable_window(depth) + 1)
    start = np.concatenate(([0], np.cumsum(width)))
    order = np.array(top_down, np.int64)
    return FoldedForest(
        np.asarray(parents, np.int64), order, node, parent, depth, times, copies, width, start
    )


def _shapes(top_down: list[int], children: list[list[int]]) -> list[int]:
    """A number for the shape of the subtree below each element.

    It is equal exactly for equal shapes.
    """
    numbers: dict[tuple[int, ...], int] = {}
    shape = [0] * len(top_down)
    for x in reversed(top_down):
        below = tuple(sorted(shape[c] for c in children[x]))
        shape[x] = numbers.setdefault(below, len(numbers))
    return shape


@dataclass
class _Folded:
    """Twin classes in preorder.

    Parent, number of twins, and the classes below by their shape.
    """

    parent: list[int]
    times: list[int]
    classes: list[dict[int, int]]


def _fold(children: list[list[int]], shape: list[int]) -> _Folded:
    folded = _Folded([], [], [])
    waiting = [(-1, -1, 1)]  # an element of the class (-1: the root), its parent's node, the number of twins
    while waiting:
        x, p, twins = waiting.pop()
        this = len(folded.parent)
        folded.parent.append(p)
        folded.times.append(twins)
        folded.classes.append({})
        if p >= 0:
            folded.classes[p][shape[x]] = this
        groups: dict[int, list[int]] = {}
        for c in children[x]:
            groups.setdefault(shape[c], []).append(c)
        waiting.extend((twin[0], this, len(twin)) for twin in groups.values())
    return folded


def _affordable_window(depth: Ints) -> int:
    """How many near ancestors to keep, so that an evaluation stays within ``_WORK``."""
    deepest = int(depth.max())
    counts = np.bincount(depth)
    low, high = 8, max(8, deepest)
    while low < high:
        middle = (low + high + 1) // 2
        work = float(np.sum(counts * np.minimum(np.arange(deepest + 1), middle + 1.0) ** 2))
        low, high = (middle, high) if work <= _WORK else (low, middle - 1)
    return low


# The order-shaped ellipse of a forest, by multifrontal elimination.
#
# The precision matrix M of docs/theory/gaussian.md, section 2, has an entry for each element and ancestor, the
# virtual root included. Eliminating elements from the leaves up fills nothing in: what remains of an element is a
# matrix on its ancestors, handed to its parent. In preorder one such matrix per depth is alive, so an evaluation
# of the trace and its gradient takes O(Σ depth²) time and O(Σ depth) memory (section 5).

_NEARLY = 1 + 1e-4
"""The number of records is given up as a coordinate where it helps by less than this."""


@dataclass(frozen=True)
class ForestEllipse:
    """The factor of a forest's precision matrix, ``M = Σ_x pivot_x (e_x − Σ_a share_xa e_a)²``.

    ``root_scale`` is the number that the count of records is multiplied with: 1 unless sizes are bounded, and 0
    where it is no coordinate at all. ``trace`` is that of the covariance of all counts. ``presence`` are the
    marginals of the random filter that the gradient defines, from which the lower bound is built (section 6).
    """

    forest: FoldedForest
    pivot: Floats
    share: Floats
    root_scale: float
    trace: float
    presence: Floats


def fit_forest(
    forest: FoldedForest,
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
        tolerance = 1e-6 if forest.nodes <= 10_000 else 1e-5
    below = _elements_below(forest)
    bound = 0.0 if max_size is None else 1.0 / max_size
    s = 1.0 if max_size is None else min(0.9, (max_size / float(below[0])) ** 0.5)
    mass = s * s * below / below[0] + (1 - s * s) * bound  # about the diagonal of M
    scale = np.repeat(np.sqrt(forest.copies / mass), forest.width)

    def unpack(x: Floats) -> tuple[Floats, float]:
        return x[:-1] / scale, 1.0 if max_size is None else float(expit(x[-1]))

    def objective(x: Floats) -> tuple[float, Floats] | None:
        a, s = unpack(x)
        trace, gradient, by_scale, *_ = _evaluate(forest, a, s, bound)
        if not (trace > 0 and np.isfinite(trace)):
            return None
        slope = 0.0 if max_size is None else by_scale * s * (1 - s)
        return float(np.log(trace)), np.append(gradient / scale, slope) / trace

    begin = np.append(_start(forest, below, s, bound) * scale, np.log(s / (1 - s)) if s < 1 else 0.0)
    best = descend(
        objective, begin, steps=steps, tolerance=tolerance, progress=progress, what="shaping the noise"
    )
    a, s = unpack(best)
    fitted = _ellipse(forest, a, s, bound)
    if max_size is None:
        return fitted
    a[forest.start[1:-1]] = 0.0
    rootless = _ellipse(forest, a, 0.0, bound)
    return rootless if rootless.trace <= fitted.trace * _NEARLY else fitted


def _start(forest: FoldedForest, below: Floats, s: float, bound: float) -> Floats:
    """Ties to the parent alone that are surely inside the set.

    A mixture, with weight s², of ties in proportion to the subtree, and of ties for bounded records that
    leave every pivot at least half of the bound: siblings together take at most a quarter from their parent.
    """
    children = np.bincount(forest.parent[1:], forest.times[1:], forest.nodes)
    ties = np.zeros(int(forest.start[-1]))
    to_parent = forest.start[2:] - 1
    ties[to_parent] = 0.5 * s * s * below[1:] / below[0]
    ties[to_parent] += 0.5 * (1 - s * s) * bound / np.sqrt(children[forest.parent[1:]])
    at_top = forest.depth[1:] == 1
    ties[to_parent[at_top]] = 0.5 * s * below[1:][at_top] / below[0]  # the root's own scale is s
    return ties


def _ellipse(forest: FoldedForest, ties: Floats, root_scale: float, bound: float) -> ForestEllipse:
    trace, _, _, pivot, share, weight = _evaluate(forest, ties, root_scale, bound)
    presence = weight[1:] / max(weight[0], weight.max())  # without ties to the root its own weight is zero
    return ForestEllipse(forest, pivot, share, root_scale, float(trace) if trace > 0 else np.inf, presence)


def _elements_below(forest: FoldedForest) -> Floats:
    """How many elements lie in the subtree of one element of each node, itself included."""
    size = np.ones(forest.nodes)
    for x in range(forest.nodes - 1, 0, -1):
        size[forest.parent[x]] += forest.times[x] * size[x]
    return size


@kernel(steps=lambda forest, *_: 4 * int(((forest.width + 1) ** 2).sum()))
def _evaluate(
    forest: FoldedForest, ties: Floats, root_scale: float, bound: float
) -> tuple[float, Floats, float, Floats, Floats, Floats]:
    """Trace, gradient in the ties and in the root's scale, pivots, shares, and the diagonal of Z.

    Z = M⁻¹ E M⁻¹ (E: the identity on elements, 0 at the root) is minus the derivative of M⁻¹ in the direction
    E: every quantity of the elimination is carried along with its derivative (``…_d``). A trace of -1 says
    that M is not positive definite.
    """
    _, _, _, parent, depth, times, copies, width, start = forest
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
            shares = share[o : o + w], share_d[o : o + w]
            _hand_over((front, front_d), k, w, int(width[parent[x]]), times[x], shares)
        front[k, : w + 1, : w + 1] = 0.0
        front_d[k, : w + 1, : w + 1] = 0.0
    gradient, weight = np.zeros(ties.size), np.zeros(n)
    trace, by_scale = 0.0, 0.0
    for x in range(n):  # the fronts now hold covariances of a node and its ancestors, from the root down
        k, w, o = depth[x], width[x], start[x]
        above = int(width[parent[x]]) if x > 0 else 0
        shares = share[o : o + w], share_d[o : o + w]
        variance, variance_d = _take_over((front, front_d), k, w, above, (pivot[x], pivot_d[x]), shares)
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
    fronts: tuple[Floats, Floats], k: int, w: int, above: int, times: int, shares: tuple[Floats, Floats]
) -> None:
    """Add what is left of a node at depth ``k``, once for each twin, to the front of its parent.

    Ancestor ``j`` of the node is in place ``j + shift`` of its parent's list; the root keeps place 0.
    """
    (front, front_d), (share, share_d) = fronts, shares
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
    fronts: tuple[Floats, Floats],
    k: int,
    w: int,
    above: int,
    pivots: tuple[float, float],
    shares: tuple[Floats, Floats],
) -> tuple[float, float]:
    """Fill the covariances of a node at depth ``k`` from those of its parent.

    Returns its variance and derivative.
    """
    (front, front_d), (share, share_d) = fronts, shares
    pivot, pivot_d = pivots
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


# Compiled algebra of the rows of a forest's strategy, each with entries at an element and at its ancestors.
#
# Lengths over filters are exact in 64 bits; variances and solutions are floats (docs/theory/gaussian.md, section 3).


@kernel(steps=lambda forest, *_: forest.parent.size + int(forest.width.sum()))
def filter_terms(forest: FoldedForest, pivot: Ints, ties: Ints) -> Ints:
    """What each element adds to |Qv|² when it joins a filter that holds everything above it.

    In the row of z with running sum s down to y, y adds ``(s + q)² − s² = q (q + 2s)``.
    """
    parent, copies, width, start = forest.parent, forest.copies, forest.width, forest.start
    terms = np.zeros(parent.size, np.int64)
    path = np.zeros(width.max() + 1, np.int64)
    for z in range(parent.size):
        w, o = width[z], start[z]
        path[w] = z
        y = z
        for j in range(w - 1, 0, -1):
            y = parent[y]
            path[j] = y
        path[0] = 0 if w > 0 else z
        total = 0
        for j in range(w + 1):
            y = path[j]
            q = pivot[z] if j == w else ties[o + j]
            terms[y] += (copies[z] // copies[y]) * q * (q + 2 * total)
            total += q
    return terms


@kernel(steps=lambda parent, times, terms: parent.size)
def heaviest_filter(parent: Ints, times: Ints, terms: Ints) -> int:
    """The largest sum of terms over sets that hold the root and, with an element, all above it."""
    best = terms.copy()
    for x in range(parent.size - 1, 0, -1):
        if best[x] > 0:
            best[parent[x]] += times[x] * best[x]
    return best[0]


@kernel(steps=lambda g, *_: (g.parent.size + int(g.width.sum())) * (int(g.depth.max()) + 1))
def longest_difference(forest: FoldedForest, pivot: Ints, ties: Ints) -> int:
    """The largest |Q(v − v')|² over two filters, without the root.

    The elements in exactly one of them fall into pieces with nothing between them; a piece is what a filter
    leaves of the subtree under its highest element. So the best set of pieces in a subtree is either one piece
    with the subtree's top, or the best sets of the subtrees below.
    """
    _, _, _, parent, depth, times, copies, width, start = forest
    n = parent.size
    as_top = np.zeros(n, np.int64)
    for t in range(1, depth.max() + 1):
        terms = np.zeros(n, np.int64)
        path = np.zeros(width.max() + 1, np.int64)
        for z in range(1, n):
            k, w, o = depth[z], width[z], start[z]
            if k < t:
                continue
            first = max(1, w - (k - t))  # the place of the ancestor at depth t, or the farthest one kept
            path[w] = z
            y = z
            for j in range(w - 1, first - 1, -1):
                y = parent[y]
                path[j] = y
            total = 0
            for j in range(first, w + 1):
                y = path[j]
                q = pivot[z] if j == w else ties[o + j]
                terms[y] += (copies[z] // copies[y]) * q * (q + 2 * total)
                total += q
        for x in range(n - 1, 0, -1):
            if depth[x] == t:
                as_top[x] = terms[x]
            elif depth[x] > t and terms[x] > 0:
                terms[parent[x]] += times[x] * terms[x]
    best = np.zeros(n, np.int64)
    for x in range(n - 1, 0, -1):
        best[x] = max(best[x], as_top[x], 0)
        best[parent[x]] += times[x] * best[x]
    return best[0]


@kernel(steps=lambda forest, *_: 4 * forest.parent.size * (int(forest.width.max()) + 1) ** 2)
def node_variances(forest: FoldedForest, fresh: Floats, share: Floats) -> Floats:
    """Variances of all nodes, where a node is its shares of its ancestors plus independent fresh noise."""
    parent, depth, width, start = forest.parent, forest.depth, forest.width, forest.start
    most = width.max() + 1
    front = np.zeros((depth.max() + 1, most, most))
    variance = fresh.copy()
    front[0, 0, 0] = fresh[0]
    for x in range(1, parent.size):
        k, w, o = depth[x], width[x], start[x]
        shift = 1 + width[parent[x]] - w
        for i in range(w):
            to_i = i + shift if i > 0 else 0
            for j in range(w):
                front[k, i, j] = front[k - 1, to_i, j + shift if j > 0 else 0]
        for i in range(w):
            c = 0.0
            for j in range(w):
                c += front[k, i, j] * share[o + j]
            front[k, w, i] = c
            front[k, i, w] = c
            variance[x] += share[o + i] * c
        front[k, w, w] = variance[x]
    return variance


@kernel(steps=lambda forest, *_: forest.node.size * (int(forest.width.max()) + 1))
def nearest_integers(
    forest: FoldedForest,
    pivot: Ints,
    ties: Ints,
    rooted: bool,
    noise: Ints,
    result: Ints,
    limit: float,
) -> bool:
    """Integers k, from the root down, and what is left of ``noise − Q k``, at most half a pivot each: rows of ``result``.

    False if some sum may exceed ``limit``; see :func:`.strategy.nearest_plane`.
    """
    parents, top_down, node, _, _, _, _, width, start = forest
    n, whole, left = node.size, result[0], result[1]
    if rooted:
        if abs(float(noise[n])) > limit:
            return False
        whole[n] = (2 * noise[n] + pivot[0]) // (2 * pivot[0])
        left[n] = noise[n] - whole[n] * pivot[0]
    for x in top_down:
        v = node[x]
        w, o, q = width[v], start[v], pivot[v]
        rest = noise[x] - ties[o] * whole[n]
        reach = abs(float(noise[x])) + abs(float(ties[o]) * float(whole[n]))
        a = parents[x]
        for j in range(w - 1, 0, -1):
            reach += abs(float(ties[o + j]) * float(whole[a]))
            rest -= ties[o + j] * whole[a]
            a = parents[a]
        if reach > limit:
            return False
        whole[x] = (2 * rest + q) // (2 * q)
        left[x] = rest - whole[x] * q
    return True


@kernel(steps=lambda forest, *_: forest.node.size * (int(forest.width.max()) + 1))
def solve_rows(forest: FoldedForest, pivot: Ints, ties: Ints, noise: Floats, rooted: bool) -> Floats:
    """``Q⁻¹ noise`` for each column. The last row is the root's."""
    parents, top_down, node, _, _, _, _, width, start = forest
    n = node.size
    result = np.zeros_like(noise)
    if rooted:
        result[n] = noise[n] / pivot[0]
    for x in top_down:
        v = node[x]
        w, o = width[v], start[v]
        rest = noise[x] - ties[o] * result[n]
        a = parents[x]
        for j in range(w - 1, 0, -1):
            rest -= ties[o + j] * result[a]
            a = parents[a]
        result[x] = rest / pivot[v]
    return result


@kernel(steps=lambda forest, *_: forest.node.size * (int(forest.width.max()) + 1))
def multiply_rows(forest: FoldedForest, pivot: Ints, ties: Ints, counts: Floats) -> Floats:
    """``Q counts`` for each column. The last row is the root's."""
    parents, top_down, node, _, _, _, _, width, start = forest
    n = node.size
    result = np.zeros_like(counts)
    result[n] = pivot[0] * counts[n]
    for x in top_down:
        v = node[x]
        w, o = width[v], start[v]
        total = pivot[v] * counts[x] + ties[o] * counts[n]
        a = parents[x]
        for j in range(w - 1, 0, -1):
            total += ties[o + j] * counts[a]
            a = parents[a]
        result[x] = total
    return result


# A lower bound on the total variance of Gaussian noise on a forest.
#
# It holds at sensitivity 1 and for forests of any size.
#
# For any random filter with second moments V = E[vv'], every Gaussian whose sensitivity is at most 1 has a total
# variance of at least ``(tr V^½)²`` (docs/theory/gaussian.md, section 6). Here the random filter opens a gate at
# each element independently; an element is in it if its own gate and all gates above it are open. Then V has an
# inverse on the edges of the tree, so one elimination in O(n) counts the eigenvalues of V above any number
# (Sylvester's law of inertia), and counts at finely spaced numbers give the trace from below.

_NARROW = 2e-4
_ALMOST_OPEN = 1 - 1e-9


def forest_bound(ellipse: ForestEllipse) -> float:
    """The bound from gates that give each element its presence in the optimal ellipse."""
    forest = ellipse.forest
    gate, fresh = _gates(forest.parent, np.append(1.0, np.clip(ellipse.presence, 1e-12, 1.0)))
    elements = int(forest.copies[1:].sum())

    def above(roots: Floats) -> Ints:
        result = [_count_above(forest, gate, fresh, r * r) for r in roots.tolist()]
        return np.array(result, np.int64)

    # edges are square roots of eigenvalues; no eigenvalue exceeds the number of elements
    edges = np.append(0.0, np.geomspace(1e-7, 1.0, 65) * np.sqrt(elements))
    counts = np.append(elements, above(edges[1:]))
    while True:
        steps = np.diff(edges)
        total = float(counts[1:] @ steps)
        uncertain = (counts[:-1] - counts[1:]) * steps
        if uncertain.sum() <= _NARROW * total:
            return total**2
        wide = np.flatnonzero(uncertain > 0.5 * _NARROW * total / uncertain.size)
        middle = (edges[wide] + edges[wide + 1]) / 2
        edges, counts = np.insert(edges, wide + 1, middle), np.insert(counts, wide + 1, above(middle))


@kernel(steps=lambda parent, presence: parent.size)
def _gates(parent: Ints, presence: Floats) -> tuple[Floats, Floats]:
    """The chance that each gate is open, and the variance of each element given its parent."""
    gate, fresh = np.ones(parent.size), np.ones(parent.size)
    for x in range(1, parent.size):
        p = parent[x]
        gate[x] = min(presence[x] / presence[p], _ALMOST_OPEN)
        presence[x] = presence[p] * gate[x]
        fresh[x] = presence[x] * (1.0 - gate[x])
    return gate, fresh


@kernel(steps=lambda forest, *_: 16 * forest.parent.size)
def _count_above(forest: FoldedForest, gate: Floats, fresh: Floats, value: float) -> int:
    """The number of eigenvalues of V above ``value``.

    They are the negative pivots of the rooted inverse minus E/value.
    """
    parent, times, copies = forest.parent, forest.times, forest.copies
    pivot = 1.0 / fresh
    pivot[1:] -= 1.0 / value
    negative = 0
    for x in range(parent.size - 1, -1, -1):
        if pivot[x] == 0.0:
            pivot[x] = 1e-300
        if pivot[x] < 0.0:
            negative += copies[x]
        if x > 0:
            link = gate[x] / fresh[x]
            pivot[parent[x]] += times[x] * link * (gate[x] - link / pivot[x])
    return negative


# The integer strategy of a forest.
#
# Sparse rows, and exact sensitivities by dynamic programming.
#
# The row of an element has entries at itself and at its ancestors. A filter meets every root path in its upper
# part, so the squared length of Qv is a sum of one term per element of the filter, and its maximum over filters is
# found from the leaves up (docs/theory/gaussian.md, section 3). All sums are exact in 64 bits: a partial sum is
# at most a few times the square of the scale.


@dataclass(frozen=True)
class ForestStrategy:
    """The strategy Q for a forest.

    ``pivot[x]`` is on the diagonal of node x, and ``ties`` are at its ancestors (see :class:`FoldedForest`).
    """

    forest: FoldedForest
    pivot: Ints
    ties: Ints
    rooted: bool
    sensitivity_squared: int

    @property
    def elements(self) -> int:
        """The number of elements."""
        return self.forest.node.size

    @property
    def rows(self) -> int:
        """One for each element, and one for the root if it is kept."""
        return self.elements + int(self.rooted)

    def variances(self) -> Floats:
        """Diagonal of (Q'Q)⁻¹, from the root down in O(Σ depth²)."""
        g = self.forest
        share = -self.ties / np.repeat(self.pivot, g.width)
        fresh = 1.0 / np.square(self.pivot.astype(np.float64))
        fresh[0] *= self.rooted  # a root that is known has no variance
        by_node = node_variances(g, fresh, share)
        return np.append(by_node[g.node], by_node[:1]) if self.rooted else by_node[g.node]

    def covariance(self) -> Floats:
        """(Q'Q)⁻¹ on the elements."""
        columns = self.solve(np.eye(self.rows))[:, : self.elements]
        return columns.T @ columns

    def solve_integers(self, noise: Ints) -> Ints:
        """Nearest-plane rounding from the root down, then the fraction that is left."""
        rows = (self.forest, self.pivot, self.ties, self.rooted)
        whole, left = nearest_plane(nearest_integers, rows, np.append(noise, 0))
        fraction = solve_rows(
            self.forest, self.pivot, self.ties, left[:, None].astype(np.float64), self.rooted
        )
        return (whole + np.rint(fraction[:, 0]).astype(np.int64))[: self.rows]

    def solve(self, noise: Floats) -> Floats:
        """``Q⁻¹ noise`` for each row."""
        padded = np.zeros((self.elements + 1, len(noise)))
        padded[: self.rows] = noise.T
        return solve_rows(self.forest, self.pivot, self.ties, padded, self.rooted)[: self.rows].T

    def multiply(self, counts: Floats) -> Floats:
        """``Q counts`` for each row."""
        padded = np.zeros((self.elements + 1, len(counts)))
        padded[: self.rows] = counts.T
        return multiply_rows(self.forest, self.pivot, self.ties, padded)[: self.rows].T

    def diagonal(self) -> Floats:
        """The pivots, by element."""
        by_element = self.pivot[np.append(self.forest.node, 0)].astype(np.float64)
        return by_element[: self.rows]

    def root_column(self) -> Floats:
        """The ties to the root, by element."""
        if not self.rooted:
            return np.zeros(self.rows)
        ties = self.ties[self.forest.start[self.forest.node]].astype(np.float64)
        return np.append(ties, float(self.pivot[0]))


def forest_strategy(
    ellipse: ForestEllipse,
    bits: int,
    neighbours: Neighbours = "add-remove",
    max_size: int | None = None,
) -> ForestStrategy | None:
    """The ellipse on an integer scale of ``2**bits``, or None if that is too coarse to be invertible."""
    g = ellipse.forest
    scale = np.sqrt(ellipse.pivot) * 2.0**bits
    real = -np.repeat(scale, g.width) * ellipse.share
    real[g.start[1:-1]] *= ellipse.root_scale  # the root stands for root_scale times the number of records
    pivot, ties = np.rint(scale).astype(np.int64), np.rint(real).astype(np.int64)
    pivot[0] = round(float(scale[0]) * ellipse.root_scale)
    rootless = ellipse.root_scale == 0.0
    if pivot[1:].min() <= 0 or (pivot[0] <= 0 and not rootless):
        return None
    longest = _longest(g, filter_terms(g, pivot, ties), max_size)
    exchanges = adjacency(neighbours).exchanges
    if exchanges:
        apart = longest_difference(g, pivot, ties)
        longest = min(int(apart), 4 * longest)
    pivot[0] = max(pivot[0], 1)  # unused if rootless
    return ForestStrategy(g, pivot, ties, not exchanges and not rootless, longest)


def plain_strategy(elements: int, bits: int, coordinates: int) -> ForestStrategy:
    """The strategy of ordinary Gaussian noise.

    The same multiple of each count, for records that move ``coordinates`` counts.
    """
    forest = fold_forest(np.full(elements, -1))
    pivot = np.full(forest.nodes, 1 << bits)
    return ForestStrategy(forest, pivot, np.zeros(forest.start[-1], np.int64), False, coordinates << 2 * bits)


def _longest(forest: FoldedForest, terms: Ints, max_size: int | None) -> int:
    """The largest |Qv|² over the filters, or a bound on it for those of at most ``max_size`` elements."""
    if max_size is None:
        return int(heaviest_filter(forest.parent, forest.times, terms))
    order = np.argsort(-terms[1:])
    heaviest, copies = terms[1:][order], forest.copies[1:][order]
    taken = np.diff(np.minimum(np.append(0, np.cumsum(copies)), max_size))
    return int(terms[0]) + sum(
        int(t) * int(c) for t, c in zip(heaviest, taken, strict=True) if t > 0 and c > 0
    )
