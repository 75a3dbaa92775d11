"""What a private curve will cost in accuracy, from public numbers alone: simulated on reference data.

No private data are read and no budget is spent. The figures are averages over three curves and two designs; a real curve
may do better or worse, which the range shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from isotone.curves.blueprint import TREE_POINTS, Blueprint
from isotone.curves.grids import Grid, parse_interval
from isotone.curves.losses import Loss, Squared, parse_loss
from isotone.curves.privacy import Setting
from isotone.curves.reference import CURVES, DESIGNS, Reference, least_risk, risk
from isotone.curves.shapes import Shape
from isotone.errors import InputError
from isotone.guarantee import Neighbours, Number, positive

__all__ = ["CurvePlan", "MethodPlan", "plan"]

UNIT = (Fraction(0), Fraction(1))
LARGEST_SIMULATION = 100_000
LARGE = 20_000
"""Averages over so many records vary little: one data set of a kind is enough."""
WHY = "The excess is reported in the units of y."


@dataclass(frozen=True)
class MethodPlan:
    """One method: the expected excess of the mean loss over the best curve without privacy."""

    method: str
    excess: float
    least: float
    most: float
    bound: float
    proved: bool = True

    def __str__(self) -> str:
        limit = f"at most {self.bound:.3g}" if self.proved else "no proved bound"
        return f"{self.method:<10} {self.excess:>10.3g}   {self.least:.2g} to {self.most:.2g}   {limit}"


@dataclass(frozen=True)
class CurvePlan:
    """Methods, best first. ``excess`` is the average over reference data, ``least`` and ``most`` its range over them,
    ``bound`` what is proved for all data (often far above), or an estimate where ``proved`` is False."""

    epsilon: Fraction
    n: int
    rows: tuple[MethodPlan, ...]

    @property
    def best(self) -> MethodPlan:
        """The method with the least average excess."""
        return self.rows[0]

    def __str__(self) -> str:
        head = f"epsilon = {self.epsilon}, {self.n} records: expected excess of the mean loss"
        return "\n".join([head, *(str(row) for row in self.rows)])


def plan(
    epsilon: Number,
    n: int,
    *,
    loss: Any = "squared",
    y_range: Any = (0, 1),
    labels: bool = False,
    methods: Sequence[str] = ("additive", "threshold", "baseline", "bins"),
    neighbours: Neighbours = "add-remove",
    contributions: int = 1,
    repetitions: int = 3,
) -> CurvePlan:
    """Expected excess risk of each method for about ``n`` records, from public numbers alone.

    ``labels`` tells that ``y`` takes the two ends of ``y_range`` only. More than 100,000 records are simulated by 100,000 with a
    larger epsilon, so that their product is the same: what privacy costs depends on little else. The simulation is seeded, so
    the same question has the same answer.

    >>> print(plan(1, 1000, methods=["additive", "bins"], repetitions=1).best.method)
    additive
    """
    budget = positive(epsilon, "epsilon")
    if isinstance(n, bool) or n < 1 or repetitions < 1:
        raise InputError(
            f"A plan needs at least one record and one repetition, not {n!r} and {repetitions!r}."
        )
    chosen = parse_loss(loss)
    span = _span(chosen, parse_interval(y_range, "y_range", WHY))
    size = min(n, LARGEST_SIMULATION)
    setting = Setting(budget * Fraction(n, size), neighbours, contributions)
    times = 1 if size > LARGE else repetitions
    rows = [_simulate(method, chosen, size, setting, labels, times, span) for method in methods]
    return CurvePlan(budget, n, tuple(sorted(rows, key=lambda row: row.excess)))


def _span(loss: Loss, y_range: tuple[Fraction, Fraction]) -> float:
    """What a loss on the unit interval is multiplied by on ``y_range``."""
    loss.values(y_range)
    width = float(y_range[1] - y_range[0])
    return width**2 if isinstance(loss, Squared) else width


def _simulate(
    method: str, loss: Loss, n: int, setting: Setting, labels: bool, repetitions: int, span: float
) -> MethodPlan:
    points = Shape("any").points if method == "baseline" else TREE_POINTS
    mechanism = Blueprint(loss, UNIT, Grid(*UNIT, points), method).mechanism(n, setting)
    means: list[float] = []
    for curve in CURVES:
        for design in DESIGNS:
            found: list[float] = []
            for repetition in range(repetitions):
                rng = np.random.default_rng([repetition, n])
                records = Reference(curve, design, labels).sample(n, points, rng)
                found.append(
                    risk(mechanism.simulate(records, rng), records, loss) - least_risk(records, loss)
                )
            means.append(span * float(np.mean(found)))
    bound = mechanism.error()
    return MethodPlan(
        method, float(np.mean(means)), min(means), max(means), span * bound.mean(n), bound.proved
    )
