"""Bands of a distribution: what they are made of by brute force, how often they hold, and what happens at their limits."""

from __future__ import annotations

import math
from dataclasses import fields
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom
from tests.support.chisquare import FALSE_ALARM
from tests.support.noise_scripts import drawn_from

from isotone.distribution import DistributionMechanism, MeasuredLine
from isotone.distribution.band import (
    DRAWS,
    ShareBand,
    TotalsLaw,
    _allowed,
    _farthest,
    band_for_population,
    band_for_records,
    checked,
    totals_bounds,
)
from isotone.distribution.estimate import running_totals
from isotone.errors import InputError
from isotone.linear.least_squares import SumTree

RNG = np.random.default_rng(5)
CELLS = 64
TRUTHS = {
    "a heap": np.bincount([40] * 300, minlength=CELLS),
    "even": np.full(CELLS, 16),
    "two ends": np.bincount([0] * 90 + [CELLS - 1] * 400, minlength=CELLS),
    "few": np.bincount([7, 9, 60, 61, 62], minlength=CELLS),
}
RUNS = 150
CONFIDENCES = (0.8, 0.95)


def measured(mechanism: DistributionMechanism, cells: Any, rng: Any) -> MeasuredLine:
    return mechanism.simulate(np.asarray(cells).reshape(1, mechanism.statuses, -1), rng)[0]


def drawn(law: TotalsLaw) -> np.ndarray:
    """All draws, by draw, status and bin."""
    return np.concatenate(list(law.parts()))


def law_of(draws: Any) -> TotalsLaw:
    """A law with these draws, in two parts."""
    ones = np.ones(draws.shape[2])
    return TotalsLaw(ones, lambda: [draws[:40], draws[40:]], ones, ones)


def inside(band: ShareBand, line: MeasuredLine, cells: Any) -> bool:
    shares = np.concatenate([[0], np.cumsum(cells)])[line.edges] / max(cells.sum(), 1)
    return bool(np.all((band.low <= shares + 1e-12) & (shares <= band.high + 1e-12)))


@pytest.mark.parametrize("budget", [{"epsilon": 1}, {"rho": "1/4"}], ids=["pure", "zcdp"])
@pytest.mark.parametrize("name", TRUTHS)
def test_the_band_for_the_records_holds_as_often_as_stated(name, budget) -> None:
    mechanism = DistributionMechanism(CELLS, **budget)
    cells, rng, hits, narrow = TRUTHS[name], np.random.default_rng(3), np.zeros(2), np.zeros(2)
    for _ in range(RUNS):
        line = measured(mechanism, cells, rng)
        for at, confidence in enumerate(CONFIDENCES):
            band = band_for_records(mechanism, line, confidence)
            hits[at] += inside(band, line, cells)
            middle, away = (band.low + band.high) / 2, (band.high - band.low) / 6
            narrow[at] += inside(ShareBand(middle - away, middle + away, 0.0), line, cells)
    assert np.all(binom.cdf(hits, RUNS, CONFIDENCES) > FALSE_ALARM)
    if name != "few":  # where the band says something, a third of it is not enough
        assert np.all(binom.cdf(narrow, RUNS, CONFIDENCES) < FALSE_ALARM)


@pytest.mark.parametrize("size", [60, 400])
def test_the_band_for_the_population_holds_as_often_as_stated(size) -> None:
    """Samples of a law are drawn anew each time. A third of the band is not enough."""
    mechanism, rng = DistributionMechanism(CELLS, epsilon=2), np.random.default_rng(4)
    law = np.exp(-np.arange(CELLS) / 8)
    law /= law.sum()
    hits, narrow, runs = np.zeros(2), np.zeros(2), 200
    for _ in range(runs):
        line = measured(mechanism, rng.multinomial(size, law), rng)
        shares = np.concatenate([[0.0], np.cumsum(law)])[line.edges]
        for at, confidence in enumerate(CONFIDENCES):
            band = band_for_population(mechanism, line, confidence)
            hits[at] += bool(np.all((band.low <= shares + 1e-9) & (shares <= band.high + 1e-9)))
            low, high = 0.65 * band.low + 0.35 * band.high, 0.35 * band.low + 0.65 * band.high
            narrow[at] += bool(np.all((low <= shares) & (shares <= high)))
    assert np.all(binom.cdf(hits, runs, CONFIDENCES) > FALSE_ALARM)
    assert np.all(binom.cdf(narrow, runs, CONFIDENCES) < FALSE_ALARM)


