"""The draws of mechanisms on curves and orders, which are the shared ones and selections from circuits.

As for all draws (:mod:`isotone.privacy.draws`) there are exact ones for releases and seeded ones for planning. Tests add
a third, which walks through *all* outcomes, so what is checked exhaustively is the code that releases.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Protocol

import numpy as np

from isotone import noise
from isotone.array_types import Ints
from isotone.curves.circuits.circuit import Circuit, CircuitTables, descend
from isotone.privacy.draws import Draws, ExactDraws, SeededDraws, require_exact

__all__ = ["CurveDraws", "ExactCurveDraws", "SeededCurveDraws", "exact_draws"]


class CurveDraws(Draws, Protocol):
    """What a mechanism on curves may draw."""

    def select(self, circuit: Circuit, costs: Ints, rate: Fraction) -> Ints:
        """The nodes of a selection from ``circuit``, root first, with weight ``exp(−rate·cost)``."""
        ...


class ExactCurveDraws(ExactDraws):
    """Cryptographic bits and exact probabilities."""

    def select(self, circuit: Circuit, costs: Ints, rate: Fraction) -> Ints:
        """See ``CurveDraws``."""
        tables = CircuitTables(circuit, costs, rate)
        return descend(circuit, lambda node: noise.choose_lazily(lambda bits: tables.brackets(node, bits)))


def exact_draws() -> ExactCurveDraws:
    """The draws of a release. No others are accepted where one is made."""
    draws = ExactCurveDraws()
    require_exact(draws)
    return draws


class SeededCurveDraws(SeededDraws):
    """Floats from a seeded generator. The same laws up to rounding, and not private."""

    def select(self, circuit: Circuit, costs: Ints, rate: Fraction) -> Ints:
        """See ``CurveDraws``."""
        tables = CircuitTables(circuit, costs, rate)

        def choose(node: int) -> int:
            weights = np.cumsum(tables.weights(node))
            return int(np.searchsorted(weights, self.rng.random() * weights[-1], side="right"))

        return descend(circuit, choose)
