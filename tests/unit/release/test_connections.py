"""Specs whose data is a table in a database: what identifies it, and what is never shown."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from isotone.errors import InputError, IsotoneError, SpecError
from isotone.reading.connections import DataTable
from isotone.release.spec import Spec, load_spec
from isotone.release.steward import release_spec

SPEC = """
[data]
connection = "CONNECTION"
table = "survey"
unit = "person"

[privacy]
epsilon = "1"
ledger = "survey.ledger"
budget = { epsilon = "5" }

[order]
elements = ["hyp", "twice"]
relations = [["twice", "hyp"]]

[output]
folder = "out"
report = false
"""


def spec_in(folder: Path, connection: str) -> Spec:
    (folder / "spec.toml").write_text(SPEC.replace("CONNECTION", connection), encoding="utf-8")
    return load_spec(folder / "spec.toml")


def survey(file: Path) -> None:
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE survey (person, hyp, twice)")
        connection.executemany(
            "INSERT INTO survey VALUES (?, ?, ?)", [(i, i % 2, i % 4 == 1) for i in range(400)]
        )
    connection.close()


@pytest.mark.parametrize("named", ["sqlite://data.db", "env:ISOTONE_TEST_DATABASE"])
def test_a_spec_releases_a_table_of_a_database(tmp_path, monkeypatch, named):
    survey(tmp_path / "data.db")
    monkeypatch.setenv("ISOTONE_TEST_DATABASE", f"sqlite://{tmp_path}/data.db?secret=hunter2")
    monkeypatch.chdir("/")  # the path of a file starts at the spec
    release, folder, fresh = release_spec(spec_in(tmp_path, named))
    assert fresh
    assert abs(int(release.value[0]) - 200) < 60
    again = release_spec(spec_in(tmp_path, named))
    assert not again[2]
    texts = [file.read_bytes() for file in (*folder.iterdir(), tmp_path / "survey.ledger")]
    assert not any(word in text for word in (b"hunter2", b"data.db", b"sqlite://") for text in texts)


def test_the_file_of_a_database_is_opened_to_read_and_never_made(tmp_path):
    with pytest.raises(IsotoneError, match="There is no file"):
        release_spec(spec_in(tmp_path, "sqlite://other.db"))
    assert not (tmp_path / "other.db").exists()
    survey(tmp_path / "data.db")
    table = DataTable("sqlite://data.db", "survey", folder=tmp_path).open()
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        table.get_backend().con.execute("DELETE FROM survey")


def test_a_table_of_duckdb_is_read(tmp_path):
    import duckdb

    with duckdb.connect(str(tmp_path / "data.duckdb")) as connection:
        connection.execute(
            "CREATE TABLE survey AS SELECT i AS person, i % 2 AS hyp, i % 4 = 1 AS twice FROM range(400) t(i)"
        )
    release, *_ = release_spec(spec_in(tmp_path, "duckdb://data.duckdb"))
    assert abs(int(release.value[0]) - 200) < 60


def test_the_identity_is_a_list_of_parts(monkeypatch):
    monkeypatch.setenv(
        "WAREHOUSE", "postgresql://ann:hunter2@DB.example.org/health?sslmode=require&password=x"
    )
    found = DataTable("env:WAREHOUSE", "clinic.survey", {"hyp": "integer"}).identity()
    assert found == {
        "scheme": "postgres",
        "host": "db.example.org",
        "port": 5432,
        "database": "health",
        "schema": "clinic",
        "table": "survey",
        "types": {"hyp": "integer"},
    }
    assert (
        DataTable(
            "postgresql://bob@db.example.org:5432/health", "clinic.survey", {"hyp": "integer"}
        ).identity()
        == found
    )
    assert "hunter2" not in json.dumps(found)


@pytest.mark.parametrize(
    "connection",
    [
        "postgresql://ann:hunter2@db/health",
        "postgresql://ann:@db/health?password=hunter2",
        "postgresql://db/health?sslpassword=hunter2",
        "postgresql://db/health#hunter2",
        "databricks://token:hunter2@host",
        "hunter2",
        "postgresql:hunter2",
        "postgresql://db:hunter2/health",
        "file://hunter2",
    ],
)
def test_a_password_is_refused_and_not_repeated(tmp_path, connection):
    for text in (
        SPEC.replace("CONNECTION", connection),
        SPEC.replace('connection = "CONNECTION"\ntable = "survey"', f'path = "{connection}"'),
    ):
        if text.count("://") == 0 and "path" in text:
            continue  # the path of a file
        (tmp_path / "spec.toml").write_text(text, encoding="utf-8")
        with pytest.raises(SpecError) as caught:
            load_spec(tmp_path / "spec.toml")
        assert "hunter2" not in str(caught.value)


def test_what_a_driver_says_is_not_repeated(tmp_path, monkeypatch):
    """The server is not there; the words of the driver would name the host and the user."""
    pytest.importorskip("psycopg")
    monkeypatch.setenv("WAREHOUSE", "postgresql://ann:hunter2@127.0.0.1:9/health?connect_timeout=1")
    with pytest.raises(IsotoneError) as caught:
        release_spec(spec_in(tmp_path, "env:WAREHOUSE"))
    told = f"{caught.value} {caught.value.__cause__} {caught.value.__context__}"
    assert not any(word in told for word in ("hunter2", "127.0.0.1", "ann"))


def test_a_name_that_the_environment_lacks_is_told(tmp_path):
    with pytest.raises(InputError, match="no ISOTONE_NOWHERE"):
        release_spec(spec_in(tmp_path, "env:ISOTONE_NOWHERE"))
    survey(tmp_path / "data.db")
    (tmp_path / "two").mkdir()
    table = DataTable("sqlite://data.db", "other", folder=tmp_path)
    with pytest.raises(IsotoneError, match="no table 'other'"):
        table.open()
