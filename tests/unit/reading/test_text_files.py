"""CSV by one rule: what ends a record, what a quote means, and what bytes of other encodings are."""

import codecs
import csv
import io
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isotone import DataFile, InputError
from isotone.order import Poset
from isotone.reading import text_files
from isotone.reading.records import RecordRules, RecordSource, count_records
from isotone.reading.sources import ENCODINGS, collect, open_source
from isotone.reading.text_files import Layout, records_of

NEWLINES = st.sampled_from(["\n", "\r\n", "\r"])
PIECES = st.sampled_from(
    [
        "a",
        ",",
        "\n",
        "\r",
        "\r\n",
        '"',
        '"x"',
        '"a""b"',
        '"longer than "" twelve bytes"',
        "longer than twelve bytes",
        "é",
        "",
    ]
)


def by_rule(text: bytes, newline: str, width: int) -> list[list[str | None]]:
    """The records by the regular expression that is the rule."""
    layout = Layout((), ",", newline, False, "utf-8")
    rows = [[*row, *[b""] * width][:width] for row in records_of(text, layout)]
    return [[_text(field) for field in row] for row in rows]


def _text(field: bytes) -> str | None:
    try:
        return field.decode() or None
    except UnicodeDecodeError:
        return None


@settings(max_examples=400, deadline=None)
@given(st.lists(PIECES, max_size=12), NEWLINES, st.integers(1, 9), st.sampled_from([b"", b"\xff"]))
def test_blocks_of_any_size_give_the_records_of_the_rule(tmp_path_factory, pieces, newline, size, odd):
    text = "".join(pieces).encode() + odd
    path = tmp_path_factory.mktemp("csv", numbered=True) / "d.csv"
    path.write_bytes(text)
    before, text_files._BLOCK = text_files._BLOCK, size
    try:
        parts = text_files.read_fields(str(path), Layout((0, 1, 2), ",", newline, False, "utf-8"))
        found = [
            list(row)
            for columns in parts
            for row in zip(*(column.to_pylist() for column in columns), strict=True)
        ]
    finally:
        text_files._BLOCK = before
    assert found == by_rule(text, newline, 3)


@settings(max_examples=200, deadline=None)
@given(st.lists(PIECES, max_size=12), st.integers(1, 30), st.integers(1, 40))
def test_long_fields_are_missing_in_blocks_of_any_size(tmp_path_factory, pieces, longest, block):
    path = tmp_path_factory.mktemp("csv", numbered=True) / "d.csv"
    path.write_bytes("".join(pieces).encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_files, "LONGEST_TEXT", longest)
        patch.setattr(text_files, "_LONGEST_BLOCK", block)
        parts = text_files.read_fields(str(path), Layout((0, 1, 2), ",", "\n", False, "utf-8"))
        rows = [list(row) for part in parts for row in zip(*(c.to_pylist() for c in part), strict=True)]
    kept = by_rule("".join(pieces).encode(), "\n", 3)
    assert rows == [[None if f is not None and len(f.encode()) > longest else f for f in row] for row in kept]


def read(path: Path, names: list[str], **form: Any) -> list[tuple[Any, ...]]:
    found = collect(open_source(DataFile(str(path), **form), {"category": names}))
    return list(zip(*found.values(), strict=True))


ROWS = [
    ["id", "note", "a"],
    ["1", 'says "yes", twice', "1"],
    ["2", "two\nlines", "0"],
    ["3", "x\r1\r1\r1", "1"],
    ["4", "crlf\r\ninside", "1"],
    ["5", "é€漢", "0"],
    ["6", "", ""],
]


