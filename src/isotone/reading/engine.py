"""Connections to the embedded engine, and the progress of queries on them."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from isotone.mechanism import Progress, no_progress
from isotone.process import scratch

_EVERY_SECONDS = 0.2
_WHOLE, _DISTRUSTFUL = "filter_pushdown", "filter_pushdown,statistics_propagation"
"""What the engine leaves out. A filter that is pushed below a rule takes the whole rule along, and reads each value a dozen times.
Where a file has floats nothing is concluded from what it says of them: statistics of Parquet leave out what is not a number."""
_engines: dict[tuple[str, str], Any] = {}
"""The engines of this process, by where they spill rows and what they leave out. To start one takes longer than most queries."""
_opened = threading.local()
"""Its ``connection`` is what this thread opened last, which is what it is about to query."""


def connect(*, trusting: bool = True) -> Any:
    """Open a separate connection, which concludes something from what files say of their values, unless it is not ``trusting``.

    Releases neither see nor disturb each other, or what else the process does with DuckDB. Rows that do not fit into memory
    are spilled to a folder of this process, and not to where it was started: a kill must not leave them lying about.
    """
    import duckdb

    connection = _cursor(_WHOLE if trusting else _DISTRUSTFUL)
    try:
        connection.execute(
            "SET enable_progress_bar = true; SET enable_progress_bar_print = false; SET progress_bar_time = 0"
        )
    except duckdb.Error:  # in a notebook without ipywidgets the engine refuses: then it is not watched
        forget()
    else:
        _opened.connection = connection
    return connection


def nowhere() -> Any:
    """A connection for queries that read no data."""
    return _cursor(_WHOLE)


def _cursor(left_out: str) -> Any:
    """A connection to an engine that answers. One that a query has broken does not, for good, whoever asks."""
    import duckdb

    connection = _engine(left_out).cursor()
    try:
        connection.execute("SELECT 1").fetchall()
    except duckdb.FatalException:
        _engines.clear()
        connection = _engine(left_out).cursor()
    return connection


def _engine(left_out: str) -> Any:
    import duckdb

    place = str(scratch())
    kept = _engines.get((place, left_out))
    if kept is None:
        kept = duckdb.connect(config={"temp_directory": place, "disabled_optimizers": left_out})
        _engines[place, left_out] = kept
    return kept


def _disown() -> None:
    """Never close the engines of the process that this one was forked from.

    Their threads are not here, and closing an engine without its threads ends the process.
    """
    for engine in _engines.values():
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(engine))
    _engines.clear()
    forget()


if hasattr(os, "register_at_fork"):  # where there are forks
    os.register_at_fork(after_in_child=_disown)


def forget() -> None:
    """The next query runs in an engine that is not ours, and cannot be watched."""
    _opened.connection = None


@contextmanager
def watching(progress: Progress, begin: float, end: float, what: str) -> Generator[None]:
    """Report how far the engine's query is, as progress from ``begin`` to ``end``, while the body runs."""
    progress(begin, what)
    connection = getattr(_opened, "connection", None)
    if connection is None or progress is no_progress:
        yield
        return
    done = threading.Event()

    def watch() -> None:
        furthest = 0.0  # a query has several passes, each counted from zero
        while not done.wait(_EVERY_SECONDS):
            furthest = max(furthest, min(connection.query_progress() / 100, 1.0))
            progress(begin + furthest * (end - begin), what)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()
