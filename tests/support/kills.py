"""A process that ends at any durable step: a statement of the database, a file, a rename, a removal."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from isotone.ledger.stores import sqlite
from isotone.ledger.stores.postgres import PostgresStore

__all__ = ["Killed", "every_kill", "moments"]


class Killed(BaseException):
    """The process ends here."""


def moments(monkeypatch: pytest.MonkeyPatch, at: int) -> Callable[[], int]:
    """Raise before or after the n-th durable step: a statement of the database, a file, a rename, a removal."""
    count = 0

    def watched(function: Callable[..., Any]) -> Callable[..., Any]:
        def step(*args: Any, **kwargs: Any) -> Any:
            nonlocal count
            count += 1
            if count == at:
                raise Killed
            result = function(*args, **kwargs)
            count += 1
            if count == at:
                raise Killed
            return result

        return step

    for owner, name in (
        (sqlite.SqliteStore, "transact"),
        (PostgresStore, "transact"),
        (Path, "replace"),
        (Path, "unlink"),
        (os, "fsync"),
    ):
        monkeypatch.setattr(owner, name, watched(getattr(owner, name)))
    return lambda: count


def every_kill(monkeypatch: pytest.MonkeyPatch, work: Callable[[], Any]) -> Iterator[bool]:
    """Run ``work`` with a kill at each moment in turn, until it gets through."""
    for at in range(1, 200):
        killed = False
        with monkeypatch.context() as patched:
            moments(patched, at)
            try:
                work()
            except Killed:
                killed = True
        yield killed
        if not killed:
            return
    raise AssertionError("it never ended")
