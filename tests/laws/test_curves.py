"""What every mechanism on curves promises holds for what its code draws, between all neighbours.

Each mechanism is walked through, output by output, by tests/attacks/curves, for one contribution. Here its class is looked for
among those, and its law is taken for units of one and of three records, added or exchanged. Then whole fits: their results are
given, and what these cost between two neighbours is added up, the number of records and the direction included.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from isotone.curves import PrivateIsotonicRegression, PrivatePosetRegression
from isotone.curves.circuits import SeededCurveDraws
from isotone.curves.cuts import ChainProblem, CurveMechanism, Reference
from isotone.curves.losses import Absolute, Pinball, Squared
from isotone.curves.problem import FINE, ConcentratedSetting, CurveSetting, FitBudget, Grid
from isotone.curves.shapes import Convex, LinearPieces
from isotone.order import Poset
from isotone.privacy.guarantee import Unit
from tests.support import curve_cases, poset_cases
from tests.support.curve_outcomes import Outcomes, curve_key, distribution, records_of, scripted
from tests.support.estimators import grouped
from tests.support.mechanisms import mechanisms

SETTINGS = list(itertools.product(("add-remove", "replace"), (1, 3)))
PARTS = {"CurveMechanism", "DrawnValues", "OrderMechanism", "RegressionMechanism"}
"""What others are made of."""
BY_PARTS = {
    "HistogramFit": "tests/unit/curves/test_histogram_fit.py: too many noisy numbers to walk through",
    "RefinedLineFit": "LineFit with more bins: tests/unit/curves/test_line_fit.py",
    "StepFit": "LineFit without lines: tests/unit/curves/test_line_fit.py",
}
"""Mechanisms that are too large to be walked through; the fits below draw from them."""


def classes_of(value: Any) -> set[str]:
    """The classes of a mechanism, of those it comes from and of those it has inside."""
    kinds = {kind.__name__ for kind in type(value).__mro__}
    for inner in vars(value).values():
        if hasattr(inner, "draw"):
            kinds |= classes_of(inner)
    return kinds


def test_every_mechanism_on_curves_is_walked_through():
    cases = [*curve_cases.MECHANISMS.values(), *poset_cases.MECHANISMS.values()]
    walked = set().union(*(classes_of(make(CurveSetting(Fraction(1)))) for make in cases))
    every = mechanisms("isotone.curves", "draw").keys() - PARTS
    assert every - walked == BY_PARTS.keys()


LEVELS = [(0, 0), (0, FINE), (1, 0), (1, FINE)]
QUICK = [
    "additive absolute",
    "additive squared",
    "bins of medians",
    "baseline absolute",
    "constant pieces, drawn",
    "convex, drawn",
]


@pytest.mark.parametrize(("neighbours", "contributions"), SETTINGS)
@pytest.mark.parametrize("name", QUICK)
def test_a_unit_of_several_records_costs_epsilon(name, neighbours, contributions):
    """All records of the unit are alike, which costs most. Against nobody, and against data that leave one output likely."""
    mechanism = curve_cases.MECHANISMS[name](CurveSetting(Fraction(2), Unit(contributions, neighbours)))

    def law(rows: Sequence[tuple[int, int]], heavy: Sequence[tuple[int, int]]) -> dict[Any, float]:
        weights = [1] * len(rows) + [40] * len(heavy)
        records = records_of([*rows, *heavy], weights)
        return distribution(lambda outcomes: mechanism.draw(records, outcomes), curve_key)

    worst = 0.0
    for heavy in ([], [(0, 0), (1, FINE)], [(1, 0), (0, FINE)]):
        laws = {row: law([row] * contributions, heavy) for row in LEVELS}
        plain = law([], heavy)
        pairs = (
            [(plain, laws[row]) for row in LEVELS]
            if neighbours == "add-remove"
            else [(laws[a], laws[b]) for a, b in itertools.combinations(LEVELS, 2)]
        )
        worst = max([worst, *(curve_cases.largest_ratio(one, other) for one, other in pairs)])
    assert 0.4 < worst <= 2 + 1e-9


class Given(Outcomes):
    """Draws whose results are given by a seed, whatever the data: choices by number, noisy sums far on either side.

    What sums would have been added to is kept, times the rate of their noise: on the worst sides the losses of all add up.
    """

    def __init__(self, seed: int) -> None:
        super().__init__([])
        self.rng = np.random.default_rng(seed)
        self.sums: list[float] = []

    def decide(self, log_weights: Sequence[float]) -> int:
        place = len(self.taken)
        alive = sum(weight > -np.inf for weight in log_weights)
        self.script = [*self.script, int(self.rng.integers(alive))]
        assert len(self.script) == place + 1
        return super().decide(log_weights)

    def perturb(self, values: Any, rate: Fraction) -> Any:
        results = self.rng.choice([-300, 300], size=values.shape)
        self.sums += (float(rate) * values.ravel()).tolist()
        return results.astype(np.int64)


def fitted(model: Any, x: Any, y: Any, groups: Any, seed: int) -> Given:
    """What was drawn by a fit whose results are given."""
    draws = Given(seed)
    with scripted(draws):
        model.fit(x, y, groups=groups)
    return draws


def loss_between(one: Given, other: Given) -> float:
    """What the given results cost, with noisy sums on the worst sides."""
    assert one.taken == other.taken, "the results are the same"
    sums = np.abs(np.array(one.sums) - np.array(other.sums)).sum()
    return abs(one.log_probability - other.log_probability) + float(sums)


# Cuts are left out: they are drawn by runs of records, so that the same number is another cut for another data set.
FITS: dict[str, dict[str, Any]] = {
    "means": {},
    "means, direction found": {"increasing": "auto"},
    "labels": {"y_values": (0, 1)},
    "one draw": {"loss": "absolute", "method": "baseline", "x_grid": 3, "value_levels": 4},
    "bins": {"method": "bins"},
    "public number": {"public_n": 30},
}


@pytest.mark.parametrize(("neighbours", "contributions"), SETTINGS)
@pytest.mark.parametrize("name", FITS)
def test_a_whole_fit_costs_epsilon(name, neighbours, contributions):
    unit: dict[str, Any] = {"neighbours": neighbours, "contributions": contributions}
    more: dict[str, Any] = {"bounds": (0, 10), "y_range": (0, 1)} | {"x_grid": 11} | FITS[name]
    if "y_values" in more:
        del more["y_range"]
    x = np.arange(30) % 11.0
    y = (x > 4).astype(float)
    worst = 0.0
    for seed, (place, value) in itertools.product(range(4), [(0.0, 1.0), (10.0, 0.0), (5.0, 1.0)]):
        fits = []
        for at, level in ((place, value), (10 - place, 1 - value)):
            own = (np.full(contributions, at), np.full(contributions, level))
            if neighbours == "add-remove" and fits:
                own = (np.zeros(0), np.zeros(0))
            groups = np.append(np.arange(30), np.full(len(own[0]), 99))
            model = PrivateIsotonicRegression(**grouped(epsilon=1, **unit, **more))
            fits.append(fitted(model, np.append(x, own[0]), np.append(y, own[1]), groups, seed))
        worst = max(worst, loss_between(*fits))
    # fits by noisy sums use up all of epsilon, those by choices at few results only
    assert (0.93 if name in BY_SUMS else 0.01) < worst <= 1 + 1e-9


BY_SUMS = ("means", "means, direction found", "labels", "public number")


@pytest.mark.parametrize(("neighbours", "contributions"), SETTINGS)
def test_a_fit_under_zcdp_costs_rho(neighbours, contributions):
    """Gaussian noise on sums and on the number of records, each in its standard deviations."""
    x = np.arange(30) % 11.0
    y = (x > 4).astype(float)
    unit: dict[str, Any] = {"neighbours": neighbours, "contributions": contributions}
    means = []
    for row in ((0.0, 1.0), (10.0, 0.0)):
        own = contributions if neighbours == "replace" or not means else 0
        model = PrivateIsotonicRegression(
            **grouped(rho="1/2", bounds=(0, 10), y_range=(0, 1), x_grid=11, **unit)
        )
        at, level = np.append(x, [row[0]] * own), np.append(y, [row[1]] * own)
        groups = np.append(np.arange(30), [99] * own)
        means.append(fitted(model, at, level, groups, 1).means)
    assert len(means[0]) == len(means[1])
    rho = float(np.sum((np.array(means[0]) - np.array(means[1])) ** 2)) / 2
    assert 0.2 < rho / 0.5 <= 1 + 1e-9


@pytest.mark.parametrize(("neighbours", "contributions"), SETTINGS)
@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_a_fit_on_an_order_costs_epsilon(loss, neighbours, contributions):
    P = Poset("abc", [("a", "c"), ("b", "c")])
    elements = ["a", "b", "c"] * 10
    y = [0.0, 0.0, 1.0] * 10
    unit: dict[str, Any] = {"neighbours": neighbours, "contributions": contributions}
    worst = 0.0
    for seed, value in itertools.product(range(4), (0.0, 1.0)):
        fits = []
        for name, level in (("a", value), ("c", 1 - value)):
            own = contributions if neighbours == "replace" or not fits else 0
            model = PrivatePosetRegression(P, **grouped(epsilon=1, y_range=(0, 1), loss=loss, **unit))
            groups = np.append(np.arange(30), [99] * own)
            fits.append(fitted(model, elements + [name] * own, y + [level] * own, groups, seed))
        worst = max(worst, loss_between(*fits))
    assert 0.1 < worst <= 1 + 1e-9


class Rate(Fraction):
    """A rate that knows which share of epsilon it spends."""

    share: Fraction


@dataclass(frozen=True)
class Noticing(CurveSetting):
    """A setting whose rates know their shares."""

    def rate(self, share: Fraction, scale: int) -> Fraction:
        made = Rate(super().rate(share, scale))
        made.share = share
        return made


class Spending(SeededCurveDraws):
    """Seeded draws that add up the shares of what is drawn. What is drawn at once is about other records each."""

    def __init__(self) -> None:
        super().__init__(np.random.default_rng(2))
        self.spent: list[Fraction] = []

    def _spend(self, *rates: Any) -> None:
        self.spent.append(max(rate.share for rate in rates))

    def choice(self, scores: Any, rate: Any) -> int:
        self._spend(rate)
        return super().choice(scores, rate)

    def segments(
        self, scores: Any, offsets: Any, rates: Any, multiplicity: Any, size: int | None = None
    ) -> Any:
        self._spend(*rates)
        return super().segments(scores, offsets, rates, multiplicity, size)

    def perturb(self, values: Any, rate: Any) -> Any:
        self._spend(rate)
        return super().perturb(values, rate)

    def select(self, circuit: Any, costs: Any, rate: Any) -> Any:
        self._spend(rate)
        return super().select(circuit, costs, rate)


SIZED: dict[str, Any] = {
    name: kind
    for name, kind in mechanisms("isotone.curves", "draw").items()
    if issubclass(kind, CurveMechanism) and hasattr(kind, "of")
}


CASES = [(Absolute(), 300), (Pinball(Fraction(3, 10)), 20_000), (Squared(), 20_000)]


@pytest.mark.parametrize("name", SIZED)
def test_all_that_is_drawn_spends_epsilon_together(name):
    """Of every mechanism that sizes itself, at sizes that releases have, where no law can be walked through."""
    unit, looked_at = (Fraction(0), Fraction(1)), 0
    records = Reference("step", "uniform", labels=False).sample(300, 65, np.random.default_rng(1))
    for (loss, n), shape in itertools.product(CASES, (None, Convex(), LinearPieces(3))):
        budget = FitBudget(Noticing(Fraction(1)), n)
        problem = ChainProblem(loss, unit, grid=Grid(*unit, 65), shape=shape, n=n, budget=budget)
        try:
            mechanism = SIZED[name].of(problem)
        except (AssertionError, NotImplementedError):  # one for another shape
            continue
        draws = Spending()
        mechanism.draw(records, draws)
        # a second look draws boundaries from some records and values from the others
        twice = draws.spent[-1] if name == "RefinedLineFit" and draws.spent[-1] == draws.spent[-2] else 0
        assert Fraction(1, 2) < sum(draws.spent) - twice <= 1
        looked_at += 1
    assert looked_at


@pytest.mark.parametrize(
    "setting", [CurveSetting(Fraction(3)), ConcentratedSetting.of(Fraction(1, 2), Unit())]
)
def test_parts_of_a_budget_add_up(setting):
    parts = [setting.part(Fraction(1, 3)), setting.part(Fraction(2, 3))]
    whole = parts[0].guarantee + parts[1].guarantee
    assert whole.within(setting.guarantee)
    assert setting.guarantee.within(whole)
