"""The random choices that mechanisms on curves and orders make, in three forms with one interface.

:class:`ExactChoices` is for releases: cryptographic bits, exact probabilities (``isotone.noise``).
:class:`SimulatedChoices` is for planning: a seeded generator and floats. Tests add a third, which walks through
*all* outcomes of a mechanism with their exact probabilities. The mechanisms are written once, against
:class:`Choices`, so what is checked exhaustively is the code that releases.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from isotone import noise
from isotone.curves.circuits.circuit import Circuit, CircuitTables, descend

__all__ = ["Choices", "ExactChoices", "SimulatedChoices"]

Ints = NDArray[np.int64]


class Choices(Protocol):
    """What a mechanism on curves may draw."""

    def segments(self, scores: Ints, offsets: Ints, rates: Sequence[Fraction], multiplicity: Ints) -> Ints:
        """In every segment an index ``i`` with weight ``multiplicity[i]·exp(−rate·scores[i])``."""
        ...

    def below(self, sizes: Ints) -> Ints:
        """Uniform integers, each at least 0 and below its size."""
        ...

    def perturb(self, values: Ints, rate: Fraction) -> Ints:
        """The values plus two-sided geometric noise: ``k`` with weight ``exp(−rate·|k|)``."""
        ...

    def select(self, circuit: Circuit, costs: Ints, rate: Fraction) -> Ints:
        """The nodes of a selection from ``circuit``, root first, with weight ``exp(−rate·cost)``."""
        ...


class ExactChoices:
    """Cryptographic bits and exact probabilities."""

    def segments(self, scores: Ints, offsets: Ints, rates: Sequence[Fraction], multiplicity: Ints) -> Ints:
        """In every segment an index ``i`` with weight ``multiplicity[i]·exp(−rate·scores[i])``."""
        return noise.choose_exponential_segments(scores, offsets, rates, multiplicity)

    def below(self, sizes: Ints) -> Ints:
        """Uniform integers, each at least 0 and below its size."""
        return np.array([noise.random_below(size) for size in sizes.tolist()], dtype=np.int64)

    def perturb(self, values: Ints, rate: Fraction) -> Ints:
        """The values plus two-sided geometric noise."""
        return values + noise.two_sided_geometrics(rate, values.size).reshape(values.shape)

    def select(self, circuit: Circuit, costs: Ints, rate: Fraction) -> Ints:
        """The nodes of a selection from ``circuit``."""
        tables = CircuitTables(circuit, costs, rate)
        return descend(circuit, lambda node: noise.choose_lazily(lambda bits: tables.brackets(node, bits)))


class SimulatedChoices:
    """Floats from a seeded generator: the same distributions up to rounding, and not private."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def segments(self, scores: Ints, offsets: Ints, rates: Sequence[Fraction], multiplicity: Ints) -> Ints:
        """The largest of the log-weights plus Gumbel noise."""
        sizes = np.diff(offsets)
        starts = offsets[:-1]
        best = np.minimum.reduceat(scores, starts)
        rate = np.repeat([float(r) for r in rates], sizes)
        with np.errstate(divide="ignore"):
            keys = np.log(multiplicity) - rate * (scores - np.repeat(best, sizes))
        keys = keys + self.rng.gumbel(size=scores.size)
        top = np.flatnonzero(keys == np.repeat(np.maximum.reduceat(keys, starts), sizes))
        first = np.searchsorted(top, starts)
        return top[first] - starts

    def below(self, sizes: Ints) -> Ints:
        """Uniform integers, each at least 0 and below its size."""
        return self.rng.integers(0, sizes)

    def perturb(self, values: Ints, rate: Fraction) -> Ints:
        """The values plus two-sided geometric noise."""
        return values + np.asarray(noise.simulate.two_sided_geometrics(self.rng, rate, values.shape))

    def select(self, circuit: Circuit, costs: Ints, rate: Fraction) -> Ints:
        """The nodes of a selection from ``circuit``."""
        tables = CircuitTables(circuit, costs, rate)

        def choose(node: int) -> int:
            weights = np.cumsum(tables.weights(node))
            return int(np.searchsorted(weights, self.rng.random() * weights[-1], side="right"))

        return descend(circuit, choose)
