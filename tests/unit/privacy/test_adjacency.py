"""A new row of the table of neighbours, and what follows from it for every mechanism."""

from __future__ import annotations

import inspect
from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import pytest

import isotone.tables as tables
from isotone.counts.count_plan import (
    Setting,
    best_mechanism,
    choose_mechanism,
    count_mechanism,
    count_mechanisms,
)
from isotone.curves.problem import ConcentratedSetting, CurveSetting
from isotone.errors import InputError
from isotone.order import Poset
from isotone.privacy.guarantee import ADDING, NEIGHBOURS, REPLACING, Adjacency, Guarantee, Unit
from isotone.tables.two_stage import change

PAIR: Any = "pair"
"""Two units are added or removed."""

COUPLE: Any = "couple"
"""Two units are replaced by two others."""

CHAIN, TREE = Poset.chain("abc"), Poset.from_mapping(dict.fromkeys("abc", "all"), children="partition")
MATRICES = (tables.truncated_geometric, tables.staircase)


@pytest.fixture(autouse=True)
def _two_more_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(NEIGHBOURS, PAIR, replace(NEIGHBOURS[ADDING], name=PAIR, units=2))
    monkeypatch.setitem(NEIGHBOURS, COUPLE, replace(NEIGHBOURS[REPLACING], name=COUPLE, units=4))


def _made(name: str, neighbours: Any, contributions: int) -> Any:
    """The mechanism of this name, on an order that it is for."""
    kind = count_mechanism(name)
    order = (
        TREE if name.startswith(("Tree", "Fixed")) else Poset.antichain("abc") if "Bounded" in name else CHAIN
    )
    needed = {"max_size": 2} if "Bounded" in name else {"p": 3} if name == "LpMechanism" else {}
    needed |= {"groups": 2} if name.startswith("Grouped") else {}
    needed |= {"records": 9, "catch_all": "b"} if name.startswith("Fixed") else {}
    takes_rho = "rho" in inspect.signature(kind).parameters
    needed |= {"rho": 1} if takes_rho else {"epsilon": 1}
    return kind(order, neighbours=neighbours, contributions=contributions, **needed)


@pytest.mark.parametrize(("new", "known"), [(PAIR, ADDING), (COUPLE, REPLACING)])
@pytest.mark.parametrize("name", count_mechanisms())
def test_counts_of_two_units_have_the_noise_of_a_unit_with_two_records(
    name: str, new: Any, known: Any
) -> None:
    if name == "FixedRootMechanism" and new == PAIR:
        with pytest.raises(InputError, match="for replace neighbours only"):
            _made(name, new, 1)
        return
    made, twice, once = (_made(name, n, k).error().variance for n, k in ((new, 1), (known, 2), (known, 1)))
    np.testing.assert_allclose(made, twice)
    assert np.all((made > 1.5 * once) | (once == 0))  # a fixed root has no noise
    assert np.any(once > 0)


@pytest.mark.parametrize(
    "name",
    ["Poset", "BoundedPoset", "DifferenceBody", "GroupedDifference", "Laplace", "LInfinity", "L2", "Lp"],
)
def test_two_records_lose_no_more_than_epsilon_by_the_density(name: str) -> None:
    made = _made(f"{name}Mechanism", PAIR, 1)
    records = [[int(x in above) for x in made.P.elements] for above in map(made.P.up_set, made.P.elements)]
    parts = getattr(made, "groups", 1)
    outputs = np.random.default_rng(0).normal(scale=3, size=(60, parts * len(made.P)))
    nothing = np.zeros(parts * len(made.P))
    for pair in combinations_with_replacement(records, 2):
        moved = np.append(np.sum(pair, axis=0), nothing[len(made.P) :])
        loss = made.log_density(outputs - nothing) - made.log_density(outputs - moved)
        assert np.abs(loss).max() <= 1 + 1e-9


@pytest.mark.parametrize(("new", "known"), [(PAIR, ADDING), (COUPLE, REPLACING)])
def test_tables_and_curves_of_two_units_have_the_noise_of_a_unit_with_two_records(
    new: Any, known: Any
) -> None:
    for build in MATRICES:
        made, twice = (build(6, 1, neighbours=n, contributions=c) for n, c in ((new, 1), (known, 2)))
        np.testing.assert_allclose(made.matrix(), twice.matrix())
    stages = [
        tables.TwoStageMechanism(5, 1, neighbours=n, contributions=c) for n, c in ((new, 1), (known, 2))
    ]
    np.testing.assert_allclose(stages[0].error().variance, stages[1].error().variance)
    weights = Fraction(1, 3), Fraction(2)
    assert change(Unit(1, new), False, *weights) == change(Unit(2, known), False, *weights)
    share = Fraction(1, 2)
    for setting in (
        lambda unit: CurveSetting(Fraction(1), unit),
        lambda unit: ConcentratedSetting.of(share, unit),
    ):
        assert setting(Unit(1, new)).law(share, 3) == setting(Unit(2, known)).law(share, 3)


def test_two_units_may_be_in_one_category() -> None:
    in_one_category, of_one_unit = Fraction(4), Fraction(1)
    assert change(Unit(1, PAIR), True, Fraction(0), Fraction(1)) == in_one_category
    assert change(Unit(1), True, Fraction(0), Fraction(1)) == of_one_unit


@pytest.mark.parametrize("neighbours", [PAIR, COUPLE])
def test_groups_have_what_one_unit_may_cost_in_each(neighbours: Any) -> None:
    asked = Guarantee.pure(4, neighbours=neighbours)
    units = asked.adjacency.units
    named = choose_mechanism(Setting(CHAIN, groups=3), asked, "LaplaceMechanism")
    assert named.guarantee == Guarantee.pure(Fraction(4, units))
    best: Any = best_mechanism(Setting(CHAIN, groups=40), Guarantee.pure(4, neighbours=neighbours))
    assert best.guarantee == Guarantee.pure(Fraction(4, units)) or best.groups == 40
    with pytest.raises(InputError, match="may move from one part"):
        asked.parallel(asked)


@pytest.mark.parametrize("asked", [{"epsilon": 3}, {"epsilon": 3, "delta": "1e-6"}, {"rho": "1/2"}])
def test_what_is_taken_for_one_unit_implies_what_was_asked(asked: dict[str, Any]) -> None:
    stated = Unit(neighbours=COUPLE).guarantee(**asked)
    assert stated.of_one_unit().for_neighbours(COUPLE) == stated
    one = stated.of_one_unit()
    assert (one.epsilon, one.rho) == (stated.epsilon / 4, stated.rho / 16)
    growth = sum(np.exp(i * float(one.epsilon)) for i in range(4))
    assert float(one.delta * 4) <= float(stated.delta) <= float(one.delta) * growth * (1 + 1e-9)


def test_half_an_exchange_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot be exchanged"):
        replace(NEIGHBOURS[REPLACING], units=3)
    with pytest.raises(InputError, match="units must be"):
        Adjacency(ADDING, 0, False, "", "", "")
