"""The commands about ledgers, on terminals of any kind."""

import io
import os
import signal
import sys

import pytest

from isotone.cli import app
from isotone.ledger import AttemptError, Ledger, extract_charge, read_extract
from isotone.privacy.guarantee import Guarantee


@pytest.fixture
def ledger(tmp_path):
    made = Ledger(tmp_path / "a.ledger", epsilon=9)
    with made.attempt(Guarantee.pure(1), request="a", description="[/b] größe \x1b[31m") as attempt:
        attempt.draw()
        attempt.seal("hash")
    with pytest.raises(KeyboardInterrupt), made.attempt(Guarantee.pure(1), request="b"):
        os.kill(os.getpid(), signal.SIGINT)
    with pytest.raises(AttemptError), made.attempt(Guarantee.pure(1), request="c") as attempt:
        attempt.draw()
    with pytest.raises(AttemptError), made.attempt(Guarantee.pure(1), request="d"):
        pass
    return made


@pytest.fixture
def run(monkeypatch):
    def call(encoding, *arguments):
        raw = io.BytesIO()
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding=encoding, write_through=True))
        app(["ledger", *map(str, arguments)], standalone_mode=False)
        return raw.getvalue()

    return call


@pytest.mark.parametrize(
    ("encoding", "left"), [("utf-8", "ε = 5 left of ε = 9"), ("ascii", "epsilon = 5 left of")]
)
def test_show_says_which_state_each_charge_is_in(ledger, run, encoding, left):
    text = run(encoding, "show", ledger.address).decode(encoding)
    assert left in text
    assert "\x1b" not in text
    assert "[/b]" in text
    states = [
        line.rstrip().split("  ")[-1].strip() for line in text.splitlines() if line.strip()[:1].isdigit()
    ]
    assert states == [
        "sealed",
        "reading, or ended there: spent, same request resumes it",
        "drawn, not sealed: lost",
        "failed before the draw: spent",
    ]


@pytest.mark.parametrize("command", [("show", "--json"), ("export",)])
def test_json_goes_to_any_terminal(ledger, run, command):
    name, *options = command
    assert b'"failed"' in run("ascii", name, ledger.address, *options)


def test_an_extract_is_written_as_it_is(ledger, run, tmp_path):
    assert run("ascii", "extract", ledger.address, 1) == extract_charge(ledger, 1)
    run("ascii", "extract", ledger.address, 2, "--out", tmp_path / "two.json")
    assert read_extract((tmp_path / "two.json").read_bytes())["charge"]["state"] == "reading"


def test_a_ledger_is_created_on_an_ascii_terminal(run, tmp_path):
    assert b"epsilon = 2" in run("ascii", "create", tmp_path / "ü.ledger", "--epsilon", 2)
