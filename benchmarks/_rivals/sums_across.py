"""Sums of counts across the parts of an order, whose possible records are too many to list: all combinations of those of its parts.

Two numbers that a record moves together cost less as their sum and their difference than each by itself. The search minimises the same
error as ``sums_of_counts``, over the records that were the longest so far; each round looks for longer ones, part by part. What is found
is measured by the longest of *all* records, so that its error is exact.
"""
# pyright: reportConstantRedefinition=false

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.spatial.distance import cdist

from benchmarks._rivals.matrix_mechanism import sums_and_slope

__all__ = ["longest", "mixed", "sums_across"]

Floats = NDArray[np.float64]
SHARPNESS, ROUNDS, STEPS = (20.0, 100.0, 400.0, 1500.0, 5000.0), 6, 60
"""Of the smooth maximum, the rounds of each, and the steps of a round."""
_STARTS, _KEPT, _LONG, _SETTLED = 600, 4_000, 0.9, 1.001
"""Records from which longer ones are looked for, how many are kept, how long they are at least, and what is no more worth a round."""
STARTS = ((0.3, 0.4, 0.01), (0.3, 0.4, 0.01), (0.2, 0.2, 0.1), (0.6, 0.05, 0.003))
"""What is taken from numbers of all parts that go together, the weight of their sum, and chance, which is another for each start."""


def sums_across(parts: Sequence[Floats], strategies: Sequence[Floats]) -> float:
    """The least total squared error of sums across parts at Laplace noise of variance 1, from the ``strategies`` of the parts by themselves
    and all starts.

    ``parts`` are their possible records, with the empty one.
    """
    return min(
        _search(parts, mixed(strategies, together, weight), scatter, np.random.default_rng(seed))
        for seed, (together, weight, scatter) in enumerate(STARTS)
    )


def _search(parts: Sequence[Floats], A: Floats, scatter: float, rng: np.random.Generator) -> float:
    A = A + scatter * rng.normal(size=A.shape)
    seen, _ = _longer(parts, A, rng)
    for sharp in SHARPNESS:
        for _ in range(ROUNDS):
            A = _improved(A / _lengths(A, seen).max(), seen, sharp)
            known = _lengths(A, seen).max()
            others, lengths = _longer(parts, A, rng)
            seen = np.unique(np.vstack([seen, others[lengths > _LONG * known]]), axis=0)
            seen = seen[np.argsort(-_lengths(A, seen))[:_KEPT]]
            if lengths.max() <= _SETTLED * known:
                break
    return float(np.trace(np.linalg.inv(A.T @ A)) * longest(parts, A) ** 2)


def mixed(strategies: Sequence[Floats], together: float, weight: float) -> Floats:
    """The first rows of all parts less a share of their mean, with their sum beside; then the second rows, and so on.

    Parts share the budget as they would by themselves.
    """
    errors = [np.trace(np.linalg.inv(A.T @ A)) for A in strategies]
    each = [A * error ** (-1 / 3) for A, error in zip(strategies, errors, strict=True)]
    ends = np.cumsum([0, *(A.shape[1] for A in each)])
    found: list[Floats] = []
    for row in range(max(len(A) for A in each)):
        here = np.zeros((len(each), ends[-1]))
        for k, A in enumerate(each):
            if row < len(A):
                here[k, ends[k] : ends[k + 1]] = A[row]
        here = here[np.any(here, axis=1)]
        mean = here.mean(axis=0)
        found += (
            [here - together * mean, (weight * len(here) ** 0.5 * mean)[None]] if len(here) > 1 else [here]
        )
    return np.vstack(found)


def longest(parts: Sequence[Floats], A: Floats) -> float:
    """The largest ``‖Af‖₁`` over all combinations of the records of the parts, by the distances between those of two halves."""
    images = _images(parts, A)
    halves = [np.zeros((1, len(A))), np.zeros((1, len(A)))]
    for image in sorted(images, key=len, reverse=True):
        small = int(len(halves[1]) < len(halves[0]))
        halves[small] = (halves[small][:, None] + image).reshape(-1, len(A))
    left, right = halves[0], -halves[1]
    return max(
        float(cdist(some, right, "cityblock").max()) for some in np.array_split(left, 1 + len(left) // 500)
    )


def _images(parts: Sequence[Floats], A: Floats) -> list[Floats]:
    ends = np.cumsum([0, *(part.shape[1] for part in parts)])
    return [part @ A[:, low:high].T for part, low, high in zip(parts, ends[:-1], ends[1:], strict=True)]


def _lengths(A: Floats, records: Floats) -> Floats:
    return np.abs(records @ A.T).sum(axis=1)


def _longer(parts: Sequence[Floats], A: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Records that no change of one part makes longer, or nearly, from random ones."""
    images = _images(parts, A)
    at = np.column_stack([rng.integers(0, len(part), _STARTS) for part in parts])
    total = np.sum([image[at[:, k]] for k, image in enumerate(images)], axis=0)
    for _ in range(3):
        for k in rng.permutation(len(parts)):
            rest = total - images[k][at[:, k]]
            at[:, k] = cdist(rest, -images[k], "cityblock").argmax(axis=1)
            total = rest + images[k][at[:, k]]
    records = np.hstack([part[at[:, k]] for k, part in enumerate(parts)])
    return records, np.abs(total).sum(axis=1)


def _improved(A: Floats, records: Floats, sharp: float) -> Floats:
    def value(flat: Floats) -> tuple[float, Floats]:
        found, slope = sums_and_slope(flat.reshape(A.shape), records, sharp)
        return found, slope.ravel()

    limits = {"maxiter": STEPS, "maxfun": 2 * STEPS, "ftol": 1e-9}
    done = minimize(value, A.ravel(), jac=True, method="L-BFGS-B", options=limits)
    return np.asarray(done.x.reshape(A.shape), np.float64)
