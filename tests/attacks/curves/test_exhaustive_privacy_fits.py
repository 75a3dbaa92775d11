"""Whole fits, from arrays to attributes: every output with its probability, for data sets that differ in one unit.

What the mechanisms' own tests leave out is here: the noisy number of records, the direction, snapping, cutting off
weights, and the limit on a unit's records. The estimators run as they are; only their random choices are scripted.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.support.curve_cases import MECHANISMS, largest_ratio
from tests.support.curve_outcomes import Outcomes, distribution, scripted
from tests.support.estimators import grouped

from isotone.curves import PrivateIsotonicRegression, PrivatePosetRegression
from isotone.curves.cuts import METHODS, CurveMechanism, DrawnValues, StepFit
from isotone.curves.histograms import HistogramFit
from isotone.curves.lines import RefinedLineFit
from isotone.curves.problem import CurveSetting, FitBudget
from isotone.order import Poset

ROUNDING = 1e-9
SHAPES = ("constant", "linear", "lipschitz", "convex", "concave")
Data = dict[str, Any]


def law_of_fit(model: Any, data: Data) -> dict[Any, float]:
    def run(outcomes: Outcomes) -> Any:
        with scripted(outcomes):
            return model.fit(**data)

    return distribution(run, released)


def released(model: Any) -> Any:
    """All that was learned."""
    found = {name: value for name, value in vars(model).items() if name.endswith("_")}
    return tuple((k, repr(np.round(v, 9)) if k[0] in "Xyv" else str(v)) for k, v in sorted(found.items()))


def joined(data: Data, more: Data) -> Data:
    return {name: [*values, *more[name]] for name, values in data.items()}


def curve(**params: Any) -> PrivateIsotonicRegression:
    every: dict[str, Any] = {
        "bounds": (0, 2),
        "y_range": (0, 1),
        "x_grid": 3,
        "loss": "absolute",
        "levels": 1,
    }
    return PrivateIsotonicRegression(**grouped(**{**every, **params}))


WEDGE = Poset("abc", [("a", "c"), ("b", "c")])


def poset(order: Any = WEDGE, **params: Any) -> PrivatePosetRegression:
    every: dict[str, Any] = {"y_range": (0, 1), "loss": "absolute", "levels": 1}
    return PrivatePosetRegression(order, **grouped(**{**every, **params}))


LOW: Data = {"X": [0.0] * 60 + [2.0] * 60, "y": [0.0] * 120}
FALLING: Data = {"X": [0.0] * 60 + [2.0] * 60, "y": [1.0] * 60 + [0.0] * 60}

CURVES: dict[str, tuple[dict[str, Any], Data]] = {
    "rising": ({}, LOW),
    "falling": ({"increasing": False}, LOW),
    "either way": ({"increasing": "auto"}, LOW),
    "either way, falling data": ({"increasing": "auto"}, FALLING),
    "threshold": ({"increasing": "auto", "method": "threshold"}, LOW),
    "baseline": ({"increasing": "auto", "method": "baseline", "value_levels": 2}, LOW),
    "convex": ({"increasing": "auto", "shape": "convex", "value_levels": 2}, LOW),
    "concave": ({"increasing": False, "shape": "concave", "value_levels": 2}, LOW),
    "known number": ({"public_n": 121}, LOW),
}


@pytest.mark.parametrize("name", CURVES)
def test_no_fit_of_a_curve_reveals_that_a_record_was_added(name: str) -> None:
    params, data = CURVES[name]
    model = curve(**params)
    law = law_of_fit(model, data)
    worst = 0.0
    # records outside the bounds and the range are moved to the ends, unreadable ones are dropped
    for x, y in [(0.0, 1.0), (0.4, 7.0), (-9.0, -3.0), (2.0, 1.0), (math.nan, 1.0), (1.0, "?")]:
        worst = max(worst, largest_ratio(law, law_of_fit(model, joined(data, {"X": [x], "y": [y]}))))
    assert 0.9 <= worst <= 1 + ROUNDING


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("name", CURVES)
def test_no_fit_of_a_curve_reveals_a_unit_of_three_records(name: str, neighbours: str) -> None:
    """Its records are alike, which costs most. A fourth is left out, and which one says nothing."""
    params, few = CURVES[name]
    model = curve(**params, contributions=3, neighbours=neighbours)
    data: Data = joined({**few, "groups": list(range(120))}, {**few, "groups": list(range(120, 240))})
    units = [(0.0, 1.0), (2.0, 0.0), (2.0, 1.0), (0.0, 0.0)]
    laws = [
        law_of_fit(model, joined(data, {"X": [x] * 4, "y": [y] * 4, "groups": ["me"] * 4})) for x, y in units
    ]
    others = laws if neighbours == "replace" else [law_of_fit(model, data)]
    worst = max(largest_ratio(one, other) for one in laws for other in others if one is not other)
    assert 0.5 <= worst <= 1 + ROUNDING


def test_a_record_that_cannot_be_read_changes_nothing() -> None:
    model = curve(increasing="auto")
    for bad in [{"X": [math.nan], "y": [0.5]}, {"X": [1.0], "y": [None]}]:
        assert largest_ratio(law_of_fit(model, LOW), law_of_fit(model, joined(LOW, bad))) == 0.0


ORDERS: dict[str, tuple[Any, list[Any]]] = {
    "wedge": (poset(), ["a", "b", "c"]),
    "falling wedge": (poset(increasing=False), ["a", "b", "c"]),
    "published score": (poset(method="threshold"), ["a", "b", "c"]),
    "baseline": (poset(method="baseline", value_levels=2), ["a", "b", "c"]),
    "means": (poset(loss="squared"), ["a", "b", "c"]),
    "columns": (
        PrivatePosetRegression.from_features(
            [(0, 1), (0, 1)],
            bins=2,
            directions=[True, False],
            **grouped(y_range=(0, 1), loss="absolute", levels=1),
        ),
        [[0.1, 0.9], [0.1, 0.1], [0.9, 0.1]],
    ),
}


@pytest.mark.parametrize("name", ORDERS)
def test_no_fit_on_an_order_reveals_that_a_record_was_added(name: str) -> None:
    model, places = ORDERS[name]
    low, high = (0.0, 1.0) if model.increasing else (1.0, 0.0)
    data: Data = {"elements": places * 40, "y": [low] * 120}
    law = law_of_fit(model, data)
    added = [(places[0], high), (places[-1], high), (places[0], low)]
    laws = [law_of_fit(model, joined(data, {"elements": [x], "y": [y]})) for x, y in added]
    assert 0.9 <= max(largest_ratio(law, other) for other in laws) <= 1 + ROUNDING


@pytest.mark.parametrize(
    ("model", "name", "places"),
    [(curve, "X", [0.0, 1.0, 2.0]), (poset, "elements", ["a", "b", "c"])],
    ids=["curve", "order"],
)
@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_a_unit_with_too_many_records_of_too_much_weight_is_hidden(
    model: Any, name: str, places: list[Any], neighbours: str
) -> None:
    """Of five records two count, and a weight of 100 counts as 3."""
    fitted = model(max_weight=3, contributions=2, neighbours=neighbours)
    size = 300

    def unit(place: Any, y: float) -> Data:
        return {name: [place] * 5, "y": [y] * 5, "sample_weight": [100.0] * 5, "groups": ["me"] * 5}

    data: Data = {
        name: places * (size // 3),
        "y": [0.0] * size,
        "sample_weight": [3.0] * size,
        "groups": list(range(size)),
    }
    without = data if neighbours == "add-remove" else joined(data, unit(places[0], 0.0))
    law = law_of_fit(fitted, without)
    other = law_of_fit(fitted, joined(data, unit(places[0], 1.0)))
    assert 0.9 <= largest_ratio(law, other) <= 1 + ROUNDING


def test_the_check_of_whole_fits_notices_a_budget_that_is_spent_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If the number of records cost as much as all the rest, without being counted, it would show."""

    def loud(self: FitBudget, count: int, draws: Any) -> int:
        return int(draws.perturb(np.array([count]), self.whole.rate(Fraction(1), 1))[0])

    monkeypatch.setattr(FitBudget, "size", loud)
    model = curve()
    other = law_of_fit(model, joined(LOW, {"X": [0.0], "y": [1.0]}))
    assert largest_ratio(law_of_fit(model, LOW), other) > 1.5


def kinds_of(base: type) -> set[type]:
    """The classes of the library, without those that tests make."""
    found = set(base.__subclasses__())
    inner = [kinds_of(kind) for kind in found]
    return {kind for kind in found.union(*inner) if kind.__module__.startswith("isotone.")}


def test_every_method_and_shape_is_walked_through() -> None:
    """Every class of mechanisms, every method, every shape both ways; histograms have a test of their own."""
    setting = CurveSetting(Fraction(1))
    walked = {kind for factory in MECHANISMS.values() for kind in type(factory(setting)).__mro__}
    elsewhere = {HistogramFit, RefinedLineFit, StepFit}  # walked through in test_exhaustive_privacy.py
    assert kinds_of(CurveMechanism) - {DrawnValues} <= walked | elsewhere
    for method in set(METHODS) - {"auto"}:
        assert any(name.startswith(method) for name in MECHANISMS), method
    for shape in SHAPES:
        for way in ("drawn", "tree"):
            assert any(name.startswith(shape) and name.endswith(way) for name in MECHANISMS), (shape, way)
