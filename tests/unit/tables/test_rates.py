"""The noise of every table mechanism is drawn at ε for each step: shared by contributions, and twice for replacing."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from isotone import noise
from isotone.privacy.draws import ExactDraws
from isotone.tables import TwoStageMechanism, fixed_point, staircase, truncated_geometric, unfixed_optimum

EPSILON = Fraction(3, 5)
UNITS = [
    ({}, 1),
    ({"contributions": 3}, 3),
    ({"neighbours": "replace"}, 2),
    ({"contributions": 3, "neighbours": "replace"}, 6),
]


@pytest.fixture
def rates(monkeypatch):
    """The rates at which each sampler was asked, in turn; it answers with zeros."""
    asked: list[tuple[str, Fraction]] = []

    def spied(name):
        def draw(rate: Fraction, size: int) -> Any:
            asked.append((name, rate))
            return np.zeros(size, np.int64)

        return draw

    monkeypatch.setattr(noise, "two_sided_geometrics", spied("two_sided_geometrics"))
    monkeypatch.setattr(ExactDraws, "one_sided_geometrics", staticmethod(spied("geometrics")))

    def choose(scores: Any, rate: Fraction) -> int:
        asked.append(("choice", rate))
        return 0

    monkeypatch.setattr(noise, "choose_exponential", choose)
    return asked


SHARES = [0.4, 0.3, 0.2, 0.1]
MATRICES = {
    "truncated geometric": lambda unit: truncated_geometric(4, EPSILON, **unit),
    "fixed point": lambda unit: fixed_point(SHARES, EPSILON, **unit),
    "unfixed optimum": lambda unit: unfixed_optimum(SHARES, EPSILON, **unit),
}


@pytest.mark.parametrize(("unit", "steps"), UNITS)
@pytest.mark.parametrize("name", MATRICES)
def test_geometric_noise_before_a_remap(name, unit, steps, rates):
    mechanism = MATRICES[name](unit)
    mechanism.release([0, 1, 2, 3, 3])
    assert rates == [("two_sided_geometrics", EPSILON / steps)]
    assert mechanism.step == pytest.approx(float(EPSILON) / steps)
    assert mechanism.privacy_loss() <= float(EPSILON) / steps + 1e-9  # of one step


@pytest.mark.parametrize(("unit", "steps"), UNITS)
def test_staircase_noise(unit, steps, rates):
    staircase(4, EPSILON, **unit).release([0, 1, 2])
    assert rates == [("geometrics", EPSILON / steps), ("geometrics", EPSILON / steps / 2)]


@pytest.mark.parametrize(("unit", "steps"), UNITS)
@pytest.mark.parametrize("size", [5, 60])
def test_the_noise_of_a_table(unit, steps, size, rates, monkeypatch):
    lines: list[Any] = []
    monkeypatch.setattr(noise, "uneven_geometrics", lambda values, line: lines.append(line) or values)
    mechanism = TwoStageMechanism(6, EPSILON, **unit)
    mechanism.release(np.arange(size) % 4)
    made = mechanism.measurement(size)
    assert rates == ([("two_sided_geometrics", made.rate)] if size == 60 else [])
    (line,) = lines
    assert line == made.line
    assert steps * (line.unit * line.outside) == EPSILON
    for step, weight in enumerate(line.weights):
        measured = made.rate if step in made.places else 0
        assert steps * (line.unit * weight + measured) == EPSILON


@pytest.mark.parametrize(("unit", "steps"), UNITS)
def test_the_noise_of_a_table_without_a_bound(unit, steps, rates, monkeypatch):
    lines: list[Any] = []
    monkeypatch.setattr(
        noise, "uneven_geometrics", lambda values, line: lines.append((values, line)) or values
    )
    mechanism = TwoStageMechanism(None, EPSILON, **unit)
    table = np.append(np.arange(99) % 4, 50)
    full = mechanism.release_in_full(table)
    step = EPSILON / steps
    made = mechanism.measurement(100, full.upper)
    climb = [("two_sided_geometrics", step / 2)] * made.climbed
    others = [("two_sided_geometrics", made.rate)] * (len(made.places) > made.climbed)
    assert rates == [*climb, *others, ("two_sided_geometrics", step / 10)]
    ((values, line),) = lines
    assert values.tolist() == table.tolist()  # counts beyond the private bound are not cut
    assert line.unit * line.outside == step * Fraction(9, 10)


@pytest.mark.parametrize(("unit", "steps"), UNITS)
@pytest.mark.parametrize("constructor", ["heuristic", "lp"])
def test_published_constructions_are_those_of_epsilon_per_step(constructor, unit, steps):
    shared = fixed_point(SHARES, EPSILON, constructor=constructor, **unit)
    alone = fixed_point(SHARES, EPSILON / steps, constructor=constructor)
    assert shared.matrix() == pytest.approx(alone.matrix(), abs=1e-9)
