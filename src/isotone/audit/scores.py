"""Scores that tell the outputs of two neighbours apart, learned from draws.

A score is any function of the output; the larger, the more it speaks for the first side. The best one is the log
ratio of the two densities. It is approximated in two ways: by counting, where outputs repeat, and by a logistic
regression on features in which the log ratio of most mechanisms is linear (distances to two centres, and what
distances between coordinates change).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

__all__ = ["Score", "learn_scores"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Score:
    """A named function from outputs (one per row) to numbers."""

    name: str
    function: Callable[[Floats], Floats]

    def __call__(self, outputs: Floats) -> Floats:
        """The score of each output."""
        return self.function(outputs)


def learn_scores(first: Floats, second: Floats, rng: np.random.Generator) -> list[Score]:
    """Scores learned from draws of both sides."""
    scores = [_logistic(first, second)]
    if first.shape[1] <= 3:
        scores.append(_counting(first, second, rng))
    scores.append(Score("the lowest binary digit", _lowest_bits))
    return scores


def _counting(first: Floats, second: Floats, rng: np.random.Generator) -> Score:
    """Log ratio of how often each cell was seen; cells are single outputs where they repeat, else quantile boxes."""
    both = np.concatenate([first, second])
    edges: list[Floats | None] = []
    cells = int(len(both) ** (1 / (2 * both.shape[1]))) + 2
    for column in both.T:
        values = np.unique(column)
        edges.append(
            None if len(values) <= 4 * cells else np.quantile(column, np.linspace(0, 1, 2 * cells)[1:-1])
        )

    def keys(outputs: Floats) -> NDArray[np.int64]:
        parts = [
            np.rint(column).astype(np.int64) if edge is None else np.searchsorted(edge, column)
            for column, edge in zip(outputs.T, edges, strict=True)
        ]
        mixed = np.zeros(len(outputs), dtype=np.int64)
        for part in parts:
            mixed = mixed * 1_000_003 + part
        return mixed

    seen, where = np.unique(keys(both), return_inverse=True)
    counts = [np.bincount(part, minlength=len(seen)) for part in (where[: len(first)], where[len(first) :])]
    ratio = np.log((counts[0] + 0.5) / (counts[1] + 0.5))

    def score(outputs: Floats) -> Floats:
        found = keys(outputs)
        place = np.minimum(np.searchsorted(seen, found), len(seen) - 1)
        return np.where(seen[place] == found, ratio[place], 0.0)

    return Score("the ratio of cell counts", score)


def _logistic(first: Floats, second: Floats) -> Score:
    centres = np.median(first, axis=0), np.median(second, axis=0)
    raw = _features(np.concatenate([first, second]), *centres)
    mean, spread = raw.mean(axis=0), raw.std(axis=0) + 1e-12
    X = (raw - mean) / spread
    signs = np.concatenate([np.ones(len(first)), -np.ones(len(second))])

    def loss(weights: Floats) -> tuple[float, Floats]:
        margin = signs * (X @ weights[:-1] + weights[-1])
        slope = -signs / (1 + np.exp(np.clip(margin, -500, 500)))
        gradient = np.append(X.T @ slope, slope.sum()) / len(X) + 1e-4 * weights
        return float(np.logaddexp(0, -margin).mean() + 0.5e-4 * weights @ weights), gradient

    weights = np.asarray(minimize(loss, np.zeros(X.shape[1] + 1), jac=True, method="L-BFGS-B").x)
    return Score(
        "a logistic score",
        lambda outputs: ((_features(outputs, *centres) - mean) / spread) @ weights[:-1] + weights[-1],
    )


def _features(outputs: Floats, a: Floats, b: Floats) -> Floats:
    to_a, to_b = outputs - a, outputs - b
    parts = [outputs, np.abs(to_a), np.abs(to_b)]
    n = outputs.shape[1]
    if 1 < n <= 16:
        i, j = np.triu_indices(n, 1)
        parts += [np.abs(to_a[:, i] - to_a[:, j]), np.abs(to_b[:, i] - to_b[:, j])]
    for shifted in (to_a, to_b):
        size = np.abs(shifted)
        parts.append(np.stack([size.max(axis=1), size.sum(axis=1), (size**2).sum(axis=1)], axis=1))
    return np.concatenate(parts, axis=1)


def _lowest_bits(outputs: Floats) -> Floats:
    """The last bit of each number's significand: where floating point gives a mechanism away (Mironov 2012)."""
    bits = (np.ascontiguousarray(outputs).view(np.uint64) & np.uint64(1)).astype(float)
    return bits.sum(axis=1)
