"""A fit reads from top to bottom: what it calls never calls back into the file of the estimator."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from tests.support.calls import called_back

from isotone.curves import PrivateIsotonicRegression, PrivatePosetRegression
from isotone.order import Poset

ESTIMATORS: dict[str, tuple[Any, list[Any]]] = {
    "chain": (PrivateIsotonicRegression(1, (0, 2), (0, 1), x_grid=3), [0, 2]),
    "direction": (PrivateIsotonicRegression(1, (0, 2), (0, 1), x_grid=3, increasing="auto"), [0, 2]),
    "order": (PrivatePosetRegression(Poset.chain("ab"), 1, (0, 1), increasing=False), ["a", "b"]),
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_nothing_below_a_fit_calls_back_into_it(name: str) -> None:
    model, places = ESTIMATORS[name]
    file = sys.modules[type(model).__module__].__file__ or ""
    back = called_back(file, lambda: model.fit(places, [0, 1]))
    assert {
        name for name in back if "isotone" in name.partition(" from ")[2]
    } == set()  # a field is no call back


def test_a_call_back_is_noticed() -> None:
    model, places = ESTIMATORS["chain"]
    file = sys.modules["isotone.curves.problem"].__file__ or ""
    assert any("RegressionProblem" in name for name in called_back(file, lambda: model.fit(places, [0, 1])))
