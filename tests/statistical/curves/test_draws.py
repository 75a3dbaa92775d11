"""Released curves have exactly the enumerated distribution; with epsilon off by 30 % the same test fails.

False-alarm rate of each test: 1e-8. Trees and draws from path graphs are the two ways in which this package chooses; all
mechanisms are made of them, and their laws are checked by enumeration in tests/attacks/curves.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.support.chisquare import FALSE_ALARM, assert_tells, chi_square_p
from tests.support.curve_outcomes import curve_key, distribution, records_of
from tests.support.effort import draws, off

from isotone import noise
from isotone.curves import circuits
from isotone.curves.circuits import CircuitTables, SeededCurveDraws, descend
from isotone.curves.cuts import ChainProblem, CurveMechanism, TreeMechanism
from isotone.curves.losses import Absolute
from isotone.curves.problem import FINE, CurveSetting, Grid
from isotone.curves.regression import mechanism_for
from isotone.curves.shapes import monotone_graph
from isotone.curves.tree import AdditiveScore

Law = dict[Any, float]
ROWS = (*tuple((x, FINE * x // 5) for x in range(6)), (0, FINE), (5, 0))
# chosen so that 30 % more epsilon shifts the statistic by about 500, at a critical value of 46
EPSILON_AND_DRAWS = {
    "additive": (Fraction(3), draws(4000, 0.3)),
    "baseline": (Fraction(12), draws(5000, 0.3)),
}
WRONG = 1 + off(0.3)


def additive(epsilon: Fraction) -> CurveMechanism:
    score = AdditiveScore(Absolute().slopes(FINE, Fraction(1)))
    return TreeMechanism(CurveSetting(epsilon), 6, score, 2)


def baseline(epsilon: Fraction) -> CurveMechanism:
    grid = Grid(Fraction(0), Fraction(5), 6)
    plan = ChainProblem(Absolute(), (Fraction(0), Fraction(1)), grid, method="baseline", value_levels=4)
    return mechanism_for(plan.sized(10, CurveSetting(epsilon)))


def law(mechanism: CurveMechanism) -> Law:
    records = records_of(ROWS)
    whole = distribution(lambda outcomes: mechanism.draw(records, outcomes), curve_key)
    return {key[0]: probability for key, probability in whole.items()}


def check(seen: Counter[Any], truth: Law, wrong: Law) -> None:
    """All cells agree with the truth; and so few cells that 30 % show agree with it, and not with the wrong law."""
    keys = sorted(truth, key=lambda key: wrong[key] / truth[key])
    assert set(seen) <= set(keys)
    observed = np.array([seen[key] for key in keys])
    right, off = (np.array([law[key] for key in keys]) for law in (truth, wrong))
    assert chi_square_p(observed, right) > FALSE_ALARM
    groups = np.unique(np.minimum((np.cumsum(right) * 6).astype(int), 5), return_inverse=True)[1]
    few, few_right, few_off = (np.bincount(groups, weights=cells) for cells in (observed, right, off))
    assert_tells(few, few_right, few_off)


@pytest.mark.parametrize("make", [additive, baseline])
def test_releases_have_the_enumerated_distribution(make: Callable[[Fraction], CurveMechanism]) -> None:
    epsilon, size = EPSILON_AND_DRAWS[make.__name__]
    records = records_of(ROWS)
    mechanism = make(epsilon)
    seen = Counter(curve_key(mechanism.release(records)) for _ in range(size))
    check(seen, law(mechanism), law(make(epsilon * Fraction(str(WRONG)))))


def test_simulated_choices_have_the_weights_of_the_exponential_mechanism() -> None:
    """Twenty thousand segments with the same scores, at once."""
    scores, counts = np.arange(8), np.array([1, 2, 1, 4, 1, 1, 3, 1])
    size = draws(20_000, 0.3)
    chosen = SeededCurveDraws(np.random.default_rng(4)).segments(
        np.tile(scores, size), np.arange(size + 1) * 8, [Fraction(1, 2)] * size, np.tile(counts, size)
    )
    seen = Counter(chosen.tolist())

    def weights(rate: float) -> Law:
        raw = counts * np.exp(-rate * scores)
        return dict(enumerate((raw / raw.sum()).tolist()))

    check(seen, weights(0.5), weights(0.5 * WRONG))


def test_simulated_paths_have_their_weights() -> None:
    epsilon, size = EPSILON_AND_DRAWS["baseline"]
    rng = np.random.default_rng(4)
    records = records_of(ROWS)
    mechanism = baseline(epsilon)
    seen = Counter(curve_key(mechanism.simulate(records, rng)) for _ in range(size))
    check(seen, law(mechanism), law(baseline(epsilon * Fraction(str(WRONG)))))


def test_draws_that_floats_leave_open_are_decided_with_the_right_probabilities(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With an error bound blown up to 20 %, many draws need wider arithmetic; their distribution stays the same."""
    graph = monotone_graph(5, 3)
    table = np.array([[0, 1, 2], [2, 0, 1], [1, 1, 0], [0, 1, 1], [2, 1, 0]])
    asked: list[int] = []
    wide = circuits.WideTotals.brackets
    monkeypatch.setattr(
        circuits.WideTotals, "brackets", lambda self, *rest: asked.append(1) or wide(self, *rest)
    )
    tables = CircuitTables(graph.graph, graph.costs(table), Fraction(1))
    tables._error[:] = 0.2

    def drawn() -> tuple[int, ...]:
        path = descend(
            graph.graph, lambda node: noise.choose_lazily(lambda bits: tables.brackets(node, bits))
        )
        return tuple(graph.curve(path).tolist())

    def expected(rate: float) -> Law:
        curves = list(itertools.combinations_with_replacement(range(3), 5))
        weights = [math.exp(-rate * sum(table[x, v] for x, v in enumerate(curve))) for curve in curves]
        return {curve: weight / sum(weights) for curve, weight in zip(curves, weights, strict=True)}

    seen = Counter(drawn() for _ in range(draws(5_000, 0.3)))
    assert len(asked) > seen.total() / 2
    check(seen, expected(1.0), expected(WRONG))
