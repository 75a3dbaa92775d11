"""Gaussian noise over time whose first periods do not depend on what is drawn for later ones.

The ellipse is that of the order of histories. Its factor is lower-triangular in time: row i of the strategy is measured
with period i, and is solved for from rows up to i alone. So a period can be shown before the next one exists, and the
next one may react to it (docs/theory/series.md, section 4). The factor of one release runs the other way.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Self

import numpy as np

from isotone.counts.ellipse import DenseEllipse, fit_dense, fit_dense_nonnegative
from isotone.counts.mechanism import gaussian_variance
from isotone.counts.order_gaussian import Ellipse, OrderGaussianMechanism, causal_strategy
from isotone.errors import InputError
from isotone.linear.strategy import Square
from isotone.mechanism import Progress, no_progress
from isotone.order import Poset
from isotone.privacy.checks import whole_number
from isotone.privacy.guarantee import Guarantee, adjacency
from isotone.series.two_scale import over_time

_SMALL, _STEPS, _FEWER_STEPS = 300, 900, 300
"""Steps of the fit up to so many counts, and beyond, where one takes long."""


class CausalEllipse(Ellipse):
    """A fitted ellipse of histories, with elements numbered by time."""

    def strategy(self, bits: int) -> Square | None:
        """The ellipse on an integer scale of ``2**bits``, measured in the sequence of time. None if that is too coarse."""
        assert isinstance(self.ellipse, DenseEllipse)
        assert self.leq is not None
        return causal_strategy(self.ellipse, self.leq, bits, self.neighbours)


@dataclass(frozen=True, init=False)
class CausalGaussianMechanism(OrderGaussianMechanism):
    """Counts of stages reached by the end of each period, with Gaussian noise shaped by the order of histories.

    Each row of the strategy looks at its own period and at earlier ones, so that the noise of a period is a function of
    what was drawn for it and before it. The number of records is no coordinate.

    Guarantee: (epsilon, delta)-DP or rho-zCDP for ``neighbours``, also where later periods react to earlier ones
    (docs/theory/series.md, section 4).
    Error: ``error()`` and ``covariance()`` are exact, before rounding to integers, and need no data.

    >>> m = CausalGaussianMechanism(Poset.chain(["dose 2", "dose 1"]), 6, Guarantee.zcdp("0.5"))
    >>> m.release([0] * 12).shape
    (12,)
    """

    stages: Poset
    periods: int

    def __init__(
        self,
        stages: Poset,
        periods: int,
        guarantee: Guarantee,
        contributions: int = 1,
        progress: Progress = no_progress,
    ) -> None:
        if guarantee.kind not in ("zcdp", "approximate"):
            raise InputError("Gaussian noise needs a guarantee with ρ, or with ε and δ.")
        self._set(stages=stages, periods=whole_number(periods, "periods"))
        self._settle(over_time(stages, self.periods), guarantee, contributions, None)
        self._fit(progress)

    def _fit(self, progress: Progress) -> None:
        """Fit the ellipse with all periods of a stage together, where it starts better, and number elements by time."""
        n, within = len(self.P), np.asarray(self.stages.linear_order)
        places = np.arange(n).reshape(self.periods, -1)[:, within]
        by_stage, by_time = places.T.ravel(), places.ravel()
        leq = self.P.leq_matrix()
        fit = fit_dense_nonnegative if adjacency(self.neighbours).exchanges else fit_dense
        steps = _STEPS if n <= _SMALL else _FEWER_STEPS
        fitted = fit(leq[np.ix_(by_stage, by_stage)], steps=steps, tolerance=1e-6, progress=progress)
        number = np.argsort(by_stage)[by_time]
        rooted = np.append(number, n)
        precision = fitted.precision[np.ix_(rooted, rooted)]
        ellipse = replace(fitted, precision=precision, presence=fitted.presence[number])
        leq, active = leq[np.ix_(by_time, by_time)], np.argsort(self.P.canonical.positions)[by_time]
        shape = CausalEllipse(active, "dense", None, self.neighbours, ellipse, np.arange(n), leq)
        self._set(shape=shape)
        self._scale(gaussian_variance(self.guarantee) * self.unit.changes**2)

    def part(self, share: Fraction) -> Self:
        """Refused: the series is one draw."""
        raise InputError("The noise of a series is one draw for the whole series and has no parts.")
