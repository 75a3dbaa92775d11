"""Processes that charge a ledger, and can be killed at any database statement."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sqlite3
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from isotone.errors import BudgetError
from isotone.guarantee import Guarantee
from isotone.release import stores
from isotone.release.ledger import Ledger

REFUSED = 3
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
    left = kill_at
    connect = sqlite3.connect

    def moment() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    class Connection(sqlite3.Connection):
        def execute(self, *args: Any) -> sqlite3.Cursor:
            moment()
            cursor = super().execute(*args)
            moment()
            return cursor

    def armed(*args: Any, **kwargs: Any) -> sqlite3.Connection:
        return connect(*args, factory=Connection, **kwargs)

    stores.sqlite3.connect = armed  # type: ignore[assignment]
