"""Where a ledger's rows live: a SQLite file, or a PostgreSQL server for teams on several machines.

A store does one thing: run a function inside a transaction that is serialisable against every other
process and durable once it returns. No connection outlives a call, so nothing is shared across a fork.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from isotone.errors import LedgerError

__all__ = ["PostgresStore", "Rows", "SqliteStore", "Store", "open_store"]

T = TypeVar("T")
Rows = list[tuple[Any, ...]]
Execute = Callable[..., Rows]
"""``execute(sql, *parameters)`` with ``?`` for each parameter; the rows it returns, if any."""

_APPLICATION_ID = 0x49534F54  # "ISOT": marks a SQLite file as a ledger of ours
_WAIT_SECONDS = 60.0
_ATTEMPTS = 50


class Store(Protocol):
    """A place for a ledger's rows."""

    @property
    def address(self) -> str:
        """Where it is, for messages (never with a password)."""
        ...

    @property
    def default_dataset(self) -> str | None:
        """The data set's name when the steward gives none."""
        ...

    def create(self, schema: Sequence[str]) -> None:
        """Make the tables if they are not there."""
        ...

    def exists(self) -> bool:
        """Whether tables have been made here before."""
        ...

    def transact(self, work: Callable[[Execute], T]) -> T:
        """Run ``work(execute)`` in one serialisable transaction, durable when this returns."""
        ...


