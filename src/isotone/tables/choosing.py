"""Which mechanism keeps a guarantee about a table best, by public numbers alone."""

from __future__ import annotations

from math import expm1

from isotone.privacy.calibration import largest_pure
from isotone.privacy.checks import Number
from isotone.privacy.guarantee import Guarantee, Unit, budget_of
from isotone.tables.emphasis import Emphasis
from isotone.tables.gaussian_table import GaussianTableMechanism
from isotone.tables.two_stage import TwoStageMechanism

__all__ = ["TableMechanism", "noises", "table_mechanism"]

TableMechanism = TwoStageMechanism | GaussianTableMechanism


def table_mechanism(
    upper: int,
    guarantee: Guarantee,
    emphasis: Number | Emphasis | None = None,
    *,
    contributions: int = 1,
    once: bool = True,
    small: Number | Emphasis | None = None,
) -> TableMechanism:
    """The mechanism for a guarantee.

    Geometric noise for ε, Gaussian noise for ρ. For (ε, δ) the one with less noise on a count: one that keeps ε keeps (ε, δ).
    ``small`` takes the place of an emphasis that is not given, at an ε below 1 for each step of a count.

    >>> type(table_mechanism(9, Guarantee.approximate(1, "1e-6"))).__name__
    'TwoStageMechanism'
    >>> type(table_mechanism(9, Guarantee.approximate(1, "1e-6"), contributions=20)).__name__
    'GaussianTableMechanism'
    """
    if guarantee.kind != "zcdp":
        unit = Unit(contributions, guarantee.neighbours)
        usual = small if emphasis is None and unit.per_step(guarantee.epsilon) < 1 else emphasis
        pure = TwoStageMechanism(
            upper,
            guarantee.epsilon,
            usual,
            contributions=contributions,
            neighbours=guarantee.neighbours,
        )
        if guarantee.kind == "pure":
            return pure
        geometric, gaussian = noises(guarantee, contributions, once)
        if geometric <= gaussian:
            return pure
    return _gaussian(upper, guarantee, emphasis, contributions, once)


def _gaussian(
    upper: int, guarantee: Guarantee, emphasis: Number | Emphasis | None, contributions: int, once: bool
) -> GaussianTableMechanism:
    return GaussianTableMechanism(
        upper,
        **budget_of(guarantee),
        emphasis=emphasis,
        once=once,
        contributions=contributions,
        neighbours=guarantee.neighbours,
    )


def noises(guarantee: Guarantee, contributions: int, once: bool) -> tuple[float, float]:
    """The standard deviations of geometric and of Gaussian noise on a count, if all is spent on counts."""
    made = _gaussian(1, guarantee, None, contributions, once)
    rate = float(made.unit.per_step(largest_pure(guarantee)))
    geometric = (2 * (1 + 1 / expm1(rate)) / expm1(rate)) ** 0.5 if rate < 50 else 0.0
    return geometric, made.measurement(1).deviation
