"""Planning and read-only mode open no data; the page that looks at data must be switched on."""

from __future__ import annotations

import os

import pytest
from tests.support.desk import Client
from tests.support.desk_survey import draft, released, saved, write_answers

import isotone.reading.sources


@pytest.fixture
def untouched(monkeypatch):
    """Whoever opens data fails."""

    def refuse(*_, **__):
        raise AssertionError("data was opened")

    monkeypatch.setattr(isotone.reading.sources, "_open_path", refuse)


def test_planning_reads_no_data(tmp_path, untouched):
    """The data is a pipe that nobody writes to: a read would wait for ever."""
    os.mkfifo(tmp_path / "answers.csv")
    client = Client(tmp_path).open()
    here = draft(client)
    for name in ("what", "people", "accuracy", "budget", "review", "preview"):
        assert client.get(f"{here}/{name}").status == 200


def test_read_only_mode_opens_no_data_and_writes_nothing(tmp_path, untouched):
    write_answers(tmp_path)
    client = Client(tmp_path, read_only=True, allow_check=True).open()
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    here = draft(client)
    for name in ("what", "people", "accuracy", "budget", "review", "preview"):
        assert client.get(f"{here}/{name}").status == 200
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
    for name in ("what", "people", "accuracy", "budget", "review", "check"):
        assert "60 rows" not in client.get(f"{here}/{name}").text
    assert not [path for path in tmp_path.iterdir() if path.name != "answers.csv"]
    said = capfd.readouterr()
    assert said.out == said.err == ""
