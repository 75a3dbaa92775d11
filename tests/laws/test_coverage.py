"""Every kind of interval, band and simultaneous width holds as often as it states.

What states a confidence is found by the parameter of that name, in all packages: a new kind that has no test listed here fails. Widths of
counts are tried for every mechanism that is found, at two sizes and two confidences, on draws of the released noise; what readers answer is
asked in test_intervals.py.
"""
# pyright: reportConstantRedefinition=false

from __future__ import annotations

import ast
import inspect
import itertools
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, norm

from isotone.counts import DiscreteLaplaceMechanism, PosetMechanism
from isotone.counts.breakdown import read_breakdown
from isotone.counts.margins import MarginsMechanism
from isotone.curves.calibration.reliability import calibration_error
from isotone.curves.posterior import NoisySums
from isotone.errors import InputError
from isotone.inference import Measured, summed
from isotone.linear.mechanism import Law, gaussian_reach
from isotone.linear.strategy import Noise
from isotone.noise import simulate
from isotone.noise.simulate import public_stream
from isotone.order import Poset
from isotone.privacy.guarantee import Guarantee
from isotone.release.result import Release
from isotone.series import CausalGaussianMechanism, SeriesMechanism, TwoScaleMechanism
from isotone.series.two_scale import Scales, over_time
from isotone.tables import TwoStageMechanism
from tests.laws.test_counts import MECHANISMS, MORE
from tests.support.chisquare import FALSE_ALARM
from tests.support.mechanisms import concrete_classes, functions

