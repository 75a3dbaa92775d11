"""The register: whatever becomes of the rows, each unit's history is a growing sequence of filters."""

from __future__ import annotations

import hashlib
import hmac
import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.effort import effort
from tests.support.spark import spark_session
from tests.support.warehouses import in_postgres, in_sqlite

from isotone.counts import PosetMechanism
from isotone.errors import InputError
from isotone.order import Poset
from isotone.reading import warehouses
from isotone.reading.contributions import Groups
from isotone.reading.records import RecordSource
from isotone.series.register import HistoryRules, Register
from isotone.series.two_scale import over_time

FORK = Poset(["root", "left", "right", "low"], [("left", "root"), ("right", "root"), ("low", "left")])
OPTIONS = Poset.from_mapping(
    {"mail": "met", "phone": "met", "met": None, "letter": "mail"}, children={"met": "exclusive"}
)
PARTED = Poset.from_mapping({"mail": "met", "phone": "met", "met": None}, children={"met": "partition"})
REGIONS = Groups((("region", ("north", "south")),))

Row = tuple[Any, ...]


class Book:
    """A register in a folder, closed period by period with long rows."""

    def __init__(self, folder: Path, P: Poset, groups: Groups | None = None, **rules: Any) -> None:
        self.register = Register(P, HistoryRules(unit="id", **rules), groups, b"k" * 32)
        self.P, self.groups, self.folder, self.number = P, groups, folder, 0
        self.last: Path | None = None

    def close(self, rows: Iterable[Row]) -> np.ndarray:
        columns = ["id", "stage", *(["region"] if self.groups else [])]
        kinds = dict.fromkeys(columns, pl.String)
        table = pl.DataFrame(list(rows), schema=kinds, orient="row")
        source = RecordSource(table, element="stage")
        return self._grown(source)

    def close_wide(self, table: pl.DataFrame) -> np.ndarray:
        return self._grown(RecordSource(table))

    def _grown(self, source: RecordSource) -> np.ndarray:
        self.number += 1
        new = self.folder / f"{self.number}.parquet"
        frame = source.open(self.P, self.register.rules, self.groups)
        counts = self.register.grown(source, frame, self.last, new)
        self.last = new
        return counts


def history_norm(P: Poset, books: list[np.ndarray]) -> float:
    """The norm of one unit's effect on all counts, in the coded order over time."""
    totals = np.array([P.coding.encode(book[0]) for book in books])
    m = PosetMechanism(over_time(P.coding.order, len(books)), 1)
    return float(m.norm(totals.ravel()))


snapshots = st.lists(st.sets(st.sampled_from(["a", "b", "c", "d", "x"]), max_size=4), min_size=2, max_size=3)


@pytest.mark.parametrize("P", [FORK, OPTIONS, PARTED], ids=["order", "options", "partition"])
@given(snaps=snapshots)
@settings(max_examples=effort(12, 3400), deadline=None)
def test_any_stream_of_edits_moves_the_counts_by_one_history(
    tmp_path_factory: pytest.TempPathFactory, P: Poset, snaps: list[set[str]]
) -> None:
    names = dict(zip("abcd", P.elements, strict=False))
    book = Book(tmp_path_factory.mktemp("book"), P)
    books = [book.close([("one", str(names.get(x, "nothing"))) for x in sorted(snap)]) for snap in snaps]
    assert history_norm(P, books) <= 1 + 1e-9
    for before, after in itertools.pairwise(books):
        assert np.all(P.coding.encode(after[0]) >= P.coding.encode(before[0]))


def test_edits_deletions_and_late_rows_change_nothing_that_was_counted(tmp_path: Path) -> None:
    book = Book(tmp_path, Poset.chain(["full", "first"]))
    assert book.close([("a", "full"), ("b", "first"), (None, "full"), ("c", "unknown")]).tolist() == [[1, 2]]
    assert book.close([]).tolist() == [[1, 2]]  # everybody's rows are gone
    assert book.close([("a", "first"), ("b", "full")]).tolist() == [[2, 2]]


def test_a_unit_is_counted_by_its_own_rows_alone(tmp_path: Path) -> None:
    streams = [[("a", "low"), ("b", "root")], [("b", "right")], [("a", "right"), ("c", "left")]]
    alone, both, others = (Book(tmp_path / name, FORK) for name in ("alone", "both", "others"))
    for book in (alone, both, others):
        book.folder.mkdir()
    for rows in streams:
        one = alone.close([row for row in rows if row[0] == "a"])
        rest = others.close([row for row in rows if row[0] != "a"])
        assert np.array_equal(both.close(rows), one + rest)


