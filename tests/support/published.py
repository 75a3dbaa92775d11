"""The published sampler of poset noise and the exact one, as batch mechanisms on a fine grid of integers.

Both add noise at ε = 1 to counts in which one unit changes up to ``FINE`` records, and round to whole numbers: what a
release does, and so fine that rounding hides nothing. (Unrounded floats would be told apart by their last bits.)
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from _posets import survey_sections
from _published import PublishedSampler
from _published_loss import _arrays, _losses
from isotone import noise
from isotone.counts.sampler import noise_rows, sampler
from isotone.order import Poset

Floats = NDArray[np.float64]
Batch = Callable[[Floats, int], Floats]

FINE = 1000

CASES: dict[str, tuple[Poset, tuple[object, ...]]] = {
    "x<v, y": (Poset(["x", "v", "y"], [("x", "v")]), ("v", "y")),
    "2+2": (Poset("abcd", [("a", "b"), ("c", "d")]), ("b", "c", "d")),
    "survey of three sections": (survey_sections(3), (0, 3, 4, 11, 12, 13, 14)),
}
"""Orders, and for each a record whose presence the published sampler betrays (found by experiments/as_published.py)."""


def published_mechanism(P: Poset, rng: np.random.Generator) -> Batch:
    """Extended bipartitions by the published recursion."""
    source = PublishedSampler(P)

    def release(counts: Floats, size: int) -> Floats:
        orders, sizes = source.simulate(size, rng)
        return _rounded(P, orders, sizes, counts, rng)

    return release


def exact_mechanism(P: Poset, rng: np.random.Generator) -> Batch:
    """Extended bipartitions by the exact sampler, from cryptographic bits; exponentials are simulated."""
    source = sampler(P).source

    def release(counts: Floats, size: int) -> Floats:
        orders, sizes = source.draw(size, noise.random_words, noise.bernoulli)
        return _rounded(P, orders, sizes, counts, rng)

    return release


def telling_record(P: Poset, elements: tuple[object, ...]) -> Floats:
    """``FINE`` records with a yes to these elements."""
    return FINE * np.array([float(x in elements) for x in P.elements])


def suspicion(P: Poset, record: Floats) -> Callable[[Floats], Floats]:
    """The log ratio of the published sampler's own densities: where an attacker who has read the paper looks."""
    arrays = _arrays(P)

    def published_log_ratio(outputs: Floats) -> Floats:
        return _losses(outputs / FINE, record / FINE, *arrays)

    return published_log_ratio


def _rounded(P: Poset, orders, sizes, counts: Floats, rng: np.random.Generator) -> Floats:
    rows = noise_rows(P, orders, sizes, rng.standard_exponential((len(sizes), len(P))))
    return np.rint(np.asarray(counts) + FINE * rows)
