"""Every kind of interval, band and simultaneous width holds as often as it states.

What states a confidence is found by the parameter of that name: a new kind that has no test listed here fails. Widths of counts are
tried for every mechanism that is found, at two sizes and two confidences, on draws of the released noise.
"""
# pyright: reportConstantRedefinition=false

from __future__ import annotations

import inspect
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from isotone.counts import DiscreteLaplaceMechanism, PosetMechanism
from isotone.counts.breakdown import read_breakdown
from isotone.counts.margins import MarginsMechanism
from isotone.errors import InputError
from isotone.inference import Measured
from isotone.linear.mechanism import Law
from isotone.noise.simulate import public_stream
from isotone.order import Poset
from isotone.release.result import Release
from isotone.series import CausalGaussianMechanism, SeriesMechanism, TwoScaleMechanism
from isotone.series.two_scale import over_time
from tests.laws.test_counts import MECHANISMS, MORE
from tests.support.chisquare import FALSE_ALARM
from tests.support.mechanisms import functions

ROOT = Path(__file__).parents[2]
HERE = "tests/laws/test_coverage.py"
TESTED: dict[str, str] = {
    "half_widths": f"{HERE}::test_each_count_is_inside_as_often_as_stated",
    "unrounded_half_widths": f"{HERE}::test_each_count_is_inside_as_often_as_stated",
    "simultaneous_half_width": f"{HERE}::test_all_counts_are_inside_at_once_as_often_as_stated",
    "unrounded_simultaneous_half_width": f"{HERE}::test_all_counts_are_inside_at_once_as_often_as_stated",
    "common_half_width": f"{HERE}::test_all_counts_are_inside_at_once_as_often_as_stated",
    "alone": f"{HERE}::test_each_count_is_inside_as_often_as_stated",
    "together": f"{HERE}::test_all_counts_are_inside_at_once_as_often_as_stated",
    "contrast": f"{HERE}::test_contrasts_shares_and_regions_hold_as_often_as_stated",
    "share": f"{HERE}::test_contrasts_shares_and_regions_hold_as_often_as_stated",
    "region": f"{HERE}::test_contrasts_shares_and_regions_hold_as_often_as_stated",
    "rank": f"{HERE}::test_ranks_hold_as_often_as_stated",
    "shares": "tests/unit/release/test_derived_laws.py",
    "changes": "tests/unit/release/test_derived_laws.py",
    "population_proportion": "tests/unit/inference/test_population.py",
    "population_share": "tests/unit/inference/test_population.py",
    "population_band": "tests/unit/curves/test_bands.py::test_bands_cover_and_a_fifth_of_the_width_does_not",
    "records_band": "tests/unit/curves/test_bands.py::test_bands_cover_and_a_fifth_of_the_width_does_not",
    "credible_band": "tests/unit/curves/test_bands.py::test_a_credible_band_leaves_out_half_of_what_is_left_on_either_side",
    "log_threshold": "tests/unit/curves/test_bands.py::test_the_threshold_shares_what_may_go_wrong",
    "band": "tests/unit/curves/test_bands.py::test_the_estimator_gives_three_bands_of_its_own_sums",
    "reliability": "tests/unit/curves/test_calibration.py",
    "calibration_error": "tests/unit/curves/test_calibration.py",
    "intervals": "tests/unit/tables/test_published_table.py",
    "interval": "tests/unit/tables/test_published_table.py",
    "shortest": "tests/unit/tables/test_published_table.py",
    "from_noise": "tests/unit/tables/test_sum_reach.py",
    "reach": "tests/unit/tables/test_sum_reach.py",
    "half_width": "tests/unit/counts/test_law.py",
    "upper": "tests/unit/counts/test_law.py::test_the_rank_is_the_least_that_is_false_once_in_a_million",
    "upper_draw": "tests/unit/counts/test_law.py::test_the_rank_is_the_least_that_is_false_once_in_a_million",
    "require_known": "tests/unit/counts/test_law.py::test_a_confidence_that_no_draw_can_show_is_refused",
    "band_for_records": "tests/unit/distribution/test_line_bands.py::test_the_band_for_the_records_holds_as_often_as_stated",
    "band_for_population": "tests/unit/distribution/test_line_bands.py::test_the_band_for_the_population_holds_as_often_as_stated",
    "band_for_survival": "tests/unit/distribution/test_survival.py::test_the_band_holds_for_both_estimators_as_often_as_stated",
    "measured": "tests/unit/distribution/test_survival.py::test_figures_of_a_release_lie_around_those_of_the_records",
    "checked": "tests/unit/distribution/test_line_bands.py::test_a_confidence_that_draws_cannot_tell_is_refused",
    "bounded_half_widths": "tests/unit/counts/test_breakdown_noise.py::test_intervals_hold_for_the_worst_law_and_are_not_absurd",
    "draws_of_margins": "tests/unit/counts/test_breakdown_noise.py",
    "epsilon_for": "tests/unit/counts/test_plan.py",
    "rho_for": "tests/unit/counts/test_plan.py",
}
"""What states a confidence, and where its coverage, or the bound that it is made of, is tested."""
PACKAGES = ("counts", "linear", "inference", "curves", "tables", "distribution", "series")
ANSWERS: dict[str, tuple[str, ...]] = {
    "contrast": ("contrast",),
    "share": ("share", "population_share"),
    "shares": ("shares",),
    "change": ("changes",),
    "rank": ("rank",),
    "sum": ("reach", "contrast"),
    "sums": ("reach", "contrast"),
    "at": ("records_band", "population_band", "credible_band"),
    "difference": ("changes", "records_band", "band_for_records", "of series"),
    "quantile": ("quantile",),
    "quantiles": ("quantile",),
    "cdf": ("cdf",),
    "survival": ("band_for_survival",),
    "hazard": ("band_for_survival",),
    "at_risk": ("band_for_survival",),
    "restricted_mean": ("measured",),
    "lorenz": ("lorenz",),
    "gini": ("gini",),
}
"""What a release answers with an interval, by the names of ``TESTED`` that the answer is made of."""
TOGETHER = "tests/unit/distribution/test_figures.py::test_intervals_hold_together_whenever_the_band_does"
TESTED |= dict.fromkeys(("quantile", "cdf", "lorenz", "gini"), TOGETHER)
TESTED["of series"] = f"{HERE}::test_counts_over_time_and_what_is_new_hold_as_often_as_stated"


