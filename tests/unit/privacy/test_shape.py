"""Every mechanism has the one shape, and says by protocols what else it can do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import isotone.counts as counts
import isotone.tables as tables
from isotone.mechanism import HasLogDensity, HasMethod, HasTotal, Mechanism
from isotone.noise import Simulated
from isotone.order import Poset
from isotone.tables.distribution import Counts

P = Poset.chain("abc")
COUNT_MECHANISMS: list[Mechanism[Any, NDArray[np.int64]]] = [
    counts.PosetMechanism(P, 1),
    counts.BoundedPosetMechanism(Poset.antichain("abc"), 1, max_size=2),
    counts.DifferenceBodyMechanism(P, 1),
    counts.LaplaceMechanism(P, 1),
    counts.DiscreteLaplaceMechanism(P, 1),
    counts.LInfinityMechanism(P, 1),
    counts.HierarchicalMechanism(P, 1),
    counts.MatrixMechanism(P, 1),
    counts.GaussianMechanism(P, rho=1),
    counts.DiscreteGaussianMechanism(P, rho=1),
    counts.OrderGaussianMechanism(P, rho=1),
]
"""The annotation is part of the test: the type checker compares every member."""

TABLE_MECHANISMS: list[Mechanism[Counts, NDArray[np.int64]]] = [
    tables.TwoStageMechanism(5, 1),
    tables.truncated_geometric(6, 1),
    tables.staircase(6, 1),
    tables.discrete_gaussian(6, 1, "1e-6"),
    tables.fixed_point([0.5, 0.2, 0.1, 0.1, 0.05, 0.05], 1),
]


@pytest.mark.parametrize("m", COUNT_MECHANISMS, ids=lambda m: type(m).__name__)
def test_a_count_mechanism_has_the_shape(m: Any) -> None:
    as_any: object = m
    assert isinstance(as_any, Mechanism)
    drawn = m.simulate(size=4, rng=np.random.default_rng(0))
    assert isinstance(drawn, Simulated)
    np.testing.assert_array_equal(drawn, m.simulate(4, np.random.default_rng(0)))
    assert m.error().variance.shape == m.release([1, 2, 3] if m.P == P else [3, 3, 3]).shape == (3,)


@pytest.mark.parametrize("m", TABLE_MECHANISMS, ids=lambda m: type(m).__name__)
def test_a_table_mechanism_has_the_shape(m: Any) -> None:
    as_any: object = m
    assert isinstance(as_any, Mechanism)
    table = np.array([0, 5, 2, 2])
    drawn = m.simulate(table, rng=np.random.default_rng(0))
    assert isinstance(drawn, Simulated)
    np.testing.assert_array_equal(drawn, m.simulate(table, np.random.default_rng(0)))
    assert m.error().variance.shape == (6,)
    assert m.release(table).shape == (4,)


def test_what_else_a_mechanism_can_do_is_a_protocol() -> None:
    by_name = {type(m).__name__: m for m in COUNT_MECHANISMS}
    with_total = {name for name, m in by_name.items() if isinstance(m, HasTotal) and m.has_total}
    assert with_total == {"PosetMechanism", "OrderGaussianMechanism"}
    discrete = {name for name, m in by_name.items() if not isinstance(m, HasLogDensity)}
    sums = {"HierarchicalMechanism", "MatrixMechanism"}
    assert discrete == {"DiscreteLaplaceMechanism", "DiscreteGaussianMechanism"} | sums
    assert isinstance(by_name["PosetMechanism"], HasMethod)
    assert not isinstance(by_name["LaplaceMechanism"], HasMethod)
