"""The published constructions of a fixed point, row by row."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from math import exp
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from isotone.array_types import Floats
from isotone.errors import InputError
from isotone.noise import Simulated
from isotone.privacy.checks import Number, exact, positive, share, whole_number
from isotone.privacy.draws import Draws, ExactDraws, SeededDraws, require_exact
from isotone.privacy.guarantee import Guarantee, Neighbours, Unit
from isotone.published.tables.lp import Peeled, peel
from isotone.published.tables.scales import PeeledTerms, ScaleMechanism, require_scales, scale_mechanism
from isotone.tables.distribution import (
    Counts,
    Distribution,
    DistributionLike,
    measure_cumulative,
    probabilities_of,
    top_coded,
)
from isotone.tables.estimate import estimate_histogram
from isotone.tables.matrices.factored import comonotone, draw_remap
from isotone.tables.matrices.geometric import Loss, loss_rows, push_through
from isotone.tables.smooth import Views, noise_precision
from isotone.tables.two_stage import assign, cuts_of

__all__ = [
    "PUBLISHED",
    "WHOLE_TABLE",
    "CanonicalNoise",
    "RowByRowMechanism",
    "Rule",
    "Selector",
    "approximate_trade_off",
    "even_split_table",
    "fill_order",
    "gaussian_trade_off",
    "heuristic",
    "row_optimum",
]


# How much of ε goes to the distribution of counts when every threshold gets the same, for the record.
#
# A rule of thumb is a function of ε alone, so that it may be used without looking at the data: a floor for
# large ε, and a rise towards small ε. The rules were fitted on six synthetic tables and judged on three others
# (docs/theory/tables-whole.md, section 8; ``isotone reproduce tables-split``).


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
            result, _ = curve_fit(model, np.asarray(epsilons), np.asarray(shares), start, bounds=bounds)
        return cls(*(float(value) for value in result))


PUBLISHED = Rule(0.106, 0.533, 2.87)
"""Kohli and Laskowski 2026; fitted again for the parts used here, a rule is no better on other tables."""

WHOLE_TABLE = Rule(0.05, 0.45, 2.0)
"""For the whole table: less for the distribution, which is estimated from the noisy counts as well."""


# Two-stage releases as published, for the record.
#
# A private distribution of counts, then each count by itself through the matrix that keeps it. Releases use
# :class:`~isotone.tables.TwoStageMechanism`, whose errors are smaller.


@dataclass(frozen=True, init=False)
class RowByRowMechanism:
    """A table whose noisy counts go one by one through the optimal matrix of a private distribution.

    The framework of Kohli and Laskowski (2026) with the cumulative privatiser and the closed form of the matrix.

    Guarantee: epsilon-DP for adding or removing one person, or replacing one: the stages compose, each divides its part
    of epsilon by the steps of a person (docs/theory/tables-whole.md, section 8).

    >>> RowByRowMechanism(upper=9, epsilon=1).release([0, 0, 1, 3]).shape
    (4,)
    """

    upper: int
    epsilon: Fraction
    split: Fraction | None
    unit: Unit

    def __init__(
        self,
        upper: int,
        epsilon: Number,
        split: Number | None = None,
        *,
        contributions: int = 1,
        neighbours: Neighbours = "add-remove",
    ) -> None:
        object.__setattr__(self, "upper", whole_number(upper, "upper", least=0))
        object.__setattr__(self, "epsilon", positive(epsilon, "epsilon"))
        object.__setattr__(self, "split", None if split is None else share(split, "split"))
        object.__setattr__(self, "unit", Unit(contributions, neighbours))

    @property
    def guarantee(self) -> Guarantee:
        """Pure ε-DP, both stages together."""
        return self.unit.pure(self.epsilon)

    def stages(self) -> tuple[Fraction, Fraction]:
        """The parts of ε for the distribution and for the counts.

        >>> RowByRowMechanism(upper=9, epsilon=1, split="0.25").stages()
        (Fraction(1, 4), Fraction(3, 4))
        """
        part = PUBLISHED(self.unit.per_step(self.epsilon)) if self.split is None else self.split
        return self.epsilon * part, self.epsilon - self.epsilon * part

    def release(self, counts: Counts) -> NDArray[np.int64]:
        """One private count for each category, from exact noise and cryptographic bits."""
        return self._run(top_coded(counts, self.upper), require_exact(ExactDraws()))

    def simulate(self, counts: Counts, rng: np.random.Generator) -> Simulated:
        """Simulate the published counts of a seeded run, for experiments only."""
        return Simulated.wrap(self._run(top_coded(np.asarray(counts), self.upper), SeededDraws(rng)))

    def _run(self, table: NDArray[np.int64], draws: Draws) -> NDArray[np.int64]:
        before, after = self.stages()
        first, noisy = _measured(table, self.upper, before, after, self.unit, draws)
        z = first.probabilities.view(np.ndarray)
        remap = comonotone(push_through(z, float(self.unit.per_step(after))), z)
        return draw_remap(noisy, draws.words(len(table)), remap.starts, remap.columns, remap.ceilings)


def even_split_table(
    counts: Counts, upper: int, epsilon: Number, rng: np.random.Generator, split: Number | None = None
) -> Simulated:
    """Simulate the whole-table estimate when every threshold is measured with the same small share of ε.

    That was the release before thresholds became few. For experiments only.
    """
    table, total, draws = top_coded(np.asarray(counts), upper), positive(epsilon, "epsilon"), SeededDraws(rng)
    part = WHOLE_TABLE(total) if split is None else share(split, "split")
    first, noisy = _measured(table, upper, total * part, total - total * part, Unit(), draws)
    assert first.noisy_cumulative is not None  # the cumulative privatiser always has it
    precision = noise_precision(float(total * part))
    cumulative = first.noisy_cumulative.view(np.ndarray)
    result = estimate_histogram(Views.of(cumulative, noisy, precision, float(total - total * part)))
    return Simulated.wrap(assign(noisy, cuts_of(result.histogram, len(table)), draws.words(len(table))))


def _measured(
    table: NDArray[np.int64], upper: int, before: Fraction, after: Fraction, unit: Unit, draws: Draws
) -> tuple[Distribution, NDArray[np.int64]]:
    """A noisy distribution, and noisy counts within 0..upper."""
    first = measure_cumulative(table, upper, before, unit, draws)
    added = np.clip(draws.geometrics(unit.per_step(after), len(table)), -upper, upper)
    return first, np.clip(table + added, 0, upper)


# The heuristic constructor, made numerically sound.
#
# Algorithm 1 of Kohli and Laskowski 2026.

Selector = Literal["best", "max", "min", "sandwich"]
_ORDERS: tuple[Selector, ...] = ("max", "min", "sandwich")
_NEGLIGIBLE = 1e-40


def fill_order(target: NDArray[np.float64], selector: Selector) -> NDArray[np.int64]:
    """The order in which columns are filled.

    Columns with negligible probability are left out.

    >>> fill_order(np.array([0.2, 0.5, 0.1, 0.2]), "sandwich")
    array([0, 3, 1, 2])
    """
    n = len(target)
    if selector == "max":
        order = np.argsort(-target, kind="stable")
    elif selector == "min":
        order = np.argsort(target, kind="stable")
    else:
        order = np.empty(n, np.int64)
        order[0::2] = np.arange((n + 1) // 2)
        order[1::2] = np.arange(n - 1, (n - 1) // 2, -1)
    return order[target[order] > _NEGLIGIBLE]


def heuristic(
    z: NDArray[np.float64],
    target: NDArray[np.float64],
    epsilon: Fraction,
    unit: Unit,
    selector: Selector = "best",
    loss: Loss = "absolute",
    simulated: bool = False,
) -> ScaleMechanism:
    """Fill the columns one by one with the scale nearest to a single peak, as far as later columns allow.

    Guarantee: ε-DP (docs/theory/tables.md, section 7). Cost: O(n²) time, O(n) memory, at most 2n - 1 terms.
    ``selector="best"`` tries all orders and keeps the one with the least count error under ``z``: ``z`` is
    private or public already, so that choice costs nothing.
    """
    if selector not in get_args(Selector):
        raise InputError(f"selector must be one of {', '.join(get_args(Selector))}, not {selector!r}.")
    step = float(unit.per_step(epsilon))
    require_scales(step)

    costs = loss_rows(loss, len(z))

    def peeled(chosen: Selector) -> tuple[Peeled, float]:
        return peel(z, target, fill_order(target, chosen), step, costs)

    if selector == "best":
        with ThreadPoolExecutor() as pool:  # compiled, without the interpreter's lock
            terms, _ = min(pool.map(peeled, _ORDERS), key=lambda result: result[1])
    else:
        terms, _ = peeled(selector)
    return scale_mechanism(PeeledTerms(len(z), *terms), target, epsilon, unit, simulated)


# The row-by-row optimum of a table for every symmetric f-DP guarantee, and the noise behind it.
#
# A trade-off function ``f`` says how well a test may tell neighbours apart: with a level of at most ``a`` it misses with a
# probability of at least ``f(a)`` (Dong, Roth and Su 2022). For one step there is noise that uses up ``f`` exactly (canonical noise,
# Awan and Vadhan 2023). Adding it to a count and mapping the sum monotonely to a given output distribution is optimal for every
# Monge loss (docs/theory/tables.md, section 10). It is kept for comparison: nothing here draws or releases.

TradeOff = Callable[[float], float]
"""A symmetric trade-off function: convex, continuous, not rising, its own inverse."""

_STEPS = 200  # of a bisection: more than a float has digits


def approximate_trade_off(epsilon: Number, delta: Number = 0) -> TradeOff:
    """The trade-off function of (ε, δ)-DP.

    >>> round(approximate_trade_off(1, "0.1")(0.2), 4)
    0.3563
    """
    grow, slack = exp(float(positive(epsilon, "epsilon"))), float(exact(delta, "delta"))
    return lambda a: max(0.0, 1 - slack - grow * a, (1 - slack - a) / grow)


def gaussian_trade_off(mu: Number) -> TradeOff:
    """The trade-off function of μ-Gaussian DP.

    >>> round(gaussian_trade_off(1)(0.5), 4)
    0.1587
    """
    from scipy.special import ndtr, ndtri

    shift = float(positive(mu, "mu"))
    return lambda a: float(ndtr(ndtri(1 - a) - shift)) if 0 < a < 1 else float(a <= 0)


class CanonicalNoise:
    """Noise whose distribution function ``F`` has ``F(x − 1) = f(1 − F(x))``, linear between −1/2 and 1/2.

    >>> noise = CanonicalNoise(approximate_trade_off(1))
    >>> round(noise.cdf(0.0), 3), round(noise.cdf(-1.0) / noise.cdf(0.0), 4)
    (0.5, 0.3679)
    """

    def __init__(self, trade_off: TradeOff) -> None:
        self.trade_off = trade_off
        low, high = 0.0, 0.5  # the fixed point of f: f(c) = c
        for _ in range(_STEPS):
            middle = (low + high) / 2
            low, high = (middle, high) if trade_off(middle) > middle else (low, middle)
        self.fixed = low

    def cdf(self, x: float) -> float:
        """The probability of at most ``x``."""
        steps = int(np.floor(x + 0.5))
        inner = x - steps
        value = self.fixed * (0.5 - inner) + (1 - self.fixed) * (inner + 0.5)
        for _ in range(abs(steps)):
            value = 1 - self.trade_off(value) if steps > 0 else self.trade_off(1 - value)
        return value


def row_optimum(z: DistributionLike, trade_off: TradeOff, target: DistributionLike | None = None) -> Floats:
    """The f-DP matrix with the output distribution ``target`` (``z`` unless given) that is best for every Monge loss.

    ``z`` are the probabilities of the counts ``0..n−1``. Row ``i`` is the law of what is published for a count ``i``: canonical noise
    is added to it, and the sum goes to the first ``j`` whose threshold is not below it.

    >>> row_optimum([0.5, 0.5], approximate_trade_off(1)).round(3)
    array([[0.731, 0.269],
           [0.269, 0.731]])
    """
    p = probabilities_of(z, "z")
    expected = p if target is None else probabilities_of(target, "target")
    noise = CanonicalNoise(trade_off)
    reached = np.zeros((len(p), len(expected) + 1))
    for j, total in enumerate(np.cumsum(expected)[:-1]):
        reached[:, j + 1] = _threshold_column(p, float(total), noise)
    reached[:, -1] = 1.0
    return np.diff(np.maximum.accumulate(reached, axis=1), axis=1)


def _threshold_column(p: Floats, total: float, noise: CanonicalNoise) -> Floats:
    """``F(t − i)`` for every count ``i``, with the ``t`` at which its mean over the counts is ``total``."""
    counts = range(len(p))

    def column(t: float) -> Floats:
        return np.array([noise.cdf(t - i) for i in counts])

    if total <= 0 or total >= 1:
        return np.full(len(p), float(total >= 1))
    low, high = -1.0, float(len(p))
    while p @ column(low) > total:
        low *= 2
    while p @ column(high) < total:
        high *= 2
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if p @ column(middle) >= total else (middle, high)
    return column(high)
