"""Files: every row once, names as they are, and what each kind of file says in common."""

import base64
import json
import os
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from isotone.errors import InputError
from isotone.order import Poset
from isotone.reading import frames, values
from isotone.reading.columns import ColumnRule, as_real, read_columns
from isotone.reading.frames import _longest, converted
from isotone.reading.records import RecordRules, RecordSource, count_records
from isotone.reading.sources import DataFile, SourceError, collect, open_source

A = Poset(["a"], [])


def counted(data: Any, unit: str | None = None) -> tuple[int, int]:
    """Yeses and records."""
    rules, source = RecordRules(unit=unit), RecordSource(data)
    counts, records = count_records(source, source.open(A, rules, None), A, rules)
    return int(counts[0, 0]), int(records[0])


def write(path: Path, rows: int = 1) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("u,a\n" + "".join(f"{path.name}{i},1\n" for i in range(rows)))
    return path


@pytest.mark.parametrize("names", [("a1.csv", "a[1].csv"), ("ap.csv", "a?.csv"), ("ab.csv", "a*.csv")])
def test_names_are_expanded_once(tmp_path, names):
    for name in names:
        write(tmp_path / name)
    assert counted(tmp_path / "a*.csv" if names[1] != "a*.csv" else tmp_path / "a[b*].csv") == (2, 2)
    for name in names:
        assert counted(tmp_path / name) == (1, 1)


@pytest.mark.parametrize("link", [os.symlink, os.link], ids=["symbolic", "hard"])
def test_two_names_of_one_file_are_one_file(tmp_path, link):
    link(write(tmp_path / "a1.csv"), tmp_path / "a2.csv")
    assert counted(tmp_path / "a*.csv") == (1, 1)


def test_two_stars_go_into_folders(tmp_path):
    write(tmp_path / "a.csv")
    write(tmp_path / "x" / "y" / "a.csv")
    assert counted(tmp_path / "**" / "*.csv") == (2, 2)


def test_folders_are_no_columns(tmp_path):
    write(tmp_path / "u=7" / "c.csv", rows=3)
    write(tmp_path / "a=0" / "c.csv", rows=3)
    assert counted(tmp_path / "u=7" / "c.csv", unit="u") == (3, 3)
    assert counted(tmp_path / "a=0" / "c.csv") == (3, 3)
    write(tmp_path / "c0=7" / "c.csv", rows=3)  # c0 and line are names that the readers use themselves
    assert counted(tmp_path / "c0=7" / "c.csv", unit="u") == (3, 3)
    (tmp_path / "line=7").mkdir()
    for folder in ("u=7", "a=0", "line=7"):
        table = pa.table({"u": [1, 2], "a": [1, 1]})
        pq.write_table(table, tmp_path / folder / "c.parquet")
        feather.write_feather(table, str(tmp_path / folder / "c.arrow"))
        (tmp_path / folder / "c.jsonl").write_text('{"u": 1, "a": 1}\n{"u": 2, "a": 1}\n')
        for kind in ("parquet", "arrow", "jsonl"):
            assert counted(tmp_path / folder / f"c.{kind}", unit="u") == (2, 2)


def test_a_name_that_no_engine_can_be_given_is_refused(tmp_path):
    pq.write_table(pa.table({"a": [1]}), tmp_path / "a\\[.parquet")
    with pytest.raises(SourceError, match="Rename it"):
        open_source(tmp_path / "a\\[.parquet", {"answer": ["a"]})


FORMS: dict[str, Callable[[list[Any], Path], Any]] = {
    "csv": lambda units, folder: _text(
        folder / "d.csv", "u,a\n" + "".join(f'"{"" if u is None else u}",1\n' for u in units)
    ),
    "jsonl": lambda units, folder: _text(
        folder / "d.jsonl", "".join(json.dumps({"u": u, "a": 1}) + "\n" for u in units)
    ),
    "parquet": lambda units, folder: _parquet(folder / "d.parquet", units),
    "pandas": lambda units, _: pd.DataFrame({"u": pd.Series(units, dtype=object), "a": 1}),
    "polars": lambda units, _: pl.DataFrame({"u": [None if u is None else str(u) for u in units], "a": 1}),
    "lazy": lambda units, _: pl.LazyFrame({"u": [None if u is None else str(u) for u in units], "a": 1}),
}


