"""Processes that charge a ledger, and can be killed at any database statement."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sqlite3
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import psycopg

from isotone.errors import BudgetError
from isotone.ledger import sqlite_store
from isotone.ledger.ledger import Ledger
from isotone.privacy.guarantee import Guarantee

REFUSED = 3


def make(place: tuple[str, str], **budget: Any) -> Ledger:
    """A ledger of ε = 2 at a place, or of another total."""
    where, dataset = place
    return Ledger(where, dataset=dataset, **(budget or {"epsilon": 2}))


_processes = multiprocessing.get_context("fork")  # a fork starts in milliseconds, and tests fork safety too


def start(where: str, dataset: str, epsilon: str, marker: Path, kill_at: int = 0) -> BaseProcess:
    """A process that charges once and then appends a byte to ``marker``, which stands for a release.

    With ``kill_at = k`` it ends itself with SIGKILL at the k-th moment, a moment being just before or just
    after a database statement.
    """
    process = _processes.Process(target=_charge, args=(where, dataset, epsilon, marker, kill_at))
    process.start()
    return process


def _charge(where: str, dataset: str, epsilon: str, marker: Path, kill_at: int) -> None:
    ledger = Ledger(where, dataset=dataset)
    if kill_at:
        _arm(kill_at)
    try:
        charge = ledger.charge(Guarantee.pure(epsilon), "worker")
    except BudgetError:
        os._exit(REFUSED)
    with marker.open("ab") as file:
        file.write(b"x")
    charge.finish("done")
    os._exit(0)


def _arm(kill_at: int) -> None:
    """End this process at the k-th moment, whichever of the two databases it talks to."""
    left = kill_at

    def moment() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def around(method: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            moment()
            result = method(*args, **kwargs)
            moment()
            return result

        return wrapped

    class Sqlite(sqlite3.Connection):
        execute = around(sqlite3.Connection.execute)

    connect = sqlite3.connect
    sqlite_store.sqlite3.connect = lambda *args, **kwargs: connect(*args, factory=Sqlite, **kwargs)  # type: ignore
    psycopg.Connection.execute = around(psycopg.Connection.execute)  # type: ignore[method-assign]
    psycopg.Connection.commit = around(psycopg.Connection.commit)  # type: ignore[method-assign]
