"""What one fit may spend, and on what besides the fit itself."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from isotone.curves.setting import ConcentratedSetting, CurveSetting
from isotone.errors import InputError
from isotone.privacy.checks import exact, positive, whole_number
from isotone.privacy.draws import Draws
from isotone.privacy.unit import Unit

__all__ = ["COUNTING_SHARE", "FitBudget"]

COUNTING_SHARE = Fraction(2, 100)
"""The share of epsilon that a noisy number of records costs, when ``public_n`` is not given."""
MOST_RECORDS = 2**62
"""A larger ``public_n`` is refused."""
MOST_COUNTED = 1 << 30
"""Sums of scores are 64-bit integers, which so many records cannot overflow."""
WEIGHT_STEPS = 64


@dataclass(frozen=True)
class FitBudget:
    """The ``whole`` budget of a fit, of which finding the direction takes the share ``finding``.

    Counting the records takes a share too, unless their number is public. A record's weight counts up to ``max_weight``.
    """

    whole: CurveSetting
    public_n: int | None = None
    finding: Fraction = Fraction(0)
    max_weight: float = 1.0

    @classmethod
    def of(cls, stated: Any, finding: Fraction, *, weighted: bool, grouped: bool) -> FitBudget:
        """The budget that the parameters of an estimator state, checked."""
        unit = Unit(stated.contributions, stated.neighbours, stated.unit)
        if unit.contributions > 1 and not grouped:
            raise InputError(
                f"contributions={unit.contributions} needs groups, the privacy unit of each record: "
                "fit(X, y, groups=...). Without them nothing could keep a unit from having more."
            )
        whole = _whole(stated.epsilon, stated.rho, unit, WEIGHT_STEPS if weighted else 1)
        size = stated.public_n
        if size is not None:
            size = whole_number(size, "public_n (or None)", most=MOST_RECORDS)
        return cls(whole, size, finding, _max_weight(stated.max_weight) if weighted else 1.0)

    @property
    def largest_n(self) -> int:
        """The largest number of records that sizes may have to follow. A noisy one may be any."""
        return self.public_n or MOST_COUNTED

    @property
    def left(self) -> Fraction:
        """The share that is left for the fit itself."""
        return 1 - self.finding - (COUNTING_SHARE if self.public_n is None else 0)

    @property
    def rest(self) -> CurveSetting:
        """What the fit itself may spend."""
        return self.whole.part(self.left)

    def size(self, count: int, draws: Draws) -> int:
        """The public number of records, or a noisy one. The true one decides nothing."""
        if self.public_n is not None:
            return self.public_n
        unweighted = replace(self.whole, weight_steps=1)
        noisy, _, _ = unweighted.perturbed(np.array([count]), COUNTING_SHARE, 1, draws)
        return max(1, int(noisy[0]))


def _whole(epsilon: Any, rho: Any, unit: Unit, weight_steps: int) -> CurveSetting:
    if rho is None:
        return CurveSetting(positive(epsilon, "epsilon"), unit, weight_steps)
    if exact(epsilon, "epsilon") != 1:
        raise InputError("Give rho or epsilon, not both: with rho, epsilon stays at its default.")
    return ConcentratedSetting.of(positive(rho, "rho"), unit, weight_steps)


def _max_weight(stated: Any) -> float:
    if stated is None:
        raise InputError(
            "sample_weight needs max_weight: the largest weight that a record may have, known without the data. A "
            "record of unlimited weight cannot be hidden."
        )
    return float(positive(stated, "max_weight"))
