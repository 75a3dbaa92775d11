"""The order-shaped ellipse of a poset.

Which method fits it, and the result.

Chains have a method of their own, forests are eliminated sparsely, other orders are dense up to a thousand
elements; beyond, a forest inside the order is used, which forgets relations and is therefore private for more
records than it need be. An element that needs more than ``max_size`` yeses has a count of zero, whatever the
data: it is left out here and released as zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotone.array_types import Ints
from isotone.counts.ellipse.chain_differences import LARGEST_CHAIN_OF_DIFFERENCES, fit_chain_differences
from isotone.counts.ellipse.chain_ellipse import ChainEllipse, fit_chain
from isotone.counts.ellipse.dense import DenseEllipse, fit_dense, fit_dense_nonnegative
from isotone.counts.ellipse.filter_bound import filter_bound
from isotone.counts.ellipse.forest_bound import forest_bound
from isotone.counts.ellipse.forest_ellipse import ForestEllipse, fit_forest
from isotone.counts.ellipse.grove import plant
from isotone.counts.ellipse.strategy_dense import chain_strategy, dense_strategy
from isotone.counts.ellipse.strategy_forest import forest_strategy, plain_strategy
from isotone.errors import InputError
from isotone.linear.strategy import Square
from isotone.mechanism import Progress, no_progress
from isotone.order import Poset
from isotone.order.exclusive import never_together
from isotone.privacy.adjacency import Neighbours, adjacency, checked_neighbours
from isotone.privacy.checks import whole_number

__all__ = ["LARGEST_CHAIN", "LARGEST_DENSE", "Ellipse", "best_strategy", "shape_of"]

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
            return self.ellipse.presence[self.ellipse.grove.node - 1][self.bottom_up]
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
    grove = plant(parents)
    ellipse = fit_forest(grove, max_size, progress=progress)
    bottom_up = grove.top_down[::-1]
    leq = None
    if active.size <= _LARGEST_FILTER_BOUND and method == "forest":
        leq = np.eye(active.size, dtype=np.bool_)
        for x in grove.top_down.tolist():
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
