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
@pytest.mark.parametrize("percentile", [None, 90])
@pytest.mark.parametrize("size", [5, 60])
def test_the_stages_of_a_table(unit, steps, percentile, size, rates, monkeypatch):
    lines: list[Any] = []
    monkeypatch.setattr(noise, "uneven_geometrics", lambda values, line: lines.append(line) or values)
    mechanism = TwoStageMechanism(6, EPSILON, percentile=percentile, **unit)
    mechanism.release(np.arange(size) % 4)
    stages = mechanism.stages(size)
    chosen = [] if percentile is None else [("choice", stages.bound / steps)]
    if percentile is not None:  # the private bound is 1, the first to choose from
        stages = mechanism.stages(size, 1)
    first = [("two_sided_geometrics", stages.thresholds.rate)] if size == 60 else []
    assert rates == chosen + first
    (line,) = lines
    assert line == stages.thresholds.line
    assert steps * (line.unit * line.outside) + stages.bound == EPSILON
    for step, weight in enumerate(line.weights):
        measured = stages.thresholds.rate if step in stages.thresholds.places else 0
        assert steps * (line.unit * weight + measured) + stages.bound == EPSILON


def test_a_count_above_the_private_bound_is_cut_before_its_noise(monkeypatch):
    """With noise of -1 everywhere: 9 is cut to the bound of 1 and becomes 0; cut after the noise it would be 1."""
    monkeypatch.setattr(noise, "choose_exponential", lambda scores, rate: 0)
    monkeypatch.setattr(noise, "uneven_geometrics", lambda values, line: values - 1)
    full = TwoStageMechanism(20, EPSILON, percentile=90).release_in_full([9, 9, 0])
    assert full.upper == 1
    assert full.noisy_counts.tolist() == [0, 0, -1]
    assert full.values.tolist() == [0, 0, 0]


@pytest.mark.parametrize(("unit", "steps"), UNITS)
@pytest.mark.parametrize("constructor", ["heuristic", "lp"])
def test_published_constructions_are_those_of_epsilon_per_step(constructor, unit, steps):
    shared = fixed_point(SHARES, EPSILON, constructor=constructor, **unit)
    alone = fixed_point(SHARES, EPSILON / steps, constructor=constructor)
    assert shared.matrix() == pytest.approx(alone.matrix(), abs=1e-9)