@pytest.mark.parametrize("confidence", CONFIDENCES)
def test_half_of_what_may_go_wrong_is_for_the_sample(confidence: float) -> None:
    """By the inequality of Dvoretzky, Kiefer and Wolfowitz with Massart's constant: 2·exp(−2·N·d²) for a distance of d."""
    mechanism = DistributionMechanism(CELLS, epsilon=2)
    line = measured(mechanism, TRUTHS["even"], np.random.default_rng(6))
    own = band_for_records(mechanism, line, (1 + confidence) / 2)
    wide = band_for_population(mechanism, line, confidence)
    for apart in ((own.low - wide.low)[wide.low > 0][:-1], (wide.high - own.high)[wide.high < 1][1:]):
        assert apart.size
        assert 2 * np.exp(-2 * own.records * apart**2) == pytest.approx((1 - confidence) / 2)


@pytest.mark.parametrize("size", [19, 99, 100, 101, 150])
@pytest.mark.parametrize("outside", [0.05, 0.1, 0.37])
def test_a_bound_is_the_least_rank_that_is_passed_as_seldom_as_stated(size: int, outside: float) -> None:
    """A number is equally likely to have any rank among ``size`` others."""
    others = np.asarray(np.random.default_rng(0).permutation(size) + 1, np.float64)
    bound = law_of(others[:, None, None]).upper(lambda part: part[:, 0, 0], outside)
    above = (size + 1 - bound) / (size + 1)
    assert above <= outside + 1e-12 < above + 1 / (size + 1) + 2e-12


def test_records_of_one_unit_are_no_sample_of_a_population() -> None:
    mechanism = DistributionMechanism(CELLS, epsilon=1, contributions=2)
    line = measured(mechanism, TRUTHS["even"], np.random.default_rng(0))
    with pytest.raises(InputError, match="several records"):
        band_for_population(mechanism, line, 0.9)


@pytest.mark.parametrize("confidence", [0.995, 0.9999])
def test_a_confidence_that_draws_cannot_tell_is_refused(confidence) -> None:
    with pytest.raises(InputError, match=r"0\.99 at most"):
        checked(confidence)
    assert checked(0.95) == pytest.approx(0.05)
    assert math.ceil((1 - 0.1 * checked(0.99)) * (DRAWS + 1)) <= DRAWS


def test_a_rank_among_fresh_draws_is_passed_as_seldom_as_stated() -> None:
    """Exchangeable numbers, with ties: the statistic that is left out is above the bound in few of the cases."""
    rng, outside = np.random.default_rng(1), 0.1
    for draw in (lambda: rng.standard_normal(100), lambda: rng.integers(0, 4, 100).astype(float)):
        passed = 0
        for _ in range(2000):
            statistic = draw()
            passed += statistic[0] > law_of(statistic[1:, None, None]).upper(
                lambda part: part[:, 0, 0], outside
            )
        assert binom.sf(passed - 1, 2000, outside) > FALSE_ALARM


def test_the_farthest_share_is_found_between_all_shares() -> None:
    noise = RNG.laplace(size=(40, 6)).cumsum(axis=1)
    low = np.array([0.0, 0.2, 0.3, 0.3, 0.9])
    high = np.array([0.5, 0.2, 0.8, 1.0, 1.0])
    front = np.arange(1.0, 6.0)
    weight = front + 0.05, front, front + front[::-1]
    found = _farthest(noise, weight, low, high)
    best = np.zeros(40)
    for part in np.linspace(0, 1, 4001):
        f = low + part * (high - low)
        spread = np.sqrt(weight[0] - 2 * weight[1] * f + weight[2] * f**2)
        best = np.maximum(best, (np.abs(noise[:, :-1] - f * noise[:, -1:]) / spread).max(axis=1))
    assert np.all(found >= best - 1e-12)
    np.testing.assert_allclose(found, best, rtol=1e-4)


def test_allowed_shares_are_those_that_a_walk_over_all_finds() -> None:
    rng = np.random.default_rng(2)
    for reach in (0.4, 1.3, 8.0):
        totals = np.sort(rng.integers(0, 90, 5)).astype(float)
        totals[-1] = max(totals[-1], 20.0)
        front = np.arange(1.0, 5.0)
        weight = front + 0.05, front, front + front[::-1]
        low, high = np.zeros(4), np.ones(4)
        shares = np.linspace(0, 1, 20_001)[:, None]
        spread = np.sqrt(weight[0] - 2 * weight[1] * shares + weight[2] * shares**2)
        fits = np.abs(totals[:-1] - shares * totals[-1]) <= reach * spread
        found = _allowed(totals, reach, weight, low, high)
        if found is None:
            assert not fits.any(axis=0).all()
            continue
        for place in range(4):
            held = shares[fits[:, place], 0]
            assert found[0][place] <= held.min() + 1e-9
            assert found[1][place] >= held.max() - 1e-9


