"""What every mechanism for tables promises holds for what its code measures, between all neighbours.

The mechanisms are found, not listed: one that has no case here fails. Tables are released without noise, for two neighbours: what
was measured then differs by what the noise has to hide, and the laws of the noise are those that the code asked for. Matrices of
single counts are walked through, path by path.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any, get_args

import numpy as np
import pytest
from scipy.optimize import brentq

from isotone.privacy.calibration import largest_rho
from isotone.privacy.guarantee import Guarantee, Unit
from isotone.tables import (
    GaussianTableMechanism,
    TwoStageMechanism,
    discrete_gaussian,
    fixed_point,
    privatize_distribution,
    staircase,
)
from isotone.tables.distribution import Method
from isotone.tables.pairs import release_pair
from isotone.tables.thresholds import Emphasis
from isotone.tables.two_stage import table_mechanism
from tests.laws.test_counts import gaussian_delta
from tests.support.mechanisms import mechanisms
from tests.support.noise_scripts import drawn_from, enumerated, measured_without_noise

SETTINGS = list(itertools.product(("add-remove", "replace"), (1, 3)))
SIZE, UPPER = 60, 12
TABLE = np.array([k % 7 for k in range(SIZE)], np.int64)

SINGLE: dict[str, Callable[..., Any]] = {
    "FactoredMechanism": lambda **unit: fixed_point(np.full(6, 1 / 6), epsilon=Unit(**unit).steps, **unit),
    "StaircaseMechanism": lambda **unit: staircase(6, Unit(**unit).steps, **unit),
    "DiscreteGaussianCountMechanism": lambda **unit: discrete_gaussian(6, 1, "0.01", **unit),
}
"""Mechanisms that publish one count alone, by a matrix of six rows."""
TABLES = {"TwoStageMechanism": TwoStageMechanism, "GaussianTableMechanism": GaussianTableMechanism}


def test_every_mechanism_for_tables_has_a_case() -> None:
    assert mechanisms("isotone.tables", "release").keys() == SINGLE.keys() | TABLES.keys()


HALF = SIZE // 2
WAYS: dict[str, Callable[[Any, np.ndarray], Any]] = {
    "plain": lambda mechanism, table: mechanism.release_in_full(table),
    "strata": lambda mechanism, table: mechanism.release_in_full(
        table, [np.arange(HALF), np.arange(HALF, SIZE)]
    ),
    "pairs": lambda mechanism, table: release_pair(mechanism, table[:HALF], table[HALF:]).table,
}
"""All ways to release a table."""


def neighbours_of(table: np.ndarray, neighbours: str, contributions: int, *, once: bool) -> list[np.ndarray]:
    """Tables one unit away: its contributions in one category, in several, and those of another taken away."""
    found = []
    spread = [np.arange(contributions), 7 * np.arange(contributions)] if contributions > 1 else []
    together = [] if once and contributions > 1 else [np.zeros(contributions, np.int64)]
    for places in (*spread, *together):
        for start in (0, 4):
            more = table.copy()
            np.add.at(more, places + start, 1)
            found.append(more)
            if neighbours == "replace":
                moved = more.copy()
                np.subtract.at(moved, places + start + 20, 1)
                found.append(moved)
    return [np.clip(other, 0, UPPER) for other in found]


def parts(published: Any) -> list[np.ndarray]:
    """The noisy numbers of a release, in the sequence in which they were drawn."""
    return [part for s in published.strata for part in (s.noisy_cumulative, s.noisy_counts)]


def cost(run: Callable[[np.ndarray], Any], one: np.ndarray, other: np.ndarray) -> tuple[float, float]:
    """The pure loss, and ρ, between two tables: of cumulative numbers and counts with the noise that was asked for."""
    (first, asked), (second, again) = (measured_without_noise(lambda t=t: run(t)) for t in (one, other))
    assert (asked.rates, asked.variances) == (again.rates, again.variances), "the noise depends on the table"
    moved = np.concatenate([a - b for a, b in zip(parts(first), parts(second), strict=True)])
    if asked.variances:
        assert len(moved) == len(asked.variances)
        return 0.0, float(np.sum(moved**2 / (2 * np.array(asked.variances))))
    cumulative = np.concatenate(
        [a.noisy_cumulative - b.noisy_cumulative for a, b in zip(first.strata, second.strata, strict=True)]
    )
    assert len(cumulative) == len(asked.rates)
    loss = float(np.abs(cumulative) @ np.array(asked.rates))
    for (values, line), (others, _) in zip(asked.lines, again.lines, strict=True):
        steps = np.concatenate([[0.0], np.cumsum(line.rates)])
        loss += float(np.sum(np.abs(steps[values] - steps[others])))
    return loss, loss**2 / 2


def used(mechanism: Any, run: Callable[[np.ndarray], Any], *, once: bool = True) -> float:
    """Which part of the guarantee the worst of the neighbours above uses up."""
    guarantee = mechanism.guarantee
    pairs = neighbours_of(TABLE, guarantee.neighbours, mechanism.unit.contributions, once=once)
    costs = [cost(run, TABLE, other) for other in pairs]
    if isinstance(mechanism, TwoStageMechanism):
        return max(loss for loss, _ in costs) / float(guarantee.epsilon)
    rho = guarantee.rho if guarantee.kind == "zcdp" else largest_rho(guarantee.epsilon, guarantee.delta)
    return max(spent for _, spent in costs) / float(rho)


@pytest.mark.parametrize("emphasis", [None, *get_args(Emphasis), "1/7", "0.95"])
@pytest.mark.parametrize(("neighbours", "contributions"), SETTINGS)
@pytest.mark.parametrize("step", ["0.4", 2])
def test_a_table_with_geometric_noise_costs_epsilon(step, neighbours, contributions, emphasis):
    unit: dict[str, Any] = {"neighbours": neighbours, "contributions": contributions}
    mechanism = TwoStageMechanism(UPPER, Fraction(step) * Unit(**unit).steps, emphasis, **unit)
    assert 0.99 < used(mechanism, mechanism.release_in_full, once=False) <= 1 + 1e-9


@pytest.mark.parametrize("once", [True, False])
@pytest.mark.parametrize(("neighbours", "contributions"), SETTINGS)
@pytest.mark.parametrize(
    "budget", [{"rho": "1/3"}, {"epsilon": 1, "delta": "1e-6"}], ids=["zcdp", "approximate"]
)
def test_a_table_with_gaussian_noise_costs_rho(budget, neighbours, contributions, once):
    unit: dict[str, Any] = {"neighbours": neighbours, "contributions": contributions}
    mechanism = GaussianTableMechanism(
        UPPER, Unit(**unit).guarantee(**budget), once=once, contributions=contributions
    )
    assert 0.5 < used(mechanism, mechanism.release_in_full, once=once) <= 1 + 1e-6


@pytest.mark.parametrize(("neighbours", "contributions"), SETTINGS)
@pytest.mark.parametrize(
    "guarantee",
    [
        *(lambda n, e=e: Guarantee.pure(e, neighbours=n) for e in ("0.9", "9")),
        lambda n: Guarantee.zcdp("1/3", neighbours=n),
        lambda n: Guarantee.approximate(1, "1e-6", neighbours=n),
    ],
    ids=["pure 0.9", "pure 9", "zcdp", "approximate"],
)
def test_the_mechanism_that_is_chosen_guarantees_what_was_asked_for(guarantee, neighbours, contributions):
    """With and without an emphasis for small budgets, for one column, two strata and pairs of counts."""
    asked = guarantee(neighbours)
    for small in (None, "both"):
        mechanism = table_mechanism(UPPER, asked, contributions=contributions, small=small)
        assert mechanism.guarantee.within(asked)
        assert mechanism.unit.contributions == contributions
        for way in WAYS.values():
            assert 0.4 < used(mechanism, partial(way, mechanism)) <= 1 + 1e-6


@pytest.mark.parametrize(("neighbours", "contributions"), SETTINGS)
@pytest.mark.parametrize("method", get_args(Method))
def test_a_distribution_costs_what_it_says(method, neighbours, contributions):
    """By what its noise has to hide: the estimate is a function of the noisy numbers, which are set here one by one."""
    unit = Unit(contributions, neighbours)
    guarantee = unit.approximate(1, "0.01") if method == "cyclic-gaussian" else unit.pure(1)
    seen: list[tuple[str, float, int]] = []

    class Noticing:
        """Noise that keeps what it is added to."""

        __array_ufunc__ = None

        def __init__(self, kind: str, law: Fraction, size: int) -> None:
            self.law = kind, float(law), size

        def __radd__(self, truth: Any) -> Any:
            seen.append(self.law)
            truths.append(np.array(truth))
            return truth

    truths: list[np.ndarray] = []

    def run(table: np.ndarray) -> tuple[np.ndarray, tuple[str, float, int]]:
        seen.clear()
        truths.clear()
        script = {
            "two_sided_geometrics": lambda rate, size: Noticing("rate", rate, size),
            "rounded_gaussians": lambda variance, size: Noticing("variance", variance, size),
        }
        with drawn_from(script):
            privatize_distribution(table, UPPER, guarantee, method, contributions=contributions)
        assert [law[2] for law in seen] == [len(truth) for truth in truths]
        return truths[0], seen[0]

    plain, (kind, law, _) = run(TABLE)
    worst = 0.0
    for other in neighbours_of(TABLE, neighbours, contributions, once=False):
        moved = run(other)[0] - plain
        if kind == "rate":
            worst = max(worst, law * float(np.abs(moved).sum()))
        else:
            most: Any = brentq(lambda mu: gaussian_delta(1.0, mu) - 0.01, 1e-3, 10)
            worst = max(worst, math.sqrt(float(np.sum(moved**2)) / law) / most)
    assert 0.2 < worst <= 1 + 1e-6


@pytest.mark.parametrize(("neighbours", "contributions"), SETTINGS)
@pytest.mark.parametrize("name", SINGLE)
def test_a_matrix_of_counts_costs_what_it_guarantees(name, neighbours, contributions):
    """The law of one count by all paths. Counts are drawn apart, so a unit that changes two costs the sum."""
    mechanism = SINGLE[name](neighbours=neighbours, contributions=contributions)
    laws = {count: enumerated(lambda c=count: mechanism.release([c]), 1e-6).reached for count in range(6)}
    sides = Unit(contributions, neighbours).adjacency.sides
    epsilon, delta = float(mechanism.guarantee.epsilon), float(mechanism.guarantee.delta)
    worst = excess = 0.0
    for one, other in itertools.permutations(laws, 2):
        if abs(one - other) > contributions:
            continue
        for out in laws[one].keys() | laws[other].keys():
            p, q = laws[one].get(out, 0.0), laws[other].get(out, 0.0)
            if min(p, q) > 1e-3:
                worst = max(worst, abs(math.log(p / q)))
        excess = max(
            excess,
            sum(max(0.0, p - math.exp(epsilon) * laws[other].get(out, 0.0)) for out, p in laws[one].items()),
        )
    if mechanism.guarantee.kind == "pure":
        assert 0.9 * epsilon < worst * sides <= 1.02 * epsilon
    else:
        assert excess <= delta + 1e-4
    assert all(sum(law.values()) > 0.995 for law in laws.values())
