"""What a measurement of OpenDP was built with is what it releases with, whatever happens to the arguments later."""

# OpenDP re-exports its names from the prelude without declaring them.
# pyright: reportPrivateImportUsage=false

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import opendp.prelude as dp
import pandas as pd
import pytest

from isotone.curves import PrivateIsotonicRegression
from isotone.errors import InputError
from isotone.interop import opendp as bridge
from isotone.interop.opendp import measurements as curve_bridge
from isotone.interop.opendp import measurements as table_bridge
from isotone.order import Poset
from isotone.tables import TwoStageMechanism, fixed_point, simulate_distribution

dp.enable_features("contrib", "honest-but-curious")

P = Poset.chain(["a", "b"])
ROWS = bridge.table_domain(), dp.symmetric_distance()
UNITS = bridge.table_domain(), dp.symmetric_id_distance(identifier="u")
DATA = pd.DataFrame({"u": [1, 1, 2], "a": 1, "b": 1, "x": [0, 1, 2], "y": [0, 1, 1]})


class Changing:
    """An integer that is another one whenever it is asked."""

    def __init__(self, *values: int) -> None:
        self.values = list(values)

    def __index__(self) -> int:
        return self.values.pop(0) if len(self.values) > 1 else self.values[0]


@pytest.fixture
def fitted(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The estimators that are fitted."""
    found: list[Any] = []
    monkeypatch.setattr(curve_bridge, "fit_counted", lambda estimator, *rest: found.append(estimator))
    return found


def test_a_curve_is_fitted_with_the_parameters_that_its_map_was_made_for(fitted: list[Any]) -> None:
    bounds = [0, 2]
    model = PrivateIsotonicRegression(epsilon=1, bounds=bounds, y_range=(0, 1))
    measurement = bridge.make_curve(*ROWS, model, x="x", y="y")
    model.set_params(epsilon=1000, y_range=(0, 9))
    bounds[1] = 100
    measurement(DATA)
    (used,) = fitted
    assert (used.epsilon, used.bounds, used.y_range) == (1, (0, 2), (0, 1))
    assert measurement.map(1) == 1.0


def test_a_curve_of_a_context_is_frozen_too(fitted: list[Any]) -> None:
    bounds = [0, 2]
    contributions: Any = Changing(2, 1)
    measurement = bridge.make_isotone_curve(
        *UNITS, 1.0, x="x", y="y", bounds=bounds, y_range=(0, 1), contributions=contributions
    )
    bounds[1] = 100
    measurement(DATA)
    (used,) = fitted
    assert (used.contributions, used.bounds) == (2, (0, 2))


def test_a_distribution_is_drawn_with_the_numbers_that_its_map_was_made_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    used: list[tuple[Any, ...]] = []
    real = table_bridge.privatize_distribution

    def told(counts: Any, upper: Any, epsilon: Any, method: Any, **settings: Any) -> Any:
        used.append((upper, epsilon.epsilon, settings["contributions"]))
        return real(counts, upper, epsilon, method, **settings)

    monkeypatch.setattr(table_bridge, "privatize_distribution", told)
    epsilon: Any = Changing(1, 1000)
    upper: Any = np.uint8(9)
    contributions: Any = Changing(2, 1)
    measurement = bridge.make_distribution(
        *UNITS, epsilon, category="a", categories=["1"], upper=upper, contributions=contributions
    )
    assert measurement.map(1) == 1.0
    measurement(DATA)
    assert set(used) == {(9, 1, 2)}


def test_rows_are_bounded_by_the_contributions_that_the_noise_is_for() -> None:
    contributions: Any = Changing(1, 2)
    columns = {"a": "a", "b": "b"}
    measurement = bridge.make_isotone_counts(
        *UNITS, P, 1e9, contributions=contributions, rules=bridge.RowRules(columns=columns)
    )
    columns["b"] = "missing"
    assert measurement(DATA).tolist() == [2, 2]  # noise of 1e-9: one record for each unit


@pytest.mark.parametrize("budget", [True, np.True_, 0, -1, float("nan"), float("inf"), None, "x", object()])
def test_a_budget_is_a_number_above_zero(budget: Any) -> None:
    with pytest.raises(InputError, match="budget must be"):
        bridge.make_isotone_counts(*ROWS, P, budget)


@pytest.mark.parametrize("budget", [np.uint8(200), np.int8(100), np.float32(0.5), np.float64(0.25), 3])
def test_a_budget_of_any_width_means_its_value(budget: Any) -> None:
    assert bridge.make_isotone_counts(*ROWS, P, budget).map(1) == float(budget)


def test_texts_are_no_lists_and_names_are_texts() -> None:
    table: dict[str, Any] = {"budget": 1.0, "upper": 9}
    with pytest.raises(InputError, match="categories must be a list"):
        bridge.make_isotone_table(*ROWS, "ab", category="a", **table)
    with pytest.raises(InputError, match="category must be"):
        bridge.make_isotone_table(*ROWS, ["a"], category=3, **table)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="mechanism must be"):
        bridge.make_isotone_counts(*ROWS, P, 1.0, mechanism=["PosetMechanism"])  # type: ignore[arg-type]
    for wrong in (True, 2.0, "2", 0):
        with pytest.raises(InputError, match="contributions must be a whole number"):
            bridge.make_isotone_counts(*ROWS, P, 1.0, contributions=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["FixedRootMechanism", "GroupedDifferenceMechanism"])
def test_a_mechanism_that_needs_more_than_a_budget_is_refused(name: str) -> None:
    with pytest.raises(InputError, match=r"Use iso\.Counts"):
        bridge.make_isotone_counts(*ROWS, P, 1.0, mechanism=name)


METRICS: dict[Any, Any] = {
    "add-remove": [dp.symmetric_distance(), dp.insert_delete_distance()],
    "replace": [dp.change_one_distance(), dp.hamming_distance()],
}


@pytest.mark.parametrize("neighbours", METRICS)
@pytest.mark.parametrize("noise_for", METRICS)
def test_a_metric_takes_the_noise_for_its_own_neighbours_only(neighbours: str, noise_for: Any) -> None:
    """Noise for adding or removing a row says half of what a replaced row needs."""
    mechanism = TwoStageMechanism(9, 1, neighbours=noise_for)
    for metric in METRICS[neighbours]:
        make = partial(
            bridge.make_table, bridge.table_domain(), metric, mechanism, category="a", categories=["1", "2"]
        )
        if neighbours == noise_for:
            assert make().map(1) == 1.0
        else:
            with pytest.raises(InputError):
                make()


def test_a_mechanism_on_a_simulated_distribution_is_no_measurement() -> None:
    simulated = simulate_distribution([0, 1, 2], 3, 1, rng=np.random.default_rng(0))
    mechanism = fixed_point(simulated, epsilon=1)
    with pytest.raises(InputError, match="simulated distribution"):
        bridge.make_table(*ROWS, mechanism, category="a", categories=["1", "2"])
