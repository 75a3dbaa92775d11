"""Privacy of whole releases of tiny tables, exactly: all measurements of the code that releases, and their laws."""

from __future__ import annotations

import dataclasses
import itertools
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from isotone.noise import UnevenLine
from isotone.privacy.draws import SeededDraws
from isotone.tables import thresholds as thresholds_module
from isotone.tables.matrices.geometric import geometric_matrix
from isotone.tables.two_stage import TwoStageMechanism

UPPER, SIZE = 7, 2
FIRST = (
    *itertools.product((0,), (0,), (0, 300), (0, 300), (0, 300)),
    (0, 1, 1, 2, 2),
    (-3, 0, 5, 1, 2),
    (0, 0, 150, 0, 1),
)
"""Noisy numbers at the first thresholds. Those of hundreds lead to more thresholds between them, the others do not."""
EVERYWHERE = ((0, 0, 0, 0, 0, 0, 0), (0, 1, 1, 2, 2, 2, 2), (-3, 0, 5, 1, 2, 300, 2))
"""The same where all thresholds are first ones."""
NEXT = (
    -3,
    0,
    1,
    SIZE + 3,
)  # at the others: below, at and above all true ones; the law is a ratio of powers, so more tells nothing new


class Recorder(SeededDraws):
    """Leads to given numbers at the first thresholds, keeps what noise is asked for with which rates, and adds none."""

    def __init__(self, first: NDArray[np.int64]) -> None:
        super().__init__(np.random.default_rng(0))
        self.noise, self.rates = [first], list[float]()

    def geometrics(self, rate: Fraction, size: int) -> NDArray[np.int64]:
        self.rates.append(float(rate))
        return self.noise.pop() if self.noise else np.zeros(size, np.int64)

    def uneven(self, values: NDArray[np.int64], line: UnevenLine) -> NDArray[np.int64]:
        self.values = values
        self.law = np.log(geometric_matrix(len(line.weights) + 1, line.rates))
        return values


@dataclass(frozen=True)
class Law:
    """What a table gives, once the first noisy numbers are known: log-probabilities of all that is drawn independently."""

    finer: tuple[int, ...]
    first: float
    rest: tuple[NDArray[np.float64], ...]


def law_of(mechanism: TwoStageMechanism, table: tuple[int, ...], wanted: tuple[int, ...]) -> Law:
    """From what the code that releases adds noise to."""
    spent = mechanism.measurement(len(table))
    below = np.cumsum(np.bincount(table, minlength=UPPER + 1))[list(spent.places)]
    draws = Recorder(np.array(wanted) - below)
    made, cumulative, _ = spent.measure(np.array(table), draws)
    assert tuple(cumulative[: len(wanted)]) == wanted
    first = -sum(draws.rates[:1]) * float(np.sum(np.abs(np.array(wanted) - below)))
    others = [-draws.rates[1] * np.abs(np.array(NEXT) - true) for true in cumulative[len(wanted) :]]
    return Law(made.finer, first, (*others, *(draws.law[value] for value in draws.values.tolist())))


def loss(one: Law, two: Law) -> float:
    """The largest log-ratio of the probabilities of one outcome. All that is independent adds up."""
    assert one.finer == two.finer  # chosen by the first noisy numbers, which are the same
    ratios = [a - b for a, b in zip(one.rest, two.rest, strict=True)]
    most, least = (
        one.first - two.first + sum(float(end(each)) for each in ratios) for end in (np.max, np.min)
    )
    return max(most, -least)


FEW: dict[Any, tuple[int, ...]] = {
    "counts": (0, 1, 2, 4, 6),
    "both": (0, 1, 2, 4, 6),
    "distribution": (0, 1, 2, 4, 6),
}
"""The thresholds of points of the scale where categories are few."""
MANY: dict[Any, tuple[int, ...]] = {
    0: (0, 1, 2, 4, 6),
    "0.02": (0, 1, 2, 4, 6),
    "0.1": (0, 1, 2, 4, 6),
    "0.3": (0, 1, 2, 4, 6),
    "0.5": (0, 1, 2, 3, 4, 5, 6),
    1: (0, 1, 2, 3, 4, 5, 6),
}
"""Those that the rule chooses where they are many."""


@pytest.fixture(params=[*(("few", name) for name in FEW), *(("many", name) for name in MANY)], ids=str)
def mechanism(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> TwoStageMechanism:
    """So that tables of two categories are measured like large ones."""
    size, emphasis = request.param
    monkeypatch.setattr(thresholds_module, "SMALL", 1)
    if size == "many":
        monkeypatch.setattr(thresholds_module, "FEW", 1)
    made = TwoStageMechanism(UPPER, "2/5", emphasis)
    assert made.measurement(SIZE).places == (FEW if size == "few" else MANY)[emphasis]
    return made


def firsts(mechanism: TwoStageMechanism) -> tuple[tuple[int, ...], ...]:
    """What the first noisy numbers may be."""
    return {5: FIRST, 7: EVERYWHERE}[len(mechanism.measurement(SIZE).places)]


def losses(mechanism: TwoStageMechanism, pairs: Any) -> list[float]:
    """The largest loss of each pair of tables over everything that may come out."""
    law = cache(lambda table, wanted: law_of(mechanism, table, wanted))
    wanted = firsts(mechanism)
    return [max(loss(law(one, each), law(two, each)) for each in wanted) for one, two in pairs]


def worst_loss(mechanism: TwoStageMechanism, pairs: Any) -> float:
    return max(losses(mechanism, pairs))


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
    assert losses(mechanism, steps()) == pytest.approx([0.4] * len(steps()), abs=1e-9)


def test_more_thresholds_are_measured_where_the_first_numbers_say_so(mechanism: TwoStageMechanism) -> None:
    chosen = {law_of(mechanism, (3, 5), wanted).finer for wanted in firsts(mechanism)}
    # a share of 0.03 has noise beyond 300 categories: nothing is worth it
    worth = mechanism.measurement(SIZE).finer_share > Fraction(5, 100)
    assert chosen == ({(), (3,), (5,), (3, 5)} if worth else {()})


def test_a_count_that_does_not_pay_for_a_later_threshold_would_be_seen(
    mechanism: TwoStageMechanism, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = thresholds_module.Thresholds.line.func  # type: ignore[attr-defined]
    without = property(lambda self: plain(dataclasses.replace(self, finer=())))
    monkeypatch.setattr(thresholds_module.Thresholds, "line", without)
    worth = mechanism.measurement(SIZE).finer_share > Fraction(5, 100)
    assert (worst_loss(mechanism, steps()) > 0.4 + 1e-3) == worth


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
