"""Privacy of whole releases of tiny tables, exactly: all measurements of the code that releases, and their laws."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from isotone.noise import UnevenLine
from isotone.privacy.draws import SeededDraws
from isotone.tables import thresholds as thresholds_module
from isotone.tables.matrices.geometric import geometric_matrix
from isotone.tables.two_stage import TwoStageMechanism

UPPER, SIZE = 4, 2
REACH = (
    3  # of the cumulative noise that is looked at: its law is a ratio of powers, so more tells nothing new
)


class Recorder(SeededDraws):
    """Keeps what noise is asked for, with which rates, and adds none."""

    def __init__(self) -> None:
        super().__init__(np.random.default_rng(0))
        self.rate = 0.0

    def geometrics(self, rate: Fraction, size: int) -> NDArray[np.int64]:
        self.rate = float(rate)
        return np.zeros(size, np.int64)

    def uneven(self, values: NDArray[np.int64], line: UnevenLine) -> NDArray[np.int64]:
        self.values = values
        self.law = np.log(geometric_matrix(len(line.weights) + 1, line.rates))
        return values


def log_law(mechanism: TwoStageMechanism, table: tuple[int, ...]) -> NDArray[np.float64]:
    """Of every outcome of both measurements, from what the code that releases adds noise to."""
    draws = Recorder()
    spent = mechanism.stages(len(table)).thresholds
    cumulative, _ = spent.measure(np.array(table), draws)
    first, second = outcomes(len(spent.places))
    noise = -draws.rate * np.abs(first - cumulative).sum(axis=1)
    counts = sum(draws.law[value, second[:, at]] for at, value in enumerate(draws.values.tolist()))
    return noise[:, None] + counts


def outcomes(places: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Noisy cumulative numbers below, at and above all true ones, and every pair of clamped noisy counts."""
    first = list(itertools.product((-REACH, 0, 1, SIZE + REACH), repeat=places))
    second = list(itertools.product(range(UPPER + 1), repeat=SIZE))
    return np.array(first, np.int64).reshape(len(first), places), np.array(second)


@pytest.fixture(params=["counts", "both", "distribution"])
def mechanism(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> TwoStageMechanism:
    monkeypatch.setattr(
        thresholds_module, "SMALL", 1
    )  # so that tables of two categories are measured like large ones
    return TwoStageMechanism(UPPER, "2/5", request.param)


def worst_loss(mechanism: TwoStageMechanism, pairs: Any) -> float:
    laws: dict[tuple[int, ...], NDArray[np.float64]] = {}
    for table in itertools.chain.from_iterable(pairs):
        if table not in laws:
            laws[table] = log_law(mechanism, table)
    return max(float(np.max(np.abs(laws[one] - laws[two]))) for one, two in pairs)


def steps() -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """All tables of two categories, and the tables one step above them."""
    tables = itertools.product(range(UPPER + 1), repeat=SIZE)
    return [
        (table, (*table[:at], table[at] + 1, *table[at + 1 :]))
        for table in tables
        for at in range(SIZE)
        if table[at] < UPPER
    ]


def test_one_step_costs_epsilon_and_no_less(mechanism: TwoStageMechanism) -> None:
    assert mechanism.stages(SIZE).thresholds.places
    assert worst_loss(mechanism, steps()) == pytest.approx(0.4, abs=1e-9)


def test_every_single_step_uses_all_of_epsilon(mechanism: TwoStageMechanism) -> None:
    for step in range(UPPER):
        assert worst_loss(mechanism, [((step, 2), (step + 1, 2))]) == pytest.approx(0.4, abs=1e-9)


def test_a_person_of_two_steps_costs_twice_as_much(mechanism: TwoStageMechanism) -> None:
    pairs = [((a, b), (a + 1, b + 1)) for a in range(UPPER) for b in range(UPPER)]
    pairs += [((a, b), (a + 1, b - 1)) for a in range(UPPER) for b in range(1, UPPER + 1)]
    assert worst_loss(mechanism, pairs) <= 0.8 + 1e-9


def test_a_fault_in_the_noise_of_counts_would_be_seen(
    mechanism: TwoStageMechanism, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With all of ε on the counts and a threshold measured besides, a step costs more than ε."""
    plain = thresholds_module.Thresholds.line.func  # type: ignore[attr-defined]

    def greedy(self: Any) -> UnevenLine:
        line = plain(self)
        return UnevenLine(line.unit, (line.outside,) * len(line.weights), line.outside)

    monkeypatch.setattr(thresholds_module.Thresholds, "line", property(greedy))
    assert worst_loss(mechanism, steps()) > 0.4 + 1e-3


def test_strata_touch_one_step_each(mechanism: TwoStageMechanism) -> None:
    """Two strata of one category: a step changes the measurements of one, and costs what it costs there."""
    seen: list[tuple[int, ...]] = []

    class Spy(SeededDraws):
        def uneven(self, values: NDArray[np.int64], line: UnevenLine) -> NDArray[np.int64]:
            seen.append(tuple(values))
            return values

    mechanism.run(np.array([1, 3]), Spy(np.random.default_rng(0)), [np.array([0]), np.array([1])])
    assert seen == [(1,), (3,)]