def _text(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def _parquet(path: Path, units: list[Any]) -> Path:
    pq.write_table(
        pa.table({"u": pa.array([None if u is None else str(u) for u in units]), "a": [1] * len(units)}), path
    )
    return path


@pytest.mark.parametrize("form", FORMS)
def test_blanks_and_words_for_missing_values_name_nobody_in_every_format(tmp_path, form):
    nobody = [None, "", " ", "\t", "NA", "n/a", "nan", "NaN", "NULL", "null", "None", "<NA>", "NaT", "inf"]
    assert counted(FORMS[form]([*nobody, "Ann", " Ann", "0"], tmp_path), unit="u") == (2, 2)


@pytest.mark.parametrize("form", FORMS)
def test_one_number_is_one_unit_however_it_is_written(tmp_path, form):
    assert counted(FORMS[form]([1, 1.0, "1", "1.", "1.00 ", 2], tmp_path), unit="u") == (2, 2)


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b'\xef\xbb\xbf{"a": 1}\n{"a": 1}\n', (2, 2)),
        (b'[\n{"a": 1},\n{"a": 1}\n]\n', (2, 2)),
        (b'[{"a": 1},\n {"a": 1}]', (2, 2)),
        (b'{"a": 1}\r\n\r\n{"a": 0}\r\n', (1, 2)),
        (b'{\n "a": 1\n}\n', (0, 0)),
        (b'[{"a": 1}, {"a": 1}]\n', (0, 0)),
        (b'{"a": [1]}\n{"a": {"b": 1}}\n{"a": "\\ud800"}\n{"a": "\xff"}\n{"a": 1}\n', (1, 3)),
        (b'1\n"a"\n[1]\nnull\nnot json\n{"a": true, "a": false}\n{"A": 1}\n', (1, 2)),
        (b'{"a": 1, "b": "' + b"x" * 3_000_000 + b'"}\n{"a": 1}\n', (2, 2)),
        (b"", (0, 0)),
        (b"\x00\x1e\n", (0, 0)),
    ],
)
def test_a_line_with_one_object_is_a_record_and_no_other(tmp_path, content, found):
    (tmp_path / "d.jsonl").write_bytes(content)
    assert counted(tmp_path / "d.jsonl") == found


def test_keys_of_any_name_are_read(tmp_path):
    names = ["a'b", 'c"d', "e/f", "~g", "$.h", "0"]
    (tmp_path / "d.jsonl").write_text(json.dumps(dict.fromkeys(names, 1)) + "\n")
    P = Poset(names, [])
    source, rules = RecordSource(tmp_path / "d.jsonl"), RecordRules()
    assert count_records(source, source.open(P, rules, None), P, rules)[0][0].tolist() == [1] * len(names)


@pytest.mark.parametrize("name", ["", "*"])
def test_names_that_mean_all_columns_are_refused(name):
    with pytest.raises(InputError, match="Rename it"):
        open_source(pd.DataFrame({name: [1]}), {"answer": [name]})


def test_a_missing_header_tells_nobody(tmp_path):
    for content in (
        "Ann Miller,1,0,1970-02-03\nBo,1,1,1980\n",
        "1,1,1\n1,1,1\n",
        '"' + "x" * 200_000 + '",1\n',
    ):
        path = tmp_path / "d.csv"
        path.write_text(content)
        with pytest.raises(InputError) as caught:
            open_source(path, {"answer": ["hyp"]})
        message = str(caught.value).replace(str(path), "").replace("d.csv", "")
        assert not any(word in message for word in ("Ann", "Miller", "1", "0", "x" * 50))
    (tmp_path / "e.csv").write_text("Bo,1,1,1980\n")
    with pytest.raises(InputError) as caught:
        open_source(tmp_path / "*.csv", {"answer": ["hyp"]})
    assert "Bo" not in str(caught.value)