def test_a_band_about_nothing_or_one_bin_or_a_contradiction_is_from_0_to_1() -> None:
    mechanism = DistributionMechanism(CELLS, epsilon=1)
    one = MeasuredLine(np.array([0, CELLS]), np.array([[5]]), 5, 1)
    none = MeasuredLine(np.array([0, 32, CELLS]), np.array([[-40, -30]]), -3, 1)
    odd = MeasuredLine(np.array([0, 16, 32, CELLS]), np.array([[500, -900, 700]]), 3, 1)
    for line in (one, none, odd):
        for make in (band_for_records, band_for_population):
            band = make(mechanism, line, 0.9)
            assert np.all(band.low[:-1] == 0)
            assert np.all(band.high[1:] == 1)


def test_where_nobody_may_be_there_or_shares_would_fall_nothing_is_known(monkeypatch) -> None:
    mechanism, open_ones, line = DistributionMechanism(CELLS, epsilon=1), 0, MeasuredLine
    for number in range(2, 40):
        some = line(np.array([0, 32, CELLS]), np.array([[number // 2, number - number // 2]]), number, 1)
        law = TotalsLaw.of(mechanism, some)
        known = totals_bounds(law, law.totals.sum(axis=0), 0.01)
        nobody = known is None or known[0][-1] < 1
        with np.errstate(divide="raise", invalid="raise" if nobody else "ignore"):
            band = band_for_records(mechanism, some, 0.9)
        assert not nobody or (band.low[1], band.high[1], band.records) == (0, 1, 0)
        open_ones += nobody
    assert 2 < open_ones < 30
    parts = np.array([0.5, 0.2]), np.array([0.6, 0.3])
    monkeypatch.setattr("isotone.distribution.band._allowed", lambda *_: parts)
    band = band_for_records(
        mechanism, line(np.array([0, 8, 32, CELLS]), np.array([[90, 9, 90]]), 189, 1), 0.9
    )
    assert np.all(band.low[:-1] == 0)
    assert np.all(band.high[1:] == 1)


def test_bounds_of_totals_are_whole_numbers_that_do_not_fall() -> None:
    law = law_of(RNG.integers(-3, 4, (99, 1, 3)).astype(float))
    found = totals_bounds(law, np.array([4.0, 3.0, 9.0]), 0.1)
    assert found is not None
    assert all(np.all(end == np.rint(end)) and np.all(np.diff(end) >= 0) for end in found)
    assert totals_bounds(law, np.array([9.0, -30.0, 4.0]), 0.1) is None


def test_only_decisions_and_noisy_counts_are_in_what_is_released() -> None:
    """Noisy numbers of the partition are not kept, and the band is a function of what is published."""
    assert [field.name for field in fields(MeasuredLine)] == ["edges", "counts", "number", "seed"]
    mechanism = DistributionMechanism(CELLS, epsilon=1)
    line = mechanism.release(TRUTHS["even"].reshape(1, 1, -1))[0]
    again = MeasuredLine(line.edges.copy(), line.counts.copy(), line.number, line.seed)
    first, second = (band_for_records(mechanism, each, 0.9) for each in (line, again))
    np.testing.assert_array_equal(first.low, second.low)
    other = MeasuredLine(line.edges, line.counts, line.number, line.seed + 1)
    assert not np.array_equal(drawn(TotalsLaw.of(mechanism, line)), drawn(TotalsLaw.of(mechanism, other)))


def test_fresh_draws_have_the_law_of_the_noise_that_was_added() -> None:
    """Whole numbers, as many as there are counts, with the variance of the rounds that were made."""
    budgets: list[dict[str, Any]] = [{"epsilon": 1}, {"rho": Fraction(1, 4)}]
    for budget in budgets:
        mechanism = DistributionMechanism(CELLS, public_n=2_000_000, **budget)
        line = mechanism.release(TRUTHS["even"].reshape(1, 1, -1))[0]
        rule = mechanism.rule(line.number)
        noise = mechanism.counts_noise(rule, line.bins)
        tree = mechanism.tree(line.bins)
        assert tree is not None
        law = TotalsLaw.of(mechanism, line, 4_000)
        variance = tree.variances * noise.variance
        np.testing.assert_allclose(drawn(law)[:, 0].var(axis=0), variance, rtol=0.2)
        np.testing.assert_allclose(law.scale, np.sqrt(variance))
        whole = np.asarray(line.counts, float)
        np.testing.assert_allclose(law.totals, running_totals(whole, line.bins, tree))


def test_a_tree_has_the_levels_that_make_totals_most_exact() -> None:
    """Against every other number of children, by the variance of totals less their part of the whole. The rule is simple, and may miss it by a seventh."""

    def spread(mechanism: DistributionMechanism, bins: int, tree: SumTree | None) -> float:
        nodes, levels = (bins, 1) if tree is None else (sum(tree.lengths), len(tree.lengths))
        totals = running_totals(np.eye(nodes), bins, tree)
        apart = totals - totals[:, -1:] * (np.arange(1, bins + 1) / bins)
        return float(np.mean(np.sum(apart**2, axis=0))) * levels ** (2 - (mechanism.guarantee.kind == "zcdp"))

    budgets: list[dict[str, Any]] = [{"epsilon": 1}, {"rho": Fraction(1, 4)}]
    for budget in budgets:
        mechanism = DistributionMechanism(1000, **budget)
        for bins in (1, 2, 7, 24, 50, 120, 400):
            others = [None, *(SumTree(bins, b, root=False) for b in (2, 4, 7, 10, 16, 20) if b < bins)]
            best = min(spread(mechanism, bins, tree) for tree in others)
            assert spread(mechanism, bins, mechanism.tree(bins)) <= 1.15 * best
        found: Any = mechanism.tree(1000)
        assert found.lengths == ((1000, 100, 10) if "epsilon" in budget else (1000, 250, 63, 16, 4))


@pytest.mark.parametrize("statuses", [1, 2])
def test_draws_that_do_not_fit_into_memory_are_made_in_parts_each_time_alike(statuses, monkeypatch) -> None:
    mechanism = DistributionMechanism(CELLS, epsilon=1, statuses=statuses)
    line = measured(mechanism, np.tile(TRUTHS["even"], statuses), np.random.default_rng(6))
    whole = TotalsLaw.of(mechanism, line)
    monkeypatch.setattr("isotone.distribution.band._ROOM", 100 * line.counts.size)
    law = TotalsLaw.of(mechanism, line)
    parts = list(law.parts())
    assert [len(part) for part in parts] == [100] * 9 + [99]
    assert not np.array_equal(parts[0], parts[1])
    np.testing.assert_array_equal(drawn(law), drawn(law))
    assert drawn(law).shape == drawn(whole).shape
    np.testing.assert_allclose(drawn(law).std(axis=0), drawn(whole).std(axis=0), rtol=0.3)


def test_the_seed_is_random_bits_alone() -> None:
    """It is published: whatever the records are, the same bits give the same seed, and others another."""
    mechanism = DistributionMechanism(10, epsilon=1, public_n=400)
    assert mechanism.rule(400).single, "nothing is halved"
    truths = [np.zeros((1, 1, 10), np.int64), np.full((1, 1, 10), 40), np.arange(10).reshape(1, 1, 10)]
    silent = {"two_sided_geometrics": lambda rate, size: np.zeros(size, np.int64)}
    for bits in (77, (1 << 53) - 1):
        script = {
            **silent,
            "random_words": lambda size, bits=bits: np.full(size, (bits << 11) + 3, np.uint64),
        }
        with drawn_from(script):
            seeds = {mechanism.release(cells)[0].seed for cells in truths}
        assert seeds == {bits}
    assert len({mechanism.release(truths[1])[0].seed for _ in range(9)}) == 9


def test_what_may_go_wrong_is_shared_between_totals_and_shares(monkeypatch) -> None:
    mechanism, asked, plain = DistributionMechanism(CELLS, epsilon=1), list[float](), TotalsLaw.upper

    def upper(law: TotalsLaw, statistic: Any, outside: float) -> float:
        asked.append(outside)
        return plain(law, statistic, outside)

    monkeypatch.setattr(TotalsLaw, "upper", upper)
    band_for_records(mechanism, measured(mechanism, TRUTHS["even"], np.random.default_rng(1)), 0.9)
    assert len(asked) == 2
    assert sum(asked) == pytest.approx(0.1)
