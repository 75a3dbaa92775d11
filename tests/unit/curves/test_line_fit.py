"""One draw of all values, jumps, boundaries and lines: each against a plain computation."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.curve_outcomes import Outcomes, distribution, records_of

from isotone.curves import PrivateIsotonicRegression
from isotone.curves import cuts as drawn_values
from isotone.curves import lines as line_fit
from isotone.curves.cuts import ChainProblem, Curve, DrawnValues, DrawShares, Imbalance, StepFit
from isotone.curves.histograms import HistogramFit
from isotone.curves.lines import FACTOR, FAR, LEAST, LineFit, RefinedLineFit, find_jumps, sloped
from isotone.curves.losses import Absolute, Huber, Loss, Pinball
from isotone.curves.problem import FINE, CurveSetting, Grid, Records
from isotone.curves.regression import mechanism_for
from isotone.curves.shape_posterior import BinnedDraw, CurveDraw
from isotone.curves.tree import AdditiveScore, HalvingScore, Parts
from isotone.privacy.guarantee import Unit

ONE = (Fraction(0), Fraction(1))
HALF = Fraction(1, 2)


def some_records(seed: int, n: int, points: int) -> Records:
    rng = np.random.default_rng(seed)
    return Records(rng.integers(0, points, n), rng.integers(0, FINE + 1, n), rng.integers(1, 4, n)).sorted()


class Best(Outcomes):
    """No noise and the least score; keeps what it was asked."""

    def __init__(self) -> None:
        super().__init__([])
        self.rates: list[Fraction] = []
        self.costs: list[Any] = []

    def decide(self, log_weights: Any) -> int:
        return int(np.argmax(log_weights))

    def segments(
        self, scores: Any, offsets: Any, rates: Any, multiplicity: Any, size: int | None = None
    ) -> Any:
        self.rates += list(rates)
        return np.array([np.argmin(scores[start:stop]) for start, stop in itertools.pairwise(offsets)])

    def below(self, sizes: Any) -> Any:
        return np.zeros_like(sizes)

    def select(self, circuit: Any, costs: Any, rate: Fraction) -> Any:
        self.rates.append(rate)
        self.costs.append(costs)
        return super().select(circuit, costs, rate * 1000)


@pytest.mark.parametrize("loss", [Absolute(), Pinball(Fraction(9, 10)), Huber(Fraction(1, 4))])
def test_imbalances_are_what_the_derivatives_beside_a_value_miss(loss: Loss) -> None:
    slopes, records = loss.slopes(FINE, Fraction(1)), some_records(1, 50, 9)
    found = Imbalance(slopes, 8).of(records, np.array([0, 2, 7]))
    for b, (low, high) in enumerate(((0, 2), (2, 7), (7, 9))):
        inside = (records.cells >= low) & (records.cells < high)
        for value in range(9):
            below, above = (
                int((slopes.at(place, records.levels[inside]) * records.weights[inside]).sum())
                for place in ((2 * value - 1) * FINE // 16, (2 * value + 1) * FINE // 16)
            )
            assert found[b, value] == max(0, below, -above)


@pytest.mark.parametrize("digits", [1, 5, 9])
@pytest.mark.parametrize(
    "loss", [Absolute(), Pinball(Fraction(1, 1024)), *(Huber(Fraction(2) ** k) for k in (-16, -9, 3))]
)
def test_imbalances_are_exact_for_ties_and_the_largest_weights(loss: Loss, digits: int) -> None:
    """Records at the places where derivatives are summed, at values, and one step of the fine grid beside them."""
    values = 2**digits
    score, rng = Imbalance(loss.slopes(FINE, Fraction(1)), values), np.random.default_rng(digits)
    halves = rng.integers(0, 2 * values + 1, 40) * (FINE // (2 * values))
    rows = [(0, level) for level in np.clip(halves + rng.integers(-1, 2, 40), 0, FINE).tolist()]
    weights = [(1 << 30) // len(rows)] * len(rows)
    places = [(2 * value - 1) * FINE // (2 * values) for value in range(values + 2)]
    levels = np.array([level for _, level in rows])
    sums = [int(score.slopes.at(place, levels).sum()) * weights[0] for place in places]
    expected = [max(0, below, -above) for below, above in itertools.pairwise(sums)]
    assert score.of(records_of(rows, weights), np.array([0]))[0].tolist() == expected


@pytest.mark.parametrize("loss", [Absolute(), Pinball(Fraction(9, 10)), Huber(Fraction(1, 1000))])
def test_a_value_that_many_records_share_is_found(loss: Loss) -> None:
    """Labels, and values on a grid of their own: derivatives cancel nowhere, and the best value still has no imbalance."""
    for levels in ([0] * 6 + [FINE] * 4, [FINE // 20] * 3 + [7 * FINE // 20] * 5 + [FINE] * 2):
        records = records_of([(0, level) for level in levels])
        scores = Imbalance(loss.slopes(FINE, Fraction(1)), 64).of(records, np.array([0]))[0]
        losses = [loss.evaluate(np.array(v / 64), np.array(levels) / FINE).sum() for v in range(65)]
        balanced = np.flatnonzero(scores == 0)
        assert balanced.size > 0
        assert np.array(losses)[balanced].max() <= min(losses) + 10 / 64
        assert scores.max() > 0


@pytest.mark.parametrize("loss", [Absolute(), Pinball(Fraction(3, 4)), Huber(Fraction(1, 4))])
def test_one_record_moves_imbalances_apart_by_at_most_the_stated_range(loss: Loss) -> None:
    """A bin is balanced somewhere between two values: a record beyond helps one of them and harms the other."""
    score, records = Imbalance(loss.slopes(FINE, Fraction(1)), 8), some_records(2, 60, 4)
    before, widest = score.of(records, np.array([0])), 0
    for level in range(FINE // 64, FINE + 1, FINE // 32):
        more = Records(np.r_[records.cells, 0], np.r_[records.levels, level], np.r_[records.weights, 1])
        widest = max(widest, int(np.ptp(score.of(more.sorted(), np.array([0])) - before)))
    assert score.range * 0.7 <= widest <= score.range


@given(
    st.lists(st.tuples(st.integers(0, 32), st.integers(-1, 1), st.integers(0, 4)), min_size=1, max_size=6),
    st.sampled_from([Absolute(), Pinball(Fraction(9, 10)), Pinball(Fraction(1, 4)), Huber(Fraction(1, 4))]),
)
def test_some_value_has_no_imbalance_and_the_others_lose_no_more_than_stated(
    rows: list[tuple[int, int, int]], loss: Any
) -> None:
    """Section 12: the score times the distance to a best value, and half a step. Ties and half steps are frequent."""
    levels = [min(max(half * FINE // 32 + off, 0), FINE) for half, off, _ in rows]
    weights = [weight for _, _, weight in rows]
    score = Imbalance(loss.slopes(FINE, Fraction(1)), 16)
    scores = score.of(records_of([(0, level) for level in levels], weights), np.array([0]))[0]
    assert scores.min() == 0
    steepest = loss.steepest(Fraction(1))
    unit = steepest / (score.range / 2)  # from integers to derivatives
    places = np.r_[np.linspace(0, 1, 4097), np.array(levels) / FINE]

    def losses(values: Any) -> Any:
        return sum(
            w * loss.evaluate(values, np.array(u / FINE)) for u, w in zip(levels, weights, strict=True)
        )

    least = losses(places).min()
    best = places[losses(places) <= least + 1e-12]
    values = np.arange(17) / 16
    away = np.abs(values[:, None] - best).min(axis=1)
    allowed = scores * unit * (np.maximum(0, away - 1 / 32) + 1 / 4096) + sum(weights) * steepest / 32
    assert np.all(losses(values) - least <= allowed + 1e-9)


def test_a_jump_is_much_higher_than_what_is_beside_it() -> None:
    beside = 0.02
    steps = np.cumsum([0.1, beside, FACTOR * beside * 1.5, beside])
    assert find_jumps(steps) == [(1, 2)]
    assert find_jumps(np.cumsum([0.1, beside, FACTOR * beside * 0.9, beside])) == []
    assert find_jumps(np.array([0.3, 0.3 + LEAST / 2])) == []
    assert find_jumps(np.array([0.3, 0.31 + LEAST])) == [(0, 1)]
    assert find_jumps(np.array([0.5])) == []


def test_of_two_jumps_with_a_step_in_common_the_higher_one_counts() -> None:
    assert find_jumps(np.array([0.0, 0.0, 0.3, 1.0, 1.0])) == [(1, 3)]
    assert find_jumps(np.array([0.0, 0.4, 0.41, 1.0])) == [(0, 1), (2, 3)]


def rising(seed: int, size: int) -> np.ndarray:
    return np.sort(np.random.default_rng(seed).random(size))


@given(st.integers(0, 10**6), st.integers(1, 12), st.integers(0, 3))
def test_sloped_curves_rise_stay_in_the_range_and_keep_the_means_of_steps(
    seed: int, size: int, wide: int
) -> None:
    values = rising(seed, size)
    widths = np.random.default_rng(seed + 1).integers(1, 2 + 10**wide, size)
    starts = np.r_[0, np.cumsum(widths)[:-1]]
    points = int(widths.sum())
    curve = sloped(starts, values, points).at(np.arange(points))
    assert np.all(np.diff(curve) >= -1e-12)
    assert curve.min() >= 0
    assert curve.max() <= 1
    means = np.add.reduceat(curve, starts) / widths
    np.testing.assert_allclose(means, values, atol=1e-9)


def test_steps_of_a_line_become_the_line() -> None:
    starts = np.arange(0, 80, 10)
    line = sloped(starts, (starts + 4.5) / 79, 80).at(np.arange(80))
    np.testing.assert_allclose(line[10:70], np.arange(10, 70) / 79)


def test_a_jump_stays_a_jump() -> None:
    starts, values = np.array([0, 10, 20, 30]), np.array([0.2, 0.21, 0.8, 0.81])
    curve = sloped(starts, values, 40).at(np.arange(40))
    assert curve[19] < 0.22
    assert curve[20] > 0.79


def test_a_single_step_is_flat() -> None:
    assert sloped(np.array([0]), np.array([0.3]), 5).at(np.arange(5)).tolist() == [0.3] * 5


def test_points_of_their_own_have_one_corner() -> None:
    curve = sloped(np.array([0, 1, 2]), np.array([0.1, 0.2, 0.3]), 3)
    assert curve.knots.tolist() == [0, 1, 2]
    np.testing.assert_allclose(curve.values, [0.1, 0.2, 0.3])


def evened(points: int, *, bins: int = 8, values: int = 64, fit: Any = RefinedLineFit) -> Any:
    loss = Absolute()
    shares = DrawShares(Fraction(1, 10), Fraction(1, 2), Fraction(4, 10))
    score, table = Imbalance(loss.slopes(FINE, Fraction(1)), values), loss.table(64, values, Fraction(1))
    return fit(CurveSetting(Fraction(4)), points, HalvingScore(), 1, bins, score, shares, table=table)


def test_the_steps_share_epsilon_and_a_jump_is_found_where_it_is() -> None:
    records = records_of([(x, FINE // 4 * (3 if x >= 21 else 1)) for x in range(32) for _ in range(5)])
    best = Best()
    curve = evened(32).draw(records, best)
    # 4·(1/10)/2 for the cut, 4·(1/2)/2 and 4·(4/10)/2 for values, 4·(4/10)/32 for the boundary of a step of 32/64
    assert best.rates == [Fraction(1, 5), 1, Fraction(4, 5), Fraction(1, 20)]
    np.testing.assert_allclose(curve.at(np.arange(32)), np.where(np.arange(32) >= 21, 0.75, 0.25))


def test_values_are_not_drawn_again_where_a_boundary_is() -> None:
    records = records_of([(x, FINE if x >= 16 else 0) for x in range(32)])
    best = Best()
    evened(32).draw(records, best)
    first, second = best.costs
    assert first.any()
    assert not second.any()  # one jump, and all bins belong to it
    smooth = Best()
    evened(32).draw(records_of([(x, x * FINE // 32) for x in range(32)]), smooth)
    np.testing.assert_array_equal(*smooth.costs)


@pytest.mark.parametrize("seed", range(20))
def test_every_point_has_a_second_look_at_its_value_or_at_a_boundary(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With records at all points: a bin has imbalances in the second draw if and only if no window has its points."""
    rng = np.random.default_rng(seed)
    points = int(rng.integers(1, 60))
    looks, bins, draws = np.zeros(points, np.int64), [np.zeros(0, np.int64)], [np.zeros((0, 0), np.int64)]
    honest_bins, honest_draw = drawn_values.equal_bins, line_fit.draw_boundaries
    honest_values = DrawnValues._values

    def told_bins(*args: Any) -> Any:
        bins[0] = honest_bins(*args)
        return bins[0]

    def told_draw(records: Records, low: Any, high: Any, *rest: Any) -> Any:
        for a, b in zip(low, high, strict=True):
            looks[a:b] += 1
        return honest_draw(records, low, high, *rest)

    def told_values(self: DrawnValues, costs: Any, *rest: Any) -> Any:
        draws[0] = costs
        return honest_values(self, costs, *rest)

    monkeypatch.setattr(drawn_values, "equal_bins", told_bins)
    monkeypatch.setattr(line_fit, "draw_boundaries", told_draw)
    monkeypatch.setattr(DrawnValues, "_values", told_values)
    heights = np.sort(rng.integers(0, FINE + 1, 4))
    rows = [(x, int(heights[4 * x // points])) for x in range(points)]
    evened(points, bins=int(rng.integers(1, 20))).simulate(records_of(rows, [9] * points), rng)
    widths = np.diff(np.r_[bins[0], points])
    looks += np.repeat(draws[0].any(axis=1), widths)
    assert looks.tolist() == [1] * points


def test_windows_at_the_least_epsilon_and_the_largest_data_stay_within_64_bits() -> None:
    slopes = Huber(Fraction(1)).slopes(FINE, Fraction(1))
    setting = CurveSetting(Fraction(1, 10**12), Unit(4, "replace"), 64)
    score, shares = Imbalance(slopes, 8), DrawShares(HALF, HALF)
    fit = LineFit(setting, 3, AdditiveScore(slopes), 2, 3, score, shares, Fraction(0))
    rows = [(x, level) for x in range(3) for level in (0, FINE)]
    best = Best()
    fit.draw(records_of(rows, [(1 << 30) // len(rows)] * len(rows)), best)
    assert best.costs[0].min() == 0
    assert best.costs[0].max() > 1 << 59
    assert np.all(np.diff(fit.release(records_of(rows)).at(np.arange(3))) >= 0)


def test_without_jumps_the_lines_are_close_to_a_smooth_curve() -> None:
    x = np.arange(64)
    records = records_of([(int(a), int(b)) for a, b in zip(x, (x / 63) ** 2 * FINE, strict=True)])
    curve = evened(64, bins=16, values=256).draw(records, Best()).at(x)
    assert np.abs(curve - (x / 63) ** 2).max() < 0.02
    steps = np.repeat([np.median((x / 63)[a : a + 4] ** 2) for a in range(0, 64, 4)], 4)
    assert np.abs(curve - (x / 63) ** 2).mean() < 0.6 * np.abs(steps - (x / 63) ** 2).mean()


def test_values_outside_the_window_of_their_part_are_never_drawn() -> None:
    slopes = Absolute().slopes(FINE, Fraction(1))
    score, shares = Imbalance(slopes, 8), DrawShares(HALF, HALF)
    fit = LineFit(CurveSetting(Fraction(1)), 2, AdditiveScore(slopes), 1, 2, score, shares, Fraction(1, 4))
    none = np.zeros(2, np.int64)
    parts = Parts(np.array([0, 1]), np.array([1, 2]), np.array([0, FINE // 2]), FINE // 2, none, none)
    outside = fit._outside(parts, np.array([0, 1]))
    # [0, 1/2] and [1/2, 1], each with a quarter of its width more
    assert (outside > 0).tolist() == [[value > 5 for value in range(9)], [value < 3 for value in range(9)]]
    rate = fit.setting.rate(shares.values, score.range)
    assert rate * outside.max() >= FAR


@pytest.mark.parametrize("rows", [[], [(3, FINE)], [(0, 0), (31, FINE)]])
def test_few_records_are_fitted_like_many(rows: list[tuple[int, int]]) -> None:
    values = evened(32).release(records_of(rows)).at(np.arange(32))
    assert np.all(np.diff(values) >= 0)
    assert values.min() >= 0
    assert values.max() <= 1


def test_its_error_is_an_estimate_and_steps_cost_their_width() -> None:
    lines = evened(32)
    steps = evened(32, fit=StepFit).error()
    assert not lines.error().proved
    assert not steps.proved
    assert (lines.error().per_record, steps.per_record) == (1 / 64, 1 / 8)
    assert replace(lines, levels=0).error().noise < lines.error().noise


def plan(loss: Loss, points: int = 4096) -> ChainProblem:
    return ChainProblem(loss, ONE, Grid(*ONE, points), method="auto")


@pytest.mark.parametrize("loss", [Absolute(), Huber(Fraction(1, 10)), Pinball(Fraction(9, 10))])
def test_small_budgets_for_many_records_are_fitted_by_lines(loss: Loss) -> None:
    fit = mechanism_for(plan(loss).sized(100_000, CurveSetting(Fraction(1, 10))))
    assert isinstance(fit, RefinedLineFit)
    assert isinstance(fit.cuts, HalvingScore)
    assert sum(vars(fit.shares).values()) == 1
    assert not fit.error().proved
    faint = mechanism_for(plan(loss).sized(1_000, CurveSetting(Fraction(1, 10))))
    assert isinstance(faint, LineFit)
    assert isinstance(faint.cuts, AdditiveScore)
    assert sum(vars(faint.shares).values()) == 1


def test_a_quantile_far_from_the_median_counts_as_fewer_records() -> None:
    for quantile in (Fraction(9, 10), Fraction(1, 10), Fraction(1, 2)):
        fit = mechanism_for(plan(Pinball(quantile)).sized(10_000, CurveSetting(Fraction(1))))
        assert isinstance(fit, StepFit if quantile == Fraction(1, 2) else RefinedLineFit)
        ample = mechanism_for(plan(Pinball(quantile)).sized(10_000, CurveSetting(Fraction(5))))
        assert isinstance(ample, HistogramFit)


def test_a_budget_at_which_noise_is_followed_means_steps_with_boundaries_drawn_again() -> None:
    fit = mechanism_for(plan(Absolute()).sized(10_000, CurveSetting(Fraction(1))))
    assert isinstance(fit, StepFit)
    assert sum(vars(fit.shares).values()) == 1
    small = evened(32, fit=StepFit)
    records = records_of([(x, FINE // 4 * (3 if x >= 21 else 1)) for x in range(32) for _ in range(5)])
    best = Best()
    curve = small.draw(records, best)
    # 4·(1/10)/2 for the cut, 4·(1/2)/2 for values, 4·(4/10)/32 for the only boundary
    assert best.rates == [Fraction(1, 5), 1, Fraction(1, 20)]
    assert not curve.interpolated
    np.testing.assert_allclose(curve.at(np.arange(32)), np.where(np.arange(32) >= 21, 0.75, 0.25))


def test_almost_no_budget_for_a_quantile_means_a_draw_from_a_few_bins() -> None:
    fit = mechanism_for(plan(Pinball(Fraction(9, 10))).sized(100, CurveSetting(Fraction(1, 10))))
    assert isinstance(fit, BinnedDraw)
    assert fit.inner.points == 4
    assert fit.inner.guarantee == fit.guarantee
    assert not fit.error().proved
    near = mechanism_for(plan(Pinball(Fraction(3, 5))).sized(100, CurveSetting(Fraction(1, 10))))
    assert isinstance(near, BinnedDraw)
    assert near.inner.points == 5
    assert isinstance(mechanism_for(plan(Absolute()).sized(100, CurveSetting(Fraction(1, 10)))), LineFit)
    tiny = mechanism_for(plan(Pinball(Fraction(9, 10)), 2).sized(100, CurveSetting(Fraction(1, 10))))
    assert isinstance(tiny, BinnedDraw)
    assert tiny.inner.points == 2


def test_a_draw_from_bins_is_the_draw_from_curves_on_them() -> None:
    inner = mechanism_for(
        ChainProblem(Absolute(), ONE, Grid(*ONE, 2), method="baseline", value_levels=4).sized(
            9, CurveSetting(Fraction(1))
        )
    )
    assert isinstance(inner, CurveDraw)
    whole = BinnedDraw(inner.setting, 7, inner)
    rows = [(0, 0), (2, FINE), (3, FINE // 2), (6, FINE)]
    binned = records_of([(int(cell >= 3), level) for cell, level in rows])  # bins begin at 0 and 3

    def key(curve: Curve) -> tuple[float, ...]:
        return tuple(curve.at(np.array([0, curve.points - 1])).tolist())

    law = distribution(lambda outcomes: whole.draw(records_of(rows), outcomes), key)
    expected = distribution(lambda outcomes: inner.draw(binned, outcomes), key)
    assert law == pytest.approx(expected)
    for curve in (whole.release(records_of(rows)) for _ in range(5)):
        assert set(curve.knots.tolist()) <= {0, 3}


@pytest.mark.parametrize("increasing", [True, False])
def test_lines_on_an_uneven_grid_are_predicted_as_they_were_fitted(increasing: bool) -> None:
    """Steps are lines over the points of the list, so between corners predictions are bent like the list."""
    x = [0, *(2.0**k for k in range(12))]
    model = PrivateIsotonicRegression(
        Fraction(1, 10),
        (0, 2048),
        (0, 1),
        loss="absolute",
        x_grid=x,
        public_n=2000,
        increasing=increasing,
        shape=None,
    )
    found = []
    for _ in range(8):
        model.fit(np.repeat(x, 100), np.repeat(np.linspace(0, 1, 13), 100)[:: 1 if increasing else -1])
        every = np.arange(13)
        np.testing.assert_allclose(model.predict(x), model.curve_.at(every))
        np.testing.assert_allclose(np.interp(x, model.X_thresholds_, model.y_thresholds_), model.predict(x))
        found.append(model.curve_.interpolated)
    assert all(found)
