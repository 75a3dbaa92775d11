"""The embedded engine works where its progress cannot be watched, as in a notebook without ipywidgets."""

import duckdb

from isotone.reading.sources import engine


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
