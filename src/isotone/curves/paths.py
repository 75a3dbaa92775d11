"""One exact draw from the exponential mechanism over the paths of a public graph.

A class of curves on a grid is described by an acyclic graph in which every path from a source to the last node
is one curve (or one way to write it), and in which each record adds its loss to exactly one node of every path.
The weight of a path is ``exp(−rate · sum of its nodes' costs)``. Summing weights forward and choosing
predecessors backward draws a path with exactly that probability (docs/theory/curves.md, section 7).

The sums are floats with a running bound on their error; a draw that falls within the bound is decided by
recomputing them with integers of any size. So the result is exact whatever the rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numba import njit
from numpy.typing import NDArray

from isotone.curves.wide_paths import WideSums
from isotone.errors import InputError

__all__ = ["MOST_EDGES", "PathGraph", "PathTables", "walk"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

MOST_EDGES = 20_000_000
UNIT = 2.0**-53
"""The largest relative error of one rounded floating-point operation."""


@dataclass(frozen=True)
class PathGraph:
    """A public acyclic graph; nodes are numbered so that edges only go up, and the last node is the sink.

    ``before[first[i]:first[i + 1]]`` are the predecessors of node ``i``; ``source[i]`` marks where paths start (such
    a node has no predecessors). A node that is neither a source nor reachable from one lies on no path.
    """

    first: Ints = field(repr=False)
    before: Ints = field(repr=False)
    source: NDArray[np.bool_] = field(repr=False)

    def __post_init__(self) -> None:
        if self.before.size > MOST_EDGES:
            raise InputError(
                f"This grid needs a graph of {self.before.size} edges, and {MOST_EDGES} is the limit: take fewer "
                "points of x (x_grid) or fewer values (value_levels)."
            )

    @property
    def nodes(self) -> int:
        """The number of nodes."""
        return self.source.size

    @classmethod
    def from_edges(cls, nodes: int, lower: Ints, upper: Ints, source: NDArray[np.bool_]) -> PathGraph:
        """The graph with an edge from each entry of ``lower`` to that of ``upper``."""
        order = np.argsort(upper, kind="stable")
        first = np.searchsorted(upper[order], np.arange(nodes + 1))
        return cls(first.astype(np.int64), lower[order].astype(np.int64), source)


def walk(graph: PathGraph, choose: Callable[[int], int]) -> list[int]:
    """A path, walked back from the sink; ``choose(node)`` picks the place of a predecessor."""
    node = graph.nodes - 1
    path = [node]
    while not graph.source[node]:
        start, stop = int(graph.first[node]), int(graph.first[node + 1])
        place = 0 if stop - start == 1 else choose(node)
        node = int(graph.before[start + place])
        path.append(node)
    return path[::-1]


class PathTables:
    """For every node, the total weight of the paths that end there: ``mantissa · 2**exponent``.

    ``error[i]`` bounds the absolute error of the logarithm of node ``i``'s total.
    """

    def __init__(self, graph: PathGraph, costs: Ints, rate: Fraction) -> None:
        self._graph = graph
        self._wide = WideSums(graph.first, graph.before, graph.source, costs, rate)
        self._mantissa, self._exponent, self._error = _sums(
            graph.first, graph.before, graph.source, costs, float(rate)
        )

    def weights(self, node: int) -> Floats:
        """Floats proportional to the totals of the node's predecessors (for simulation)."""
        before = self._before(node)
        exponents = self._exponent[before]
        alive = self._mantissa[before] > 0
        return np.ldexp(self._mantissa[before], np.maximum(exponents - exponents[alive].max(), -1000))

    def log_total(self) -> float:
        """The natural logarithm of the total weight of all paths."""
        return float(np.log(self._mantissa[-1]) + self._exponent[-1] * np.log(2.0))

    def brackets(self, node: int, bits: int) -> tuple[list[int], list[int]]:
        """Integers that bracket ``2**bits`` times the totals of the predecessors, relative to the largest."""
        before = self._before(node)
        scale = int(self._exponent[before][self._mantissa[before] > 0].max())
        if bits > 64 or self._error[before].max() > 0.25:
            return self._wide.brackets(before.tolist(), bits, scale)
        lower: list[int] = []
        upper: list[int] = []
        for mantissa, exponent, error in zip(
            self._mantissa[before].tolist(),
            self._exponent[before].tolist(),
            self._error[before].tolist(),
            strict=True,
        ):
            whole = int(mantissa * 2.0**60)  # exact: a mantissa has 53 bits and is below 1
            slack = int(whole * (2.0 * error)) + 1 if whole else 0  # e^±error is within 1 ± 2·error up to 1/2
            shift = bits - 60 + exponent - scale
            lower.append(_shifted(max(0, whole - slack), shift))
            upper.append(-_shifted(-(whole + slack), shift))
        return lower, upper

    def _before(self, node: int) -> Ints:
        return self._graph.before[self._graph.first[node] : self._graph.first[node + 1]]


def _shifted(value: int, places: int) -> int:
    """``value·2**places``, rounded down."""
    return value << places if places >= 0 else value >> -places


@njit(cache=True)
def _exp_negative(x: float) -> tuple[float, int]:
    """``exp(−x)`` for ``x >= 0`` as a float in (0.4, 1.1) and a power of two; see docs/theory/curves.md, section 7.

    Only additions, multiplications and one division: no assumption about a library's ``exp``.
    """
    octaves = math.floor(x * 1.4426950408889634)
    rest = x - octaves * 0.6931471805599453
    total = 1.0
    for order in range(19, 0, -1):
        total = 1.0 - rest / order * total
    return total, -octaves


@njit(cache=True)
def _sums(
    first: Ints, before: Ints, source: NDArray[np.bool_], costs: Ints, rate: float
) -> tuple[Floats, Ints, Floats]:
    """Totals of all nodes in one pass, with a running bound on the error of their logarithms."""
    nodes = source.size
    mantissa = np.zeros(nodes)
    exponent = np.zeros(nodes, np.int64)
    error = np.zeros(nodes)
    for node in range(nodes):
        total, power, worst = 0.0, 0, 0.0
        if source[node]:
            total = 1.0
        for edge in range(first[node], first[node + 1]):
            other = before[edge]
            part = mantissa[other]
            if part == 0.0:
                continue
            worst = max(worst, error[other])
            if total == 0.0:
                total, power = part, int(exponent[other])
            else:
                shift = max(-1000, min(1000, int(exponent[other]) - power))
                if shift <= 0:
                    total += math.ldexp(part, shift)
                else:
                    total = math.ldexp(total, -shift) + part
                    power = int(exponent[other])
        if total == 0.0:
            continue
        x = rate * costs[node]
        weight, octaves = _exp_negative(x)
        mantissa[node], shift = math.frexp(total * weight)
        exponent[node] = power + octaves + shift
        # sums of positive numbers: one rounding per term; the weight: see section 7
        error[node] = worst + (first[node + 1] - first[node] + 64 + 8.0 * x) * UNIT
    return mantissa, exponent, error
