"""A fit reads from top to bottom: what it calls never calls back into the file of the estimator."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from isotone.curves import PrivateIsotonicRegression, PrivatePosetRegression
from isotone.order import Poset

ESTIMATORS: dict[str, tuple[Any, list[Any]]] = {
    "chain": (PrivateIsotonicRegression(1, (0, 2), (0, 1), x_grid=3), [0, 2]),
    "direction": (PrivateIsotonicRegression(1, (0, 2), (0, 1), x_grid=3, increasing="auto"), [0, 2]),
    "order": (PrivatePosetRegression(Poset.chain("ab"), 1, (0, 1), increasing=False), ["a", "b"]),
}


def called_back(file: str, run: Callable[[], Any]) -> set[str]:
    """The functions of a file that other files of the library call during a run."""
    found: set[str] = set()

    def seen(frame: FrameType, event: str, _: Any) -> None:
        if event != "call" or frame.f_code.co_filename != file or frame.f_back is None:
            return
        caller = frame.f_back.f_code.co_filename
        if caller not in (file, __file__):
            found.add(f"{frame.f_code.co_qualname} from {caller}")

    before = sys.getprofile()
    sys.setprofile(seen)
    try:
        run()
    finally:
        sys.setprofile(before)
    return found


@pytest.mark.parametrize("name", ESTIMATORS)
def test_nothing_below_a_fit_calls_back_into_it(name: str) -> None:
    model, places = ESTIMATORS[name]
    file = sys.modules[type(model).__module__].__file__ or ""
    assert called_back(file, lambda: model.fit(places, [0, 1])) == set()


def test_a_call_back_is_noticed() -> None:
    model, places = ESTIMATORS["chain"]
    file = sys.modules["isotone.curves.problem"].__file__ or ""
    assert any("RegressionProblem" in name for name in called_back(file, lambda: model.fit(places, [0, 1])))