def test_whatever_a_release_answers_is_tested():
    """Readers have these methods for all kinds: a new one has to say here what its interval is made of."""
    asked = {
        name
        for name, method in inspect.getmembers(Release, inspect.isfunction)
        if "confidence" in inspect.signature(method).parameters and not name.startswith("_")
    }
    assert asked == ANSWERS.keys()
    assert all(made_of in TESTED for names in ANSWERS.values() for made_of in names)


def stating() -> set[str]:
    """The names of all functions and methods that take a confidence."""
    found: set[str] = set()
    for package in PACKAGES:
        for function in functions(f"isotone.{package}"):
            if "confidence" in inspect.signature(function).parameters:
                found.add(function.__name__)
    return {name for name in found if not name.startswith("_")}


def test_whatever_states_a_confidence_is_tested():
    assert stating() <= TESTED.keys(), "say where the coverage of these is tested"
    for name, where in TESTED.items():
        file, _, test = where.partition("::")
        text = (ROOT / file).read_text(encoding="utf-8")
        assert not test or f"def {test}(" in text, f"{name}: {where} is gone"


WIDE = {f"leaf{k}": "all" for k in range(24)}
SIZES: dict[str, list[Poset]] = {
    "small": [
        Poset.chain("ab"),
        Poset.antichain("ab"),
        Poset.from_mapping({"a": "all", "b": "all"}, children="partition"),
    ],
    "large": [
        Poset(range(9), [(k, 8) for k in range(8)]),
        Poset.chain(range(9)),
        Poset.from_mapping(WIDE | {"b": "all"}, children="partition"),
    ],
}
DRAWS = 4_000
CONFIDENCES = (0.8, 0.95)


