"""A rehearsal sees names and logical types only: sources that differ in one row look the same."""

from typing import Any

import duckdb
import ibis
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from isotone.errors import InputError
from isotone.reading.sources import blank, open_source


def seen(data: Any) -> bytes:
    """Everything that a blank shows, as bytes."""
    frame = blank(open_source(data, {"answer": ["a", "u"]}))
    table = frame.collect().to_arrow()
    assert table.num_rows == 0
    return b"".join([table.schema.serialize(), *(batch.serialize() for batch in table.to_batches())])


def test_one_row_changes_nothing_in_memory():
    def table(last: Any) -> pd.DataFrame:
        return pd.DataFrame({"a": [1, 2, last] if last != "gone" else [1, 2], "u": 1})

    shown = {seen(table(last)) for last in [3, 2.5, None, "x", True, [1], float("nan"), b"x", "gone"]}
    shown |= {
        seen(pd.DataFrame({"a": column, "u": 1})) for column in ([True, False], [None, None], ["x", "y"])
    }
    shown |= {
        seen(pd.DataFrame({"a": pd.Categorical(values), "u": 1}))
        for values in ([1, 2], [1, "x"], ["x", "y"], [None, None])
    }
    shown |= {
        seen(pd.DataFrame({"a": pd.Series(values, dtype=object), "u": 1})) for values in ([1, 2], [1, "x"])
    }
    assert len(shown) == 1


COLUMNS: dict[str, Any] = {
    "int": pa.array([1, 2]),
    "float": pa.array([1.0, 2.5]),
    "gaps": pa.array([1.0, None]),
    "bool": pa.array([True, False]),
    "text": pa.array(["x", "y"]),
    "null": pa.nulls(2),
    "category": pa.array(["x", "y"]).dictionary_encode(),
    "categories": pa.array(["x", "z"]).dictionary_encode(),
    "date": pa.array([0, 1], pa.date32()),
    "list": pa.array([[1], [2]]),
    "one row": pa.array([1]),
}


@pytest.mark.parametrize(
    "make",
    [
        pa.Table.to_pandas,
        pl.from_arrow,
        lambda table: pl.DataFrame(pl.from_arrow(table)).lazy(),
        lambda table: table,
        lambda table: duckdb.connect().from_arrow(table),
        ibis.memtable,
    ],
    ids=["pandas", "polars", "lazy", "arrow", "duckdb", "ibis"],
)
def test_one_row_changes_nothing_in_any_engine(make: Any):
    """One row can change the type of a whole column that is made in memory."""
    tables = [pa.table({"a": column, "u": [1] * len(column)}) for column in COLUMNS.values()]
    assert len({seen(make(table)) for table in tables}) == 1


def test_categories_are_contents_in_a_lazy_frame():
    frames = [
        pl.LazyFrame({"a": pl.Series(values, dtype=pl.Categorical), "u": 1})
        for values in (["x", "y"], ["x", "z"])
    ]
    assert len({seen(frame) for frame in (*frames, pl.LazyFrame({"a": ["x", "y"], "u": 1}))}) == 1


def test_a_lazy_frame_shows_no_types_as_they_may_come_from_contents():
    columns: list[list[Any]] = [
        [1, 2],
        [1.0, 2.5],
        [1.0, None],
        [None, None],
        [True, None],
        ["x", None],
        [[1]],
    ]
    assert len({seen(pl.LazyFrame({"a": values, "u": 1})) for values in columns}) == 1
    assert len({seen(pl.DataFrame({"a": values, "u": 1})) for values in columns}) == 1


def test_a_query_on_a_table_in_memory_is_refused():
    """Its types come from contents, and a database would be given the rows."""
    table = ibis.memtable(pa.table({"a": [1], "u": [1]}))
    with pytest.raises(InputError, match="Pass that one itself"):
        open_source(table.filter(ibis._.u == 1), {"answer": ["a", "u"]})


def test_files_show_names_only(tmp_path):
    for i, rows in enumerate(("1,1\n", "x,\n", "", "\xff,2\n")):
        (tmp_path / f"{i}.csv").write_text("a,u\n" + rows, encoding="latin-1")
    (tmp_path / "4.jsonl").write_text('{"hiv": 1}\n')
    pd.DataFrame({"a": [1, None], "u": 1}).to_parquet(tmp_path / "5.parquet")
    pd.DataFrame({"a": ["x", None], "u": 1}).to_parquet(tmp_path / "6.parquet")
    files = sorted(tmp_path.iterdir())
    assert len(files) == 7
    assert len({seen(path) for path in files}) == 1


def test_nothing_is_converted_before_the_query_runs(monkeypatch):
    from isotone.reading import frames as streams

    asked: list[int] = []
    original = streams.cell_text
    monkeypatch.setattr(streams, "cell_text", lambda value: asked.append(1) or original(value))
    frame = open_source(pd.DataFrame({"a": pd.Series([1, "x", 2.5], dtype=object)}), {"answer": ["a"]})
    blank(frame).collect()
    assert not asked
    frame.collect()
    frame.collect()
    assert len(asked) == 6