ROOT = Path(__file__).parents[2]
NOISES = [kind for kind in concrete_classes("isotone.linear") if issubclass(kind, Noise)]
HERE = "tests/laws/test_coverage.py"
ALONE = f"{HERE}::test_each_count_is_inside_as_often_as_stated"
TOGETHER = f"{HERE}::test_all_counts_are_inside_at_once_as_often_as_stated"
DERIVED = f"{HERE}::test_contrasts_shares_and_regions_hold_as_often_as_stated"
QUANTILES = f"{HERE}::test_noise_is_above_its_quantile_as_seldom_as_stated"
PLANS, ANSWERED = (
    "tests/unit/counts/test_plan.py",
    "tests/laws/test_intervals.py::test_an_answer_holds_as_often_as_stated_and_a_part_of_its_width_does_not",
)
OF_TABLES = f"{HERE}::test_counts_of_a_table_are_inside_as_often_as_stated"
LAW, LINE = "tests/unit/counts/test_law.py", "tests/unit/distribution/test_line_bands.py"
BANDS, SUMS = "tests/unit/curves/test_bands.py", "tests/unit/tables/test_sum_reach.py"
COUNTS_OF_TABLES = "tests/unit/tables/test_published_table.py"
WIDTHS = {
    "half_widths": ALONE,
    "unrounded_half_widths": ALONE,
    "simultaneous_half_width": TOGETHER,
    "unrounded_simultaneous_half_width": TOGETHER,
}
"""What every mechanism for counts has. The tests try it for each that is found, so that no class is named here."""
TESTED: dict[str, str] = {
    "counts.count_plan.CountPlan.epsilon_for": f"{PLANS}::test_epsilon_for_is_the_smallest_that_keeps_within_the_error",
    "counts.count_plan.CountPlan.rho_for": f"{PLANS}::test_rho_for_inverts_a_plan_that_spends_rho",
    "counts.knorm.RateOne.alone": ALONE,
    "counts.knorm.RateOne.together": TOGETHER,
    "counts.margins.MarginsMechanism.half_widths": f"{HERE}::test_margins_are_inside_as_often_as_stated",
    "counts.margins.MarginsMechanism.unrounded_half_widths": f"{HERE}::test_margins_are_inside_as_often_as_stated",
    "counts.margins.MarginsMechanism.simultaneous_half_width": f"{HERE}::test_all_margins_are_inside_at_once_as_often_as_stated",
    "counts.margins.MarginsMechanism.bounded_half_widths": f"{HERE}::test_margins_are_inside_as_often_as_stated",
    "counts.margins.draws_of_margins": "tests/unit/counts/test_breakdown_noise.py::test_without_enough_draws_the_bound_is_all_there_is",
    "counts.tree_field.FieldLaw.half_widths": ALONE,
    "counts.tree_field.FieldLaw.common_half_width": TOGETHER,
    "linear.mechanism.Law.half_width": f"{HERE}::test_a_law_bounds_its_own_noise",
    "linear.mechanism.Law.half_widths": f"{HERE}::test_a_law_bounds_its_own_noise",
    "linear.mechanism.Law.simultaneous_half_width": f"{HERE}::test_a_law_bounds_its_own_noise",
    "linear.mechanism.Law.upper": f"{LAW}::test_the_rank_is_the_least_that_is_false_once_in_a_million",
    "linear.mechanism.rank": f"{LAW}::test_the_rank_is_the_least_that_is_false_once_in_a_million",
    "linear.mechanism.upper_draw": f"{LAW}::test_the_rank_is_the_least_that_is_false_once_in_a_million",
    "linear.mechanism.require_known": f"{LAW}::test_a_confidence_that_no_draw_can_show_is_refused",
    "linear.mechanism.log_concave_reach": f"{HERE}::test_margins_are_inside_as_often_as_stated",
    "linear.mechanism.gaussian_reach": QUANTILES,
    "linear.mechanism.rounding_reach": f"{LAW}::test_what_rounding_moves_stays_within_its_reach",
    **dict.fromkeys(
        (f"linear.strategy.{kind}.upper_quantile" for kind in ("Noise", *(kind.__name__ for kind in NOISES))),
        QUANTILES,
    ),
    "inference.Measured.contrast": DERIVED,
    "inference.Measured.share": DERIVED,
    "inference.Measured.region": DERIVED,
    "inference.ratio": DERIVED,
    "inference.shown_ratio": DERIVED,
    "inference.clipped": DERIVED,
    "inference.summed": f"{HERE}::test_sums_over_groups_hold_as_often_as_stated",
    "inference.Measured.rank": f"{HERE}::test_ranks_hold_as_often_as_stated",
    "inference.Measured.shares": ANSWERED,
    "inference.changes": ANSWERED,
    "inference.population_proportion": ANSWERED,
    "inference.population_share": ANSWERED,
    "curves.bands.population_band": ANSWERED,
    "curves.bands.records_band": ANSWERED,
    "curves.bands.credible_band": f"{BANDS}::test_a_credible_band_leaves_out_half_of_what_is_left_on_either_side",
    "curves.bands.log_threshold": f"{BANDS}::test_the_threshold_shares_what_may_go_wrong",
    "curves.bands.MeasuredSums.band": f"{BANDS}::test_the_estimator_gives_three_bands_of_its_own_sums",
    "curves.regression.EvaluatedCurve.band": f"{BANDS}::test_the_estimator_gives_three_bands_of_its_own_sums",
    "curves.poset_regression.PrivatePosetRegression.band": "tests/unit/curves/test_poset_regression.py"
    "::test_a_band_is_refused_with_its_reason",
    "curves.calibration.calibrator.PrivateCalibrator.band": "tests/unit/curves/test_calibration.py"
    "::test_units_with_several_records_get_the_band_of_the_records",
    "curves.calibration.calibrator.PrivateCalibrator.reliability": "tests/unit/curves/test_calibration.py"
    "::test_the_diagram_is_made_of_the_released_sums_alone",
    "curves.calibration.reliability.calibration_error": f"{HERE}::test_a_calibration_error_is_inside_its_limits",
    "tables.estimate.Beliefs.intervals": OF_TABLES,
    "tables.estimate.Beliefs.content": OF_TABLES,
    "tables.estimate.content": f"{COUNTS_OF_TABLES}::test_four_standard_deviations_of_chance_leave_92_in_100",
    "tables.estimate.shortest": f"{COUNTS_OF_TABLES}::test_an_interval_is_the_shortest_with_its_content",
    "tables.estimate.is_shortest": f"{COUNTS_OF_TABLES}::test_an_interval_that_drops_its_likelier_end_or_can_spare_one_is_not_the_shortest",
    "tables.published_table.Stratum.intervals": OF_TABLES,
    "tables.published_table.PublishedTable.interval": OF_TABLES,
    "tables.published_table.from_noise": f"{COUNTS_OF_TABLES}::test_intervals_of_few_categories_hold_for_every_count",
    "tables.published_table.reach": f"{SUMS}::test_sums_keep_their_distance_whatever_the_true_counts",
    "distribution.band.band_for_records": f"{LINE}::test_the_band_for_the_records_holds_as_often_as_stated",
    "distribution.band.band_for_population": f"{LINE}::test_the_band_for_the_population_holds_as_often_as_stated",
    "distribution.band.shares_band": f"{LINE}::test_the_band_for_the_records_holds_as_often_as_stated",
    "distribution.band.totals_bounds": f"{LINE}::test_bounds_of_totals_are_whole_numbers_that_do_not_fall",
    "distribution.band.TotalsLaw.upper": f"{LINE}::test_a_bound_is_the_least_rank_that_is_passed_as_seldom_as_stated",
    "distribution.band.checked": f"{LINE}::test_a_confidence_that_draws_cannot_tell_is_refused",
    "distribution.survival.band_for_survival": ANSWERED,
    "distribution.survival.SurvivalFigures.measured": ANSWERED,
}
"""What states a confidence, or what is left of it, and where its coverage, or the bound that it is made of, is tested."""
STATES = ("confidence", "outside", "level", "tail")
"""What a statement is made with. Levels of trees and of probabilities are none."""
LEVELS = {
    "counts.breakdown.Attribute.size",
    "counts.margins_least_squares.AttributeLevels",
    "curves.poset_regression.grow_regions",
    "linear.least_squares.Hierarchy.below",
    "distribution.figures.LineFigures.quantile",
}
PACKAGES = {"counts", "linear", "inference", "curves", "tables", "distribution"}
ELSEWHERE = {
    "release": "readers are asked in test_intervals.py; columns and pages show what the functions above give",
    "cli": "asks readers",
    "audit": "attacks mechanisms, and states no figure",
    "order": "levels of a picture",
}
"""What else takes a parameter of such a name, and why it states nothing itself."""
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
OTHERS = {
    **dict.fromkeys(
        ("quantile", "cdf", "lorenz", "gini"),
        "tests/unit/distribution/test_figures.py::test_intervals_hold_together_whenever_the_band_does",
    ),
    "of series": f"{HERE}::test_counts_over_time_and_what_is_new_hold_as_often_as_stated",
}
"""Parts of answers that state no confidence themselves."""