@dataclass(frozen=True)
class SqliteStore:
    """A ledger in one file.

    Each transaction takes the write lock at its start (``BEGIN IMMEDIATE``), so two processes cannot both
    find the same budget unspent, and reaches the disk before it returns (``synchronous = EXTRA``).
    """

    path: Path

    @property
    def address(self) -> str:
        """The file's path."""
        return str(self.path)

    @property
    def default_dataset(self) -> str:
        """The file's stem."""
        return self.path.stem

    def exists(self) -> bool:
        """Whether the file is there."""
        return self.path.exists()

    def create(self, schema: Sequence[str]) -> None:
        """Make the file and its tables, and make its directory entry durable."""
        if not self.path.parent.is_dir():
            raise LedgerError(
                f"The folder {self.path.parent} for the ledger does not exist. Create it first."
            )

        def work(execute: Execute) -> None:
            for statement in schema:
                execute(statement)
            execute(f"PRAGMA application_id = {_APPLICATION_ID}")

        self._run(work, check=False)
        if os.name == "posix":
            descriptor = os.open(self.path.parent, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def transact(self, work: Callable[[Execute], T]) -> T:
        """One immediate transaction."""
        if not self.path.exists():
            raise LedgerError(f"There is no ledger at {self.path}. Create it with 'isotone ledger create'.")
        return self._run(work, check=True)

    def _run(self, work: Callable[[Execute], T], *, check: bool) -> T:
        try:
            with contextlib.closing(sqlite3.connect(self.path, timeout=_WAIT_SECONDS)) as connection:
                connection.isolation_level = None  # we say BEGIN and COMMIT ourselves
                connection.execute("PRAGMA synchronous = EXTRA")
                connection.execute("BEGIN IMMEDIATE")
                try:
                    if check:
                        self._check_format(connection)

                    def execute(sql: str, *values: Any) -> Rows:
                        return connection.execute(sql, values).fetchall()

                    result = work(execute)
                    connection.execute("COMMIT")
                except BaseException:
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
                    raise
                return result
        except sqlite3.IntegrityError as error:
            raise LedgerError(f"The ledger at {self.path} refused the change: {error}.") from error
        except sqlite3.OperationalError as error:
            raise LedgerError(self._explain(str(error))) from error
        except sqlite3.DatabaseError as error:
            raise LedgerError(
                f"The file {self.path} is not a readable ledger ({error}). Restore it from a copy; until "
                "then treat its whole budget as spent."
            ) from error

    def _check_format(self, connection: sqlite3.Connection) -> None:
        (found,) = connection.execute("PRAGMA application_id").fetchone()
        if found != _APPLICATION_ID:
            raise LedgerError(f"The file {self.path} is not an isotone ledger. Give another path.")
        (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            raise LedgerError(
                f"The ledger at {self.path} is damaged ({verdict}). Restore it from a copy; until then treat "
                "its whole budget as spent."
            )

    def _explain(self, message: str) -> str:
        if "locked" in message:
            return (
                f"Another process held the ledger {self.path} for {_WAIT_SECONDS:.0f} s. Nothing was "
                "released; try again when it has finished."
            )
        if "full" in message:
            return (
                f"The disk that holds the ledger {self.path} is full. Nothing was released; free some room."
            )
        if "readonly" in message or "unable to open" in message:
            return f"The ledger {self.path} cannot be written ({message}). Check file and folder permissions."
        return f"The ledger {self.path} could not be used: {message}. Nothing was released."


@dataclass(frozen=True)
class PostgresStore:
    """A ledger in a PostgreSQL database, shared by several machines.

    Transactions are ``SERIALIZABLE``; one that lost a race is run again, which is safe because nothing of it
    was kept. Each asks the server for ``synchronous_commit``, so that it is on disk before it returns.
    """

    url: str

    @property
    def address(self) -> str:
        """The URL without user and password."""
        scheme, _, rest = self.url.partition("://")
        return f"{scheme}://{rest.rpartition('@')[2]}"

    @property
    def default_dataset(self) -> None:
        """A shared server needs a name for each data set."""
        return

    def exists(self) -> bool:
        """Whether the tables are there."""
        return bool(self._run(lambda execute: execute("SELECT to_regclass('isotone_ledger')"))[0][0])

    def create(self, schema: Sequence[str]) -> None:
        """Make the tables if they are not there; two creators do not disturb each other."""

        def work(execute: Execute) -> None:
            execute("SELECT pg_advisory_xact_lock(?)", _APPLICATION_ID)
            for statement in schema:
                execute(statement)

        self._run(work)

    def transact(self, work: Callable[[Execute], T]) -> T:
        """One serialisable transaction."""
        return self._run(work)

    def _run(self, work: Callable[[Execute], T]) -> T:
        try:
            import psycopg
        except ImportError:
            raise LedgerError(
                "A ledger in PostgreSQL needs the package psycopg: pip install 'isotone[postgres]'."
            ) from None
        for _ in range(_ATTEMPTS):
            try:
                with psycopg.connect(self.url, connect_timeout=10) as connection:
                    connection.isolation_level = psycopg.IsolationLevel.SERIALIZABLE
                    connection.execute("SET LOCAL synchronous_commit = on")

                    def execute(sql: str, *values: Any, _connection: Any = connection) -> Rows:
                        cursor = _connection.execute(sql.replace("?", "%s"), values)
                        return list(cursor.fetchall()) if cursor.description else []

                    return work(execute)
            except psycopg.errors.SerializationFailure:
                continue
            except psycopg.errors.IntegrityError as error:
                raise LedgerError(f"The ledger at {self.address} refused the change: {error}.") from error
            except psycopg.Error as error:
                reason = str(error).strip() or type(error).__name__
                raise LedgerError(
                    f"The ledger at {self.address} could not be used: {reason}. Nothing was released; if the "
                    "connection broke, the charge may stand."
                ) from error
        raise LedgerError(
            f"The ledger at {self.address} was too busy: {_ATTEMPTS} attempts lost the race. Try again."
        )


def open_store(where: str | os.PathLike[str]) -> Store:
    """The store at a path or a ``postgresql://`` URL."""
    text = os.fspath(where)
    if text.startswith(("postgresql://", "postgres://")):
        return PostgresStore(text)
    if "://" in text:
        raise LedgerError(f"{text!r} is neither a path nor a postgresql:// URL.")
    return SqliteStore(Path(text))