def made(name: str, size: str) -> list[Any]:
    """The mechanism on the first order of a size that it takes, pure and under zCDP."""
    kind, found = MECHANISMS[name], list[Any]()
    takes = inspect.signature(kind).parameters
    more = {key: value for key, value in MORE.items() if key in takes}
    for budget in ({"epsilon": 1}, {"rho": Fraction(1, 5)}):
        for P in SIZES[size]:
            bound = {"max_size": 1} if name == "BoundedPosetMechanism" else {}
            neighbours = {"neighbours": "replace"} if name == "FixedRootMechanism" else {}
            if not budget.keys() <= takes.keys():
                continue
            try:
                found.append(kind(P, **budget, **bound, **neighbours, **more))
            except InputError:
                continue
            break
    return found


def released_noise(mechanism: Any) -> Any:
    return np.abs(np.asarray(mechanism.simulate_released(DRAWS, public_stream("a test of coverage"))))


def held(hits: Any, confidence: float, statements: int) -> bool:
    """Whether so many of the draws are not too few, but for one time in 1e8 over all statements."""
    return bool(binom.cdf(np.min(hits), DRAWS, confidence) > FALSE_ALARM / statements)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", MECHANISMS)
def test_each_count_is_inside_as_often_as_stated(name, size):
    for mechanism in made(name, size):
        noise = released_noise(mechanism)
        moving = noise.max(axis=0) > 0
        for confidence in CONFIDENCES:
            widths = mechanism.half_widths(confidence)
            assert held(np.sum(noise <= widths, axis=0), confidence, 500 * len(widths))
            assert np.all(mechanism.unrounded_half_widths(confidence) <= widths + 0.5)
            half = np.floor(widths[moving] / 2)  # half of them are not enough: they are not merely large
            assert not held(np.sum(noise[:, moving] <= half, axis=0), confidence, 1)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", MECHANISMS)
def test_all_counts_are_inside_at_once_as_often_as_stated(name, size):
    for mechanism in made(name, size):
        most = released_noise(mechanism).max(axis=1)
        for confidence in CONFIDENCES:
            width = mechanism.simultaneous_half_width(confidence)
            assert held(np.sum(most <= width), confidence, 500)
            assert mechanism.unrounded_simultaneous_half_width(confidence) <= width + 0.5
            assert not held(np.sum(most <= np.floor(width / 2)), confidence, 1)


@pytest.mark.parametrize("base", [DiscreteLaplaceMechanism, PosetMechanism])
@pytest.mark.parametrize("places", [2, 6])
def test_margins_are_inside_as_often_as_stated(base, places):
    breakdown = read_breakdown(
        ["sex", "place"],
        {"sex": ["f", "m"], "place": [str(k) for k in range(places)]},
        ["", "sex", "*"],
    )
    mechanism = MarginsMechanism(base(Poset.chain("ab"), 1), breakdown)
    runs = 600
    noise = np.abs(np.asarray(mechanism.simulate(runs, np.random.default_rng(7))))
    for confidence in CONFIDENCES:
        widths = mechanism.half_widths(confidence)
        assert binom.cdf(np.sum(noise <= widths, axis=0).min(), runs, confidence) > FALSE_ALARM / 1_000
        assert np.all(np.sum(noise <= widths / 4, axis=0) < confidence * runs)  # and not merely large


OVER_TIME: dict[str, tuple[int, Any]] = {
    "one draw, small": (2, lambda P, T: PosetMechanism(over_time(P, T), 1)),
    "two scales, small": (2, lambda P, T: scales(P, T)),
    "two scales, large": (6, lambda P, T: scales(P, T)),
    "causal, small": (2, lambda P, T: CausalGaussianMechanism(P, T, rho="1/5")),
    "causal, large": (9, lambda P, T: CausalGaussianMechanism(P, T, rho="1/5")),
}


def scales(stages: Poset, periods: int) -> TwoScaleMechanism:
    return TwoScaleMechanism(stages, periods, 1, anchors=[periods - 1], share="0.3", fine="chains")


