"""The smallest ellipse of a chain when a record is replaced.

The change is then the difference of two prefixes, and the number of records is public. With probabilities on
the pairs of prefixes the second moments V of the change give the lower bound ``(tr V^½)²``, and V^½ is optimal
when all pairs in use are equally far apart, and the others nearer (docs/theory/gaussian.md, section 4). All pairs
are kept as a weighted graph on the prefixes: O(n³) time a step.
"""

from __future__ import annotations

import numpy as np

from isotone.array_types import Floats
from isotone.counts.ellipse.chain_ellipse import ChainEllipse, WeightedChanges, equalise
from isotone.mechanism import Progress, no_progress

__all__ = ["LARGEST_CHAIN_OF_DIFFERENCES", "fit_chain_differences"]

LARGEST_CHAIN_OF_DIFFERENCES = 1000
_STEPS = 60


def fit_chain_differences(
    n: int, *, tolerance: float = 1e-3, progress: Progress = no_progress
) -> ChainEllipse:
    """The ellipse whose trace is within ``tolerance`` of the smallest.

    The tolerance is relative. Elements come from the top down.
    """
    place = np.arange(n + 1)
    far = np.abs(place[:, None] - place) / (n + 1.0)  # a start that favours distant pairs
    return equalise(_state, far, _STEPS, tolerance, progress).ellipse


def _state(weights: Floats) -> WeightedChanges:
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
