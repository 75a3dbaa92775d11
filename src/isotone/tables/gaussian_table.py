"""The mechanism for tables of counts under zCDP and (ε, δ), with discrete Gaussian noise on both measurements."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from isotone.errors import InputError
from isotone.mechanism import Error
from isotone.privacy.adjacency import Neighbours
from isotone.privacy.calibration import discrete_sigma_squared, largest_rho
from isotone.privacy.checks import Number, truth, whole_number
from isotone.privacy.guarantee import Guarantee, Unit
from isotone.tables.emphasis import Emphasis, checked_emphasis
from isotone.tables.gaussian_noise import GaussianMeasurement, change, measurement_for
from isotone.tables.stratum import StratifiedMechanism
from isotone.tables.two_stage import LARGEST

__all__ = ["GaussianTableMechanism"]


@dataclass(frozen=True, init=False)
class GaussianTableMechanism(StratifiedMechanism):
    """A table of counts with Gaussian noise, whose distribution of counts survives the noise.

    Two measurements are made: the numbers of categories of at most ``t`` for every ``t`` below ``upper``, and every count,
    all with discrete Gaussian noise. All the rest is post-processing of the two.

    Guarantee: ρ-zCDP, or (ε, δ)-DP by the conversion of ``largest_rho``, for adding or removing one person who is counted at
    most ``contributions`` times, or for replacing one (``neighbours="replace"``): docs/theory/tables-whole.md, section 10. The
    number and the order of the categories and their strata are public. Every stratum is measured with all of ρ: a person with
    a share of the contributions in a stratum costs at most that share there, as costs are convex in contributions.
    Error: depends on the table; ``tables.plan`` tells it for a guessed shape, without data.
    Cost: O(N log N), and matrices of up to 512 rows for the estimate.

    Parameters
    ----------
    upper
        The largest count, public: larger ones are top-coded.
    epsilon, delta, rho
        ``rho``, or ``epsilon`` and ``delta``.
    emphasis
        What the budget is spent on, as for :class:`TwoStageMechanism`: of ρ 3 % go to the distribution under ``counts``, 8 % under ``both`` and
        half under ``distribution``.
    once
        Whether a person is counted at most once in each category. Then noise grows with the root of ``contributions``, and
        otherwise in proportion to it.

    >>> m = GaussianTableMechanism(upper=9, rho="1/2")
    >>> len(m.release([0, 0, 1, 3, 2, 0, 12, 5])), m.guarantee
    (8, Guarantee(ρ = 1/2, add-remove one record))
    """

    upper: int
    emphasis: Fraction | None
    once: bool
    unit: Unit
    guarantee: Guarantee

    def __init__(
        self,
        upper: int,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        emphasis: Number | Emphasis | None = None,
        once: bool = True,
        contributions: int = 1,
        neighbours: Neighbours = "add-remove",
    ) -> None:
        unit = Unit(contributions, neighbours)
        values: dict[str, Any] = {
            "upper": whole_number(upper, "upper", least=0, most=LARGEST),
            "emphasis": None if emphasis is None else checked_emphasis(emphasis),
            "once": truth(once, "once"),
            "unit": unit,
            "guarantee": unit.guarantee(epsilon, delta, rho),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)
        if self.guarantee.kind == "pure":
            raise InputError("Gaussian noise gives no pure ε: give rho, or delta with epsilon.")

    @property
    def rho(self) -> Fraction:
        """The ρ that is spent, that of the guarantee, or the largest that implies it."""
        guarantee = self.guarantee
        return guarantee.rho if guarantee.kind == "zcdp" else largest_rho(guarantee.epsilon, guarantee.delta)

    def measurement(self, size: int, upper: int | None = None) -> GaussianMeasurement:
        """The noise for a table, or a stratum, of ``size`` categories. A function of public numbers.

        >>> round(GaussianTableMechanism(9, epsilon=1, delta="1e-6").measurement(10).deviation, 2)
        4.23
        """
        top = self.upper if upper is None else upper
        made = measurement_for(self.emphasis, top, self.rho, self.unit, self.once, size)
        guarantee = self.guarantee
        alone = made.cumulative is None and change(self.unit, self.once, Fraction(0), Fraction(1)) == 1
        if alone and guarantee.kind == "approximate":  # one count moves by one: the exact condition is known
            return GaussianMeasurement(
                top, None, discrete_sigma_squared(guarantee.epsilon, guarantee.delta, 1)
            )
        return made

    def error(self) -> Error:
        """The mean squared error of the noisy counts of a large table, at most."""
        most = float(self.measurement(10**9).counts)
        return Error(np.full(self.upper + 1, most), method="upper bound, of the unbiased noisy counts")
