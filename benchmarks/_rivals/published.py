"""Errors that were published for HDMM, and what our own optimiser finds for the same workloads.

The authors' repository, https://github.com/dpcomp-org/hdmm, prints two in its README, for Laplace noise and p-Identity with 16 rows (commit 5aa9df9), and
keeps others in ``experiments/results/data-independent.csv`` (commit ddc1b9a), for Laplace noise, and in ``experiments/journal/oned.csv``, for Gaussian noise. All are
root mean squared errors of a query at noise of variance 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks._rivals.matrix_mechanism import Norm, p_identity

__all__ = ["CLOSE", "PUBLISHED", "Published", "reproduced", "require_reproduced"]

Floats = NDArray[np.float64]
CLOSE = 0.03
"""How far above a published error ours may be, relatively."""
README, JOURNAL = "README.md", "experiments/journal/oned.csv"
RESULTS = "experiments/results/data-independent.csv"


@dataclass(frozen=True)
class Published:
    """A workload over a line of cells, in one or two dimensions, and the error that was published."""

    name: str
    kind: str
    cells: int
    dimensions: int
    norm: Norm
    rows: int
    error: float
    source: str


PUBLISHED = (
    Published("prefixes of 128 cells, Laplace noise", "prefixes", 128, 1, 1, 8, 4.4501597635, RESULTS),
    Published("all ranges of 128 cells, Laplace noise", "ranges", 128, 1, 1, 8, 4.75401217026, RESULTS),
    Published("prefixes of 256 cells, Laplace noise", "prefixes", 256, 1, 1, 16, 5.19885321433, RESULTS),
    Published("all ranges of 256 cells, Laplace noise", "ranges", 256, 1, 1, 16, 5.736437154199246, README),
    Published("the same in two dimensions", "ranges", 256, 2, 1, 16, 32.692354993620214, README),
    Published(
        "prefixes of 128 cells, Gaussian noise", "prefixes", 128, 1, 2, 40, 2.3120911713428396, JOURNAL
    ),
    Published("all ranges of 128 cells, Gaussian noise", "ranges", 128, 1, 2, 40, 2.599181805478603, JOURNAL),
)


def gram(kind: str, cells: int) -> tuple[Floats, int]:
    """``WᵀW``, which is all that an error depends on, and the number of queries.

    >>> gram("prefixes", 2)[0].tolist(), gram("ranges", 2)[0].tolist()
    ([[2.0, 1.0], [1.0, 1.0]], [[2.0, 1.0], [1.0, 2.0]])
    """
    place = np.arange(cells)
    above = (cells - np.maximum.outer(place, place)).astype(float)
    if kind == "prefixes":
        return above, cells
    return above * (1 + np.minimum.outer(place, place)), cells * (cells + 1) // 2


def reproduced() -> Iterator[tuple[Published, float]]:
    """Each published error with ours, of one start with as many rows as stated.

    A product of workloads is answered by the product of their strategies, so its error is the product of theirs.
    """
    found: dict[tuple[str, int, Norm, int], float] = {}
    for each in PUBLISHED:
        key = (each.kind, each.cells, each.norm, each.rows)
        if key not in found:
            G, queries = gram(each.kind, each.cells)
            W = np.ascontiguousarray(np.linalg.cholesky(G).T, np.float64)
            found[key] = math.sqrt(p_identity(W, each.norm, rows=(each.rows,), restarts=1).error / queries)
        yield each, found[key] ** each.dimensions


def require_reproduced() -> None:
    """Refuse to compare with an optimiser that does not reach what was published."""
    for each, ours in reproduced():
        if ours > (1 + CLOSE) * each.error:
            raise AssertionError(f"{each.name}: {ours:.4g}, published {each.error:.4g}")
