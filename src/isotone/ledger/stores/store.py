"""What a ledger asks of the place that keeps its rows."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

from isotone.errors import LedgerError

__all__ = ["BusyError", "ConflictError", "Execute", "Rows", "Store"]

T = TypeVar("T")
Rows = list[tuple[Any, ...]]
Execute = Callable[..., Rows]
"""``execute(sql, *parameters)`` with ``?`` for each parameter; the rows it returns, if any."""


class ConflictError(LedgerError):
    """The database refused a row.

    Its key is taken, or the row would change or remove another.
    """


class BusyError(LedgerError):
    """Another live process or thread works on the same request."""


class Store(Protocol):
    """A place for a ledger's rows. No connection outlives a call, so nothing is shared across a fork."""

    @property
    def address(self) -> str:
        """Where it is, for messages (never with a password)."""
        ...

    @property
    def default_dataset(self) -> str | None:
        """The data set's name when the steward gives none."""
        ...

    @property
    def one_dataset(self) -> bool:
        """Whether the place belongs to one data set only."""
        ...

    def exists(self) -> bool:
        """Whether a ledger was made here before."""
        ...

    def create(self, work: Callable[[Execute], None]) -> None:
        """Make the tables that are missing and run ``work``, all of it or nothing."""
        ...

    def has_table(self, execute: Execute, name: str) -> bool:
        """Whether there is a table of this name."""
        ...

    def transact(self, work: Callable[[Execute], T]) -> T:
        """Run ``work(execute)`` in one serialisable transaction, durable when this returns."""
        ...

    def lock(self, key: str, *, wait: bool) -> AbstractContextManager[None]:
        """Hold ``key`` against every other process until the block or this process ends, however it ends.

        Who finds it held waits for the other's end, or with ``wait=False`` gets a :class:`BusyError`. No time-out
        is involved: a lock that can be taken has no living holder.
        """
        ...
