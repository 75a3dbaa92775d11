"""Fits that look at noisy sums several times, or at all elements: what a unit can cost, through the code that releases.

Every look is answered from a script, whatever the records are, as in the proof of adaptive composition. On each path the
bins must be the same for all data, and the looks together cost a unit epsilon or ρ exactly: geometric noise of a rate costs
the rate times the distance of the sums, Gaussian noise of variance σ² costs Δ²/(2σ²).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import pytest
from tests.support.curve_outcomes import records_of, scripted
from tests.support.estimators import grouped

from isotone.curves import PrivateIsotonicRegression, PrivatePosetRegression
from isotone.curves import bands as posterior_fit
from isotone.curves.bands import PosteriorFit
from isotone.curves.posterior import CurvePosterior, NoisySums
from isotone.curves.problem import FINE, ConcentratedSetting, CurveSetting
from isotone.order import Poset
from isotone.privacy.guarantee import Neighbours, Unit

BUDGET = Fraction(3, 7)
Rows = tuple[tuple[int, int], ...]


class Told:
    """Answers looks from a script and keeps the true sums with the price of a change, by rate or by variance."""

    def __init__(self, answers: Sequence[Sequence[int]]) -> None:
        self.answers = iter(answers)
        self.asked: list[tuple[Any, Fraction, bool]] = []

    def perturb(self, values: Any, rate: Fraction) -> Any:
        self.asked.append((values.copy(), rate, True))
        return np.resize(np.array(next(self.answers), np.int64), values.shape)

    def rounded_gaussians(self, variance: Fraction, size: int) -> Any:
        return _Answer(self, variance)

    def cost(self, other: Told) -> Fraction:
        """What these answers tell about which of two data sets was asked, at most."""
        total = Fraction(0)
        for (a, price, pure), (b, same, _) in zip(self.asked, other.asked, strict=True):
            assert a.shape == b.shape
            assert price == same
            apart = np.abs(a - b)
            total += price * int(apart.sum()) if pure else Fraction(int((apart**2).sum())) / (2 * price)
        return total


class _Answer:
    """Gaussian noise that turns the true sums into the answer of the script."""

    __array_ufunc__: ClassVar[None] = None

    def __init__(self, told: Told, variance: Fraction) -> None:
        self.told, self.variance = told, variance

    def reshape(self, shape: tuple[int, ...]) -> _Answer:
        return self

    def __radd__(self, values: Any) -> Any:
        answer = self.told.perturb(values, self.variance)
        self.told.asked[-1] = (values.copy(), self.variance, False)
        return answer


class Watched(PosteriorFit):
    """The mechanism, which keeps its bins, and computes the posterior of the same noisy sums once only."""

    bins: ClassVar[list[Any]] = []
    known: ClassVar[dict[Any, CurvePosterior]] = {}

    def sums(self, records: Any, starts: Any, share: Fraction, draws: Any) -> NoisySums:
        self.bins.append(starts.tolist())
        return super().sums(records, starts, share, draws)

    def posterior(self, sums: NoisySums, levels: int, keep: float = 1e-3) -> CurvePosterior:
        # bins may be placed by any function of what was released: here by that of the first law of noise
        key = (self.labels, sums.starts.tobytes(), sums.ones.tobytes(), sums.zeros.tobytes())
        if key not in self.known:
            self.known[key] = super().posterior(sums, levels, keep)
        return self.known[key]


def looked(mechanism: PosteriorFit, rows: Rows, answers: Any) -> tuple[Told, list[Any]]:
    told: Any = Told([*answers, (0,)])
    Watched.bins.clear()
    mechanism.measure(records_of(rows), told)
    return told, list(Watched.bins)


@pytest.mark.parametrize("concentrated", [False, True], ids=["epsilon", "rho"])
@pytest.mark.parametrize("contributions", [1, 2])
@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("labels", [True, False], ids=["labels", "values"])
def test_on_every_path_of_two_looks_a_unit_costs_the_budget_and_no_more(
    labels: bool, neighbours: Neighbours, contributions: int, concentrated: bool
) -> None:
    unit = Unit(contributions, neighbours)
    setting = ConcentratedSetting.of(BUDGET, unit) if concentrated else CurveSetting(BUDGET, unit)
    mechanism = Watched(setting, 8, 10, 2, 3, 3, labels, looks=2)
    rows = [(0, 0 if labels else FINE // 4), (7, 0), (7, FINE)]
    units = list(itertools.combinations_with_replacement(rows, contributions))
    crowd = (rows[0],) * 5_000
    full = 2_000 if labels else 2_000 * FINE
    placed = set[str]()
    # each sum of both bins is empty or full
    for sides in itertools.product((0, full), repeat=4):
        answers = (sides, sides[::-1])
        path = [looked(mechanism, rows, answers) for rows in ((), *units, crowd)]
        assert all(bins == path[0][1] for _, bins in path), "bins follow from answers alone"
        assert [len(told.asked) for told, _ in path] == [3] * len(path)
        placed |= {str(bins) for bins in path[0][1][1:]}
        tolds = [told for told, _ in path[:-1]]
        pairs = (
            itertools.combinations(tolds[1:], 2)
            if neighbours == "replace"
            else [(tolds[0], told) for told in tolds[1:]]
        )
        worst = max(one.cost(other) for one, other in pairs)
        # replaced records change two sums, which are farther apart in sum than in length
        assert worst == (BUDGET / 2 if concentrated and neighbours == "replace" else BUDGET)
    assert len(placed) > 5, "answers place bins"


@pytest.mark.parametrize("noisy_n", [-5, 200, 5_000])
@pytest.mark.parametrize("budget", [{"epsilon": 1}, {"rho": 1}], ids=["epsilon", "rho"])
def test_a_whole_fit_asks_the_same_of_all_data_and_spends_all(budget: Any, noisy_n: int) -> None:
    """The noisy number of records decides how many coarse looks there are, none to two, however many records there are."""
    model = PrivateIsotonicRegression(bounds=(0, 3), y_values=(0, 1), x_grid=4, **grouped(**budget))
    found: list[tuple[Told, str]] = []
    crowd = [(2, FINE)] * 2_000
    for rows in ([], [(0, 0)], crowd, [*crowd, (3, 0)]):
        told: Any = Told([(noisy_n,), (9, 2, 700), (1, 60, 5, 0, 30), (4, 8, 40), (0,)])
        with scripted(told):
            model.fit([x for x, _ in rows], [y / FINE for _, y in rows])
        found.append((told, str([model.X_thresholds_, model.y_thresholds_])))
    assert {len(told.asked) for told, _ in found} == {{-5: 2, 200: 3, 5_000: 4}[noisy_n]}
    assert len({released for _, released in found}) == 1, "what is released follows from answers alone"
    assert found[0][0].cost(found[1][0]) == found[2][0].cost(found[3][0]) == 1


@pytest.mark.parametrize("contributions", [1, 2])
@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("increasing", [True, False])
@pytest.mark.parametrize("budget", ["epsilon", "rho"])
def test_measuring_all_elements_asks_the_same_of_all_data_and_spends_all(
    budget: str, increasing: bool, neighbours: Neighbours, contributions: int
) -> None:
    """The noisy number of records, not theirs, decides that all elements are measured: at once, and for the rest of the budget."""
    given: dict[str, Any] = {budget: BUDGET}
    model = PrivatePosetRegression(
        Poset.chain("abc"),
        y_range=(0, 1),
        **grouped(**given, neighbours=neighbours),
        increasing=increasing,
        contributions=contributions,
    )
    found: list[tuple[Told, str]] = []
    crowd = [(2, FINE)] * 50
    for unit in ((), ((0, 0),), ((0, FINE),), ((1, FINE // 4),), ((2, 0),)):
        rows = [*crowd, *unit * contributions]
        told: Any = Told([(900,), (9 * FINE, 2 * FINE, 70 * FINE, -5)])
        with scripted(told):
            model.fit(["abc"[x] for x, _ in rows], [y / FINE for _, y in rows], groups=range(len(rows)))
        found.append((told, f"{model.method_} {model.values_}"))
    assert {len(told.asked) for told, _ in found} == {2}
    assert {released.startswith("all elements") for _, released in found} == {True}
    assert len({released for _, released in found}) == 1, "what is released follows from answers alone"
    first, units = found[0][0], [told for told, _ in found[1:]]
    if neighbours == "add-remove":
        costs = {first.cost(told) for told in units}
        assert max(costs) == BUDGET
        assert (
            budget == "rho" or len(costs) == 1
        )  # a value inside its range moves two sums, by less in length
    else:  # the number of records is the same
        worst = max(one.cost(other) for one, other in itertools.combinations(units, 2))
        assert worst == BUDGET * Fraction(98, 100) / (2 if budget == "rho" else 1)


def test_a_second_look_at_the_price_of_both_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check has teeth: shares that are not halved cost more than the budget."""
    monkeypatch.setattr(posterior_fit, "noisy_sums", _twice(posterior_fit.noisy_sums))
    mechanism = PosteriorFit(CurveSetting(BUDGET), 4, 10, 2, 2, 3, True, looks=2)
    none, one = (looked(mechanism, rows, [(0,), (0,)])[0] for rows in ((), ((0, 0),)))
    assert none.cost(one) == BUDGET * Fraction(11, 10)


def _twice(honest: Any) -> Any:
    def careless(records: Any, starts: Any, points: Any, setting: Any, share: Fraction, *rest: Any) -> Any:
        return honest(records, starts, points, setting, share if share > Fraction(1, 2) else 2 * share, *rest)

    return careless
