"""The guarantee of the released integers, checked by computing their whole distribution on tiny orders.

Strategies are rounded so coarsely here that rounding matters: what is tested is the exact integer arithmetic.
"""

from __future__ import annotations

import math
from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import ndtr
from tests.support.filters import filters

from isotone.counts.order_gaussian import shape_of
from isotone.linear.strategy import Square
from isotone.order import Poset
from isotone.privacy.calibration import sigma_squared, sigma_squared_zcdp
from isotone.privacy.guarantee import Neighbours

ORDERS = [Poset.chain("a"), Poset.chain("ab"), Poset.antichain("ab")]
NEIGHBOURS: tuple[Neighbours, ...] = ("add-remove", "replace")
Law = dict[tuple[int, ...], float]


def coarse_strategy(P: Poset, neighbours: Neighbours, bits: int = 3) -> Square:
    strategy = shape_of(P, None, neighbours).strategy(bits)
    assert strategy is not None
    return strategy


def shifts(P: Poset, strategy: Square, neighbours: Neighbours) -> list[NDArray[np.int64]]:
    """How one record moves the counts (and the number of records, where it is released)."""
    records = filters(P)
    if neighbours == "replace":
        return [a - b for a in records for b in records if np.any(a != b)]
    tail = [1] if strategy.rooted else []
    return [np.append(J, tail).astype(np.int64) for J in records]


def rows_moved(strategy: Square, shift: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.rint(strategy.multiply(shift[None, :].astype(float))[0]).astype(np.int64)


def discrete_gaussian_log_law(variance: float, reach: int) -> NDArray[np.float64]:
    exponents = -(np.arange(-reach, reach + 1) ** 2) / (2 * variance)
    return exponents - np.logaddexp.reduce(exponents)


def discrete_gaussian_law(variance: float, reach: int) -> NDArray[np.float64]:
    return np.exp(discrete_gaussian_log_law(variance, reach))


def rounded_gaussian_law(variance: float, reach: int) -> NDArray[np.float64]:
    edges = np.arange(-reach, reach + 2) - 0.5
    return np.diff(ndtr(edges / math.sqrt(variance)))


def renyi(law: NDArray[np.float64], moved: NDArray[np.int64], alpha: float) -> float:
    """The divergence of order alpha between independent rows, given by a log law, and the same rows moved."""
    total = 0.0
    for by in moved.tolist():
        by = abs(by)
        if by == 0:
            continue
        p, q = law[by:], law[:-by]
        total += float(np.logaddexp.reduce(alpha * p + (1 - alpha) * q)) / (alpha - 1)
    return total


def excess(law: NDArray[np.float64], moved: NDArray[np.int64], epsilon: float) -> float:
    """The smallest delta for which the rows are (epsilon, delta)-DP against the same rows moved."""
    p, q = np.ones(1), np.ones(1)
    for by in moved.tolist():
        shifted = np.roll(law, by)
        p, q = np.multiply.outer(p, law).ravel(), np.multiply.outer(q, shifted).ravel()
    return float(np.sum(np.maximum(p - math.exp(epsilon) * q, 0)))


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@pytest.mark.parametrize("P", ORDERS, ids=str)
def test_the_noisy_rows_are_concentrated_as_guaranteed_and_less_noise_is_caught(
    P: Poset, neighbours: Neighbours
) -> None:
    strategy = coarse_strategy(P, neighbours)
    rho = Fraction(1, 2)
    variance = float(sigma_squared_zcdp(rho, strategy.sensitivity_squared))
    reach = int(12 * math.sqrt(variance) + 2**7)
    moves = [rows_moved(strategy, shift) for shift in shifts(P, strategy, neighbours)]
    for alpha in (1.5, 2.0, 4.0, 8.0):
        law = discrete_gaussian_log_law(variance, reach)
        assert max(renyi(law, moved, alpha) for moved in moves) <= float(rho) * alpha * (1 + 1e-9)
        too_little = discrete_gaussian_log_law(0.9 * variance, reach)
        assert max(renyi(too_little, moved, alpha) for moved in moves) > float(rho) * alpha


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@pytest.mark.parametrize("P", ORDERS, ids=str)
def test_the_noisy_rows_have_the_guaranteed_epsilon_and_delta_and_less_noise_is_caught(
    P: Poset, neighbours: Neighbours
) -> None:
    strategy = coarse_strategy(P, neighbours)
    epsilon, delta = 1.0, 0.02
    variance = float(sigma_squared(1, "0.02", strategy.sensitivity_squared))
    reach = int(5.5 * math.sqrt(variance) + 20)
    moves = {tuple(rows_moved(strategy, shift).tolist()) for shift in shifts(P, strategy, neighbours)}
    longest = sorted(moves, key=lambda row: -sum(x * x for x in row))[:2]
    for moved in (np.array(row) for row in longest):
        assert excess(rounded_gaussian_law(variance, reach), moved, epsilon) <= delta * (1 + 1e-4)
    less = rounded_gaussian_law(0.81 * variance, reach)
    assert max(excess(less, np.array(row), epsilon) for row in longest) > delta


def released_law(strategy: Square, law: NDArray[np.float64]) -> Law:
    """The distribution of the integers that leave the mechanism, when all counts are zero."""
    reach = law.size // 2
    outcomes: Law = defaultdict(float)
    for place in np.ndindex(*(law.size,) * strategy.rows):
        chance = float(np.prod(law[list(place)]))
        if chance > 1e-16:
            noise = np.array(place, dtype=np.int64) - reach
            outcomes[tuple(strategy.solve_integers(noise).tolist())] += chance
    return outcomes


@pytest.mark.parametrize("P", [Poset.chain("a"), Poset.antichain("ab")], ids=str)
def test_the_released_integers_keep_the_guarantee_of_the_rows(P: Poset) -> None:
    strategy = coarse_strategy(P, "add-remove", bits=2)
    rho, alpha = 1.0, 3.0
    variance = float(sigma_squared_zcdp(1, strategy.sensitivity_squared))
    outcomes = released_law(strategy, discrete_gaussian_law(variance, int(5 * math.sqrt(variance))))
    assert sum(outcomes.values()) == pytest.approx(1.0, abs=1e-3)
    for shift in shifts(P, strategy, "add-remove"):
        moment = 0.0
        for outcome, chance in outcomes.items():
            other = outcomes.get(tuple((np.array(outcome) - shift).tolist()), 0.0)
            if other > 1e-9 and chance > 1e-9:
                moment += chance**alpha * other ** (1 - alpha)
        assert math.log(moment) / (alpha - 1) <= rho * alpha * (1 + 1e-6)


def test_neighbouring_counts_can_give_the_same_outputs() -> None:
    # with no structure in the support, no output tells the two neighbours apart for sure
    strategy = coarse_strategy(Poset.antichain("ab"), "add-remove", bits=2)
    outcomes = released_law(strategy, discrete_gaussian_law(9.0, 12))
    near = {o for o in outcomes if max(map(abs, o)) <= 1}
    assert len(near) == 27