def by_csv(path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(ROWS)


def by_csv_with_line_feeds(path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows(ROWS)


def by_pandas(path: Path) -> None:
    pd.DataFrame(ROWS[1:], columns=ROWS[0]).to_csv(path, index=False)


def by_polars(path: Path) -> None:
    pl.DataFrame(ROWS[1:], schema=ROWS[0], orient="row").write_csv(path)


def by_duckdb(path: Path) -> None:
    table = pl.DataFrame(ROWS[1:], schema=ROWS[0], orient="row").to_arrow()
    duckdb.from_arrow(table).write_csv(str(path))


def by_rules_of_r(path: Path) -> None:
    """``write.csv`` quotes every text, doubles quotes and writes NA where there is no value."""
    lines = [
        ",".join('"' + field.replace('"', '""') + '"' if field else '""' for field in row) for row in ROWS
    ]
    path.write_bytes(("\n".join(lines) + "\n").encode())


WRITERS = [by_csv, by_csv_with_line_feeds, by_pandas, by_polars, by_duckdb, by_rules_of_r]


@pytest.mark.parametrize("writer", WRITERS, ids=lambda writer: writer.__name__)
def test_what_real_writers_write_is_read_row_by_row(tmp_path, writer):
    writer(tmp_path / "d.csv")
    bare = (
        writer is by_csv_with_line_feeds or writer is by_pandas or writer is by_polars or writer is by_duckdb
    )
    found = read(tmp_path / "d.csv", ["id", "note", "a"])
    expected = [tuple(field or None for field in row) for row in ROWS[1:]]
    assert found == expected or (bare and len(found) == len(expected))
    assert [row[0] for row in found] == [row[0] for row in expected]
    assert [row[2] for row in found] == [row[2] for row in expected]


@pytest.mark.parametrize("writer", WRITERS, ids=lambda writer: writer.__name__)
def test_one_field_with_line_endings_is_one_record(tmp_path, writer, monkeypatch):
    """A bare CR was a line ending once: one person's note became five hundred records."""
    P = Poset(["a"])
    source = RecordSource(str(tmp_path / "d.csv"))
    totals: list[int] = []
    for note in ("x", "x" + "\r1" * 500, "x" + "\n1" * 500, "x" + "\r\n1" * 500):
        monkeypatch.setitem(globals(), "ROWS", [["id", "note", "a"], ["1", note, "1"], ["2", "y", "0"]])
        writer(tmp_path / "d.csv")
        rules = RecordRules()
        totals.append(int(count_records(source, source.open(P, rules, None), P, rules)[1][0]))
    assert totals == [2, 2, 2, 2]


def test_lines_end_as_the_header_does(tmp_path):
    path = tmp_path / "d.csv"
    path.write_bytes(b"a,b\r\n1,x\n2,y\r\n3,z\r4,w\r\n")
    assert read(path, ["a", "b"]) == [("1", "x\n2"), ("3", "z\r4")]
    path.write_bytes(b"a,b\n1,x\r\n2,y\r3\n")
    assert read(path, ["a", "b"]) == [("1", "x\r"), ("2", "y\r3")]
    path.write_bytes(b"a,b\r1,x\n\r2,y")
    assert read(path, ["a", "b"]) == [("1", "x\n"), ("2", "y")]


def test_without_a_header_all_is_stated(tmp_path):
    path = tmp_path / "d.csv"
    path.write_bytes(b"1;x\n2;y\n")
    form = {"separator": ";", "header": False, "columns": ("a", "b"), "newline": "\n"}
    assert read(path, ["b"], **form) == [("x",), ("y",)]
    for odd in (
        {"newline": None},
        {"columns": ()},
        {"columns": "ab"},
        {"columns": ("a", "a")},
        {"newline": "x"},
    ):
        with pytest.raises(InputError):
            DataFile(str(path), **(form | odd))  # pyright: ignore
    for odd in (
        {"columns": ("a",)},
        {"newline": "\n"},
        {"separator": ";;"},
        {"separator": '"'},
        {"encoding": "rot13"},
    ):
        with pytest.raises(InputError):
            DataFile(str(path), **odd)  # pyright: ignore
    with pytest.raises(InputError, match="no column 'c' among the names"):
        read(path, ["c"], **form)


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16", "utf-16-le", "utf-8"])
def test_encodings_are_decoded(tmp_path, encoding):
    path = tmp_path / "d.csv"
    path.write_bytes("naïf,b\né,1\nü,2\n".encode(encoding))
    assert read(path, ["naïf", "b"], encoding=encoding) == [("é", "1"), ("ü", "2")]


def test_no_letter_of_an_encoding_takes_bytes_of_other_fields(tmp_path):
    """One of EUC-KR begins a sequence of eight bytes to Python. Behind any one or two bytes a field ends where it ends."""
    (tmp_path / "d.csv").write_bytes(b"a,b\n1,\xa4\xd4\n2\n3\n")
    assert read(tmp_path / "d.csv", ["a", "b"], encoding="euc-kr") == [
        ("1", "\u3164"),
        ("2", None),
        ("3", None),
    ]
    pairs = [
        bytes([first, second]) for first in range(0x80, 0x100) for second in (0x30, 0x81, 0xA4, 0xD4, 0xFE)
    ]
    for encoding in ENCODINGS:
        if not encoding.startswith("utf-16"):
            for begun in (*(bytes([byte]) for byte in range(0x80, 0x100)), *pairs):
                (decoded,) = text_files._decoded(io.BufferedReader(io.BytesIO(begun + b',"\n')), encoding, 99)
                assert decoded.endswith(b',"\n'), (encoding, begun)


def test_utf_16_without_a_mark_is_little_endian(tmp_path):
    (tmp_path / "d.csv").write_bytes("a,b\n1,é\n".encode("utf-16-le"))
    assert read(tmp_path / "d.csv", ["a", "b"], encoding="utf-16") == [("1", "é")]
    (tmp_path / "d.csv").write_bytes(codecs.BOM_UTF16_BE + "a,b\n1,é\n".encode("utf-16-be"))
    assert read(tmp_path / "d.csv", ["a", "b"], encoding="utf-16") == [("1", "é")]
    (tmp_path / "d.csv").write_bytes(b"a,b\n1,2\n")
    with pytest.raises(InputError, match="read as utf-16"):
        read(tmp_path / "d.csv", ["a"], encoding="utf-16")


def test_bytes_of_another_encoding_are_missing_and_their_row_stays(tmp_path):
    path = tmp_path / "d.csv"
    path.write_bytes(b"a,b\n\xe9,1\nx,2\n")
    assert read(path, ["a", "b"]) == [(None, "1"), ("x", "2")]
    path.write_bytes("a,b\nx,2\n".encode("utf-16-le") + b"\x00\xd8,\x003\x00\n\x00")
    assert read(path, ["a", "b"], encoding="utf-16-le") == [("x", "2"), (None, "3")]


def test_a_quote_that_does_not_close_goes_on_to_the_end(tmp_path):
    path = tmp_path / "d.csv"
    path.write_bytes(b'a,b\n1,5" pipe\n2,"open\n3,x\n')
    assert read(path, ["a", "b"]) == [("1", '5" pipe'), ("2", "open\n3,x\n")]
    path.write_bytes(b'a,b\n1,"x"y"z,2\n\n,"",\n')
    assert read(path, ["a", "b"]) == [("1", 'xy"z'), (None, None)]


def test_the_rule_and_the_csv_module_agree_where_both_have_one():
    text = io.StringIO(newline="")
    csv.writer(text).writerows(ROWS)
    found = by_rule(text.getvalue().encode(), "\r\n", 3)
    assert found == [[field or None for field in row] for row in ROWS]
