"""The process of the desk is killed in the middle of a release. The ledger knows, and the next desk goes on from there."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest
from tests.support.desk import Client
from tests.support.desk_survey import asked, released, saved, write_answers

import isotone as iso


def kill_at(step, folder):
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.desk_killed", str(folder), step], capture_output=True, text=True
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert done.stdout == done.stderr == ""


def charges(folder):
    return [(charge.number, charge.state) for charge in iso.Ledger(folder / "survey.ledger").charges()]


@pytest.fixture
def client(tmp_path):
    write_answers(tmp_path)
    client = Client(tmp_path).open()
    saved(client)
    return client


def test_a_release_that_was_killed_while_it_read_goes_on_under_its_charge(client, tmp_path):
    here = f"/draft/{next(iter(client.desk.drafts))}"
    id = client.get(f"{here}/release").field("request")
    kill_at("read", tmp_path)
    assert charges(tmp_path) == [(1, "reading")]
    page = client.get(f"{here}/release")
    assert page.field("request") == id
    assert "Draw again" not in page.text
    assert "Verified: every check holds" in released(client, here).text
    assert charges(tmp_path) == [(1, "sealed")]
    assert iso.Ledger(tmp_path / "survey.ledger").charges()[0].request == id


def test_a_release_that_was_killed_after_its_draw_is_lost_and_stays_spent(client, tmp_path):
    here = f"/draft/{next(iter(client.desk.drafts))}"
    kill_at("publish", tmp_path)
    assert charges(tmp_path) == [(1, "drawn")]
    page = client.get(f"{here}/release").text
    assert "it is lost, and stays spent" in page
    assert "never sealed" in released(client, here).text  # without "again" nothing is drawn
    assert charges(tmp_path) == [(1, "drawn")]
    assert asked(client, here, again="yes", after="1", confirm="").status == 422
    assert "<h1>Released<" in released(client, here, again="yes", after="1").text
    assert charges(tmp_path) == [(1, "drawn"), (2, "sealed")]
