"""The lower bound on every Gaussian from an explicit list of changes, reweighted and extended.

The bound ``(tr V^½)²`` of docs/theory/gaussian.md, section 6, holds for every distribution on the changes that
one record can make: filters, or differences of two where a record is replaced. For a given list the best
weights are the fixed point of ``p ← p·(length/mean)²``, where lengths are measured in the norm of V^-½; changes
that are too long in that norm, found by local search, join the list.
"""

from __future__ import annotations

import numpy as np

from isotone.array_types import Bools, Floats
from isotone.privacy.adjacency import Neighbours, adjacency

__all__ = ["filter_bound"]

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