def test_parts_in_another_sequence_of_columns_are_matched_by_name(tmp_path):
    (tmp_path / "p1.csv").write_text("u,a,x\n1,1,0\n")
    (tmp_path / "p2.csv").write_text("x,x,a,u\n0,0,1,2\n")
    assert counted(tmp_path / "p*.csv", unit="u") == (2, 2)


PARTS: list[tuple[Any, Any]] = [
    (pa.array([1], pa.int8()), pa.array([100000], pa.int64())),
    (pa.array([1], pa.int64()), pa.array(["1000"], pa.string())),
    (pa.array([1.5]), pa.array([7], pa.uint64())),
    (pa.array([True]), pa.array(["x"])),
    (pa.array([None], pa.null()), pa.array([5])),
    (pa.array([Decimal("1.5")]), pa.array(["x"]).dictionary_encode()),
    (pa.array([Decimal("1.5")]), pa.array([3])),
]


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
@pytest.mark.parametrize("parts", PARTS, ids=lambda parts: "-".join(str(part.type) for part in parts))
def test_parts_of_different_types_are_read_by_one_rule(tmp_path, parts, kind):
    for i, part in enumerate(parts):
        table = pa.table({"u": part, "a": ["1"] if i else pa.array([1], pa.int16())})
        if kind == "parquet":
            pq.write_table(table, tmp_path / f"p{i}.parquet")
        else:
            feather.write_feather(table, str(tmp_path / f"p{i}.arrow"))
    there = sum(part.null_count == 0 for part in parts)
    assert counted(tmp_path / f"p*.{kind}", unit="u") == (there, there)


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_a_column_that_a_part_lacks_is_refused_before_anything_is_read(tmp_path, kind):
    for i, table in enumerate((pa.table({"u": [1], "a": [1]}), pa.table({"secret": [1], "a": [1]}))):
        if kind == "parquet":
            pq.write_table(table, tmp_path / f"p{i}.parquet")
        else:
            feather.write_feather(table, str(tmp_path / f"p{i}.arrow"))
    with pytest.raises(InputError, match=rf"'p1.{kind}' has no column 'u'") as caught:
        open_source(tmp_path / f"p*.{kind}", {"answer": ["a", "u"]})
    assert "It has: 'secret', 'a'." in str(caught.value)  # a schema is public


@pytest.mark.parametrize("header", [None, True])
def test_columns_of_a_csv_are_told_only_where_its_header_is_stated(tmp_path, header):
    (tmp_path / "d.csv").write_text("Ann Miller,1\n")
    with pytest.raises(InputError, match="has no column 'hyp'") as caught:
        open_source(DataFile(str(tmp_path / "d.csv"), header=header), {"answer": ["hyp"]})
    assert ("Ann" in str(caught.value)) == bool(header)


def test_names_in_another_encoding_are_no_reason_to_guess(tmp_path):
    (tmp_path / "d.csv").write_bytes("résident,accident\n1,1\n".encode("latin-1"))
    with pytest.raises(InputError, match="state the encoding that your export writes") as caught:
        open_source(DataFile(str(tmp_path / "d.csv"), header=True), {"unit": ["résident"]})
    assert "did you mean" not in str(caught.value)


def test_names_in_other_capitals_are_other_columns(tmp_path):
    pq.write_table(pa.table({"A": [0, 0], "a": [1, 1]}), tmp_path / "d.parquet")
    assert counted(tmp_path / "d.parquet") == (2, 2)


def _names(prefix: str) -> pa.DictionaryArray:
    """A hundred names, of which no second hundred fits beside them."""
    return pa.DictionaryArray.from_arrays(
        pa.array(range(100), pa.int8()), [f"{prefix}{i}" for i in range(100)]
    )


