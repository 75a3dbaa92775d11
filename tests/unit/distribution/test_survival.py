"""Survival from noisy counts: bounds against every way that records can lie, bands that hold as often as stated, and figures."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from isotone.distribution import DistributionMechanism, MeasuredLine
from isotone.distribution import survival as rounds
from isotone.distribution.band import TotalsLaw
from isotone.distribution.estimate import bin_counts
from isotone.distribution.survival import (
    SurvivalBand,
    SurvivalFigures,
    band_for_survival,
    kaplan_meier,
    survival_at,
    survival_counts,
)
from isotone.errors import InputError

CELLS = 400


def by_hand(events: Any, censored: Any) -> tuple[list[float], list[float]]:
    """The two estimators, one cell after the other."""
    alive, hazard, left = 1.0, 0.0, int(np.sum(events) + np.sum(censored))
    curve, sums = [], []
    for ended, lost in zip(events, censored, strict=True):
        if left:
            alive *= 1 - ended / left
            hazard += ended / left
        left -= int(ended + lost)
        curve.append(alive)
        sums.append(hazard)
    return curve, sums


def test_the_estimators_are_those_of_the_textbook() -> None:
    """Ten patients: 6, 6, 6, 6+, 7, 9+, 10, 10+, 11+, 13 weeks, of which those with a plus were censored."""
    events, censored = np.zeros((2, 14), int)
    for week, died in [(6, 3), (7, 1), (10, 1), (13, 1)]:
        events[week] = died
    for week in (6, 9, 10, 11):
        censored[week] += 1
    alive, hazard = kaplan_meier(events, censored)
    assert alive[6] == pytest.approx(0.7)
    assert alive[7] == pytest.approx(0.7 * 5 / 6)
    assert alive[10] == pytest.approx(0.7 * 5 / 6 * 3 / 4)
    assert alive[13] == 0
    assert hazard[10] == pytest.approx(3 / 10 + 1 / 6 + 1 / 4)
    for one, other in zip(by_hand(events, censored), (alive, hazard), strict=True):
        np.testing.assert_allclose(one, other)


@pytest.mark.parametrize("ties", [False, True])
def test_bounds_of_counts_bound_both_estimators(ties) -> None:
    """Random records in random bins: whatever bounds hold for events and numbers at risk, both estimators are inside at all ends."""
    rng = np.random.default_rng(7)
    tight = 0
    for _ in range(1_500):
        cells = int(rng.integers(2, 13))
        most = int(rng.integers(2, 40 if ties else 4))
        counts = rng.integers(0, most, (2, cells + 1)) * (rng.random((2, cells + 1)) < 0.7)
        counts[0, -1] = 0
        inner = rng.choice(np.arange(1, cells), int(rng.integers(0, cells)), replace=False)
        edges = np.concatenate([[0], np.sort(inner), [cells, cells + 1]])
        bins = np.add.reduceat(counts, edges[:-1], axis=1)
        ended = np.cumsum(bins[0])[:-1].astype(float)
        left = np.concatenate([bins.sum(axis=0)[::-1].cumsum()[::-1], [0]]).astype(float)
        off = rng.integers(0, rng.choice([1, 3, 20]), (4, left.size))
        few = np.maximum.accumulate(np.maximum(ended - off[0, : ended.size], 0))
        many = np.minimum.accumulate((ended + off[1, : ended.size])[::-1])[::-1]
        least = np.maximum.accumulate(np.maximum(left - off[2], 0)[::-1])[::-1]
        larger = np.minimum.accumulate(left + off[3])
        band = rounds._band(few, many, least, larger)
        alive, hazard = (each[edges[1:-1] - 1] for each in kaplan_meier(*counts))
        low, high = band.least_hazard[1:-1], band.most_hazard[1:-1]
        slack = 1e-9
        assert np.all(low <= hazard + slack)
        assert np.all(hazard <= high + slack)
        assert np.all(np.exp(-high) <= alive + slack)
        assert np.all(alive <= np.exp(-low) + slack)
        tight += int(np.all(np.exp(-low) - np.exp(-high) < 0.5))
    assert tight > 100  # they say something


def test_each_step_of_the_bounds_is_needed() -> None:
    """With one number at risk in place of the other the bounds are wrong: 10 people, of whom one ends in each of two bins."""
    few, many = np.array([1.0, 2.0]), np.array([1.0, 2.0])
    left = np.array([10.0, 5.0, 1.0, 0.0])
    band = rounds._band(few, many, left, left)
    np.testing.assert_allclose(band.least_hazard[1:-1], [1 / 10, 1 / 10 + 1 / 5])
    np.testing.assert_allclose(band.most_hazard[1:-1], [1 / 5, 1 / 5 + 1 / 1])
    late = rounds._band(np.array([0.0, 1.0]), np.array([1.0, 1.0]), left, left)
    np.testing.assert_allclose(late.least_hazard[1:-1], [0, 1 / 10])  # early, where many are at risk
    np.testing.assert_allclose(late.most_hazard[1:-1], [1 / 5, 1.0])  # late, where few are
    nobody = rounds._band(few, many, np.array([10.0, 0.0, 0.0, 0.0]), left)
    assert np.all(np.isinf(nobody.most_hazard[1:]))
    assert np.all(nobody.ended.high[1:] == 1)


def records(name: str, n: int, rng: np.random.Generator) -> np.ndarray:
    """People by status and cell, the last of which is beyond the line."""
    if name == "clinic":
        time, end = rng.exponential(0.8, n), np.minimum(rng.uniform(0, 3, n), 1.5)
    elif name == "ties":
        time, end = np.ceil(rng.exponential(0.8, n) * 8) / 8, np.ceil(rng.uniform(0, 3, n) * 4) / 4
    else:  # nearly nobody ends
        time, end = rng.exponential(50, n), rng.uniform(0.9, 2, n)
    seen = np.minimum(time, end)
    cell = np.where(seen > 1, CELLS, np.clip(np.ceil(seen * CELLS) - 1, 0, CELLS - 1)).astype(int)
    event = (time <= end) & (seen <= 1)
    return np.array([np.bincount(cell[which], minlength=CELLS + 1) for which in (event, ~event)])


@pytest.mark.parametrize("budget", [{"epsilon": 1}, {"rho": "1/4"}], ids=["pure", "zcdp"])
@pytest.mark.parametrize("name", ["clinic", "ties", "few"])
def test_the_band_holds_for_both_estimators_as_often_as_stated(name, budget, monkeypatch) -> None:
    """At 80 %, 60 releases: fewer than 33 inside has a chance below 1e-5. With a fifth of the reach far fewer are."""
    inside = {1.0: 0, 0.2: 0}
    plain = rounds.risen_bounds
    mechanism = DistributionMechanism(CELLS + 1, statuses=2, apart=1, **budget)
    for place in range(60):
        rng = np.random.default_rng([place, 5])
        counts = records(name, int(rng.choice([150, 400])), rng)
        line = mechanism.simulate(counts[None], rng)[0]
        curve, hazard = (each[line.edges[1:-1] - 1] for each in kaplan_meier(*counts))
        for part in inside:
            monkeypatch.setattr(
                rounds, "risen_bounds", lambda totals, away, part=part: plain(totals, part * away)
            )
            band = band_for_survival(mechanism, line, 0.8)
            if part < 1 and np.all(np.isinf(band.most_hazard[1:])):
                continue  # the bounds crossed: nothing is claimed
            low, high = band.least_hazard[1:-1] - 1e-9, band.most_hazard[1:-1] + 1e-9
            holds = np.all((low <= hazard) & (hazard <= high))
            inside[part] += bool(holds and np.all((np.exp(-high) <= curve) & (curve <= np.exp(-low))))
    assert inside[1.0] >= 33
    assert inside[0.2] < 33


def test_what_cannot_be_known_is_everything_and_nothing_raises() -> None:
    for counts in (np.zeros((2, CELLS + 1), int), records("clinic", 3, np.random.default_rng(0))):
        mechanism = DistributionMechanism(CELLS + 1, statuses=2, apart=1, epsilon="0.01")
        line = mechanism.simulate(counts[None], np.random.default_rng(1))[0]
        band = band_for_survival(mechanism, line, 0.95)
        assert np.all(band.ended.low[:-1] <= band.ended.high[:-1])
        figures = SurvivalFigures.measured(mechanism, line, ends(), 0.95)
        assert figures.survival(0.9)[1] == 0
        assert all(math.isfinite(x) for x in figures.restricted_mean(1.0))
    unknown = SurvivalBand.unknown(4)
    assert unknown.ended.low.tolist() == [0, 0, 0, 0, 1]
    assert unknown.ended.high.tolist() == [0, 1, 1, 1, 1]
    with pytest.raises(InputError, match=r"0\.99"):
        band_for_survival(mechanism, line, 0.999)


def ends() -> tuple[np.ndarray, np.ndarray]:
    return np.arange(CELLS) / CELLS, np.arange(1, CELLS + 1) / CELLS


def test_figures_of_a_release_lie_around_those_of_the_records() -> None:
    rng = np.random.default_rng(3)
    counts = records("clinic", 20_000, rng)
    mechanism = DistributionMechanism(CELLS + 1, statuses=2, apart=1, epsilon=2)
    line = mechanism.simulate(counts[None], rng)[0]
    assert line.edges[-2] == CELLS  # beyond the horizon is a bin of its own
    figures = SurvivalFigures.measured(mechanism, line, ends(), 0.95)
    curve, hazard = kaplan_meier(*counts)
    for at in (40, 200, 399):
        for (value, low, high), truth, near in (
            (figures.survival(figures.stop[at]), curve[at], 0.01),
            (figures.hazard(figures.stop[at]), hazard[at], 0.02),
            (figures.at_risk(figures.stop[at]), counts.sum(axis=0)[at + 1 :].sum(), 60),
        ):
            assert low <= truth <= high
            assert low <= value <= high
            assert abs(value - truth) < near
    area = (1 + 2 * curve[:-2].sum() + curve[-2]) / 2 / CELLS
    value, low, high = figures.restricted_mean(1.0)
    assert low < area < high
    assert abs(value - area) < 0.01
    half = figures.restricted_mean(0.5)
    assert half[0] < value
    assert half[0] == pytest.approx(np.mean(np.concatenate([[1], curve[:199]])) / 2, abs=0.01)
    middle, low, high = figures.quantile(0.5)
    assert low <= figures.stop[np.searchsorted(-curve, -0.5)] <= high
    assert abs(middle - 0.8 * math.log(2)) < 0.05
    assert figures.quantile(0.99)[0] == math.inf  # not reached before the horizon
    assert figures.survival(0)[0] > 0.99
    assert figures.at_risk(-1)[0] == pytest.approx(20_000, abs=100)


def test_inside_a_bin_records_are_evenly_spread_and_a_bin_of_one_cell_has_its_own_estimators() -> None:
    """One bin of ten cells with 60 events and 40 censored of 200, then the exact estimators of single cells."""
    counts = np.array([[60.0, 0.0], [40.0, 100.0]])
    alive, hazard = survival_at(np.array([0, 10, 11]), counts)
    fall = 6 / (200 - 10 * np.arange(10))
    np.testing.assert_allclose(alive[:-1], np.concatenate([[1.0], np.cumprod(1 - fall)]))
    np.testing.assert_allclose(hazard[:-1], np.concatenate([[0.0], np.cumsum(fall)]))
    single = np.array([[40.0, 1, 0, 1, 0], [0.0, 30, 2, 0, 300]])
    for found, exact in zip(
        survival_at(np.arange(6), single), kaplan_meier(*single.astype(int)), strict=True
    ):
        np.testing.assert_allclose(found[1:], exact)
    assert survival_at(np.arange(3), np.zeros((2, 2)))[0].tolist() == [1, 1, 1]


def test_bins_follow_times_of_every_status_and_nobody_ends_beyond() -> None:
    """A heap of censored people and no event: bins are as narrow there as a cell."""
    counts = np.zeros((2, 4_001), np.int64)
    counts[1, 1234], counts[1, -1] = 9_000, 500
    mechanism = DistributionMechanism(4_001, statuses=2, apart=1, epsilon=1)
    line = mechanism.simulate(counts[None], np.random.default_rng(0))[0]
    assert {1234, 1235, 4_000} <= set(line.edges.tolist())
    noisy = np.array(line.counts)
    noisy[0, [0, line.bins - 1]] += 5_000  # as if noise said so
    estimated = survival_counts(mechanism, replace(line, counts=noisy))
    assert estimated[0, 0] > 1_000
    assert estimated[0, -1] == 0


def test_one_reach_is_for_events_and_numbers_at_risk(monkeypatch) -> None:
    """What is looked up among the draws is the larger of both, each in its own scale."""
    rng, asked = np.random.default_rng(2), list[np.ndarray]()
    mechanism = DistributionMechanism(CELLS + 1, statuses=2, apart=1, epsilon=1)
    line = mechanism.simulate(records("clinic", 400, rng)[None], rng)[0]
    plain = TotalsLaw.upper

    def upper(law: TotalsLaw, statistic: Any, outside: float) -> float:
        asked.extend(statistic(part) for part in law.parts())
        return plain(law, statistic, outside)

    monkeypatch.setattr(TotalsLaw, "upper", upper)
    band_for_survival(mechanism, line, 0.9)
    law = TotalsLaw.of(mechanism, line)
    (draws,) = law.parts()
    events = np.max(np.abs(draws[:, 0, :-1]) / law.scale[:-1], axis=1)
    every = draws.sum(axis=1)
    left = every[:, -1:] - np.concatenate([np.zeros((len(every), 1)), every[:, :-1]], axis=1)
    spread = np.sqrt(2) * np.concatenate([law.scale[-1:], law.back[:-1]])
    np.testing.assert_allclose(asked[0], np.maximum(events, np.max(np.abs(left) / spread, axis=1)))


def test_so_few_records_have_public_bins_and_the_partition_s_part_counts_them() -> None:
    """Below 60 records times ε, by the noisy number or a public one, and never by that of the records."""
    counts = np.zeros((2, CELLS + 1), np.int64)
    counts[0, 0] = 100_000
    for number, halved in ((59, False), (60, True)):
        mechanism = DistributionMechanism(CELLS + 1, statuses=2, apart=1, epsilon=1, public_n=number)
        rule = mechanism.rule(number)
        assert rule.halves == halved
        line = mechanism.release(counts[None])[0]
        assert (line.bins == 9) != halved
        spent = mechanism.parts(rule)
        assert spent == ((0, Fraction(1, 8), Fraction(7, 8)) if halved else (0, 0, 1))
    assert DistributionMechanism(CELLS, epsilon=1, public_n=1).rule(1).halves, "elsewhere halving goes on"


def test_of_few_bins_events_are_estimated_by_the_time_at_risk() -> None:
    """With one hazard and much noise, hazards of bins lie nearer to each other than densities do, as those at risk become few."""
    edges = np.append(np.arange(9) * CELLS // 8, CELLS + 1)
    left = 2_000 * np.exp(-0.4 * np.arange(9))
    counts = (
        np.array([np.append(-np.diff(left), 0), np.append(np.zeros(8), left[-1])]).round().astype(np.int64)
    )
    mechanism = DistributionMechanism(CELLS + 1, statuses=2, apart=1, epsilon=Fraction(1, 50), public_n=2_000)
    line = MeasuredLine(edges, counts, 2_000, 5)
    events, censored = survival_counts(mechanism, line)
    every = (events + censored)[::-1].cumsum()[::-1]
    hazards = events[:-1] / every[:-1]
    plain = bin_counts(mechanism, line)
    others = plain[0, :-1] / plain.sum(axis=0)[::-1].cumsum()[::-1][:-1]
    assert np.ptp(np.log(hazards)) < 0.8 * np.ptp(np.log(others))
    assert events[-1] == 0


def test_time_beyond_the_line_is_no_heap() -> None:
    """Half of the records last longer. As dense a cell as that would tell that densities jump everywhere."""
    rng = np.random.default_rng(4)
    counts = np.zeros((2, CELLS + 1), np.int64)
    counts[1] = np.append(rng.multinomial(150, np.full(CELLS, 1 / CELLS)), 150)
    mechanism = DistributionMechanism(CELLS + 1, statuses=2, apart=1, epsilon=Fraction(1, 10), public_n=300)
    found = [
        np.std(bin_counts(mechanism, mechanism.simulate(counts[None], rng)[0])[1, :-1]) for _ in range(30)
    ]
    assert np.mean(found) < 3.2  # 2.3, and 4.1 if it is a heap


def test_the_number_of_records_is_that_of_events_and_of_censored_ones() -> None:
    counts = np.zeros((2, CELLS + 1), np.int64)
    counts[0, 3], counts[1, 9] = 300, 700
    mechanism = DistributionMechanism(CELLS + 1, statuses=2, apart=1, epsilon=10**6)
    assert mechanism.release(counts[None])[0].number == 1_000


def test_inside_a_bin_as_many_may_be_at_risk_as_at_its_beginning_and_as_few_as_at_its_end(
    monkeypatch,
) -> None:
    """Two bins of ten cells, and the time beyond. A restricted mean is between the curves of the least and of the most."""
    mechanism = DistributionMechanism(21, statuses=2, apart=1, epsilon=1)
    line = MeasuredLine(np.array([0, 10, 20, 21]), np.array([[30, 20, 0], [10, 10, 30]]), 100, 4)
    band = SurvivalBand(
        np.array([90.0, 50.0, 20.0, 0.0]), np.array([110.0, 70.0, 40.0, 9.0]),
        np.array([0.0, 0.2, 0.5, 0.5]), np.array([0.0, 0.4, 0.9, np.inf]),
    )  # fmt: skip
    monkeypatch.setattr(rounds, "band_for_survival", lambda *_: band)
    figures = SurvivalFigures.measured(mechanism, line, (np.arange(20.0), np.arange(1.0, 21.0)), 0.9)
    assert figures.at_risk(4)[1:] == (50.0, 110.0)
    assert figures.at_risk(10)[1:] == (50.0, 70.0)
    assert figures.at_risk(14.5)[1:] == (20.0, 70.0)
    _, low, high = figures.restricted_mean(20.0)
    assert low == pytest.approx(10 * np.exp(-0.4) + 10 * np.exp(-0.9))
    assert high == pytest.approx(10 + 10 * np.exp(-0.2))


def test_an_interval_reaches_from_one_end_of_a_cell_to_the_other() -> None:
    shares = [[0, 0.2, 0.5, 1], [0, 0.1, 0.4, 1], [0, 0.3, 0.7, 1]]
    numbers = [[100, 80, 50, 0], [90, 70, 40, 0], [110, 90, 60, 0], [0, 0.2, 0.7, 0.7]]
    ends = np.array([0.0, 1, 2]), np.array([1.0, 2, np.inf])
    figures = SurvivalFigures(*ends, *(np.array(row, float) for row in shares + numbers))
    assert figures.restricted_mean(2) == pytest.approx((1.55, 0.7 + 0.3, 1 + 0.9))
    assert figures.at_risk(1.5) == (65, 40, 90)
    assert figures.at_risk(1) == (80, 70, 90)
