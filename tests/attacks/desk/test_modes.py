"""Planning opens no record, read-only mode no data at all; the page that looks at data must be switched on."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.support.desk import Client
from tests.support.desk_survey import PAGES, draft, released, saved, write_answers

import isotone.reading.sources


@pytest.fixture
def untouched(monkeypatch):
    """Whoever opens data fails."""

    def refuse(*_, **__):
        raise AssertionError("data was opened")

    monkeypatch.setattr(isotone.reading.sources, "_open_path", refuse)


def test_planning_reads_no_data(tmp_path, untouched, monkeypatch):
    """Without the steward's word not even the first line is opened."""
    write_answers(tmp_path)
    client, opened = Client(tmp_path).open(), list[str]()
    real = Path.open

    def told(self, *given, **options):
        opened.append(self.name)
        return real(self, *given, **options)

    monkeypatch.setattr(Path, "open", told)
    here = draft(client, data={"data.header": "no"})
    for name in SCREENS:
        page = client.get(f"{here}/{name}")
        assert page.status == 200
        assert "Columns of the data" not in page.text
    assert "answers.csv" not in opened


def test_a_pipe_is_no_data(tmp_path):
    """A read would wait for ever."""
    os.mkfifo(tmp_path / "answers.csv")
    client = Client(tmp_path).open()
    answer = client.post(f"{client.begin('order')}/data", **PAGES["data"])
    assert "no regular file" in answer.problems


SCREENS = ("data", "what", "accuracy", "budget", "review", "preview")
FIRST = "person,hyp,twice,meds,chol\n"


def test_no_more_than_the_first_line_is_shown_or_kept(tmp_path):
    """The steward says that it holds names: then it is shown, and nothing behind it. A line without an end shows nothing."""
    (tmp_path / "answers.csv").write_text(FIRST + "zz4711,yes,no,no,no\n")
    client = Client(tmp_path).open()
    here = draft(client)
    pages = [client.get(f"{here}/{name}").text for name in SCREENS]
    assert "<code>chol</code>" in pages[0]
    assert not [page for page in pages if "zz4711" in page]
    (tmp_path / "answers.csv").write_text("person," + "zz4711" * 20_000)
    assert "zz4711" not in client.get(f"{here}/data").text


def test_a_schema_says_the_columns_and_no_value(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({"person": ["zz4711"], "hyp": ["yes"], "twice": ["no"], "meds": ["no"], "chol": ["no"]})
    pq.write_table(table, tmp_path / "answers.parquet")
    client = Client(tmp_path).open()
    here = draft(client, data={"data.path": "answers.parquet", "data.header": "no"})
    pages = [client.get(f"{here}/{name}").text for name in SCREENS]
    assert "<code>chol</code>" in pages[0]
    assert not [page for page in pages if "zz4711" in page]
    wrong = client.post(
        f"{here}/data", **{**PAGES["data"], "data.path": "answers.parquet", "data.unit": "persn"}
    )
    assert "no column &#39;persn&#39;; did you mean &#39;person&#39;?" in wrong.problems
    auditor = Client(tmp_path, read_only=True).open()
    there = draft(auditor, data={"data.path": "answers.parquet"}, begin={"name": "other"})
    assert "<code>chol</code>" not in auditor.get(f"{there}/data").text


def test_read_only_mode_opens_no_data_and_writes_nothing(tmp_path, untouched):
    write_answers(tmp_path)
    client = Client(tmp_path, read_only=True, allow_check=True).open()
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    here = draft(client)
    for name in SCREENS:
        page = client.get(f"{here}/{name}")
        assert page.status == 200
        assert "Columns of the data" not in page.text
    assert client.post(f"{here}/review").status == 403
    assert client.get(f"{here}/release").status == 403
    assert client.post(f"{here}/release", request="x", confirm="1").status == 403
    assert client.post("/releases/redraw", folder="x").status == 403
    assert client.get(f"{here}/check").status == client.post(f"{here}/check").status == 404
    assert client.get(f"{here}/what").text.count("/check") == 0
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_auditors_see_releases_and_ledgers(tmp_path):
    write_answers(tmp_path)
    steward = Client(tmp_path).open()
    released(steward, saved(steward))
    (tmp_path / "answers.csv").unlink()
    auditor = Client(tmp_path, read_only=True).open()
    assert "Verified: every check holds" in auditor.get("/releases/one?folder=survey-release&verify=yes").text
    assert auditor.get("/releases/zip?folder=survey-release").status == 200
    here = auditor.post("/begin", open="survey.toml").headers["location"].rpartition("/")[0]
    assert "counts of 4 elements" in auditor.get(f"{here}/budget").text


def test_the_check_is_absent_unless_switched_on(tmp_path):
    write_answers(tmp_path)
    client = Client(tmp_path).open()
    here = draft(client)
    assert client.get(f"{here}/check").status == client.post(f"{here}/check").status == 404
    assert "/check" not in client.get(f"{here}/what").text


def test_the_check_says_what_it_is_and_keeps_nothing(tmp_path, capfd):
    write_answers(tmp_path)
    client = Client(tmp_path, allow_check=True).open()
    here = draft(client)
    before = client.get(f"{here}/check").text
    assert "NOT PRIVATE" in before
    assert "60 rows" not in before
    found = client.post(f"{here}/check")
    assert "60 rows" in found.text
    assert "the guarantee is then void" in found.text
    assert found.headers["cache-control"] == "no-store"
    for name in (*SCREENS, "check"):
        assert "60 rows" not in client.get(f"{here}/{name}").text
    assert not [
        path for path in tmp_path.iterdir() if not path.name.startswith(("answers.csv", "survey.draft"))
    ]
    assert "60 rows" not in (tmp_path / "survey.draft.toml").read_text()
    said = capfd.readouterr()
    assert said.out == said.err == ""