_RUNS = pa.RunEndEncodedArray.from_arrays([2, 4, 200], pa.array(["p", "q", None]))
_LISTS = pa.DictionaryArray.from_arrays(pa.array([0] * 100, pa.int8()), pa.array([[1]]))


@pytest.mark.parametrize(
    ("units", "found"),
    [
        (pa.chunked_array([_names("p"), _names("q")]), 200),
        (pa.chunked_array([_names("p"), _names("p")]), 100),
        (pa.chunked_array([_RUNS.slice(1, 100), _RUNS.slice(101)]), 2),
        (pa.RunEndEncodedArray.from_arrays([2, 3], _names("p").slice(5, 2)), 2),
        (pa.chunked_array([_LISTS, pa.DictionaryArray.from_arrays(_LISTS.indices, pa.array([[2]]))]), 0),
    ],
)
def test_dictionaries_and_runs_are_read_by_value_in_any_chunks(units, found):
    """Joined first, more names than a dictionary can number, or a type that has no dictionaries, ended the reading."""
    assert counted(pa.table({"u": units, "a": [1] * len(units)}), "u") == (found, found)


def test_what_only_arrow_knows_to_be_a_uuid_is_one(tmp_path):
    """The engine takes such a column for bytes, which name nobody."""
    raw = pa.array([bytes([i % 3] * 16) for i in range(9)], pa.binary(16))
    schema = pa.schema([("u", pa.uuid()), ("a", pa.int64())]).serialize().to_pybytes()
    plain = pa.table({"u": raw, "a": [1] * 9})
    with pq.ParquetWriter(tmp_path / "a.parquet", plain.schema, store_schema=False) as writer:
        writer.write_table(plain)
        writer.add_key_value_metadata({"ARROW:schema": base64.b64encode(schema).decode()})
    assert counted(tmp_path / "a.parquet", "u") == (3, 3)


@pytest.mark.parametrize("form", [pa.float64(), pa.float32()])
@pytest.mark.parametrize("through", ["path", "table"])
def test_what_is_not_a_number_is_missing_whatever_statistics_a_file_has(tmp_path, form, through):
    """Statistics leave NaN out, and an engine that believes them takes it for a number: for one file, and not for another."""
    for number, more in enumerate([[], [3.0], [float("inf")], [None]]):
        numbers = pa.array([2.0, 2.0, float("nan"), float("nan"), *more], form)
        file = tmp_path / f"{number}.parquet"
        pq.write_table(pa.table({"u": numbers, "a": numbers}), file)
        source: Any = file
        if through == "table":
            connection = duckdb.connect()
            with pytest.raises(InputError, match="statistics leave out what is not a number"):
                counted(connection.read_parquet(str(file)), "u")
            connection.execute(f"CREATE TABLE t AS FROM '{file}'")
            source = connection.table("t")
        assert counted(source, "u") == (0, 1 + (more == [3.0]))
        opened = open_source(source, {"number": ["a"]})
        read = read_columns(opened, {"v": ColumnRule(as_real, "a")}).collect().to_native()
        assert read["v"].to_pylist()[:4] == [2.0, 2.0, None, None]


def test_a_relation_on_a_file_of_text_is_refused(tmp_path):
    """Its types come from some of its lines, so that one value changes what others are."""
    (tmp_path / "d.csv").write_text("u,a\n01,1\n1,1\n")
    (tmp_path / "d.jsonl").write_text('{"u": "01", "a": 1}\n')
    connection = duckdb.connect()
    connection.execute(f"CREATE VIEW v AS FROM '{tmp_path / 'd.csv'}'")
    for relation in (
        connection.read_csv(str(tmp_path / "d.csv")),
        connection.table("v"),
        connection.read_json(str(tmp_path / "d.jsonl")),
        connection.sql(f"SELECT * FROM read_json_auto('{tmp_path / 'd.jsonl'}')"),
        connection.sql("SELECT * FROM v JOIN (SELECT 1 AS one) ON true WHERE a = one"),
    ):
        with pytest.raises(InputError, match="Pass the path itself"):
            counted(relation, "u")
    connection.execute("CREATE TABLE t AS FROM v")
    assert counted(connection.table("t"), "u") == (2, 2)


