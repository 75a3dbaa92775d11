"""Whatever the data hold, a fit neither raises, warns nor prints, and looks at nothing before the charge."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from tests.support.hostile import ARRAYS, HOSTILE, objects

from isotone.curves import PrivateIsotonicRegression, PrivatePosetRegression, ProductOrder, poset_regression
from isotone.curves import regression as chain_regression
from isotone.noise import Simulated
from isotone.order import Poset

WEDGE = Poset("abc", [("a", "c"), ("b", "c")])


def nested(depth: int) -> Any:
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


VALUES = [*HOSTILE, None, [1, [2, 3]], nested(5_000), Simulated.wrap([1.0])[0]]


def silently(work: Callable[[], Any]) -> Any:
    """What the work returns, having said nothing on the way."""
    said = io.StringIO()
    with warnings.catch_warnings(), redirect_stdout(said), redirect_stderr(said):
        warnings.simplefilter("error")
        result = work()
    assert said.getvalue() == ""
    return result


def chain(**more: Any) -> PrivateIsotonicRegression:
    return PrivateIsotonicRegression(1, (0, 1e-9), (0, 1), public_n=10, x_grid=8, max_weight=1, **more)


def order(**more: Any) -> PrivatePosetRegression:
    return PrivatePosetRegression(WEDGE, y_range=(0, 1), public_n=10, max_weight=1, **more)


def cells() -> PrivatePosetRegression:
    return PrivatePosetRegression(ProductOrder((2, 2)), y_range=(0, 1), public_n=10)


def features(**more: Any) -> PrivatePosetRegression:
    return PrivatePosetRegression.from_features(
        [(0, 1e-9), (0, 1)], bins=2, y_range=(0, 1), public_n=10, **more
    )


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_no_value_is_heard_of(value: Any) -> None:
    for model, good in ((chain(), 0.0), (order(), "a")):
        for column in ([value, good], objects([value, good])):
            silently(lambda m=model, c=column: m.fit(c, [1, 1]))
        silently(lambda m=model, g=good: m.fit([g, g], [value, 1]))
        silently(lambda m=model, g=good: m.fit([g, g], [1, 1], sample_weight=[value, 1]))
        silently(lambda m=model, g=good: m.fit([g, g], [1, 1], groups=[value, "me"]))
    for model, row in ((features(), (0.0, 0.5)), (cells(), (0, 1))):
        for odd in (value, [value], [value, 0], (0, value), [0, 0, value]):
            silently(lambda m=model, r=[odd, row]: m.fit(r, [1, 1]))


@pytest.mark.parametrize("column", ARRAYS, ids=lambda column: type(column).__name__)
def test_no_column_is_heard_of(column: Any) -> None:
    silently(lambda: chain().fit(column, [0, 1, 1]))
    silently(lambda: chain().fit([0, 0, 0], column, sample_weight=column, groups=column))
    silently(lambda: order().fit(column, [0, 1, 1], groups=column))


def test_hostile_values_leave_the_other_records_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    for module in (chain_regression, poset_regression):
        read = module.read_records
        monkeypatch.setattr(
            module, "read_records", lambda *given, read=read: seen.append(read(*given)) or seen[-1]
        )
    unreadable = [value for value in VALUES if isinstance(value, (dict, set, complex, type(None)))]
    rest = len(unreadable)
    for model, good in ((chain(), 1e-9), (order(), "b"), (features(), [0.0, 0.9])):
        model.fit([good, *unreadable], [0.5, *[1.0] * rest])
        model.fit([good] * (rest + 1), [0.5, *unreadable])
        model.fit([good] * (rest + 1), [0.5] * (rest + 1), groups=["me", *unreadable])
    assert [(records.cells.tolist(), records.levels.tolist()) for records in seen] == [
        ([place], [1 << 15]) for place in (7, 7, 7, 1, 1, 1, 1, 1, 1)
    ]


def test_pipelines_of_scikit_learn_say_nothing_either() -> None:
    pipeline = pytest.importorskip("sklearn.pipeline")
    good = [1.0] * len(VALUES)
    for model in (chain(), order()):
        silently(lambda m=model: pipeline.make_pipeline("passthrough", m).fit(objects(VALUES), good))
    rows = objects([[value, 0] for value in VALUES])
    silently(lambda: pipeline.make_pipeline("passthrough", features()).fit(rows, good))


@pytest.mark.parametrize("unit", [None, "u"])
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_measurements_of_opendp_say_nothing_either(unit: str | None, library: str) -> None:
    dp = pytest.importorskip("opendp.prelude")
    from isotone.interop import opendp as bridge

    dp.enable_features("contrib", "honest-but-curious")
    names, values = ["x", "z", "y", "u"], VALUES[: len(HOSTILE)]
    if library == "pandas":
        data: Any = pd.DataFrame({name: pd.Series(objects(values), dtype=object) for name in names})
    else:
        data = pl.DataFrame({name: pl.Series(values, dtype=pl.Object) for name in names})
    metric = dp.symmetric_distance() if unit is None else dp.symmetric_id_distance(unit)
    for model, x in ((chain(), "x"), (order(), "x"), (features(), ["x", "z"])):
        made = bridge.make_curve(bridge.table_domain(), metric, model, x=x, y="y")
        assert silently(lambda m=made: m(data)).guarantee_.epsilon == 1


def test_a_unit_with_many_rows_keeps_a_fair_choice_of_them_under_opendp() -> None:
    """10 rows of a unit, 2 of which count: each with probability 1/5 over 300 units. False alarms below 1e-9."""
    pytest.importorskip("opendp")
    from isotone.interop.opendp.columns import bounded_rows

    data = pd.DataFrame({"u": np.repeat(np.arange(300), 10), "x": ["a"] * 3000, "y": np.tile(range(10), 300)})
    rows = bounded_rows(data, "u", 2, texts=["x"], numbers=["y"])
    assert len(rows) == 600
    kept = np.bincount([int(y) for _, y in rows], minlength=10)
    assert np.abs(kept - 60).max() < 6.5 * np.sqrt(300 * 0.2 * 0.8)
    assert len(bounded_rows(data, None, 1, texts=["x"], numbers=["y"])) == 3000


def test_large_values_in_a_narrow_column_are_moved_to_its_end_without_a_warning() -> None:
    places: Any = features().P
    for table in (np.array([[1e299, -1e299]]), [[1e299, -1e299]], np.ma.array([[1e299, -1e299]])):
        assert silently(lambda t=table: places.locate(t)).tolist() == [2]
    assert silently(lambda: places.locate(np.array([[np.inf, 0.5]]))).tolist() == [
        3
    ]  # as for any number beyond the end


class Watched(list[Any]):
    """A column that notices when its values are asked for."""

    log: list[str]

    def __iter__(self) -> Any:
        self.log.append("read")
        return super().__iter__()

    def __getitem__(self, key: Any) -> Any:
        self.log.append("read")
        return super().__getitem__(key)


@pytest.mark.parametrize("name", ["chain", "order", "features"])
def test_values_are_asked_for_after_the_charge(name: str) -> None:
    log: list[str] = []

    class Book:
        def charge(self, guarantee: Any, description: str) -> None:
            log.append("charge")

    models: dict[str, tuple[Any, Any]] = {
        "chain": (chain(ledger=Book()), 0.5),
        "order": (order(ledger=Book()), "a"),
        "features": (features(ledger=Book(), max_weight=1), [0.0, 0.5]),
    }
    model, good = models[name]
    x, y, weight, groups = (Watched([value] * 3) for value in (good, 1.0, 1.0, "me"))
    for column in (x, y, weight, groups):
        column.log = log
    model.fit(x, y, sample_weight=weight, groups=groups)
    assert log[0] == "charge"
    assert log.count("read") >= 4


def test_no_number_of_rows_is_refused_or_walked_through_before_the_charge() -> None:
    """2**24 + 1 weighted rows were refused, although their number is private."""

    class ChargedError(Exception): ...

    class Book:
        def charge(self, guarantee: Any, description: str) -> None:
            raise ChargedError

    for rows in (range((1 << 24) + 1), range((1 << 40) + 1)):
        for model in (chain(ledger=Book()), order(ledger=Book()), features(ledger=Book(), max_weight=1)):
            with pytest.raises(ChargedError):
                model.fit(rows, rows, sample_weight=rows)
