"""Every mechanism stores plain values: numpy scalars of any width mean what plain ints mean."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.support.count_plans import plan as count_plan

import isotone.counts as counts
import isotone.tables as tables
from isotone.errors import InputError
from isotone.order import Poset
from isotone.privacy.guarantee import NEIGHBOURS, Guarantee
from isotone.release.manifest import recipe_of
from isotone.tables.matrices.count_mechanism import CountMechanism
from isotone.tables.plan import plan as table_plan
from isotone.tables.two_stage import TwoStageMechanism

ANTICHAIN, CHAIN = Poset.antichain("abcdef"), Poset.chain("abcd")
Build = Callable[..., Any]

PURE_COUNTS: dict[str, Build] = {
    "poset": lambda epsilon, **unit: counts.PosetMechanism(ANTICHAIN, epsilon, **unit),
    "difference": lambda epsilon, **unit: counts.DifferenceBodyMechanism(ANTICHAIN, epsilon, **unit),
    "laplace": lambda epsilon, **unit: counts.LaplaceMechanism(ANTICHAIN, epsilon, **unit),
    "discrete laplace": lambda epsilon, **unit: counts.DiscreteLaplaceMechanism(ANTICHAIN, epsilon, **unit),
    "l infinity": lambda epsilon, **unit: counts.LInfinityMechanism(ANTICHAIN, epsilon, **unit),
    "l 2": lambda epsilon, **unit: counts.L2Mechanism(ANTICHAIN, epsilon, **unit),
    "l p": lambda epsilon, **unit: counts.LpMechanism(ANTICHAIN, epsilon, 3, **unit),
    "hierarchical": lambda epsilon, **unit: counts.HierarchicalMechanism(CHAIN, epsilon, **unit),
    "matrix": lambda epsilon, **unit: counts.MatrixMechanism(CHAIN, epsilon, **unit),
    "bounded": lambda epsilon, **unit: counts.BoundedPosetMechanism(ANTICHAIN, epsilon, max_size=3, **unit),
    "count plan": lambda epsilon, **unit: count_plan(CHAIN, epsilon, **unit).best,
}
GAUSSIAN_COUNTS: dict[str, Build] = {
    "gaussian": lambda epsilon, **unit: counts.GaussianMechanism(ANTICHAIN, epsilon, "1e-6", **unit),
    "discrete gaussian": lambda epsilon, **unit: counts.DiscreteGaussianMechanism(
        ANTICHAIN, epsilon, "1e-6", **unit
    ),
    "order gaussian": lambda epsilon, **unit: counts.OrderGaussianMechanism(
        ANTICHAIN, epsilon, "1e-6", **unit
    ),
    "gaussian of rho": lambda epsilon, **unit: counts.GaussianMechanism(ANTICHAIN, rho=epsilon, **unit),
    "discrete gaussian of rho": lambda epsilon, **unit: counts.DiscreteGaussianMechanism(
        ANTICHAIN, rho=epsilon, **unit
    ),
    "order gaussian of rho": lambda epsilon, **unit: counts.OrderGaussianMechanism(
        ANTICHAIN, rho=epsilon, **unit
    ),
}
TABLES: dict[str, Build] = {
    "two stages": lambda epsilon, **unit: tables.TwoStageMechanism(9, epsilon, **unit),
    "truncated geometric": lambda epsilon, **unit: tables.truncated_geometric(5, epsilon, **unit),
    "staircase": lambda epsilon, **unit: tables.staircase(5, epsilon, **unit),
    "table discrete gaussian": lambda epsilon, **unit: tables.discrete_gaussian(5, epsilon, "1e-6", **unit),
    "fixed point": lambda epsilon, **unit: tables.fixed_point([0.5, 0.3, 0.2], epsilon, **unit),
    "heuristic": lambda epsilon, **unit: tables.fixed_point(
        [0.5, 0.3, 0.2], epsilon, constructor="heuristic", **unit
    ),
    "unfixed": lambda epsilon, **unit: tables.unfixed_optimum([0.5, 0.3, 0.2], epsilon, **unit),
    "table plan": lambda epsilon, **unit: table_plan(upper=3, size=9, epsilon=epsilon, draws=1, **unit).best,
}
EVERY = {**PURE_COUNTS, **GAUSSIAN_COUNTS, **TABLES}
WIDTHS: list[Any] = [np.int8, np.uint8, np.int16, np.int64, np.uint64]
width_type: Any = np.uint8
QUARTERS: list[Any] = [
    Fraction(width_type(1), width_type(4)),
    Fraction(np.int64(1), np.int64(4)),  # pyright: ignore[reportArgumentType]
    Decimal("0.25"),
    "1/4",
    "0.25",
    0.25,
    np.float32(0.25),
    np.float64(0.25),
]


def facts(mechanism: Any) -> dict[str, Any]:
    """What a mechanism is, as far as privacy goes: stored fields, derived rates and the recipe as JSON."""
    found: dict[str, Any] = {"class": type(mechanism), "guarantee": mechanism.guarantee}
    for name in (
        "epsilon",
        "contributions",
        "max_size",
        "sensitivity",
        "variance",
        "parameter",
        "branching",
        "delta",
    ):
        if hasattr(mechanism, name):
            found[name] = getattr(mechanism, name)
    for name in ("rate", "unit", "n", "upper", "emphasis"):
        if hasattr(mechanism, name):
            found[name] = getattr(mechanism, name)
    if not isinstance(mechanism, CountMechanism):
        found["recipe"] = json.dumps(recipe_of(mechanism))
    if isinstance(mechanism, TwoStageMechanism):
        found["measurement"] = mechanism.measurement(100)
    return found


def leaves(value: Any) -> list[Any]:
    """The numbers and texts inside a value of dataclasses and fractions."""
    if isinstance(value, Fraction):
        return [value.numerator, value.denominator]
    if is_dataclass(value) and not isinstance(value, type):
        return [leaf for field in fields(value) for leaf in leaves(getattr(value, field.name))]
    if isinstance(value, tuple):
        return [leaf for entry in value for leaf in leaves(entry)]
    return [value]


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_contributions_of_any_width_mean_their_value(name: str, neighbours: str) -> None:
    plain = facts(EVERY[name](1, contributions=100, neighbours=neighbours))
    for width in WIDTHS:
        built = facts(EVERY[name](1, contributions=width(100), neighbours=np.str_(neighbours)))
        assert built == plain, width
        assert {type(leaf) for key, fact in built.items() if key != "class" for leaf in leaves(fact)} <= {
            int,
            str,
            type(None),
            float,
            bool,
        }


@pytest.mark.parametrize("name", EVERY)
def test_the_budget_may_be_any_kind_of_number(name: str) -> None:
    plain = facts(EVERY[name](Fraction(1, 4)))
    for quarter in QUARTERS:
        assert facts(EVERY[name](quarter)) == plain, repr(quarter)


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("wrong", [True, np.True_, "2", b"2", 2.0, np.float64(2), 0, -1, [2]])
def test_contributions_that_are_no_whole_number_are_refused(name: str, wrong: Any) -> None:
    with pytest.raises(InputError, match="contributions must be a whole number of at least 1"):
        EVERY[name](1, contributions=wrong)


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("wrong", [True, np.True_, b"1", None, "x", 0, -1, float("nan"), [1]])
def test_a_budget_that_is_no_positive_number_is_refused(name: str, wrong: Any) -> None:
    with pytest.raises(InputError):
        EVERY[name](wrong)


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("wrong", ["add_remove", b"replace", None, 2, True])
def test_neighbours_of_no_known_kind_are_refused(name: str, wrong: Any) -> None:
    with pytest.raises(InputError, match="neighbours must be 'add-remove' or 'replace'"):
        EVERY[name](1, neighbours=wrong)


BOUNDED: dict[str, Build] = {
    "gaussian": lambda size: counts.GaussianMechanism(ANTICHAIN, rho=1, max_size=size),
    "discrete gaussian": lambda size: counts.DiscreteGaussianMechanism(ANTICHAIN, rho=1, max_size=size),
    "order gaussian": lambda size: counts.OrderGaussianMechanism(ANTICHAIN, rho=1, max_size=size),
    "laplace": lambda size: counts.LaplaceMechanism(ANTICHAIN, 1, max_size=size),
    "discrete laplace": lambda size: counts.DiscreteLaplaceMechanism(ANTICHAIN, 1, max_size=size),
    "bounded": lambda size: counts.BoundedPosetMechanism(ANTICHAIN, 1, max_size=size),
    "l infinity": lambda size: counts.LInfinityMechanism(ANTICHAIN, 1, max_size=size),
}


@pytest.mark.parametrize("name", BOUNDED)
def test_sizes_of_any_width_mean_their_value(name: str) -> None:
    plain = facts(BOUNDED[name](3))
    for width in WIDTHS:
        built = BOUNDED[name](width(3))
        assert facts(built) == plain
        assert type(built.max_size) is int
    for wrong in (True, "3", 3.0, 0):
        with pytest.raises(InputError, match="max_size must be a whole number of at least 1"):
            BOUNDED[name](wrong)


SIZED: dict[str, Build] = {
    "two stages": lambda n: tables.TwoStageMechanism(n, 1),
    "truncated geometric": lambda n: tables.truncated_geometric(n, 1),
    "staircase": lambda n: tables.staircase(n, 1),
    "table discrete gaussian": lambda n: tables.discrete_gaussian(n, 1, "1e-6"),
    "hierarchical": lambda n: counts.HierarchicalMechanism(CHAIN, 1, branching=n),
    "table plan": lambda n: table_plan(upper=n, size=n, epsilon=1, draws=1).best,
}


@pytest.mark.parametrize("name", SIZED)
def test_the_size_of_a_table_may_have_any_width(name: str) -> None:
    plain = facts(SIZED[name](3))
    for width in WIDTHS:
        assert facts(SIZED[name](width(3))) == plain
    for wrong in (True, "3", 3.0, -1):
        with pytest.raises(InputError, match="must be a whole number"):
            SIZED[name](wrong)


def test_a_distribution_is_privatised_for_the_unit_given() -> None:
    upper: Any = np.uint8(3)
    unit: Any = np.uint8(200)
    replaced = Guarantee.pure(1, neighbours="replace")
    made = tables.privatize_distribution([0, 1, 2], upper, replaced, contributions=unit)
    assert made.guarantee.epsilon == 1
    assert type(made.upper) is int


class TestReproducers:
    """The reports that this file exists for."""

    def test_noise_shaped_by_the_order_grows_with_a_narrow_number_of_contributions(self) -> None:
        unit: Any = np.uint8(100)
        m = counts.OrderGaussianMechanism(Poset.antichain("abc"), rho="1/2", contributions=unit)
        assert m.variance / m.strategy.sensitivity == 10_000

    def test_a_plan_takes_a_narrow_number_of_contributions(self) -> None:
        unit: Any = np.uint8(100)
        wide = count_plan(Poset.antichain("abc"), rho="1/2", contributions=100)
        narrow = count_plan(Poset.antichain("abc"), rho="1/2", contributions=unit)
        assert [row.rmse for row in narrow] == [row.rmse for row in wide]

    def test_a_bounded_mechanism_with_a_numpy_size_always_releases(self) -> None:
        size: Any = np.int64(2)
        m = counts.BoundedPosetMechanism(Poset.antichain("abcdef"), "1/100", max_size=size)
        for _ in range(20):  # at first four of five releases raised
            assert m.release([1000] * 6).dtype == np.int64

    @pytest.mark.parametrize(("width", "number"), [(np.uint8, 200), (np.int8, 100), (np.int16, 20_000)])
    def test_the_rate_of_replacing_does_not_wrap(self, width: Any, number: int) -> None:
        m = counts.PosetMechanism(Poset.antichain("abc"), 1, "replace", contributions=width(number))
        assert m.rate == Fraction(1, 2 * number)
