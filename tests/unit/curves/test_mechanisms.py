"""Rates, shares and laws of the mechanisms, without chance."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.support.curve_outcomes import Outcomes, distribution, records_of

from isotone.curves.bands import PosteriorFit, RoundShares
from isotone.curves.cuts import COUNTING, METHODS, ChainProblem, Curve, Imbalance, QuantileBins, TreeMechanism
from isotone.curves.histograms import HistogramFit
from isotone.curves.losses import Absolute, Logistic, Loss, Pinball, Squared, parse_loss
from isotone.curves.posterior import equal_bins, faint, noisy_means
from isotone.curves.problem import FINE, CurveSetting, Grid, Records
from isotone.curves.regression import (
    AUTO_SHARE,
    choose_direction,
    least_absolute_loss,
    mechanism_for,
    rule_for,
)
from isotone.curves.shapes import Convex, parse_shape
from isotone.curves.tree import AdditiveScore
from isotone.errors import InputError
from isotone.mechanism import Mechanism
from isotone.noise import Simulated
from isotone.privacy.guarantee import Unit

ONE = (Fraction(0), Fraction(1))


def blueprint(method: str = "auto", loss: Loss | None = None, points: int = 64, **more: Any) -> ChainProblem:
    return ChainProblem(loss or Squared(), ONE, Grid(Fraction(0), Fraction(1), points), method=method, **more)


class Recorder(Outcomes):
    """Keeps the rates of all choices."""

    def __init__(self) -> None:
        super().__init__([])
        self.rates: list[Fraction] = []

    def segments(
        self, scores: Any, offsets: Any, rates: Any, multiplicity: Any, size: int | None = None
    ) -> Any:
        self.rates += list(rates)
        return super().segments(scores, offsets, rates, multiplicity)

    def perturb(self, values: Any, rate: Fraction) -> Any:
        self.rates.append(rate)
        return values


def test_a_unit_of_many_heavy_records_slows_every_rate() -> None:
    assert CurveSetting(Fraction(1)).factor == 1
    setting = CurveSetting(Fraction(3), Unit(5, "replace"), 7)
    assert setting.factor == 70
    assert setting.rate(Fraction(1, 2), 3) == Fraction(3, 2) / 210
    assert setting.guarantee.neighbours == "replace"


def test_the_levels_of_a_tree_share_epsilon() -> None:
    recorder = Recorder()
    score = AdditiveScore(Absolute().slopes(FINE, Fraction(1)))
    TreeMechanism(CurveSetting(Fraction(3)), 8, score, 3).draw(records_of([(2, 0), (5, FINE)]), recorder)
    assert set(recorder.rates) == {Fraction(1)}


@pytest.mark.parametrize(("labels", "top"), [(True, 1), (False, FINE)])
@pytest.mark.parametrize(
    ("n", "coarse"), [(7, []), (8, [Fraction(1)]), (49, [Fraction(1)]), (50, [Fraction(1, 2)] * 2)]
)
def test_the_rounds_share_epsilon(labels: bool, top: int, n: int, coarse: list[Fraction]) -> None:
    recorder = Recorder()
    mechanism = mechanism_for(blueprint("auto", labels=labels).sized(n, CurveSetting(Fraction(10))))
    assert isinstance(mechanism, PosteriorFit)
    mechanism.draw(records_of([(2, 0)]), recorder)
    assert recorder.rates == [rate / top for rate in (*coarse, 10 - sum(coarse))]
    assert sum(recorder.rates) * top == 10


def test_shares_of_rounds_that_are_not_one_together_are_refused() -> None:
    for coarse, fine in (
        (Fraction(1, 10), Fraction(1)),
        (Fraction(1), Fraction(0)),
        (Fraction(2), Fraction(-1)),
        (Fraction(-1), Fraction(2)),
    ):
        with pytest.raises(ValueError, match="1 together"):
            RoundShares(coarse, fine)


def test_values_and_counts_of_bins_share_epsilon() -> None:
    recorder = Recorder()
    score = Imbalance(Absolute().slopes(FINE, Fraction(1)), 4)
    QuantileBins(CurveSetting(Fraction(1)), 8, score, 1).draw(records_of([(2, 0)]), recorder)
    assert recorder.rates == [(1 - COUNTING) / 2, COUNTING]


def test_noisy_means_without_noise_are_the_means() -> None:
    records = records_of([(0, 0), (0, FINE), (3, FINE // 4), (3, FINE // 4), (3, FINE // 4)], [2, 6, 3, 3, 2])
    setting = CurveSetting(Fraction(1), weight_steps=2)
    means, counts = noisy_means(records, np.array([0, 2]), setting, Fraction(1), Recorder())
    assert means.tolist() == [0.75, 0.25]
    assert counts.tolist() == [4.0, 4.0]


def test_a_count_below_half_the_noise_tells_nothing() -> None:
    records = records_of([(0, FINE), (1, FINE), (1, FINE)])
    setting = CurveSetting(Fraction(1, 3))
    assert faint(setting, Fraction(1)) == 1.5
    means, counts = noisy_means(records, np.array([0, 1]), setting, Fraction(1), Recorder())
    assert means.tolist() == [0.5, 1.0]
    assert counts.tolist() == [1.5, 2.0]


def test_bins_divide_every_part_evenly() -> None:
    starts = equal_bins(np.array([0, 10, 11]), np.array([10, 11, 64]), 12)
    assert starts.tolist() == [0, 2, 5, 7, 10, 11, 24, 37, 50]


def test_some_bins_may_go_to_parts_by_their_width() -> None:
    low, high = np.array([0, 16]), np.array([16, 64])
    assert equal_bins(low, high, 8, 1.0).tolist() == [0, 8, 16, 24, 32, 40, 48, 56]
    assert equal_bins(low, high, 8, 0.5).size == 8
    assert equal_bins(np.array([0, 1]), np.array([1, 64]), 8, 1.0).tolist()[:2] == [0, 1]


def test_the_direction_has_its_law() -> None:
    records = records_of(((0, 0), (0, FINE // 4), (3, FINE), (3, FINE // 2)))
    setting = CurveSetting(Fraction(20))
    gap = least_absolute_loss(records.mirrored(4)) - least_absolute_loss(records)
    assert gap == FINE // 2  # falling, at best each x gets the middle of its records nearest to the other
    law = distribution(lambda outcomes: choose_direction(records, 4, setting, outcomes), bool)
    up = 1 / (1 + math.exp(-float(20 * AUTO_SHARE * gap / FINE)))
    assert law[(True, ())] == pytest.approx(up, rel=1e-12)


def test_an_empty_part_is_cut_uniformly() -> None:
    score = AdditiveScore(Absolute().slopes(FINE, Fraction(1)))
    mechanism = TreeMechanism(CurveSetting(Fraction(1)), 3, score, 1)
    law = distribution(
        lambda outcomes: mechanism.draw(records_of([]), outcomes), lambda curve: tuple(curve.knots.tolist())
    )
    assert law == {
        ((0,), ()): pytest.approx(0.5),
        ((0, 1), ()): pytest.approx(0.25),
        ((0, 2), ()): pytest.approx(0.25),
    }


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("loss", ["squared", "absolute", "huber", "pinball(0.75)", "logistic"])
def test_every_mechanism_has_the_one_shape(method: str, loss: str) -> None:
    mechanism = mechanism_for(
        blueprint(method, parse_loss(loss), points=32).sized(500, CurveSetting(Fraction(2)))
    )
    assert isinstance(mechanism, Mechanism)
    assert mechanism.guarantee.epsilon == 2
    bound = mechanism.error()
    assert 0 < bound.noise < math.inf
    assert 0 <= bound.per_record < math.inf
    assert bound.mean(100) == pytest.approx(bound.noise / 100 + bound.per_record)
    simulated = mechanism.simulate(records_of([(1, 0), (9, FINE)]), np.random.default_rng(0))
    assert isinstance(simulated.values, Simulated)
    released = mechanism.release(records_of([(1, 0), (9, FINE)]))
    assert not isinstance(released.values, Simulated)
    values = released.at(np.arange(32))
    assert np.all(np.diff(values) >= 0)
    assert values.min() >= 0
    assert values.max() <= 1


def test_the_bound_on_the_excess_loss_holds_on_average() -> None:
    rng = np.random.default_rng(8)
    cells = rng.integers(0, 16, 400)
    levels = (rng.random(400) < cells / 16).astype(np.int64) * FINE
    records = Records(cells, levels, np.ones(400, np.int64)).sorted()
    best = least_absolute_loss(records) / FINE
    for method in ("additive", "threshold", "baseline"):
        mechanism = mechanism_for(
            blueprint(method, Absolute(), points=16).sized(400, CurveSetting(Fraction(1)))
        )
        losses = []
        for _ in range(20):
            values = np.asarray(mechanism.simulate(records, rng).at(records.cells))
            losses.append(np.abs(values - records.levels / FINE).sum())
        assert np.mean(losses) - best <= 400 * mechanism.error().mean(400)


def test_auto_is_decided_by_public_numbers() -> None:
    once = CurveSetting(Fraction(1))
    assert rule_for(blueprint("auto").sized(1000, once)).name == "posterior"
    assert rule_for(blueprint("auto").sized(20, once)).name == "posterior"
    assert rule_for(blueprint("auto", levels=2).sized(20, once)).name == "additive"
    skewed = blueprint("auto", Pinball(Fraction(9, 10)))
    assert rule_for(skewed.sized(20, once)).name == "few bins"
    assert rule_for(skewed.sized(200, CurveSetting(Fraction(1), Unit(10)))).name == "few bins"
    # bins of equal counts pay later the farther a quantile is from the median
    assert [rule_for(skewed.sized(n, once)).name for n in (4_000, 6_000)] == ["lines", "refined lines"]
    less = blueprint("auto", Pinball(Fraction(4, 5)))
    assert [rule_for(less.sized(n, once)).name for n in (1_000, 1_500)] == ["lines", "refined lines"]
    assert rule_for(blueprint("auto", Absolute()).sized(20, once)).name == "lines"
    for loss, method, used in (
        (Squared(), "auto", "posterior of the shape"),
        (Logistic(), "auto", "posterior of the shape"),
        (Absolute(), "auto", "baseline"),
        (Squared(), "baseline", "baseline"),
        (Squared(), "additive", "baseline"),
        (Squared(), "threshold", "threshold"),
    ):
        assert rule_for(blueprint(method, loss, shape=parse_shape("convex")).sized(1000, once)).name == used
    assert rule_for(blueprint("threshold", shape=parse_shape("convex")).sized(1000, once)).name == "threshold"
    for shape, output, used in (
        (("lipschitz", 1), "population", "posterior of the shape"),
        (("lipschitz", 1), "records", "nearest of the shape"),
        ("concave", "population", "posterior of the shape"),
        ("concave", "records", "nearest of the shape"),
        (("constant", 3), "population", "nearest of the shape"),
        (("linear", 3), "population", "nearest of the shape"),
    ):
        kept = blueprint("auto", Squared(), shape=parse_shape(shape), output=output)
        assert rule_for(kept.sized(1000, once)).name == used


def test_losses_without_means_are_fitted_by_histograms_once_there_are_many_records() -> None:
    plan, setting = blueprint("auto", Absolute(), points=4096), CurveSetting(Fraction(1))
    assert isinstance(mechanism_for(plan.sized(400, CurveSetting(Fraction(5)))), HistogramFit)
    assert isinstance(mechanism_for(plan.sized(2_000, CurveSetting(Fraction(5)))), HistogramFit)
    assert isinstance(
        mechanism_for(blueprint("auto", Absolute(), levels=3).sized(6_000, setting)), TreeMechanism
    )
    assert isinstance(mechanism_for(blueprint("additive", Squared()).sized(6_000, setting)), TreeMechanism)
    assert isinstance(mechanism_for(blueprint("auto", Squared()).sized(6_000, setting)), PosteriorFit)


def test_later_levels_spend_more_where_that_was_asked_for() -> None:
    score = AdditiveScore(Absolute().slopes(FINE, Fraction(1)))
    tree = TreeMechanism(CurveSetting(Fraction(7)), 4, score, 3, growth=Fraction(2))
    assert tree.shares == [Fraction(1, 7), Fraction(2, 7), Fraction(4, 7)]
    recorder = Recorder()
    tree.draw(records_of([(2, 0)]), recorder)
    assert sorted(set(recorder.rates)) == [1, 2, 4]
    even = TreeMechanism(CurveSetting(Fraction(7)), 4, score, 3)
    assert even.error().noise < tree.error().noise


def test_curves_turn_around() -> None:
    step = Curve(np.array([0, 3, 7]), np.array([0.0, 0.5, 1.0]), 10)
    points = np.arange(10)
    np.testing.assert_array_equal(step.mirrored().at(points), step.at(points)[::-1])
    np.testing.assert_array_equal(step.upside_down().at(points), 1 - step.at(points))
    smooth = Curve(np.array([0, 4, 9]), np.array([0.0, 0.5, 1.0]), 10, interpolated=True)
    np.testing.assert_allclose(smooth.mirrored().at(points), smooth.at(points)[::-1])
    knots, values = step.corners()
    assert knots.tolist() == [0, 2, 3, 6, 7, 9]
    assert values.tolist() == [0.0, 0.0, 0.5, 0.5, 1.0, 1.0]


def test_an_epsilon_too_small_for_the_noise_is_refused() -> None:
    mechanism = mechanism_for(blueprint("bins").sized(100, CurveSetting(Fraction(1, 10**12))))
    with pytest.raises(InputError, match="too small"):
        mechanism.release(records_of([]))


def test_a_shape_without_a_published_tree_is_refused_by_its_name() -> None:
    class Bent(Convex):
        """A shape that no paper has a tree for."""

        name = "bent"

    with pytest.raises(InputError, match="no published tree for the shape 'bent'"):
        mechanism_for(blueprint("threshold", points=5, shape=Bent()).sized(99, CurveSetting(Fraction(1))))
