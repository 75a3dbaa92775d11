"""The embedded engine is started once, forgets what it read, is replaced when it breaks, and works where it cannot be watched."""

import os
import subprocess
import sys

import duckdb
import pytest

from isotone.process import scratch
from isotone.reading import engine


class Refusing:
    """An engine that refuses to show progress, and says why. A broken one refuses everything."""

    def __init__(self, reason):
        self.real, self.reason = duckdb.connect(), reason

    def cursor(self):
        return self

    def execute(self, query):
        if "progress_bar" in query or isinstance(self.reason, duckdb.FatalException):
            raise self.reason
        return self.real.execute(query)


@pytest.fixture
def no_engines(monkeypatch):
    monkeypatch.setattr(engine, "_engines", {})
    yield
    engine.forget()


def test_connections_are_separate_and_have_one_engine(no_engines, monkeypatch):
    started, start = [], duckdb.connect
    monkeypatch.setattr(duckdb, "connect", lambda **options: started.append(options) or start(**options))
    first, second, careful = engine.connect(), engine.connect(), engine.connect(trusting=False)
    assert len(started) == 2
    left_out = "SELECT current_setting('disabled_optimizers')"
    assert first.execute(left_out).fetchall() == second.execute(left_out).fetchall() == [("filter_pushdown",)]
    assert careful.execute(left_out).fetchall() == [("filter_pushdown,statistics_propagation",)]
    first.execute("CREATE TEMP VIEW rows AS SELECT 1")
    with pytest.raises(duckdb.CatalogException):
        second.execute("FROM rows")


def test_nothing_of_rows_that_were_spilled_is_left_while_the_engine_is_kept(no_engines):
    connection = engine.connect()
    connection.execute("SET memory_limit = '30MB'; SET threads = 1")
    connection.execute("CREATE TEMP TABLE rows AS SELECT x, hash(x) AS y FROM range(4000000) t(x)")
    assert sum(path.stat().st_size for path in scratch().iterdir()) > 1 << 20
    connection.execute("DROP TABLE rows")
    assert sum(path.stat().st_size for path in scratch().iterdir()) == 0


@pytest.mark.parametrize("opened", [engine.connect, engine.nowhere])
def test_an_engine_that_a_query_broke_is_replaced(no_engines, monkeypatch, opened):
    """By a release that reads on its owner's connection, too: there the rehearsal alone asks an engine of ours."""
    broken = Refusing(duckdb.FatalException("the database has been invalidated"))
    with monkeypatch.context() as patched:
        patched.setattr(duckdb, "connect", lambda **options: broken)
        engine._engine(engine._WHOLE)
    assert list(engine._engines.values()) == [broken]
    assert opened().execute("SELECT 7").fetchall() == [(7,)]
    assert broken not in engine._engines.values()


def test_an_engine_that_refuses_to_show_progress_is_used_without(no_engines, monkeypatch):
    refusing = Refusing(duckdb.InvalidInputException("required package 'ipywidgets' is missing"))
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