def exists(where: str) -> bool:
    file, _, test = where.partition("::")
    return f"def {test}(" in (ROOT / file).read_text(encoding="utf-8")


def test_whatever_a_release_answers_is_tested():
    """Readers have these methods for all kinds: a new one has to say here what its interval is made of."""
    asked = {
        name
        for name, method in inspect.getmembers(Release, inspect.isfunction)
        if "confidence" in inspect.signature(method).parameters and not name.startswith("_")
    }
    known = {name.rpartition(".")[2] for name in TESTED} | OTHERS.keys()
    assert asked == ANSWERS.keys()
    assert all(made_of in known for names in ANSWERS.values() for made_of in names)
    assert all(map(exists, OTHERS.values()))


def test_whatever_takes_a_confidence_is_in_a_package_that_is_looked_at():
    """By the text of all modules, whatever they define."""
    found: set[str] = set()
    source = ROOT / "src" / "isotone"
    for path in source.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if any(f"{name}:" in text for name in STATES):
            taken = {
                arg.arg
                for node in ast.walk(ast.parse(text))
                if isinstance(node, ast.arguments)
                for arg in (*node.args, *node.kwonlyargs)
            }
            if taken & set(STATES):
                found.add(path.relative_to(source).parts[0].removesuffix(".py"))
    assert found == PACKAGES | ELSEWHERE.keys()


def stating() -> set[str]:
    """All functions and methods that take a confidence, by module and name, but the widths of mechanisms that are found."""
    found = {kind for name in MECHANISMS for kind in MECHANISMS[name].__mro__}
    widths = {f"{kind.__module__}.{kind.__qualname__}.{name}" for kind in found for name in WIDTHS}
    names: set[str] = set()
    for package in PACKAGES:
        for function in functions(f"isotone.{package}"):
            name = f"{function.__module__}.{function.__qualname__}"
            if set(STATES) & inspect.signature(function).parameters.keys() and name not in widths:
                names.add(name.removeprefix("isotone."))
    return {name for name in names if "._" not in name and not any(map(name.startswith, LEVELS))}


def test_whatever_states_a_confidence_is_tested():
    assert stating() == TESTED.keys(), "say where the coverage of these is tested"
    assert all(map(exists, [*TESTED.values(), *WIDTHS.values()]))


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
        for widths in (mechanism.half_widths(confidence), mechanism.bounded_half_widths(confidence)):
            assert binom.cdf(np.sum(noise <= widths, axis=0).min(), runs, confidence) > FALSE_ALARM / 1_000
            assert np.all(np.sum(noise <= widths / 4, axis=0) < confidence * runs)  # and not merely large


