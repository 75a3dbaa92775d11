"""The smallest ellipse of a chain.

A chain of n elements has n nonempty filters, the prefixes from the top. With probability ``p_k`` on prefix k
the second moments V have a tridiagonal inverse, so one symmetric tridiagonal eigenproblem gives the lower
bound ``(tr V^½)²`` on every Gaussian's total variance, and the ellipse V^½ itself is optimal when every prefix
has the same length in its norm. Raising the probability of long prefixes makes them equal
(docs/theory/gaussian.md, section 4). O(n²) time a step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from isotone.array_types import Floats
from isotone.mechanism import Progress, no_progress

__all__ = ["ChainEllipse", "WeightedChanges", "equalise", "fit_chain"]

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
    found = equalise(_state, _stretch(p, n), _STEPS, tolerance, progress)
    return found.ellipse


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
