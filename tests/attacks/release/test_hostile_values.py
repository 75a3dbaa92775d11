"""Whatever a value is, every entry point releases: nothing is raised, warned or printed about it."""

import io
import json
import warnings
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tests.support import flat
from tests.support.hostile import ARRAYS, HOSTILE, objects

import isotone as iso
from isotone.order import Poset
from isotone.reading.categories import CategorySource, count_categories
from isotone.reading.grids import PointSource, count_points
from isotone.reading.records import Groups, RecordRules, RecordSource, count_records
from isotone.reading.sources import blank, open_source

P = Poset(["a"], [])


def table(hostile: list[Any]) -> pd.DataFrame:
    """Two good people, and as many others as there are hostile values, in every column."""
    good: dict[str, list[Any]] = {
        "a": [1, "yes"],
        "u": [1, "Bo"],
        "c": ["A", "A"],
        "x": [1, "1"],
        "y": [0.5, "0.5"],
    }
    return pd.DataFrame(
        {name: pd.Series(objects([*values, *hostile]), dtype=object) for name, values in good.items()}
    )


def silently(work: Callable[[], Any]) -> Any:
    """What the work returns, having said nothing on the way."""
    said = io.StringIO()
    with warnings.catch_warnings(), redirect_stdout(said), redirect_stderr(said):
        warnings.simplefilter("error")
        result = work()
    assert said.getvalue() == ""
    return result


def counts(data: Any, unit: str | None, groups: Groups | None = None) -> list[int]:
    source, rules = RecordSource(data), RecordRules(unit=unit)
    return count_records(source, source.open(P, rules, groups), P, rules, groups)[0].ravel().tolist()


def categories(data: Any, **how: Any) -> list[int]:
    source = CategorySource(data, "c", ("A", "B"), 10, **how)
    return count_categories(source, source.open()).tolist()


def points(data: Any, unit: str | None) -> Any:
    source = PointSource(data, "x", "y", (0, 2), (0, 1), 2, 2, unit=unit)  # pyright: ignore[reportArgumentType]
    found = count_points(source, source.open())
    return {(int(x), int(y)): int(n) for x, y, n in zip(found.x, found.y, found.count, strict=True)}


def test_hostile_values_change_nobody_else():
    data = table(HOSTILE)
    assert silently(lambda: counts(data, None)) == [2]
    assert silently(lambda: counts(data, "u")) == [2]
    assert silently(lambda: counts(data, None, Groups((("c", ("A", "B")),)))) == [2, 0]
    assert silently(lambda: categories(data)) == [2, 0]
    assert silently(lambda: categories(data, unit="u")) == [2, 0]
    assert silently(lambda: points(data, None))[1, 1] == 2
    assert silently(lambda: points(data, "u"))[1, 1] == 2


@pytest.mark.parametrize("value", HOSTILE, ids=lambda value: type(value).__name__)
def test_every_value_alone(value):
    data = table([value])
    assert silently(lambda: (counts(data, "u"), categories(data, unit="u"))) == ([2], [2, 0])


RELEASES: dict[str, Callable[[Any, Any], Any]] = {
    "counts": lambda data, ledger: flat.counts(
        data, P, epsilon=1, ledger=ledger, unit="u", by="c", groups=["A", "B"], mechanism="PosetMechanism"
    ),
    "table": lambda data, ledger: flat.table(
        data, category="c", categories=["A", "B"], upper=5, epsilon=1, ledger=ledger, unit="u"
    ),
    "curve": lambda data, ledger: flat.curve(
        data, x="x", y="y", bounds=(0, 2), y_range=(0, 1), x_grid=3, epsilon=1, ledger=ledger, unit="u"
    ),
}


