"""ρ-zCDP on small orders: Rényi divergences of all outputs together, through the code that releases.

Choices are enumerated. Gaussian sums, given the choices, are looked at before they are rounded: between means that lie d standard
deviations apart their divergence of order α is αd²/2, so that the divergence of both together is known exactly.
"""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.support.curve_outcomes import records_of
from tests.support.estimators import grouped
from tests.support.poset_cases import CHAIN, MECHANISMS, ends, made
from tests.support.poset_outcomes import runs

from isotone.curves import PrivatePosetRegression
from isotone.curves.poset_regression import OrderMechanism
from isotone.curves.problem import FINE, ConcentratedSetting, CurveSetting
from isotone.errors import InputError
from isotone.order import Poset
from isotone.privacy.guarantee import Guarantee, Unit

RHO = Fraction(1, 50)
"""So small that a choice between two equal sides uses up nearly all of it."""
ORDERS = np.array([1.1, 2.0, 4.0, 16.0, 64.0])
FLOORS = {
    "series-parallel, pinball": (0.96, 0.43),
    "prime, pinball": (0.99, 0.45),
    "grid, huber": (0.99, 0.99),
    "listed, absolute": (0.96, 0.94),
    "grids, absolute": (0.99, 0.99),
    "measured, squared": (0.99, 0.73),
    "measured, unrelated elements": (0.99, 0.74),
    "measured, all elements": (0.99, 0.49),
    "threshold, squared": (0.1, 0.1),
    "coupling, two levels": (0.97, 0.96),
}
"""The share of ρ that is used up at least, for a record added and for one replaced. The two ends of a replaced record are two directions of
Gaussian sums, and two slopes of a quantile off the middle. All other mechanisms were walked through once, with shares up to 1."""
SMALL = {
    "tree, two levels": made(CHAIN, "absolute", levels=2),
    "threshold": made(CHAIN, "absolute", "threshold"),
    "baseline": made(CHAIN, "absolute", "baseline", values=2),
    "measured": made(CHAIN, "squared"),
}
Rows = tuple[tuple[int, int], ...]
Law = tuple[np.ndarray, np.ndarray]


def law_of(mechanism: OrderMechanism, rows: Rows) -> Law:
    """The logarithm of the probability of every run of choices, and the means of the sums that are measured after it."""
    records, found = records_of(rows), {}
    for _, outcomes in runs(lambda outcomes: mechanism.draw(records, outcomes)):
        found[tuple(outcomes.taken)] = outcomes.log_probability, outcomes.means
    widest = max(len(means) for _, means in found.values())
    means = np.zeros((len(found), widest))
    for row, name in zip(means, sorted(found), strict=True):
        row[: len(found[name][1])] = found[name][1]
    return np.array([found[name][0] for name in sorted(found)]), means


def cost(one: Law, other: Law) -> float:
    """The least ρ that the divergences of these orders allow."""
    apart = ((one[1] - other[1]) ** 2).sum(axis=1) / 2
    terms = ORDERS[:, None] * (one[0] + (ORDERS[:, None] - 1) * apart) + (1 - ORDERS[:, None]) * other[0]
    top = terms.max(axis=1)
    divergence = (top + np.log(np.exp(terms - top[:, None]).sum(axis=1))) / (ORDERS - 1)
    return float((divergence / ORDERS).max())


def worst(mechanism: OrderMechanism, unit: Unit) -> float:
    """The largest cost, as a share of ρ, of one unit beside nothing and beside other records, for all that it may hold."""
    size = mechanism.arrangement.size
    kinds = ends(size) if unit.contributions == 1 else [(0, 0), (0, FINE), (size - 1, 0), (size - 1, FINE)]
    held = [
        rows
        for many in range(unit.contributions + 1)
        for rows in itertools.combinations_with_replacement(kinds, many)
    ]
    most = 0.0
    for others in ((), ((0, FINE), (size - 1, 0))):
        laws = [law_of(mechanism, (*others, *rows)) for rows in held]
        starts = laws[:1] if unit.neighbours == "add-remove" else laws
        for one, other in itertools.product(starts, laws):
            most = max(most, cost(one, other), cost(other, one))
    return most / float(RHO)


@pytest.mark.parametrize("name", FLOORS)
def test_no_unit_costs_more_than_rho(name: str) -> None:
    for unit, floor in zip((Unit(), Unit(neighbours="replace")), FLOORS[name], strict=True):
        assert floor <= worst(MECHANISMS[name](ConcentratedSetting.of(RHO, unit)), unit) <= 1 + 1e-9


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("unit", [Unit(2), Unit(2, "replace")])
def test_two_records_of_a_unit_in_one_part_or_in_two_cost_no_more(name: str, unit: Unit) -> None:
    mechanism = SMALL[name](ConcentratedSetting.of(RHO, unit))
    assert 0.25 < worst(mechanism, unit) <= 1 + 1e-9


@pytest.mark.parametrize("name", SMALL)
def test_noise_for_another_unit_is_noticed(name: str) -> None:
    """That a replaced record is in two parts, or that a unit has two records, must slow every rate."""
    mechanism = SMALL[name](ConcentratedSetting.of(RHO, Unit()))
    assert min(worst(mechanism, Unit(neighbours="replace")), worst(mechanism, Unit(2))) > 1.5


def test_the_rate_of_pure_epsilon_is_noticed() -> None:
    """The ε that ρ implies, but for a δ, is no pure one."""
    implied = Guarantee.zcdp(RHO).to_approximate("1e-6").epsilon
    assert worst(SMALL["tree, two levels"](CurveSetting(implied)), Unit()) > 1.5


@pytest.mark.parametrize(
    ("given", "rows"),
    [
        ({}, 4),
        ({}, 100),
        ({"loss": "absolute"}, 100),
        ({"loss": "absolute", "public_n": 100}, 100),
        ({"method": "baseline"}, 4),
        ({"method": "threshold", "levels": 2}, 4),
        ({"method": "coupling", "levels": 3, "loss": "absolute"}, 4),
    ],
)
@pytest.mark.filterwarnings("ignore::isotone.curves.regression.ComparisonWarning")
def test_shares_of_a_fit_add_up_to_rho(monkeypatch, given: dict[str, Any], rows: int) -> None:
    """On one element, where a level has one part."""
    spent: list[Fraction] = []
    for name in ("rate", "perturbed"):
        whole = getattr(ConcentratedSetting, name)

        def seen(self: Any, *asked: Any, whole: Any = whole, name: str = name) -> Any:
            spent.append(self.rho * asked[name == "perturbed"])
            return whole(self, *asked)

        monkeypatch.setattr(ConcentratedSetting, name, seen)
    model = PrivatePosetRegression(Poset.chain("a"), **grouped(rho=RHO * 50, y_range=(0, 1), **given))
    found = model.fit(["a"] * rows, [0, 1] * (rows // 2))
    assert sum(spent) == RHO * 50 == found.guarantee_.rho
    assert found.epsilon_spent_ is None


@pytest.mark.parametrize(
    "given", [{"epsilon": 2}, {"rho": 0}, {"rho": "1e-40"}, {"rho": "1e18"}, {"rho": True}]
)
def test_a_budget_that_cannot_be_kept_is_refused_before_the_charge(given: dict[str, Any]) -> None:
    class Ledger:
        def charge(self, guarantee: Any, description: str) -> None:
            raise AssertionError("charged")

    asked: dict[str, Any] = {"rho": 1, **given}
    with pytest.raises(InputError, match="rho"):
        PrivatePosetRegression(CHAIN, y_range=(0, 1), ledger=Ledger(), **grouped(**asked)).fit(["a"], [0.5])