def test_the_first_option_and_the_first_group_seen_stay(tmp_path: Path) -> None:
    book = Book(tmp_path, OPTIONS, REGIONS)
    place = {x: i for i, x in enumerate(OPTIONS.elements)}
    first = book.close([("a", "phone", "south"), ("b", "mail", "north"), ("b", "phone", "north")])
    assert first[1][place["phone"]] == 1
    assert first[0][place["mail"]] == 1  # together: by the public sequence
    assert first[0][place["phone"]] == 0
    second = book.close([("a", "letter", "north"), ("b", "letter", "north")])
    assert (
        second[1].tolist() == first[1].tolist()
    )  # no letter below mail for who was met by phone, and no move
    assert second[0][place["letter"]] == 1


def test_groups_that_are_seen_together_are_settled_by_the_public_sequence(tmp_path: Path) -> None:
    book = Book(tmp_path, Poset.chain(["full", "first"]), REGIONS)
    rows = [
        ("a", "full", "south"),
        ("a", "first", "north"),
        ("b", "first", "south"),
        ("b", "full", "elsewhere"),
    ]
    assert book.close(rows).tolist() == [[1, 1], [0, 1]]  # a row of no group says nothing


def test_a_parted_stage_counts_once_its_option_is_known(tmp_path: Path) -> None:
    book = Book(tmp_path, PARTED)
    assert book.close([("a", "met")]).sum() == 0
    counts = dict(zip(PARTED.elements, book.close([("a", "phone")])[0].tolist(), strict=True))
    assert counts == {"mail": 0, "phone": 1, "met": 1}


def test_the_first_records_seen_of_a_unit_stay(tmp_path: Path) -> None:
    book = Book(tmp_path, Poset.chain(["full", "first"]), contributions=2, record="case")

    def table(*rows: tuple[str, str, int, int]) -> pl.DataFrame:
        kinds = {"id": pl.String, "case": pl.String, "full": pl.Int64, "first": pl.Int64}
        return pl.DataFrame(list(rows), schema=kinds, orient="row")

    assert book.close_wide(table(("a", "1", 0, 1))).tolist() == [[0, 1]]
    crowd = [("a", str(i), 1, 1) for i in range(2, 9)]
    assert book.close_wide(table(*crowd)).tolist() == [[1, 2]]  # one more place
    assert book.close_wide(table(("a", "1", 1, 1), *crowd)).tolist() == [[2, 2]]
    assert book.close_wide(table(*[("a", str(i), 1, 1) for i in range(50, 90)])).tolist() == [[2, 2]]


def test_rows_without_a_record_say_nothing(tmp_path: Path) -> None:
    book = Book(tmp_path, Poset.chain(["full", "first"]), contributions=2, record="case")
    rows = {"id": ["a", "a"], "case": [None, "1"], "full": [1, 0], "first": [1, 1]}
    assert book.close_wide(pl.DataFrame(rows)).tolist() == [[0, 1]]


def test_an_erased_unit_stays_counted_under_a_random_name(tmp_path: Path) -> None:
    book = Book(tmp_path, Poset.chain(["full", "first"]))
    book.close([("a", "first"), ("b", "full")])
    assert book.last is not None
    frozen = tmp_path / "frozen.parquet"
    book.register.erase(" a ", book.last, frozen)  # as rows are read, without outer blanks
    names = [
        row[0] for row in duckdb.connect().execute(f"SELECT hex(isotone_line) FROM '{frozen}'").fetchall()
    ]
    token = hmac.new(b"k" * 32, b"a", hashlib.sha256).hexdigest().upper()
    other = hmac.new(b"k" * 32, b"b", hashlib.sha256).hexdigest().upper()
    assert other in names
    assert token not in names
    book.last = frozen
    assert book.close([]).tolist() == [[1, 2]]
    assert book.close([("a", "first")]).tolist() == [[1, 3]]  # who comes back is a second history