@pytest.mark.parametrize("places", [2, 6])
def test_all_margins_are_inside_at_once_as_often_as_stated(places, monkeypatch):
    breakdown = read_breakdown(["place"], {"place": [str(k) for k in range(places)]}, ["", "*"])
    monkeypatch.setattr(MarginsMechanism, "law_draws", 1_000)
    mechanism = MarginsMechanism(DiscreteLaplaceMechanism(Poset.chain("ab"), 1), breakdown)
    runs = 300
    most = np.abs(np.asarray(mechanism.simulate(runs, np.random.default_rng(7)))).max(axis=1)
    for confidence in CONFIDENCES:
        width = mechanism.simultaneous_half_width(confidence)
        assert binom.cdf(np.sum(most <= width), runs, confidence) > FALSE_ALARM / 1_000
        assert binom.cdf(np.sum(most <= width / 2), runs, confidence) < FALSE_ALARM


OVER_TIME: dict[str, tuple[int, Any]] = {
    "one draw, small": (2, lambda P, T: PosetMechanism(over_time(P, T), 1)),
    "two scales, small": (2, lambda P, T: scales(P, T)),
    "two scales, large": (6, lambda P, T: scales(P, T)),
    "causal, small": (2, lambda P, T: CausalGaussianMechanism(P, T, Guarantee.zcdp("1/5"))),
    "causal, large": (9, lambda P, T: CausalGaussianMechanism(P, T, Guarantee.zcdp("1/5"))),
}


def scales(stages: Poset, periods: int) -> TwoScaleMechanism:
    return TwoScaleMechanism(stages, periods, 1, Scales([periods - 1], "0.3", "chains"))


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
    """By the chances of all noise but what is farther off than once in a thousand."""
    mechanism, reach = DiscreteLaplaceMechanism(Poset.chain("ba"), 2), range(-8, 9)
    law, rate = mechanism.law(draws=6_000), float(mechanism.noise.rate)
    share, held, seen = truth[0] / truth[1], np.zeros(3), 0.0
    for noise in itertools.product(reach, repeat=2):
        found = measured(truth, noise, mechanism, law)
        step = found.contrast({"a": 1, "b": -1}, confidence)
        part = found.share("b", "a", confidence)
        low, high = found.region(confidence).counts
        chance = math.tanh(rate / 2) ** 2 * math.exp(-rate * (abs(noise[0]) + abs(noise[1])))
        held += chance * np.array(
            [
                step.low <= truth[1] - truth[0] <= step.high,
                part.low <= share <= part.high,
                bool(np.all((low <= truth) & (truth <= high))),
            ]
        )
        seen += chance
    assert 0.999 < seen < 1
    assert np.all(held + 1 - seen >= confidence)


@pytest.mark.parametrize("confidence", CONFIDENCES)
@pytest.mark.parametrize("groups", [2, 5])
def test_sums_over_groups_hold_as_often_as_stated(groups, confidence):
    """A difference of two counts, summed over groups of which each has its own noise. A fifth less would not hold."""
    mechanism = DiscreteLaplaceMechanism(Poset.chain("ba"), Fraction(1, 10))
    law, runs = mechanism.law(draws=20_000), 4_000
    fresh = mechanism.law("fresh", draws=groups * runs).draws.reshape(runs, groups, 2)
    same = measured((0, 0), 0, mechanism, law)
    _, half = summed([same] * groups, np.array([1.0, -1.0]), confidence)
    off = np.abs((fresh[..., 0] - fresh[..., 1]).sum(axis=1))
    assert binom.cdf(np.sum(off <= half), runs, confidence) > FALSE_ALARM / 100
    assert binom.cdf(np.sum(off <= 0.8 * half), runs, confidence) < FALSE_ALARM


