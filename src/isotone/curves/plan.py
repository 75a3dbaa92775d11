"""What a private curve will cost in accuracy, from public numbers alone. Simulated on reference data.

No private data are read and no budget is spent. The reference populations are twenty pairs of a curve (logistic, a step, a line,
a constant, one with few positives, stairs) and a design of ``x`` (uniform, one crowd, near one end, whole years, about the middle,
two heaps): ``isotone.curves.cuts.PLANNED``. A plan has the range from the tenth to the ninetieth of a hundred such
populations: most real curves lie in it, and some do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from isotone.curves.cuts import (
    ChainProblem,
    CurveMechanism,
    Reference,
    least_risk,
    planned,
    risk,
    usual_points,
)
from isotone.curves.losses import Loss, parse_loss
from isotone.curves.problem import ConcentratedSetting, CurveSetting, FitBudget, Grid, parse_y
from isotone.curves.regression import PrivateIsotonicRegression, mechanism_for
from isotone.errors import InputError
from isotone.planning import Column, Plan, Row
from isotone.privacy.checks import decimal, whole_number
from isotone.privacy.guarantee import Guarantee

UNIT = (Fraction(0), Fraction(1))
LARGEST_SIMULATION = 100_000
LEAST = 1e-12
"""An excess below this counts as this in a geometric mean."""


@dataclass(frozen=True)
class CurveRow(Row):
    """One method, with the expected excess of the mean loss over the best curve without privacy.

    ``excess`` is the geometric mean over the reference populations, ``low`` and ``high`` are the 10 % and the 90 % quantile
    over them. ``bound`` is what is proved for all data (often far above), or an estimate where ``proved`` is False.
    """

    columns: ClassVar[tuple[Column, ...]] = (
        Column("excess", "typical", "{:.3g}".format, marker="o"),
        Column("low", "10 %", "{:.2g}".format, marker="<"),
        Column("high", "90 %", "{:.2g}".format, marker=">"),
    )

    mechanism: PrivateIsotonicRegression = field(repr=False, compare=False)
    excess: float
    low: float
    high: float
    bound: float
    proved: bool = True

    @property
    def note(self) -> str:
        """What is proved."""
        return f"at most {self.bound:.3g}, proved" if self.proved else "no proved bound"


@dataclass(frozen=True)
class CurvePlan(Plan[CurveRow]):
    """Methods, the one with the least typical excess first. See ``CurveRow``."""

    guarantee: Guarantee
    n: int

    @property
    def title(self) -> str:
        """The budget and the number of records."""
        name = "rho" if self.guarantee.kind == "zcdp" else "epsilon"
        return f"{name} = {decimal(getattr(self.guarantee, name))}, {self.n:,} records: expected excess of the mean loss"

    @property
    def best(self) -> PrivateIsotonicRegression:
        """The estimator with the least typical excess, which lacks only its ``bounds``."""
        result = self.rows[0].mechanism
        return type(result)(**result.get_params(deep=False))  # a new one: estimators can be changed


def plan(
    model: PrivateIsotonicRegression,
    n: int = 1000,
    *,
    methods: Sequence[str] = ("auto", "baseline", "bins"),
    labels: bool | None = None,
) -> CurvePlan:
    """Expected excess risk of each method in an estimator, for about ``n`` records, from public numbers alone.

    ``labels`` tells whether ``y`` takes the two ends of ``y_range`` only; None, that this is not known: then every other
    population has labels. With ``y_values`` it is known. More than 100,000 records are simulated by 100,000 with a larger epsilon, so
    that their product is the same: what privacy costs depends on little else. The simulation is seeded, so the same question
    has the same answer.

    >>> print(plan(PrivateIsotonicRegression(1, y_range=(0, 1)), methods=["auto", "bins"]).best.method)
    auto
    """
    loss, count = parse_loss(model.loss), whole_number(n, "n, the number of records,")
    limits, declared = parse_y(model.y_range, model.y_values)
    whole = FitBudget.of(model, Fraction(0), weighted=False, grouped=True).whole
    named = [methods] if isinstance(methods, str) else list(methods)
    if not named:
        raise InputError("methods is empty: name at least one, such as 'auto'.")
    size = min(count, LARGEST_SIMULATION)
    more = Fraction(count, size)
    simulation = _Simulation(
        loss.on_unit(limits[1] - limits[0]),
        size,
        whole.part(more**2 if isinstance(whole, ConcentratedSetting) else more),
        True if declared else labels,
        _span(loss, limits),
    )
    rows = [simulation.of(_with_method(model, method)) for method in named]
    return CurvePlan(tuple(sorted(rows, key=lambda row: row.excess)), whole.guarantee, count)


def _with_method(model: PrivateIsotonicRegression, method: str) -> PrivateIsotonicRegression:
    parameters: dict[str, Any] = {**model.get_params(deep=False), "method": method}
    return PrivateIsotonicRegression(**parameters)


def _span(loss: Loss, y_range: tuple[Fraction, Fraction]) -> float:
    """What a loss on the unit interval is multiplied by on ``y_range``."""
    loss.values(y_range)
    return float(y_range[1] - y_range[0]) ** loss.degree


@dataclass(frozen=True)
class _Simulation:
    """One question in public numbers, on the unit square."""

    loss: Loss
    n: int
    setting: CurveSetting
    labels: bool | None
    span: float

    def of(self, estimator: PrivateIsotonicRegression) -> CurveRow:
        """What the method of an estimator costs on the reference populations."""
        method = str(estimator.method)
        problem = ChainProblem(
            self.loss,
            UNIT,
            Grid(*UNIT, usual_points(method)),
            method=method,
            labels=bool(self.labels),
            output=estimator.output,
        )
        mechanism = mechanism_for(problem.sized(self.n, self.setting))
        populations = enumerate(planned(self.labels))
        result = np.array([self._excess(mechanism, population, place) for place, population in populations])
        bound = mechanism.error()
        low, high = np.quantile(result, [0.1, 0.9])
        return CurveRow(
            method,
            estimator,
            float(np.exp(np.mean(np.log(np.maximum(result, LEAST))))),
            float(low),
            float(high),
            self.span * bound.mean(self.n),
            bound.proved,
        )

    def _excess(self, mechanism: CurveMechanism, population: Reference, place: int) -> float:
        rng = np.random.default_rng([0, self.n, place])
        records = population.sample(self.n, mechanism.points, rng)
        curve = mechanism.simulate(records, rng)
        excess = risk(curve, records, self.loss) - least_risk(records, self.loss)
        return max(0.0, self.span * float(excess))  # sums of floats end a little below 0
