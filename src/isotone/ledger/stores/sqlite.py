"""A ledger in one SQLite file.

The file is opened by SQLite alone, here. Its locks are POSIX locks, and a process that opens the file by any other way and
closes it again loses all of them, those of its other threads included: another process could then write over a charge.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from isotone.errors import LedgerError
from isotone.ledger.stores.locks import LOCK_ENDING, file_lock, queue
from isotone.ledger.stores.store import ConflictError, Execute, MissingError, Rows, sqlite_schema

__all__ = ["SqliteStore", "in_memory", "is_ledger_file"]

T = TypeVar("T")
_APPLICATION_ID = 0x49534F54  # "ISOT": marks a SQLite file as a ledger of ours
_WAIT_SECONDS = 60.0


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

    @property
    def one_dataset(self) -> bool:
        """A file is for one data set."""
        return True

    @property
    def ready(self) -> bool:
        """Whether there is a file, beside which a lock file may stand."""
        return self.path.exists()

    def has_tables(self, execute: Execute) -> bool:
        """A file that is a ledger has all tables from its first moment."""
        return True

    def require_place(self) -> None:
        """Refuse a folder that does not exist."""
        if not self.path.parent.is_dir():
            raise LedgerError(
                f"The folder {self.path.parent} for the ledger does not exist. Create it first."
            )

    def create(self, work: Callable[[Execute], T]) -> T:
        """Make the file with what ``work`` adds, or run ``work`` in the file that another process made meanwhile.

        A new file is made complete under another name and then renamed, so that a kill leaves a whole ledger or none.
        Creators wait for each other.
        """
        self.require_place()

        def build(execute: Execute) -> T:
            for statement in sqlite_schema():
                execute(statement)
            execute(f"PRAGMA application_id = {_APPLICATION_ID}")
            return work(execute)

        with self._creation():
            if self.path.exists():
                return self.transact(work)
            target = Path(os.path.realpath(self.path))  # a link to a file that is not there yet stays a link
            unborn = target.with_name(target.name + ".new")
            try:
                for leftover in (unborn, unborn.with_name(unborn.name + "-journal")):
                    leftover.unlink(missing_ok=True)  # of a creator that was killed: we hold its lock
                result = self._run(_address(unborn, "rwc"), build, check=False)
                unborn.rename(target)
                _sync_folder(target.parent)
            except OSError as error:
                raise LedgerError(
                    f"The ledger {self.path} cannot be made: {error.strerror or error}."
                ) from error
            return result

    def remove(self, work: Callable[[Execute], None]) -> None:
        """Remove the row, then the file.

        Rows of a data set are added to a file under the lock of creators alone, who look for the file anew. So no process
        that has this one open can charge it after the row is gone.
        """
        with self._creation():
            self.transact(work)
            target = Path(os.path.realpath(self.path))
            try:
                target.unlink()
                _sync_folder(target.parent)
            except OSError as error:
                raise LedgerError(
                    f"The ledger {self.path} is empty now, but its file cannot be removed: {error.strerror or error}."
                ) from error

    def transact(self, work: Callable[[Execute], T]) -> T:
        """One immediate transaction."""
        if self.path.exists():
            try:
                return self._run(_address(self.path, "rw"), work, check=True)
            except LedgerError:
                if self.path.exists():  # otherwise it was removed meanwhile
                    raise
        raise MissingError(
            f"There is no ledger at {self.path}. Give its total budget to create one, for "
            "example Ledger(path, epsilon=1) or 'isotone ledger create PATH --epsilon 1'."
        )

    def _creation(self) -> AbstractContextManager[None]:
        return self.lock("creation", wait=True)

    def lock(self, key: str, *, wait: bool) -> AbstractContextManager[None]:
        """A lock in a file beside the ledger."""
        target = os.path.realpath(self.path)  # every name of the ledger leads to one lock
        return file_lock(Path(target + LOCK_ENDING), key, wait=wait)

    def _run(self, address: str, work: Callable[[Execute], T], *, check: bool) -> T:
        try:
            with (
                queue(Path(os.path.realpath(self.path)).parent),
                contextlib.closing(sqlite3.connect(address, timeout=_WAIT_SECONDS, uri=True)) as connection,
            ):
                connection.isolation_level = None  # we say BEGIN and COMMIT ourselves
                connection.execute("PRAGMA synchronous = EXTRA")
                connection.execute("PRAGMA fullfsync = ON")  # macOS keeps a cache below fsync
                connection.execute("PRAGMA foreign_keys = ON")
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
            raise ConflictError(f"The ledger at {self.path} refused the change: {error}.") from error
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
        (verdict,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
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


def in_memory(work: Callable[[Execute], T]) -> T:
    """Run ``work`` in the tables of a ledger that is not made yet. Nothing of it is kept."""
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:

        def execute(sql: str, *values: Any) -> Rows:
            return connection.execute(sql, values).fetchall()

        for statement in sqlite_schema():
            execute(statement)
        return work(execute)


def is_ledger_file(path: Path) -> bool:
    """Whether a file is a ledger of ours, as SQLite says. One that cannot be looked at now, as it is being written, is one."""
    try:
        with contextlib.closing(sqlite3.connect(_address(path, "ro"), timeout=1, uri=True)) as connection:
            (mark,) = connection.execute("PRAGMA application_id").fetchone()
            return mark == _APPLICATION_ID and bool(
                connection.execute("SELECT 1 FROM isotone_ledger").fetchone()
            )
    except sqlite3.OperationalError as error:
        return "unable to open" not in str(error) or path.with_name(f"{path.name}-journal").exists()
    except sqlite3.DatabaseError:
        return False


def _address(path: Path, mode: str) -> str:
    """A path as SQLite takes it. It makes no file unless the mode says so."""
    return f"{path.absolute().as_uri()}?mode={mode}"


def _sync_folder(folder: Path) -> None:
    """Make the folder's entries durable."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
