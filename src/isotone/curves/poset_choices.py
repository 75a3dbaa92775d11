"""The random choices that mechanisms on orders make: those on curves, and selections from circuits."""

from __future__ import annotations

from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from isotone import noise
from isotone.curves.choices import Choices, ExactChoices, SimulatedChoices
from isotone.curves.poset_circuit import Circuit, CircuitTables, descend

__all__ = ["ExactPosetChoices", "PosetChoices", "SimulatedPosetChoices"]

Ints = NDArray[np.int64]


class PosetChoices(Choices, Protocol):
    """What a mechanism on an order may draw."""

    def select(self, circuit: Circuit, costs: Ints, rate: Fraction) -> Ints:
        """The nodes of a selection from ``circuit``, with weight ``exp(−rate·cost)``."""
        ...


class ExactPosetChoices(ExactChoices):
    """Cryptographic bits and exact probabilities."""

    def select(self, circuit: Circuit, costs: Ints, rate: Fraction) -> Ints:
        """The nodes of a selection from ``circuit``."""
        tables = CircuitTables(circuit, costs, rate)
        return descend(circuit, lambda node: noise.choose_lazily(lambda bits: tables.brackets(node, bits)))


class SimulatedPosetChoices(SimulatedChoices):
    """Floats from a seeded generator: the same distributions up to rounding, and not private."""

    def select(self, circuit: Circuit, costs: Ints, rate: Fraction) -> Ints:
        """The nodes of a selection from ``circuit``."""
        tables = CircuitTables(circuit, costs, rate)

        def choose(node: int) -> int:
            weights = np.cumsum(tables.weights(node))
            return int(np.searchsorted(weights, self.rng.random() * weights[-1], side="right"))

        return descend(circuit, choose)
