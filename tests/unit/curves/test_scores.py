"""The two theorems behind the trees, in exact integers: dominance of the additive score, and the ranges."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isotone.curves.losses import Absolute, Huber, Logistic, Pinball, Squared
from isotone.curves.problem import FINE, Records
from isotone.curves.tree import AdditiveScore, Parts, Runs
from isotone.published.curves.threshold import LinearScore, SquaredScore, TableScore

POINTS = 5
ONE = Fraction(1)
Rows = list[tuple[int, int]]
rows_strategy = st.lists(
    st.tuples(st.integers(0, POINTS - 1), st.integers(0, 16).map(lambda level: level * FINE // 16)),
    max_size=8,
)
intervals = st.sampled_from([(0, FINE), (0, FINE // 2), (FINE // 2, FINE // 2), (FINE // 4, FINE // 4)])


def all_cuts(score: Any, rows: Rows, interval: tuple[int, int]) -> np.ndarray:
    """The score at every cut position 0, …, POINTS."""
    cells, levels = np.array(rows, dtype=np.int64).reshape(-1, 2).T
    runs = Runs.of(Records(cells, levels, np.ones_like(cells)).sorted())
    parts = the_part(interval, runs.point.size)
    scores = score.scores(runs, parts, np.array([0, runs.point.size + 1]))
    return scores[np.searchsorted(runs.point, np.arange(POINTS + 1), side="left")]


def the_part(interval: tuple[int, int], runs: int = 0) -> Parts:
    zero = np.zeros(1, np.int64)
    return Parts(zero, zero + POINTS, zero + interval[0], interval[1], zero, zero + runs)


@settings(max_examples=80, deadline=None)
@given(rows=rows_strategy, interval=intervals, kind=st.sampled_from(["absolute", "pinball"]))
def test_the_additive_excess_bounds_the_excess_of_the_least_loss(
    rows: Rows, interval: tuple[int, int], kind: str
) -> None:
    loss: Any = Absolute() if kind == "absolute" else Pinball(Fraction(3, 4))
    rule = loss.slopes(FINE, ONE)
    additive = all_cuts(AdditiveScore(rule), rows, interval)
    least = all_cuts(LinearScore(rule.above, rule.below), rows, interval)
    half = interval[1] // 2
    assert np.all(least - least.min() <= half * (additive - additive.min()))


@settings(max_examples=60, deadline=None)
@given(rows=rows_strategy, interval=intervals)
def test_the_additive_excess_bounds_the_squared_excess(rows: Rows, interval: tuple[int, int]) -> None:
    additive = all_cuts(AdditiveScore(Squared().slopes(FINE, ONE)), rows, interval)
    least = all_cuts(SquaredScore(), rows, interval)
    # the slopes are half the derivative, and the score is rounded up by less than 2
    assert np.all(least - least.min() <= interval[1] * (additive - additive.min()) + 2)


def test_the_factor_of_one_half_is_best_possible() -> None:
    rows = [(2, FINE)]
    additive = all_cuts(AdditiveScore(Absolute().slopes(FINE, ONE)), rows, (0, FINE))
    least = all_cuts(LinearScore(1, 1), rows, (0, FINE))
    assert (least - least.min()).max() == FINE // 2 * (additive - additive.min()).max() > 0


SCORES: list[Any] = [
    AdditiveScore(Absolute().slopes(FINE, ONE)),
    AdditiveScore(Squared().slopes(FINE, ONE)),
    AdditiveScore(Huber().slopes(FINE, ONE)),
    AdditiveScore(Pinball(Fraction(9, 10)).slopes(FINE, ONE)),
    AdditiveScore(Logistic().slopes(FINE, ONE)),
    LinearScore(1, 1),
    LinearScore(1, 9),
    SquaredScore(),
    TableScore(Huber().table(16, 16, ONE)),
    TableScore(Logistic().table(16, 16, ONE)),
]


@pytest.mark.parametrize("score", SCORES, ids=lambda score: type(score).__name__)
def test_one_record_moves_scores_apart_by_at_most_the_stated_range(score: Any) -> None:
    rng = np.random.default_rng(11)
    levels = [0, FINE // 4, FINE // 2, 3 * FINE // 4, FINE]
    largest = 0.0
    for _ in range(150):
        size = int(rng.integers(0, 25))
        rows = [(int(rng.integers(0, POINTS)), int(rng.choice(levels))) for _ in range(size)]
        rows += [(int(rng.choice([0, POINTS - 1])), int(rng.choice([0, FINE])))] * int(rng.choice([0, 60]))
        interval = (0, FINE) if rng.random() < 0.7 else (FINE // 2, FINE // 2)
        bound = score.ranges(the_part(interval))[0]
        before = all_cuts(score, rows, interval)
        for added in itertools.product([0, 2, POINTS - 1], [0, FINE]):
            moved = all_cuts(score, [*rows, added], interval) - before
            assert np.ptp(moved) <= bound
            largest = max(largest, np.ptp(moved) / bound)
    assert largest > 0.9


def test_the_additive_score_is_its_definition() -> None:
    rows = [(0, FINE), (1, 0), (1, FINE // 4), (3, FINE), (4, 0)]
    middle = FINE // 2
    rule = Squared().slopes(FINE, ONE)
    expected = []
    for cut in range(POINTS + 1):
        slopes = [(x < cut, int(rule.at(middle, np.array([u]))[0])) for x, u in rows]
        expected.append(sum(max(-d, 0) if below else max(d, 0) for below, d in slopes))
    ours = all_cuts(AdditiveScore(rule), rows, (0, FINE))
    assert (ours - ours.min()).tolist() == (np.array(expected) - min(expected)).tolist()
