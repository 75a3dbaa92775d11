"""What the experiments on posets share: the cube's error, the survey's order, and error by simulation."""

from __future__ import annotations

import numpy as np

from isotone.counts import PosetMechanism
from isotone.order import Poset

__all__ = ["cube_error", "ratio_to_cube", "simulated_ratio", "survey_sections"]


def cube_error(d: int) -> float:
    """The expected squared error of the ℓ∞ mechanism on d counts at ε = 1."""
    return d * (d + 1) * (d + 2) / 3


def ratio_to_cube(P: Poset) -> tuple[float, float]:
    """The poset mechanism's expected squared error over that of the ℓ∞ mechanism, and its standard error."""
    error = PosetMechanism(P, 1).error()
    doubt = float(np.sqrt(np.sum(error.standard_error**2))) if error.standard_error.size else 0.0
    return error.total / cube_error(len(P)), doubt / cube_error(len(P))


def simulated_ratio(P: Poset, draws: int, rng: np.random.Generator) -> float:
    """The same from a few draws of the noise, for averages over many posets."""
    noise = np.asarray(PosetMechanism(P, 1).simulate(draws, rng))
    return float(np.mean(np.sum(noise**2, axis=1))) / cube_error(len(P))


def survey_sections(sections: int) -> Poset:
    """The first sections of the health survey in the public code of Joseph, Ribero and Yu: 4, 11, 15 questions.

    Hypertension: a gate, a follow-up with a follow-up of its own, and medication. Cholesterol: a gate with six
    follow-ups. Asthma: a gate with three.
    """
    relations = [(1, 0), (2, 1), (3, 0)]
    relations += [(question, 4) for question in range(5, 11)]
    relations += [(question, 11) for question in range(12, 15)]
    size = (4, 11, 15)[sections - 1]
    return Poset(range(size), [pair for pair in relations if max(pair) < size])