def test_bytes_that_are_no_text_are_missing_in_a_relation_on_arrow():
    """A function of texts that met them would end the reading, and the engine of the whole process with it."""
    raw = pa.array([b"1", b"\xff\xfe", b"longer than a view holds \xff", b"1"], pa.binary())
    units = pa.Array.from_buffers(pa.string(), 4, raw.buffers())
    connection = duckdb.connect()
    relation = connection.from_arrow(pa.table({"u": units, "a": [1] * 4}))
    assert counted(relation, "u") == (1, 1)
    assert connection.execute("SELECT 1").fetchall() == [(1,)]


def test_a_column_of_arrow_may_hold_more_text_than_views_reach(tmp_path):
    """One row more could end the reading. Each batch is a copy of its own rows, and a text of gigabytes is missing."""
    long = (1 << 31) + 1
    with (tmp_path / "texts").open("wb") as file:
        file.truncate(2 * long + 2)  # nothing is stored
    with pa.memory_map(str(tmp_path / "texts")) as held:
        ends = pa.py_buffer(np.array([0, 1, 1 + long, 2 + 2 * long, 2 + 2 * long], np.int64))
        texts = pa.Array.from_buffers(pa.large_string(), 4, [None, ends, held.read_buffer(2 * long + 2)])
        assert converted(texts.slice(3)).to_pylist() == [""]
        assert converted(texts.slice(0, 1)).to_pylist() == ["\0"]
        assert _longest(texts) == long + 1


def test_a_text_of_more_than_64_mib_is_missing_in_a_column_of_any_type(monkeypatch):
    monkeypatch.setattr(frames, "LONGEST_TEXT", 20)
    monkeypatch.setattr(values, "LONGEST_TEXT", 20)
    texts = ["x" * 20, "é" * 10, "é" * 10 + "x", "x" * 21, None, "a"]
    read = ["x" * 20, "é" * 10, None, None, None, "a"]
    for kind in (pa.string(), pa.large_string(), pa.string_view()):
        assert converted(pa.array(["before", *texts], kind).slice(1)).to_pylist() == read
    for column in (
        pd.Series(texts, dtype=object),
        pd.Series(texts, dtype="string"),
        pd.Series([*texts, 1]),
        pd.Series(pd.Categorical(texts)),
        pl.Series(texts),
        pl.Series(texts, dtype=pl.Categorical),
    ):
        frame = pd.DataFrame({"a": column}) if isinstance(column, pd.Series) else pl.DataFrame({"a": column})
        assert collect(open_source(frame, {"category": ["a"]}))["a"][:6] == read


@pytest.mark.parametrize("values_of_names", [pa.array(["p", None]), pa.array([1, None])])
def test_a_place_that_a_dictionary_lacks_is_missing(values_of_names):
    places = pa.array([0, 1, 2, -1, None, 0], pa.int8())
    column = pa.DictionaryArray.from_arrays(places, values_of_names, safe=False)
    first = values_of_names[0].as_py()
    assert converted(column).to_pylist() == [first, None, None, None, None, first]


