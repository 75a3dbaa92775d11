"""How much of ε goes to the distribution of counts when every threshold gets the same, for the record.

A rule of thumb is a function of ε alone, so that it may be used without looking at the data: a floor for
large ε, and a rise towards small ε. The rules were fitted on six synthetic tables and judged on three others
(docs/theory/tables-whole.md, section 8; ``isotone reproduce tables-split``).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

__all__ = ["PUBLISHED", "WHOLE_TABLE", "Rule"]


@dataclass(frozen=True)
class Rule:
    """The share ``floor + rise·exp(-decay·ε)``, rounded to four digits so that it is exact."""

    floor: float
    rise: float
    decay: float

    def __call__(self, epsilon: Fraction) -> Fraction:
        """The share of ε that goes to the distribution.

        >>> PUBLISHED(Fraction(1))
        Fraction(681, 5000)
        """
        return Fraction(round(min(max(self.share(float(epsilon)), 0.001), 0.999) * 10_000), 10_000)

    def share(self, epsilon: float) -> float:
        """The same before rounding."""
        return self.floor + self.rise * math.exp(-self.decay * epsilon)

    @classmethod
    def fitted(cls, epsilons: Sequence[float], shares: Sequence[float]) -> Rule:
        """The rule nearest to observed best shares in least squares."""
        from scipy.optimize import OptimizeWarning, curve_fit

        def model(epsilon: np.ndarray, floor: float, rise: float, decay: float) -> np.ndarray:
            return floor + rise * np.exp(-decay * epsilon)

        bounds = ([0.0, 0.0, 0.0], [1.0, 1.0, 50.0])
        with warnings.catch_warnings():  # of a covariance that nobody asks for
            warnings.simplefilter("ignore", OptimizeWarning)
            start = (0.1, 0.5, 2.0)
            found, _ = curve_fit(model, np.asarray(epsilons), np.asarray(shares), start, bounds=bounds)
        return cls(*(float(value) for value in found))


PUBLISHED = Rule(0.106, 0.533, 2.87)
"""Kohli and Laskowski 2026; fitted again for the parts used here, a rule is no better on other tables."""

WHOLE_TABLE = Rule(0.05, 0.45, 2.0)
"""For the whole table: less for the distribution, which is estimated from the noisy counts as well."""
