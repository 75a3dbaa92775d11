"""No entry that releases a curve takes seeded or exhaustive draws, however they get there."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.support import flat
from tests.support.curve_outcomes import Outcomes, records_of

import isotone as iso
from isotone.curves import PrivateIsotonicRegression, PrivatePosetRegression
from isotone.curves import circuits as selection
from isotone.curves.circuits import ExactCurveDraws, SeededCurveDraws, exact_draws
from isotone.curves.poset_regression import mechanism_for as order_mechanism
from isotone.curves.regression import mechanism_for as chain_mechanism
from isotone.errors import InputError
from isotone.noise import Simulated
from isotone.order import Poset
from isotone.privacy.draws import SeededDraws

DATA = pd.DataFrame({"x": [0.0, 1.0], "y": [0.0, 1.0], "e": ["a", "c"]})
CHAIN = PrivateIsotonicRegression(1, (0, 1), (0, 1), public_n=2, x_grid=4)
ORDER = PrivatePosetRegression(Poset("abc", [("a", "c"), ("b", "c")]), y_range=(0, 1), public_n=2)
FEATURES = PrivatePosetRegression.from_features([(0, 1), (0, 1)], bins=2, y_range=(0, 1), public_n=2)
RECORDS = records_of([(0, 0), (1, 5)])
OTHERS: dict[str, Callable[[], Any]] = {
    "seeded": lambda: SeededCurveDraws(np.random.default_rng(0)),
    "seeded, of any mechanism": lambda: SeededDraws(np.random.default_rng(0)),
    "exhaustive": lambda: Outcomes([]),
    "generator": lambda: np.random.default_rng(0),
}


def mechanism_of(model: Any) -> Any:
    problem: Any = model._problem(weighted=False, grouped=False)
    return (chain_mechanism if model is CHAIN else order_mechanism)(problem)


def measured(model: Any, x: Any, data: Any) -> Any:
    dp = pytest.importorskip("opendp.prelude")
    from isotone.interop import opendp as bridge

    dp.enable_features("contrib", "honest-but-curious")
    return bridge.make_curve(bridge.table_domain(), dp.symmetric_distance(), model, x=x, y="y")(data)


def released(folder: Path, **more: Any) -> Any:
    with iso.Ledger(folder / "x.ledger", epsilon=9, unit="record") as ledger:
        how: dict[str, Any] = {"x": "x", "y": "y", "bounds": (0, 1), "y_range": (0, 1), "x_grid": 4}
        return flat.curve(DATA, epsilon=1, ledger=ledger, **how, **more)


ENTRIES: dict[str, Callable[..., Any]] = {
    "chain": lambda folder, **more: CHAIN.fit([0.0, 1.0], [0, 1], **more),
    "order": lambda folder, **more: ORDER.fit(["a", "c"], [0, 1], **more),
    "features": lambda folder, **more: FEATURES.fit([[0, 0], [1, 1]], [0, 1], **more),
    "chain mechanism": lambda folder, **more: mechanism_of(CHAIN).release(RECORDS, **more),
    "order mechanism": lambda folder, **more: mechanism_of(ORDER).release(RECORDS, **more),
    "release of a curve": released,
}
MEASUREMENTS: dict[str, Callable[..., Any]] = {
    "OpenDP, chain": lambda folder: measured(CHAIN, "x", DATA),
    "OpenDP, order": lambda folder: measured(ORDER, "e", DATA),
    "OpenDP, features": lambda folder: measured(FEATURES, ["x", "y"], DATA),
}


@pytest.mark.parametrize("name", ENTRIES)
@pytest.mark.parametrize("other", OTHERS)
def test_no_entry_has_a_parameter_for_draws(name: str, other: str, tmp_path: Path) -> None:
    for keyword in ("draws", "choices", "rng"):
        with pytest.raises(
            (TypeError, InputError), match=r"unexpected keyword|has no parameter|must not be data"
        ):
            ENTRIES[name](tmp_path, **{keyword: OTHERS[other]()})


@pytest.mark.parametrize("name", [*ENTRIES, *MEASUREMENTS])
@pytest.mark.parametrize("other", OTHERS)
def test_other_draws_in_the_place_of_exact_ones_are_refused(
    name: str, other: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = (ENTRIES | MEASUREMENTS)[name]
    entry(tmp_path)
    monkeypatch.setattr(selection, "ExactCurveDraws", OTHERS[other])
    with pytest.raises(Exception, match="ExactDraws only"):
        entry(tmp_path, **({"title": "again"} if name == "release of a curve" else {}))


@pytest.mark.parametrize("name", ["chain mechanism", "order mechanism"])
def test_what_other_draws_made_is_marked(name: str) -> None:
    model: Any = CHAIN if name.startswith("chain") else ORDER
    fit = mechanism_of(model).simulate(RECORDS, np.random.default_rng(0))
    values = getattr(fit, "values", fit)
    assert isinstance(values, Simulated)
    for column in ("X", "y"):
        given = {"X": [0.0] * len(values), "y": [0.0] * len(values), column: values}
        with pytest.raises(InputError, match="simulate"):
            CHAIN.fit(**given)


def test_estimators_draw_by_a_type_that_releases() -> None:
    assert inspect.signature(exact_draws).return_annotation == "ExactCurveDraws"
    assert type(exact_draws()) is ExactCurveDraws