def _mixed_categories(hostile: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame({name: pd.Categorical([1, "yes", None, 2.5]) for name in hostile.columns})


def _invalid(hostile: pd.DataFrame) -> pa.Table:
    bad = pa.Array.from_buffers(pa.string(), 2, pa.array([b"\xff\xfe", b"A"], pa.binary()).buffers())
    return pa.table(dict.fromkeys(hostile.columns, bad))


SOURCES: dict[str, Callable[[pd.DataFrame], Any]] = {
    "objects": lambda hostile: hostile,
    "categories": _mixed_categories,
    "invalid-text": _invalid,
    "half": lambda hostile: pa.table({n: pa.array([1.0, None], pa.float16()) for n in hostile.columns}),
    "decimal256": lambda hostile: pa.table(
        {n: pa.array([Decimal(1), None], pa.decimal256(60, 2)) for n in hostile.columns}
    ),
    "duration": lambda hostile: pl.DataFrame(
        {n: pl.Series([1, None]).cast(pl.Duration) for n in hostile.columns}
    ),
    "lazy-duration": lambda hostile: pl.LazyFrame(
        {n: pl.Series([1, None]).cast(pl.Duration) for n in hostile.columns}
    ),
    "polars-objects": lambda hostile: pl.DataFrame(
        {n: pl.Series(hostile[n].tolist(), dtype=pl.Object) for n in hostile.columns}
    ),
    "complex": lambda hostile: pd.DataFrame({n: np.array([1j, 2]) for n in hostile.columns}),
    "longdouble": lambda hostile: pd.DataFrame(
        {n: np.array([1, np.longdouble("1e4000")], dtype=np.longdouble) for n in hostile.columns}
    ),
    "dates": lambda hostile: pd.DataFrame({n: pd.to_datetime(["2020-01-01", None]) for n in hostile.columns}),
    "nothing": lambda hostile: pa.table({n: pa.nulls(2) for n in hostile.columns}),
}


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("release", RELEASES)
def test_every_release_of_every_odd_source_is_made(tmp_path, release, source):
    data = SOURCES[source](table(HOSTILE))
    with iso.Ledger(tmp_path / "x.ledger", epsilon=1, unit="u") as ledger:
        assert silently(lambda: RELEASES[release](data, ledger)) is not None
        assert len(ledger.charges()) == 1


@pytest.mark.parametrize("column", ARRAYS, ids=lambda column: type(column).__name__)
def test_columns_in_memory_are_read_like_their_values(column):
    if (
        isinstance(column, (list, tuple))
        or getattr(column, "ndim", 1) > 1
        or isinstance(column, np.ma.MaskedArray)
    ):
        column = objects(list(column))
    if isinstance(column, (pa.Array, pa.ChunkedArray)):
        data: Any = pa.table({"a": column})
    else:
        data = pl.DataFrame({"a": column}) if isinstance(column, pl.Series) else pd.DataFrame({"a": column})
    first_is_a_list = (
        isinstance(column, np.ndarray)
        and column.dtype == object
        and isinstance(column[0], (list, np.ndarray))
    )
    assert silently(lambda: counts(data, None))[0] >= (0 if first_is_a_list else 1)
    assert silently(lambda: blank(open_source(data, {"answer": ["a"]})).collect().shape) == (0, 1)


def test_columns_whose_names_are_numbers_are_found_by_their_digits():
    data = pd.DataFrame({0: [1, 1], 1: [1, 0]})
    Q = Poset(["0", "1"], [])
    source, rules = RecordSource(data), RecordRules()
    assert count_records(source, source.open(Q, rules, None), Q, rules)[0].tolist() == [[2, 1]]


def test_lines_of_any_kind_in_any_file_are_released(tmp_path):
    lines = ["", "[", "{", '{"a":', '"', "\x00", "1,2,3,4,5,6,7", "\ufeff", json.dumps({"a": [1]}), "é" * 9]
    body = "\n".join(lines).encode() + b"\n\xe9,\xff\n"
    (tmp_path / "d.jsonl").write_bytes(body)
    (tmp_path / "d.csv").write_bytes(b"a,u,c,x,y\n" + body)
    with iso.Ledger(tmp_path / "x.ledger", epsilon=6, unit="u") as ledger:
        for name in ("d.jsonl", "d.csv"):
            for release in RELEASES.values():
                assert silently(lambda r=release, n=name: r(Path(tmp_path / n), ledger)) is not None
        assert len(ledger.charges()) == 6
