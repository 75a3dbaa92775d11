"""Processes that charge a ledger, and can be killed at any step of it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import psycopg

from isotone.errors import BudgetError, LedgerError
from isotone.ledger import AttemptError, BusyError, Ledger, LostError, SealedError
from isotone.ledger.stores import sqlite
from isotone.ledger.stores import sqlite as locks
from isotone.privacy.guarantee import Guarantee

REFUSED, SEALED, LOST, BUSY, FAILED, STOPPED = 3, 4, 5, 6, 7, 8
_processes = multiprocessing.get_context("fork")  # a fork starts in milliseconds, and tests fork safety too


def make(place: tuple[str, str], **budget: Any) -> Ledger:
    """A ledger of ε = 2 at a place, or of another total."""
    where, dataset = place
    return Ledger(where, dataset=dataset, **(budget or {"epsilon": 2})).create()


def start(where: str, dataset: str, epsilon: str, marker: Path, kill_at: int = 0) -> BaseProcess:
    """A process that charges once and then appends a byte to ``marker``, which stands for a release.

    With ``kill_at = k`` it ends itself with SIGKILL at the k-th moment, a moment being just before or just
    after a database statement, a lock or a renamed file.
    """
    return _start(_charge, where, dataset, epsilon, marker, kill_at)


def start_creation(where: str, dataset: str, kill_at: int = 0) -> BaseProcess:
    """A process that makes a ledger of ε = 1000 by its first charge."""
    return _start(_create, where, dataset, kill_at)


def start_removal(where: str, dataset: str) -> BaseProcess:
    """A process that removes a ledger, if it has no charge."""
    return _start(_remove, where, dataset)


def start_attempt(
    place: tuple[str, str],
    request: str,
    marker: Path,
    kill_at: int = 0,
    *,
    again: bool = False,
    ending: str = "seal",
) -> BaseProcess:
    """A process that makes one attempt at a request; a line in ``marker`` stands for noise that was drawn.

    ``ending`` is "seal", or "fail" and "interrupt" for an error and a signal before the draw.
    """
    return _start(_attempt, *place, request, marker, kill_at, again, ending)


def start_sleeper(place: tuple[str, str], request: str, hold: Any, wake: Any, marker: Path) -> BaseProcess:
    """A process that sleeps inside an attempt, from ``hold.set()`` until ``wake`` is set, and then draws."""
    return _start(_sleep, *place, request, hold, wake, marker)


def event() -> Any:
    """A flag between processes."""
    return _processes.Event()


def _start(target: Callable[..., None], *args: Any) -> BaseProcess:
    process = _processes.Process(target=target, args=args, daemon=True)  # a sleeper ends with the tests
    process.start()
    return process


def _charge(where: str, dataset: str, epsilon: str, marker: Path, kill_at: int) -> None:
    ledger = Ledger(where, dataset=dataset)
    _arm(kill_at)
    try:
        charge = ledger.charge(Guarantee.pure(epsilon), "worker")
    except BudgetError:
        os._exit(REFUSED)
    _append(marker, b"x")
    charge.finish("done")
    os._exit(0)


def _create(where: str, dataset: str, kill_at: int) -> None:
    _arm(kill_at)
    Ledger(where, dataset=dataset, epsilon=1000).charge(Guarantee.pure(1))
    os._exit(0)


def _remove(where: str, dataset: str) -> None:
    with suppress(LedgerError):
        Ledger(where, dataset=dataset).remove()
    os._exit(0)


def _attempt(
    where: str, dataset: str, request: str, marker: Path, kill_at: int, again: bool, ending: str
) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    ledger = Ledger(where, dataset=dataset)
    moment = _arm(kill_at)
    try:
        with ledger.attempt(Guarantee.pure(1), request=request, again=again) as attempt:
            moment()
            if ending == "interrupt":
                os.kill(os.getpid(), signal.SIGINT)
            assert ending == "seal", "which fails it"
            attempt.draw()
            moment()
            _append(marker, f"{request}\n".encode())
            moment()
            attempt.seal(f"hash of {request}")
            moment()
    except SealedError:
        os._exit(SEALED)
    except LostError:
        os._exit(LOST)
    except AttemptError:
        os._exit(FAILED)
    except KeyboardInterrupt:
        os._exit(STOPPED)
    os._exit(0)


def _sleep(where: str, dataset: str, request: str, hold: Any, wake: Any, marker: Path) -> None:
    ledger = Ledger(where, dataset=dataset)
    try:
        with ledger.attempt(Guarantee.pure(1), request=request, wait=False) as attempt:
            hold.set()
            wake.wait()
            attempt.draw()
            _append(marker, f"{request}\n".encode())
            attempt.seal("of the sleeper")
    except BusyError:
        os._exit(BUSY)
    except Exception:
        os._exit(REFUSED)
    os._exit(0)


def _append(marker: Path, line: bytes) -> None:
    with marker.open("ab") as file:
        file.write(line)


def _arm(kill_at: int) -> Callable[[], None]:
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

    if kill_at:
        connect = sqlite3.connect
        sqlite.sqlite3.connect = around(  # type: ignore[assignment]
            lambda *args, **kwargs: connect(*args, factory=Sqlite, **kwargs)
        )
        Path.rename = around(Path.rename)  # type: ignore[method-assign]
        os.fsync = around(os.fsync)
        assert locks.fcntl is not None
        locks.fcntl.lockf = around(locks.fcntl.lockf)
        psycopg.Connection.execute = around(psycopg.Connection.execute)  # type: ignore[method-assign]
        psycopg.Connection.commit = around(psycopg.Connection.commit)  # type: ignore[method-assign]
    return moment
