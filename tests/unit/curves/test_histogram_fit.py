"""Halving cuts, noisy histograms, best steps and boundaries: each against a plain computation."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.support.curve_outcomes import Outcomes, records_of

from isotone.curves.histograms import HistogramFit, HistogramShares, Windows, best_steps, noisy_losses
from isotone.curves.losses import Absolute, Huber, Loss, Pinball
from isotone.curves.problem import FINE, CurveSetting, Records
from isotone.curves.tree import BoundaryScore, HalvingScore, Parts, Runs, StepValues, merged, move_boundaries

ONCE = CurveSetting(Fraction(1))
ROWS = 16


class Quiet(Outcomes):
    """No noise, and the least score; keeps the rates."""

    def __init__(self) -> None:
        super().__init__([])
        self.rates: list[Fraction] = []

    def segments(
        self, scores: Any, offsets: Any, rates: Any, multiplicity: Any, size: int | None = None
    ) -> Any:
        self.rates += list(rates)
        ends = itertools.pairwise(offsets)
        return np.array([np.argmin(scores[start:stop]) for start, stop in ends])

    def below(self, sizes: Any) -> Any:
        return np.zeros_like(sizes)

    def perturb(self, values: Any, rate: Fraction) -> Any:
        self.rates.append(rate)
        return values


def parts_of(runs: Runs, *cuts: int, points: int) -> Parts:
    edges = np.array([0, *cuts, points])
    places = np.searchsorted(runs.point, edges)
    return Parts(edges[:-1], edges[1:], edges[:-1] * 0, FINE, places[:-1], places[1:])


def some_records(seed: int, n: int, points: int) -> Records:
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, ROWS + 1, n) * (FINE // ROWS)
    return Records(rng.integers(0, points, n), rows, rng.integers(1, 4, n)).sorted()


def test_halving_compares_the_weights_below_and_above() -> None:
    runs = Runs.of(records_of([(0, 0), (2, 0), (2, FINE), (5, 0)], [1, 2, 3, 4]))
    parts = parts_of(runs, 3, points=8)
    scores = HalvingScore().scores(runs, parts, np.array([0, 3, 5]))
    assert scores.tolist() == [6, 4, 6, 4, 4]


@pytest.mark.parametrize("seed", range(5))
def test_one_record_moves_halving_scores_apart_by_at_most_two(seed: int) -> None:
    """The scores of all places of the grid, with and without one more record."""

    def everywhere(records: Records) -> list[int]:
        weights = np.bincount(records.cells, weights=records.weights, minlength=6)
        return [int(abs(2 * weights[:cut].sum() - weights.sum())) for cut in range(7)]

    records = some_records(seed, 12, 6)
    spread = 0
    for cell in range(6):
        more = Records(np.r_[records.cells, cell], np.r_[records.levels, 0], np.r_[records.weights, 1])
        change = np.subtract(everywhere(more), everywhere(records))
        spread = max(spread, int(np.ptp(change)))
    assert spread == 2
    assert HalvingScore().ranges(parts_of(Runs.of(records), 2, points=6)) == [2, 2]


def test_every_record_is_counted_in_one_cell() -> None:
    records = some_records(1, 200, 9)
    rows = records.levels // (FINE // ROWS)
    windows = Windows(np.array([0, 4]), np.array([0, 5]), np.array([16, 11]), 4)
    counts = windows.counts(records, rows)
    assert counts.sum() == records.weights.sum()
    late = records.cells >= 4
    assert counts[1, 0] == records.weights[late & (rows <= 5)].sum()
    assert counts[1, -1] == records.weights[late & (rows >= 11)].sum()
    assert counts[0, 2] == records.weights[~late & (rows >= 4) & (rows < 8) & (rows > 0)].sum()


def test_losses_of_histograms_without_noise_are_close_to_the_losses() -> None:
    records = some_records(2, 400, 4)
    table = Absolute().table(ROWS, ROWS, Fraction(1))
    windows = Windows(np.arange(4), np.zeros(4, np.int64), np.full(4, ROWS), 16)
    losses = noisy_losses(records, windows, table, ONCE, Fraction(1), Quiet())
    exact = np.zeros((4, ROWS + 1))
    np.add.at(exact, records.cells, records.weights[:, None] * table[records.levels // (FINE // ROWS)])
    np.testing.assert_allclose(losses, exact, atol=records.weights.sum() / 2)


@pytest.mark.parametrize("seed", range(20))
def test_best_steps_are_the_best_of_all(seed: int) -> None:
    rng = np.random.default_rng(seed)
    losses = rng.normal(size=(4, 5))
    lowest, highest = np.sort(rng.integers(0, 3, 4)), np.sort(rng.integers(2, 5, 4))
    steps = best_steps(losses, lowest, highest)
    allowed = [range(a, b + 1) for a, b in zip(lowest, highest, strict=True)]
    rising = [f for f in itertools.product(*allowed) if all(a <= b for a, b in itertools.pairwise(f))]
    costs = [sum(losses[b, v] for b, v in enumerate(f)) for f in rising]
    assert tuple(steps.tolist()) == rising[int(np.argmin(costs))]


@pytest.mark.parametrize("loss", [Absolute(), Pinball(Fraction(3, 4)), Huber(Fraction(1, 4))])
def test_scores_of_boundaries_are_losses_up_to_a_constant(loss: Loss) -> None:
    table = loss.table(ROWS, ROWS, Fraction(1))
    records = some_records(3, 60, 10)
    runs = Runs.of(records)
    values = np.array([2, 7, 15])
    windows = parts_of(runs, 5, points=10)
    sizes = windows.last - windows.first + 1
    offsets = np.r_[0, np.cumsum(sizes)]
    score = BoundaryScore(table, values[:-1], values[1:])
    scores = score.scores(runs, windows, offsets)
    rows = records.levels // (FINE // ROWS)
    for part in range(2):
        inside = (records.cells >= windows.low[part]) & (records.cells < windows.high[part])
        points = runs.point[windows.first[part] : windows.last[part]]
        losses = []
        for cut in [0, *(points + 1)]:
            given = np.where(records.cells < cut, values[part], values[part + 1])
            losses.append(int((records.weights * table[rows, given])[inside].sum()))
        mine = scores[offsets[part] : offsets[part + 1]]
        np.testing.assert_array_equal(mine - mine[0], np.array(losses) - losses[0])
    changes = [np.abs(table[:, a] - table[:, b]).max() for a, b in itertools.pairwise(values)]
    assert score.ranges(windows) == changes


def test_a_boundary_goes_where_the_loss_is_least_and_not_beyond_the_middles() -> None:
    records = records_of([(x, FINE if x >= 5 else 0) for x in range(12)])
    table = Absolute().table(ROWS, ROWS, Fraction(1))
    steps = StepValues(np.array([0, 4, 8]), np.array([0, 0, 16]), 12)
    starts, values = move_boundaries(records, steps, table, ONCE, Fraction(1), Quiet())
    assert starts.tolist() == [0, 5]  # the steps are 0…7 and 8…11, so the boundary may be from 4 to 10
    assert values.tolist() == [0, 16]
    far = records_of([(x, FINE if x >= 2 else 0) for x in range(12)])
    steps = StepValues(np.array([0, 8]), np.array([0, 16]), 12)
    starts, _ = move_boundaries(far, steps, table, ONCE, Fraction(1), Quiet())
    assert starts.tolist() == [0, 4]


def test_equal_steps_are_one_and_a_single_step_needs_no_boundary() -> None:
    starts, values = merged(np.array([0, 3, 5]), np.array([2, 2, 4]))
    assert (starts.tolist(), values.tolist()) == ([0, 5], [2, 4])
    quiet = Quiet()
    table = Absolute().table(ROWS, ROWS, Fraction(1))
    steps = StepValues(np.array([0, 3]), np.array([7, 7]), 8)
    move_boundaries(records_of([]), steps, table, ONCE, Fraction(1), quiet)
    assert quiet.rates == []


def fit(points: int, **more: Any) -> HistogramFit:
    table = Absolute().table(64, 64, Fraction(1))
    return HistogramFit(CurveSetting(Fraction(2)), points, table, 1, 1, 4, 8, **more)


def test_the_four_steps_share_epsilon() -> None:
    assert sum(vars(HistogramShares()).values()) == 1
    quiet = Quiet()
    records = records_of([(x, FINE if x >= 20 else 0) for x in range(32) for _ in range(5)])
    curve = fit(32).draw(records, quiet)
    share = HistogramShares()
    steps = [2 * share.halving / 2, 2 * share.coarse, 2 * share.fine, 2 * share.boundaries / 64]
    assert quiet.rates == steps
    np.testing.assert_array_equal(curve.at(np.arange(32)), (np.arange(32) >= 20) * 1.0)


def test_its_error_is_an_estimate() -> None:
    assert not fit(32).error().proved


@pytest.mark.parametrize("rows", [[], [(3, FINE)], [(0, 0), (31, FINE)]])
def test_few_records_are_fitted_like_many(rows: list[tuple[int, int]]) -> None:
    values = fit(32).release(records_of(rows)).at(np.arange(32))
    assert np.all(np.diff(values) >= 0)
    assert values.min() >= 0
    assert values.max() <= 1
