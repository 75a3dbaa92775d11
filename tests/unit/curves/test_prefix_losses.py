"""The least isotonic losses of prefixes and suffixes, against brute force and against each other."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.isotonic_brute import least_loss

from isotone.curves.losses import Huber, Logistic, Pinball, Squared
from isotone.curves.problem import FINE, Records
from isotone.curves.regression import least_absolute_loss
from isotone.curves.tree import Parts, Runs
from isotone.published.curves.threshold import LinearScore, SquaredScore, TableScore

POINTS = 4
STEP = FINE // 8
Rows = list[tuple[int, int, int]]
rows_strategy = st.lists(
    st.tuples(st.integers(0, POINTS - 1), st.integers(0, 8), st.integers(0, 3)), min_size=0, max_size=7
)


def records_of(rows: Rows, step: int = STEP) -> Records:
    cells, levels, weights = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    return Records(cells, levels * step, weights).sorted()


def one_part(runs: Runs, floor: int, width: int) -> tuple[Parts, Any]:
    parts = Parts(
        np.zeros(1, np.int64),
        np.full(1, POINTS, np.int64),
        np.full(1, floor, np.int64),
        width,
        np.zeros(1, np.int64),
        np.full(1, runs.point.size, np.int64),
    )
    return parts, np.array([0, runs.point.size + 1])


def brute_scores(rows: Rows, loss: Any, low: int, mid: int, high: int) -> list[Any]:
    """The score of every cut between occupied points, by trying all curves on the coarse grid."""
    occupied = sorted({point for point, _, _ in rows})
    scores = []
    for count in range(len(occupied) + 1):
        below = [row for row in rows if row[0] in occupied[:count]]
        above = [row for row in rows if row[0] in occupied[count:]]
        scores.append(least_loss(below, loss, low, mid, POINTS) + least_loss(above, loss, mid, high, POINTS))
    return scores


@settings(max_examples=60, deadline=None)
@given(
    rows=rows_strategy,
    above=st.integers(1, 3),
    below=st.integers(1, 3),
    half=st.sampled_from([(0, 8), (4, 4), (2, 2)]),
)
def test_linear_scores_are_the_least_losses(
    rows: Rows, above: int, below: int, half: tuple[int, int]
) -> None:
    floor, width = half
    runs = Runs.of(records_of(rows))
    parts, offsets = one_part(runs, floor * STEP, width * STEP)
    ours = LinearScore(above, below).scores(runs, parts, offsets)

    def loss(value: int, level: int) -> int:
        return STEP * (above * (value - level) if value > level else below * (level - value))

    expected = brute_scores(rows, loss, floor, floor + width // 2, floor + width)
    assert ours.tolist() == expected


@settings(max_examples=40, deadline=None)
@given(rows=rows_strategy, kind=st.sampled_from(["huber", "logistic", "pinball"]))
def test_table_scores_are_the_least_losses(rows: Rows, kind: str) -> None:
    loss: Any = {"huber": Huber(), "logistic": Logistic(), "pinball": Pinball(Fraction(1, 4))}[kind]
    table = loss.table(8, 8, Fraction(1))
    runs = Runs.of(records_of(rows))
    parts, offsets = one_part(runs, 0, FINE)
    ours = TableScore(table).scores(runs, parts, offsets)
    expected = brute_scores(rows, lambda value, level: int(table[level, value]), 0, 4, 8)
    assert ours.tolist() == expected


def exact_squared_scores(runs: Runs, parts: Parts) -> list[Fraction]:
    """Pooled blocks in exact fractions."""

    def fit(levels: list[int], weights: list[int], low: int, high: int) -> Fraction:
        blocks: list[tuple[int, Fraction]] = []
        for level, weight in zip(levels, weights, strict=True):
            if weight == 0:
                continue
            heavy, mean = weight, Fraction(level)
            while blocks and blocks[-1][1] >= mean:
                other, before = blocks.pop()
                mean = (mean * heavy + before * other) / (heavy + other)
                heavy += other
            blocks.append((heavy, mean))
        values = [
            min(max(mean, Fraction(low)), Fraction(high)) for heavy, mean in blocks for _ in range(heavy)
        ]
        copies = [level for level, weight in zip(levels, weights, strict=True) for _ in range(weight)]
        return sum(((v - level) ** 2 for v, level in zip(values, copies, strict=True)), Fraction(0))

    records, low, mid = runs.records, int(parts.floor[0]), int(parts.middle[0])
    high = low + parts.width
    scores = []
    for cut in range(runs.point.size + 1):
        at = int(runs.start[cut])
        levels, weights = records.levels.tolist(), records.weights.tolist()
        scores.append(fit(levels[:at], weights[:at], low, mid) + fit(levels[at:], weights[at:], mid, high))
    return scores


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(
        st.tuples(st.integers(0, POINTS - 1), st.integers(0, FINE), st.integers(0, 5)),
        min_size=0,
        max_size=12,
    ),
    interval=st.sampled_from([(0, FINE), (FINE // 2, FINE // 4), (0, 2), (FINE // 4, 256)]),
)
def test_squared_scores_are_the_least_losses_rounded_up_by_less_than_two(
    rows: Rows, interval: tuple[int, int]
) -> None:
    runs = Runs.of(records_of(rows, step=1))
    parts, offsets = one_part(runs, *interval)
    ours = SquaredScore().scores(runs, parts, offsets)
    for score, exact in zip(ours.tolist(), exact_squared_scores(runs, parts), strict=True):
        assert 0 <= score - exact < 2


def test_squared_scores_do_not_overflow_at_the_largest_weights() -> None:
    """A weight of 2**30 in all, at the far end of the range: the largest scores there are."""
    rows = [(0, FINE, 1 << 29), (1, 0, 1 << 29)]
    runs = Runs.of(records_of(rows, step=1))
    parts, offsets = one_part(runs, 0, FINE)
    ours = SquaredScore().scores(runs, parts, offsets)
    half = FINE // 2
    together = (1 << 30) * half**2  # both at the mean
    assert ours.tolist() == [together, half**2 * (1 << 30) + 0, together]


@pytest.mark.parametrize("seed", range(5))
def test_a_fit_restricted_to_a_range_is_the_clipped_fit(seed: int) -> None:
    """Proved for every convex loss; here for the squared one, against scikit-learn."""
    from sklearn.isotonic import IsotonicRegression

    rng = np.random.default_rng(seed)
    x = rng.integers(0, 30, 60)
    y = rng.random(60)
    free = IsotonicRegression().fit(x, y).predict(x)
    restricted = IsotonicRegression(y_min=0.3, y_max=0.6).fit(x, y).predict(x)
    np.testing.assert_allclose(np.clip(free, 0.3, 0.6), restricted)
    # and our score of "everything below the cut" is its loss
    records = Records(x, np.rint(y * FINE).astype(np.int64), np.ones(60, np.int64)).sorted()
    runs = Runs.of(records)
    zero = np.zeros(1, np.int64)
    parts = Parts(zero, zero + 30, zero, FINE, zero, zero + runs.point.size)
    score = SquaredScore().scores(runs, parts, np.array([0, runs.point.size + 1]))[-1] / FINE**2
    levels = np.rint(y * FINE) / FINE
    low = IsotonicRegression(y_min=0, y_max=0.5).fit(x, levels).predict(x)
    assert score == pytest.approx(float(((low - levels) ** 2).sum()), abs=1e-6)


@settings(max_examples=40, deadline=None)
@given(rows=rows_strategy)
def test_the_least_absolute_loss_is_found(rows: Rows) -> None:
    expected = least_loss(rows, lambda value, level: STEP * abs(value - level), 0, 8, POINTS)
    assert least_absolute_loss(records_of(rows)) == expected


def test_loss_tables_agree_with_the_pooled_blocks() -> None:
    """Two algorithms for one loss: squared on a grid that contains all means."""
    rng = np.random.default_rng(1)
    rows = [(int(rng.integers(0, POINTS)), int(rng.integers(0, 2)) * 8, 1) for _ in range(6)]
    runs = Runs.of(records_of(rows))
    parts, offsets = one_part(runs, 0, FINE)
    fine = 1024
    table = Squared().table(fine, fine, Fraction(1))
    by_table = TableScore(table).scores(runs, parts, offsets) * (FINE // fine) ** 2
    by_blocks = SquaredScore().scores(runs, parts, offsets)
    assert np.all(by_table >= by_blocks - 2)
    assert np.abs(by_table - by_blocks).max() <= 6 * (FINE // fine) ** 2
