"""Isotonic regression on any order by recursive minimum cuts.

Definition: the ``f``, monotone on the order, that minimises ``Σ w (f − y)²``. A convex set of elements with
weighted mean ``m`` either is one level of ``f`` (namely ``m``), or splits: the filter of largest total
``Σ w (y − m)`` lies above ``m`` and the rest below, and the two parts no longer touch. That filter is a
minimum cut of the cover graph, and a set whose best filter has total 0 carries a flow that saturates every
excess: these flows are the multipliers of the optimality conditions.
Complexity: one maximum flow per level set; in practice a few times the cost of one flow on the whole order.
Reference: Spouge, Wan and Wilbur 2003, "Least squares isotonic regression in two dimensions".

Flows are computed on integers: the excesses are scaled to a total of about 2**60, so a cut is exact and a
filter is overlooked only if it would gain less than 2**-50 of the total excess.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from isotone.order.heaviest_filter import heaviest_filter
from isotone.order.projection.chain import pool_adjacent_violators
from isotone.order.projection.forest import merge_up_the_forest

__all__ = ["project_convex_sets"]

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
