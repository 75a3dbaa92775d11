"""Mechanisms on orders have the one shape: guarantee, error without data, release, simulate."""

from __future__ import annotations

import math
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.support.curve_outcomes import records_of

from isotone.curves.losses import parse_loss
from isotone.curves.poset_regression import (
    LEVELS,
    MeasuredElements,
    OrderMechanism,
    PosetProblem,
    PosetTree,
    mechanism_for,
    rule_for,
)
from isotone.curves.posterior import noisy_means
from isotone.curves.problem import FINE, CurveSetting
from isotone.curves.surface import ProductOrder
from isotone.mechanism import Mechanism
from isotone.noise import Simulated
from isotone.order import Poset

FOREST = Poset("abcd", [("a", "c"), ("b", "c"), ("c", "d")])
ROWS = [(0, 0), (1, FINE // 4), (2, FINE // 2), (3, FINE)] * 20


def made(method: str, loss: Any = "absolute", epsilon: int = 1, order: Any = FOREST) -> OrderMechanism:
    plan = PosetProblem(parse_loss(loss), (Fraction(0), Fraction(1)), order, method=method, levels=3)
    return mechanism_for(plan.sized(80, CurveSetting(Fraction(epsilon))))


EVERY = [
    ("additive", "absolute"),
    ("additive", "squared"),
    ("threshold", "squared"),
    ("baseline", "logistic"),
    ("coupling", "absolute"),
]


@pytest.mark.parametrize(("method", "loss"), EVERY)
def test_every_mechanism_has_the_one_shape(method: str, loss: str) -> None:
    mechanism = made(method, loss)
    assert isinstance(mechanism, Mechanism)
    assert mechanism.guarantee.epsilon == 1
    released = mechanism.release(records_of(ROWS))
    simulated = mechanism.simulate(records_of(ROWS), np.random.default_rng(0))
    assert isinstance(simulated, Simulated)
    assert not isinstance(released, Simulated)
    for values in (released, np.asarray(simulated)):
        assert (values[FOREST.cover_pairs[:, 0]] <= values[FOREST.cover_pairs[:, 1]]).all()


def problem(method: str = "auto", loss: Any = "squared", levels: int | None = None) -> PosetProblem:
    return PosetProblem(parse_loss(loss), (Fraction(0), Fraction(1)), FOREST, method=method, levels=levels)


def test_all_elements_are_measured_where_there_are_many_records() -> None:
    once = CurveSetting(Fraction(1))
    assert rule_for(problem().sized(48, once)).name == "all elements"
    assert isinstance(mechanism_for(problem(loss="logistic").sized(48, once)), MeasuredElements)
    for few in (
        rule_for(problem().sized(47, once)).name,
        rule_for(problem().sized(48, CurveSetting(Fraction(24, 100)))).name,
        rule_for(problem(loss="absolute").sized(48, once)).name,
        rule_for(problem(levels=3).sized(48, once)).name,
        rule_for(problem("additive").sized(48, once)).name,
    ):
        assert few == "additive"


def test_all_elements_share_nothing_and_are_projected() -> None:
    """Sums below 0 count as 0; the nearest monotone values by a plain search on a grid would be these."""

    class Scripted:
        def __init__(self) -> None:
            self.rates: list[Fraction] = []

        def perturb(self, values: Any, rate: Fraction) -> Any:
            self.rates.append(rate)
            return values + np.array([[0, 0, -9 * FINE, 0], [0, 0, 0, 0]])

    draws: Any = Scripted()
    built = mechanism_for(problem().sized(48, CurveSetting(Fraction(1))))
    rows = [(0, FINE)] * 6 + [(1, 0)] * 5 + [(2, FINE)] * 4 + [(3, FINE)] * 7
    found = built.draw(records_of(rows), draws)
    assert draws.rates == [Fraction(1, FINE)]
    # a and b are below c, and c below d: a (6 of 6 records high) and c (nothing seen) are pooled
    pooled = (6 * 6.5 / 7 + 0.5 * 0.5) / 6.5
    np.testing.assert_allclose(found, [pooled, 0.5 / 6, pooled, max(pooled, 7.5 / 8)], atol=1e-9)


@pytest.mark.parametrize(("method", "loss"), EVERY)
def test_the_error_needs_no_data_and_falls_with_epsilon(method: str, loss: str) -> None:
    assert made(method, loss, 1).error().mean(100) > made(method, loss, 8).error().mean(100) > 0


def test_the_error_of_a_tree_counts_ideals() -> None:
    """A grid of 2 × 3 has 10 ideals: L·T²·ln 10/(2ε) and 2^−T a record."""
    bound = made("additive", order=ProductOrder((2, 3))).error()
    assert bound.noise == pytest.approx(9 * math.log(10) / 2)
    assert bound.per_record == pytest.approx(1 / 8)


def test_the_measured_excess_stays_below_the_bound() -> None:
    mechanism = made("additive", order=ProductOrder((3, 3)))
    assert isinstance(mechanism, PosetTree)
    rng = np.random.default_rng(4)
    rows = [(int(x), int(x) * FINE // 8) for x in rng.integers(0, 9, 400)]
    losses = []
    for _ in range(20):
        values = np.asarray(mechanism.simulate(records_of(rows), rng))
        losses.append(sum(abs(values[x] - level / FINE) for x, level in rows))
    # the best monotone function has no loss, as the data rise along the order's numbering
    assert np.mean(losses) <= mechanism.error().noise + 400 * mechanism.error().per_record


def test_noise_in_the_sums_of_a_part_costs_what_is_stated() -> None:
    """Excess of at most 2S + r/2 for noises of total size S, whatever they are; here in records, with budget 1/2."""
    rng, setting, share = np.random.default_rng(9), CurveSetting(Fraction(1)), Fraction(1, 2)
    faintest = 1.0  # half the scale of the noise
    closest = 0.0
    for _ in range(3000):
        count = int(rng.integers(0, 12))
        levels = rng.choice([0, FINE // 3, FINE], count)
        noise = np.rint(rng.normal(0, rng.choice([0.2, 1, 4]), (2, 1)) * FINE).astype(np.int64)
        choices: Any = Added(noise)
        records = records_of([(0, int(u)) for u in levels])
        mean, _ = noisy_means(records, np.zeros(1, np.int64), setting, share, choices)
        value, true = np.clip(mean[0], 0, 1), levels.mean() / FINE if count else 0.0
        bound = 2 * np.abs(noise).sum() / FINE + faintest / 2
        assert count * (value - true) ** 2 <= bound + 1e-9
        closest = max(closest, count * (value - true) ** 2 / bound)
    assert closest > 0.3


class Added:
    """Choices that add given noise."""

    def __init__(self, noise: np.ndarray) -> None:
        self.noise = noise

    def perturb(self, values: np.ndarray, rate: Fraction) -> np.ndarray:
        return values + self.noise


def test_a_tree_is_half_as_deep_as_the_strength_has_bits() -> None:
    """Two levels at least, and not more than all; what is asked for goes first."""
    for strength, levels in ((1, 2), (16, 2), (2**6, 3), (2**9, 4), (2**12, 6), (2.0**200, LEVELS)):
        stated: Any = SimpleNamespace(
            levels=None, strength=strength, setting=None, arrangement=None, slopes=None, steepest=1.0
        )
        assert PosetTree.of(stated).levels == levels
        stated.levels = 5
        assert PosetTree.of(stated).levels == 5