def test_a_relation_on_parquet_is_refused_whatever_statistics_say(tmp_path):
    """By them a condition leaves out what is not a number, unless another row is there; and a plan that is run leaves out the file."""
    connection = duckdb.connect()
    setting = connection.execute("SELECT current_setting('explain_output')").fetchall()
    for place, more in enumerate([[], [0.9]]):
        numbers = [float("nan"), 0.1, *more]
        file = tmp_path / f"{place}.parquet"
        pq.write_table(
            pa.table({"u": list(range(len(numbers))), "a": [1] * len(numbers), "f": numbers}), file
        )
        for query in (
            f"SELECT u, a FROM '{file}' WHERE f > 0.5",
            f"SELECT u, CAST(f > 0.5 AS INTEGER) AS a FROM '{file}'",
            f"SELECT u, a FROM '{file}' WHERE u > 1",
        ):
            with pytest.raises(InputError, match="stands on Parquet files"):
                counted(connection.sql(query), "u")
        connection.execute(f"CREATE OR REPLACE TABLE t AS FROM '{file}'")
        assert counted(connection.sql("SELECT u, a FROM t WHERE f > 0.5"), "u") == (1 + place, 1 + place)
    assert connection.execute("SELECT current_setting('explain_output')").fetchall() == setting


def test_a_relation_on_what_is_not_listed_is_refused(tmp_path):
    connection = duckdb.connect()
    connection.execute('CREATE TABLE "READ_CSV parquet" AS SELECT 1 AS u, 1 AS a')
    assert counted(
        connection.sql("""SELECT * FROM "READ_CSV parquet" WHERE 'PARQUET' != 'PANDAS_SCAN'"""), "u"
    ) == (1, 1)
    (tmp_path / "d.txt").write_text("1")
    with pytest.raises(InputError, match="stands on READ_TEXT, which is not on the list"):
        counted(connection.sql(f"SELECT content AS u, 1 AS a FROM read_text('{tmp_path / 'd.txt'}')"), "u")


def test_a_line_that_is_no_json_is_never_asked_for_a_value(tmp_path):
    """Whatever is filtered above: the engine puts its filters in an order of its own."""
    lines = [json.dumps({"u": str(i), "a": 1}) if i % 7 else '{"u": 1' for i in range(7_000)]
    (tmp_path / "d.jsonl").write_text("\n".join(lines))
    frame: Any = open_source(tmp_path / "d.jsonl", {"unit": ["u"]}).to_native()
    assert frame.filter("u IS NOT NULL AND u <> '1'").aggregate("count(*)").fetchall() == [(5_999,)]


def test_a_mark_before_a_line_of_json_is_left_out_in_any_line(tmp_path):
    """Files with a mark that were joined: which line of them is the first does not matter."""
    lines = ['\ufeff{"u": "1", "a": 1}', '{"u": "2", "a": 1}']
    for order in (lines, lines[::-1]):
        (tmp_path / "d.jsonl").write_text("\n".join(order), encoding="utf-8")
        assert counted(tmp_path / "d.jsonl", "u") == (2, 2)


def test_the_last_moment_of_the_calendar_is_the_same_in_a_column_of_any_type(tmp_path):
    """It stands for "never" in many tables. One odd value makes a frame's column one of objects."""
    last = datetime.max
    for data in (
        pd.DataFrame({"u": pd.Series([last], dtype=object)}),
        pd.DataFrame({"u": [last]}),
        pl.DataFrame({"u": [last]}),
        pl.DataFrame({"u": [last]}).lazy(),
        pa.table({"u": [last]}),
        duckdb.connect().sql("SELECT TIMESTAMP '9999-12-31 23:59:59.999999' AS u"),
    ):
        frame: Any = open_source(data, {"unit": ["u"]}).to_native()
        assert frame.fetchall() == [("9999-12-31 23:59:59.999999",)]


def test_files_of_different_types_are_read_by_the_rule_and_not_by_the_engine(tmp_path):
    """Beside floats the engine would make floats of whole numbers, of which two could be one."""
    pq.write_table(pa.table({"u": [2**53, 2**53 + 1], "a": [1, 1]}), tmp_path / "part-1.parquet")
    pq.write_table(pa.table({"u": [0.5], "a": [1]}), tmp_path / "part-2.parquet")
    assert counted(tmp_path / "part-*.parquet", "u") == (3, 3)
