"""The embedded engine works where its progress cannot be watched, as in a notebook without ipywidgets."""

import os
import subprocess
import sys

import duckdb
import pytest

from isotone.reading import engine


class Refusing:
    """A connection that refuses to show progress."""

    def __init__(self):
        self.real = duckdb.connect()

    def execute(self, query):
        if "progress_bar" in query:
            raise duckdb.InvalidInputException("required package 'ipywidgets' is missing")
        return self.real.execute(query)


def test_an_engine_that_refuses_to_show_progress_is_used_without(monkeypatch):
    refusing = Refusing()
    monkeypatch.setattr(duckdb, "connect", lambda **options: refusing)
    seen = []
    assert engine.connect().execute("SELECT 7").fetchall() == [(7,)]
    with engine.watching(lambda *step: seen.append(step), 0.2, 0.9, "counting"):
        pass
    assert seen == [(0.2, "counting")]


FORKED = """
import os, sys, threading, isotone as iso, pandas as pd
ledger = iso.Ledger(sys.argv[1], epsilon=4)
data = pd.DataFrame({"a": [1, 0], "person": [1, 2]})
release = lambda: iso.Counts(iso.Poset("a"), unit="person").release(data, ledger=ledger, epsilon=1)
release()
began, stay = threading.Event(), threading.Event()
other = threading.Thread(target=lambda: (release(), began.set(), stay.wait()))
other.start()
began.wait()  # the engine of a thread that is not in the fork
child = os.fork()
release()
if child == 0:
    sys.exit(0)
stay.set()
assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
def test_a_fork_releases_and_ends_like_any_process(tmp_path):
    run = subprocess.run(
        [sys.executable, "-c", FORKED, str(tmp_path / "x.ledger")], capture_output=True, check=False
    )
    assert run.returncode == 0, run.stderr.decode()
