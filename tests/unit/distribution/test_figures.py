"""Quantiles, shares, the Lorenz curve and Gini against what they are for the records themselves."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from isotone.distribution import DistributionMechanism, LineFigures
from isotone.distribution.band import ShareBand, band_for_records
from isotone.distribution.estimate import bin_counts, shares_below
from isotone.distribution.partition import ROOTS, Partition
from isotone.distribution.plan import SHAPES, plan
from isotone.privacy.draws import SeededDraws
from isotone.reading.lines import CellLine


def exact_figures(line: CellLine, cells: Any) -> LineFigures:
    """With no noise at all: each cell is a bin, and the band is as narrow as a line."""
    shares = np.concatenate([[0.0], np.cumsum(cells)]) / cells.sum()
    edges = np.arange(line.cells + 1)
    return LineFigures.of(line.ends(), edges, shares, ShareBand(shares, shares, float(cells.sum())))


VALUES = np.sort(np.random.default_rng(1).choice([0, 1, 1, 1, 2, 5, 5, 9, 30], 400))
LINE = CellLine.of(Fraction(0), Fraction(30), "integers")
FIGURES = exact_figures(LINE, np.bincount(VALUES, minlength=31))


def test_without_noise_shares_and_quantiles_are_those_of_the_records() -> None:
    for x in (-1, 0, 0.5, 1, 4.9, 5, 29, 30, 99):
        estimate, low, high = FIGURES.share_up_to(x)
        assert estimate == low == high == pytest.approx(np.mean(x >= VALUES))
    for level in (0.01, 0.25, 0.5, 0.9, 0.999):
        true = VALUES[int(np.ceil(level * VALUES.size - 1e-9)) - 1]
        assert FIGURES.quantile(level) == (true, true, true)
    assert FIGURES.share_between(0, 5)[0] == pytest.approx(np.mean((VALUES > 0) & (VALUES <= 5)))


def test_without_noise_lorenz_and_gini_are_those_of_the_records() -> None:
    total, n = VALUES.sum(), VALUES.size
    for level in (0.25, 0.5, 0.75):
        true = VALUES[: int(level * n)].sum() / total
        estimate, low, high = FIGURES.lorenz(np.array([level]))[0]
        assert low - 1e-3 <= true <= high + 1e-3
        assert estimate == pytest.approx(true, abs=2e-3)
    true = 2 * np.sum(np.arange(1, n + 1) * VALUES) / (n * total) - (n + 1) / n
    estimate, low, high = FIGURES.gini()
    assert low <= true <= high
    assert high - low < 0.02
    assert estimate == pytest.approx(true, abs=5e-3)


def test_a_share_that_is_reached_exactly_is_reached() -> None:
    """Where as many records lie at a value or below as are asked for, the quantile is that value, and the sum begins after them."""
    for value in (0, 1, 2, 5, 9):
        assert FIGURES.quantile(float(np.mean(value >= VALUES))) == (value, value, value)
    halves = exact_figures(LINE, np.bincount([0, 30], minlength=31))
    estimate, low, high = halves.lorenz(np.array([0.75]))[0]
    assert low <= 0.5 <= high + 1e-12
    assert estimate == pytest.approx(0.5, abs=2e-3)


def test_a_share_between_two_values_may_lack_at_both_ends() -> None:
    band = ShareBand(np.array([0, 0.1, 0.4, 1]), np.array([0, 0.3, 0.7, 1]), 50.0)
    ends = CellLine.of(Fraction(0), Fraction(3), "even", 3).ends()
    figures = LineFigures.of(ends, np.arange(4), np.array([0, 0.2, 0.5, 1]), band)
    assert figures.share_between(1, 2) == pytest.approx((0.3, 0.4 - 0.3, 0.7 - 0.1))


@pytest.mark.parametrize("epsilon", [0.3, 3])
def test_intervals_hold_together_whenever_the_band_does(epsilon) -> None:
    mechanism, rng = DistributionMechanism(31, epsilon=epsilon), np.random.default_rng(2)
    cells = np.bincount(VALUES, minlength=31)
    total, n = VALUES.sum(), VALUES.size
    gini = 2 * np.sum(np.arange(1, n + 1) * VALUES) / (n * total) - (n + 1) / n
    held = 0
    for _ in range(25):
        line = mechanism.simulate(cells[None, None], rng)[0]
        band = band_for_records(mechanism, line, 0.9)
        shares = (np.concatenate([[0], np.cumsum(cells)]) / n)[line.edges]
        if not np.all((band.low <= shares) & (shares <= band.high)):
            continue
        held += 1
        below = shares_below(line.edges, bin_counts(mechanism, line).sum(axis=0), 31)
        figures = LineFigures.of(LINE.ends(), line.edges, below, band)
        for level in (0.1, 0.5, 0.9):
            value, low, high = figures.quantile(level)
            assert low <= VALUES[int(np.ceil(level * n)) - 1] <= high
            assert low <= value <= high
        for x in (0, 3.5, 9):
            estimate, low, high = figures.share_up_to(x)
            assert low - 1e-12 <= np.mean(x >= VALUES) <= high + 1e-12
            assert low <= estimate <= high
        for level in (0.2, 0.6):
            _, low, high = figures.lorenz(np.array([level]))[0]
            assert low - 1e-3 <= VALUES[: int(level * n)].sum() / total <= high + 1e-3
        _, low, high = figures.gini()
        assert low <= gini <= high
    assert held > 10


def test_between_two_bins_an_interval_reaches_from_one_end_to_the_other() -> None:
    line = CellLine.of(Fraction(0), Fraction(40), "even", 40)
    band = ShareBand(np.array([0, 0.2, 1.0]), np.array([0, 0.3, 1.0]), 9.0)
    figures = LineFigures.of(line.ends(), np.array([0, 10, 40]), np.linspace(0, 1, 41), band)
    assert figures.share_up_to(5)[1:] == (0.0, 0.3)
    assert figures.share_up_to(10)[1:] == (0.2, 0.3)
    assert figures.share_up_to(12.5)[1:] == (0.2, 1.0)
    assert figures.quantile(0.1)[1:] == (0.0, 10.0)
    assert figures.quantile(0.25)[1:] == (0.0, 40.0)
    assert figures.quantile(0.5)[1:] == (10.0, 40.0)


def test_bins_of_a_partition_are_known_from_others() -> None:
    cells = np.random.default_rng(0).poisson(3, 100)
    partition = Partition(Fraction(1))
    found = partition.edges(cells, SeededDraws(np.random.default_rng(1)))
    assert partition.could_give(found)
    assert found.size > ROOTS + 2
    assert not partition.could_give(np.delete(found, 1))
    assert not partition.could_give(np.array([0, 7, 50, 100]))


def test_estimates_are_shares_that_rise_and_lie_near_the_truth() -> None:
    rng = np.random.default_rng(3)
    cells = np.bincount(np.minimum(rng.exponential(300, 4000).astype(int), 4095), minlength=4096)
    truth = np.concatenate([[0], np.cumsum(cells)]) / cells.sum()
    cases: list[tuple[dict[str, Any], float]] = [
        ({"epsilon": 1}, 0.03),
        ({"rho": "1/4"}, 0.03),
        ({"epsilon": 30}, 0.002),
    ]
    for budget, most in cases:
        mechanism = DistributionMechanism(4096, **budget)
        line = mechanism.simulate(cells[None, None], rng)[0]
        counts = bin_counts(mechanism, line)
        found = shares_below(line.edges, counts.sum(axis=0), 4096)
        assert np.all(counts >= 0)
        assert found[0] == 0
        assert found[-1] == 1
        assert np.all(np.diff(found) >= 0)
        assert np.abs(found - truth).max() < most
        np.testing.assert_array_equal(bin_counts(mechanism, line), counts)  # the same for every reader


@pytest.mark.parametrize("budget", [{"epsilon": 10**9}, {"rho": 10**6}], ids=str)
def test_an_enormous_budget_has_no_noise_to_speak_of_and_the_records_shares(budget) -> None:
    """Noise has a variance of 0 there, in floats."""
    cells = np.arange(50)[None, None]
    mechanism = DistributionMechanism(50, **budget)
    line = mechanism.release(cells)[0]
    truth = np.cumsum(cells[0, 0]) / cells.sum()
    np.testing.assert_allclose(
        shares_below(line.edges, bin_counts(mechanism, line)[0], 50)[1:], truth, atol=1e-4
    )
    band = band_for_records(mechanism, line, 0.9)
    np.testing.assert_allclose(band.low[1:], truth, atol=1e-6)
    np.testing.assert_allclose(band.high[1:], truth, atol=1e-6)


def test_no_records_at_all_are_spread_evenly() -> None:
    found = shares_below(np.array([0, 5, 10]), np.zeros(2), 10)
    np.testing.assert_allclose(found, np.linspace(0, 1, 11))


def test_the_shape_of_heaps_has_four_of_them_where_twentieths_begin() -> None:
    for cells in (20, 1000, 4096):
        heights = SHAPES["heaps"]((np.arange(cells) + 0.5) / cells)
        at = np.flatnonzero(heights == 1.0)
        assert (at * 20 // cells).tolist() == [2, 3, 7, 15]
        assert all((x - 1) * 20 // cells < x * 20 // cells for x in at)
        assert set(heights.tolist()) == {1.0, 1e-6}


def test_a_plan_of_very_many_records_simulates_each_shape_once() -> None:
    mechanism = DistributionMechanism(40, epsilon=1)
    assert plan(mechanism, 10**6).rows == plan(mechanism, 10**6, 1).rows
    assert plan(mechanism, 10**4).rows != plan(mechanism, 10**4, 1).rows