@pytest.mark.parametrize("name", OVER_TIME)
def test_counts_over_time_and_what_is_new_hold_as_often_as_stated(name):
    """Each count, all at once, and the change of a stage over all periods."""
    periods, build = OVER_TIME[name]
    stages = Poset.chain("ab")
    mechanism = SeriesMechanism(stages, periods, build(stages, periods))
    noise = np.asarray(mechanism.simulate_released(DRAWS, public_stream("a test over time")))
    law, last = mechanism.law(draws=6_000), {f"{len(mechanism.P) - 1}": 1, "0": -1}
    names = Poset.antichain([str(k) for k in range(len(mechanism.P))])
    for confidence in CONFIDENCES:
        widths = mechanism.half_widths(confidence)
        assert held(np.sum(np.abs(noise) <= widths, axis=0), confidence, 500)
        assert not held(np.sum(np.abs(noise) <= np.floor(widths / 2), axis=0), confidence, 1)
        width = mechanism.simultaneous_half_width(confidence)
        assert held(np.sum(np.abs(noise).max(axis=1) <= width), confidence, 500)
        new = Measured(
            names, np.full(len(mechanism.P), 500.0), law, mechanism.error().variance, mechanism.covariance
        ).contrast(last, confidence)
        hits = np.sum(np.abs(noise[:, -1] - noise[:, 0]) <= (new.high - new.low) / 2)
        assert held(hits, confidence, 500)
        assert not held(np.sum(np.abs(noise[:, -1] - noise[:, 0]) <= (new.high - new.low) / 5), confidence, 1)


def measured(truth: Any, noise: Any, mechanism: Any, law: Any) -> Measured:
    values = np.asarray(truth, dtype=float) + noise
    return Measured(mechanism.P, values, law, mechanism.error().variance, mechanism.covariance)


@pytest.mark.parametrize("confidence", CONFIDENCES)
@pytest.mark.parametrize("size", [5, 11])
def test_ranks_hold_as_often_as_stated(size, confidence):
    """Counts that are nearly alike: what is in the middle may be taken for lower and for higher than others."""
    mechanism = DiscreteLaplaceMechanism(Poset.antichain(range(size)), Fraction(1, 10))
    law, runs = mechanism.law(draws=4_000), 800
    fresh = mechanism.law("fresh", draws=runs).draws
    for place in (0, size // 2):
        hits = 0
        for noise in fresh:
            found = measured(100 + np.arange(size), noise, mechanism, law).rank(place, confidence)
            hits += found.low <= size - place <= found.high
        assert binom.cdf(hits, runs, confidence) > FALSE_ALARM / 100


def test_a_rank_allows_for_noise_in_both_directions():
    """The noise takes ten from one count in half of the draws, and adds nothing to any."""
    mechanism = DiscreteLaplaceMechanism(Poset.antichain("ab"), 1)
    draws = np.array([[0, 0], [0, -10]] * 2_000)
    parts = Law(draws, draws), mechanism.error().variance, mechanism.covariance
    found = Measured(mechanism.P, np.array([100.0, 105.0]), *parts).rank("a", 0.9)
    assert (found.low, found.high) == (1, 2)


@pytest.mark.parametrize("confidence", CONFIDENCES)
@pytest.mark.parametrize("truth", [(12, 30), (400, 900)])
def test_contrasts_shares_and_regions_hold_as_often_as_stated(truth, confidence):
    mechanism = DiscreteLaplaceMechanism(Poset.chain("ba"), 2)
    law, runs = mechanism.law(draws=6_000), 300
    share, hits = truth[0] / truth[1], np.zeros(3, int)
    for noise in mechanism.law("fresh", draws=runs).draws:
        found = measured(truth, noise, mechanism, law)
        step = found.contrast({"a": 1, "b": -1}, confidence)
        part = found.share("b", "a", confidence)
        low, high = found.region(confidence).counts
        hits += (
            step.low <= truth[1] - truth[0] <= step.high,
            part.low <= share <= part.high,
            bool(np.all((low <= truth) & (truth <= high))),
        )
    assert np.all(binom.cdf(hits, runs, confidence) > FALSE_ALARM / 100)