def test_the_records_of_an_erased_unit_are_not_found_by_their_keys(tmp_path: Path) -> None:
    book = Book(tmp_path, Poset.chain(["full", "first"]), contributions=2, record="case")
    kinds = {"id": pl.String, "case": pl.String, "full": pl.Int64, "first": pl.Int64}

    def table(*rows: tuple[str, str, int, int]) -> pl.DataFrame:
        return pl.DataFrame(list(rows), schema=kinds, orient="row")

    book.close_wide(table(("a", "file 1", 1, 1), ("a", "file 2", 0, 1), ("b", "file 3", 0, 1)))
    assert book.last is not None
    frozen = tmp_path / "frozen.parquet"
    book.register.erase("a", book.last, frozen)
    columns = [f"SELECT hex({name}) FROM '{frozen}'" for name in ("isotone_line", "isotone_key")]
    left = {row[0] for sql in columns for row in duckdb.connect().execute(sql).fetchall()}
    hashes = {
        name: hmac.new(b"k" * 32, name.encode(), hashlib.sha256).hexdigest().upper()
        for name in ("a", "b", "file 1", "file 2", "file 3")
    }
    assert {name for name, code in hashes.items() if code in left} == {"b", "file 3"}
    book.last = frozen
    assert book.close_wide(table(("b", "file 3", 1, 1))).tolist() == [[2, 3]]  # they keep counting
    assert book.close_wide(table(("a", "file 1", 1, 1))).tolist() == [[3, 4]]


def test_files_memory_and_other_engines_grow_the_same_register(tmp_path: Path) -> None:
    table = pl.DataFrame(
        {"id": [1, 2, 2, None], "full": ["no", "yes", "no", "yes"], "first": ["yes", "no", "no", "yes"]}
    )
    table.write_csv(tmp_path / "rows.csv")
    P = Poset.chain(["full", "first"])
    found: set[bytes] = set()
    for i, data in enumerate(
        (table, table.lazy(), str(tmp_path / "rows.csv"), table.to_arrow(), table.to_pandas())
    ):
        folder = tmp_path / str(i)
        folder.mkdir()
        book = Book(folder, P)
        assert book._grown(RecordSource(data)).tolist() == [[1, 2]]
        lines = duckdb.connect().execute(f"SELECT * FROM '{book.last}' ORDER BY 1").fetchall()
        found.add(repr(lines).encode())
    assert len(found) == 1  # the keyed hash is of the canonical text, whatever the engine


@pytest.mark.parametrize("engine", ["sqlite", pytest.param("postgres", marks=pytest.mark.services)])
def test_rows_of_a_database_come_some_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    monkeypatch.setattr(warehouses, "_PART", 2)
    weeks = [[("a", "first"), ("b", "full"), (None, "full"), ("c", "x"), ("d", "full")], [("a", "full")]]
    there, here = (
        Book(tmp_path, Poset.chain(["full", "first"])),
        Book(tmp_path / "here", Poset.chain(["full", "first"])),
    )
    here.folder.mkdir()
    columns = {"id": "TEXT", "stage": "TEXT"}
    for rows in weeks:
        table = in_sqlite(tmp_path, columns, rows) if engine == "sqlite" else in_postgres(columns, rows)
        assert np.array_equal(there._grown(RecordSource(table, element="stage")), here.close(rows))
    lines = [
        duckdb.connect().execute(f"SELECT * FROM '{book.last}' ORDER BY 1").fetchall()
        for book in (there, here)
    ]
    assert lines[0] == lines[1]


def test_what_cannot_be_a_history_is_refused() -> None:
    for wrong, words in (
        ({"unit": None}, "needs unit="),
        ({"unit": "id", "max_size": 2}, "shrink"),
        ({"unit": "id", "contributions": 2}, "record="),
        ({"unit": "id", "record": "case"}, "record="),
        ({"unit": "id", "on_violation": "drop"}, "closes every record"),
    ):
        with pytest.raises(InputError, match=words):
            HistoryRules(**wrong)  # pyright: ignore[reportArgumentType]


@pytest.mark.services
def test_spark_grows_the_same_register(tmp_path: Path) -> None:
    session = spark_session()
    P = Poset.chain(["full", "first"])
    weeks = [[("a", "first"), ("b", "full"), (None, "full"), ("c", "other")], [("a", "full"), ("d", "first")]]
    book, here = Book(tmp_path, P), Book(tmp_path / "here", P)
    here.folder.mkdir()
    for rows in weeks:
        table = session.createDataFrame(rows, "id string, stage string")
        assert np.array_equal(book._grown(RecordSource(table, element="stage")), here.close(rows))
    lines = [
        duckdb.connect().execute(f"SELECT * FROM read_parquet('{place}') ORDER BY 1").fetchall()
        for place in (f"{book.last}/*.parquet", here.last)
    ]
    assert lines[0] == lines[1]
