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
from isotone.tables import two_stage
from isotone.tables.matrices.geometric import geometric_matrix
from isotone.tables.two_stage import TwoStageMechanism

UPPER, SIZE = 4, 2
REACH = (
    3  # of the cumulative noise that is looked at: its law is a ratio of powers, so more tells nothing new
)


class Recorder(SeededDraws):
    """Keeps the laws of both measurements, and answers with what the test wants to be measured."""

    def __init__(self, outcome: tuple[NDArray[np.int64], NDArray[np.int64]]) -> None:
        super().__init__(np.random.default_rng(0))
        self.outcome = outcome
        self.log_law = 0.0
        self.asked: list[str] = []

    def geometrics(self, rate: Fraction, size: int) -> NDArray[np.int64]:
        self.rate = float(rate)
        self.asked.append("cumulative")
        return np.zeros(size, np.int64)

    def uneven(self, values: NDArray[np.int64], line: UnevenLine) -> NDArray[np.int64]:
        self.asked.append("counts")
        law = np.log(geometric_matrix(len(line.weights) + 1, line.rates))
        self.log_law += float(sum(law[value, to] for value, to in zip(values, self.outcome[1], strict=True)))
        return self.outcome[1]


def log_probability(
    mechanism: TwoStageMechanism, table: tuple[int, ...], outcome: tuple[NDArray[np.int64], NDArray[np.int64]]
) -> float:
    """Of both measurements at once. What the code adds noise to is what it says it measures."""
    draws = Recorder(outcome)
    spent = mechanism.stages(len(table)).thresholds
    cumulative, _ = two_stage._measure(np.array(table), spent, draws)
    if spent.places:
        draws.log_law -= draws.rate * float(np.abs(outcome[0] - cumulative).sum())
    return draws.log_law


def outcomes(places: int) -> Any:
    """Noisy cumulative numbers below, at and above all true ones, with every pair of clamped noisy counts."""
    for first in itertools.product((-REACH, 0, 1, SIZE + REACH), repeat=places):
        for second in itertools.product(range(UPPER + 1), repeat=SIZE):
            yield np.array(first), np.array(second)


@pytest.fixture(params=["counts", "both", "distribution"])
def mechanism(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> TwoStageMechanism:
    monkeypatch.setattr(
        thresholds_module, "SMALL", 1
    )  # so that tables of two categories are measured like large ones
    return TwoStageMechanism(UPPER, "2/5", request.param)


def worst_loss(mechanism: TwoStageMechanism, pairs: Any) -> float:
    found = list(outcomes(len(mechanism.stages(SIZE).thresholds.places)))
    laws: dict[tuple[int, ...], NDArray[np.float64]] = {}
    worst = 0.0
    for pair in pairs:
        for table in pair:
            if table not in laws:
                laws[table] = np.array([log_probability(mechanism, table, outcome) for outcome in found])
        worst = max(worst, float(np.max(np.abs(laws[pair[0]] - laws[pair[1]]))))
    return worst


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