@pytest.mark.parametrize("scale", [Fraction(1, 4), Fraction(2), Fraction(30)])
@pytest.mark.parametrize("kind", NOISES)
def test_noise_is_above_its_quantile_as_seldom_as_stated(kind, scale):
    """By the probabilities of all whole numbers. The quantile of a real number is that of what was rounded."""
    noise = kind(1 / scale) if "rate" in inspect.signature(kind).parameters else kind(scale**2)
    k = np.arange(0.0, 1_500.0)
    law = np.exp(noise.log_probability(k[:, None]))
    for tail in (0.1, 0.025, 1e-4):
        least = noise.upper_quantile(tail)
        most = np.floor(least + noise.rounding)
        assert law[k > most].sum() <= tail * (1 + 1e-9)
        if noise.rounding == 0:
            assert most == 0 or law[k > most - 1].sum() > tail
        else:  # the real number is above it so often, and at most a half above its whole number
            assert (
                law[k >= np.ceil(least + 0.5)].sum()
                <= tail
                <= law[k >= np.floor(least - 0.5)].sum() * (1 + 1e-9)
            )
    for outside in (0.2, 0.05, 1e-3):
        assert norm.sf(gaussian_reach(outside)) == pytest.approx(outside / 2)


@pytest.mark.parametrize("confidence", CONFIDENCES)
@pytest.mark.parametrize("size", [2, 9])
def test_a_law_bounds_its_own_noise(size, confidence):
    """Each number, all of them, and their sum, against fresh draws of the noise. Half of a width is too little."""
    mechanism = DiscreteLaplaceMechanism(Poset.antichain(range(size)), Fraction(1, 4))
    law, fresh = mechanism.law(draws=20_000), np.abs(mechanism.law("fresh", draws=DRAWS).draws)
    total = np.abs(mechanism.law("fresh", draws=DRAWS).draws.sum(axis=1))
    stated = {
        "each": (fresh, law.half_widths(confidence)),
        "all": (fresh.max(axis=1)[:, None], np.array([law.simultaneous_half_width(confidence)])),
        "sum": (total[:, None], np.array([law.half_width(np.ones(size), confidence)])),
    }
    for noise, widths in stated.values():
        assert held(np.sum(noise <= widths, axis=0), confidence, 100)
        assert not held(np.sum(noise <= widths / 2, axis=0), confidence, 1)


@pytest.mark.parametrize("confidence", CONFIDENCES)
@pytest.mark.parametrize("size", [40, 400], ids=["by noise", "by their distribution"])
def test_counts_of_a_table_are_inside_as_often_as_stated(size, confidence):
    """On average over the categories of a table, whose counts are spread like those of many real ones. Without both ends fewer are inside."""
    rng, inside, within, runs = np.random.default_rng(5), 0, 0, 12
    mechanism = TwoStageMechanism(30, "0.5")
    for _ in range(runs):
        counts = np.minimum(rng.negative_binomial(2, 0.2, size), 30)
        low, high = mechanism.simulate_in_full(counts, rng).interval(confidence)
        inside += int(np.sum((low <= counts) & (counts <= high)))
        middle, half = (low + high) / 2, (high - low) / 2
        within += int(np.sum(np.abs(counts - middle) <= half / 3))
    assert binom.cdf(inside, runs * size, confidence - 0.03) > FALSE_ALARM
    assert binom.cdf(within, runs * size, confidence - 0.03) < FALSE_ALARM


@pytest.mark.parametrize("confidence", CONFIDENCES)
@pytest.mark.parametrize("size", [50, 600])
def test_a_calibration_error_is_inside_its_limits(size, confidence):
    """Scores that are off by 0.2, of which each lies somewhere in its bin. A twentieth of the width is too little."""
    rng, scores, halves = np.random.default_rng(2), np.array([0.1, 0.3, 0.5, 0.7]), np.full(4, 0.05)
    inside, within, runs = 0, 0, 120
    for _ in range(runs):
        n = rng.integers(size, 2 * size, 4)
        own = scores + rng.uniform(-0.05, 0.05, 4)
        ones = rng.binomial(n, np.minimum(scores + 0.2, 1))
        truth = np.abs(ones - own * n).sum() / n.sum()
        noise = np.asarray(simulate.two_sided_geometrics(rng, 1, 8)).reshape(2, 4)
        sums = NoisySums(np.array([0, 5, 10, 15]), ones + noise[0], n - ones + noise[1], 1, Fraction(1), 20)
        found = calibration_error(sums, scores, halves, 4, confidence)
        inside += found.low <= truth <= found.high
        within += abs(truth - (found.low + found.high) / 2) <= (found.high - found.low) / 40
    assert binom.cdf(inside, runs, confidence) > FALSE_ALARM
    assert binom.cdf(within, runs, confidence) < FALSE_ALARM
