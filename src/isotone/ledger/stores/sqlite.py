"""A ledger in one SQLite file."""

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
from isotone.ledger.stores.locks import file_lock
from isotone.ledger.stores.store import ConflictError, Execute, Rows, sqlite_schema

__all__ = ["SqliteStore", "is_ledger_file"]

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

    def exists(self) -> bool:
        """Whether the file is there."""
        return self.path.exists()

    def create(self, work: Callable[[Execute], None]) -> None:
        """Make what is missing.

        A new file is made complete under another name and then renamed, so that a kill leaves a whole ledger or none.
        Creators wait for each other; who comes second finds the file and adds nothing to it.
        """
        if not self.path.parent.is_dir():
            raise LedgerError(
                f"The folder {self.path.parent} for the ledger does not exist. Create it first."
            )

        def build(execute: Execute) -> None:
            for statement in sqlite_schema():
                execute(statement)
            execute(f"PRAGMA application_id = {_APPLICATION_ID}")
            work(execute)

        with self.lock("creation", wait=True):
            if self.exists():
                self._run(self.path, build, check=True)
                return
            target = Path(os.path.realpath(self.path))  # a link to a file that is not there yet stays a link
            unborn = target.with_name(target.name + ".new")
            try:
                for leftover in (unborn, unborn.with_name(unborn.name + "-journal")):
                    leftover.unlink(missing_ok=True)  # of a creator that was killed: we hold its lock
                self._run(unborn, build, check=False)
                unborn.rename(target)
                _sync_folder(target.parent)
            except OSError as error:
                raise LedgerError(
                    f"The ledger {self.path} cannot be made: {error.strerror or error}."
                ) from error

    def has_table(self, execute: Execute, name: str) -> bool:
        """Whether there is a table of this name."""
        return bool(execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", name))

    def transact(self, work: Callable[[Execute], T]) -> T:
        """One immediate transaction."""
        if not self.path.exists():
            raise LedgerError(f"There is no ledger at {self.path}. Create it with 'isotone ledger create'.")
        return self._run(self.path, work, check=True)

    def lock(self, key: str, *, wait: bool) -> AbstractContextManager[None]:
        """A lock in a file beside the ledger."""
        target = os.path.realpath(self.path)  # every name of the ledger leads to one lock
        return file_lock(Path(target + ".lock"), key, wait=wait)

    def _run(self, path: Path, work: Callable[[Execute], T], *, check: bool) -> T:
        try:
            with contextlib.closing(sqlite3.connect(path, timeout=_WAIT_SECONDS)) as connection:
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


def is_ledger_file(path: Path) -> bool:
    """Whether a file says of itself that it is a ledger of ours."""
    try:
        with path.open("rb") as file:
            head = file.read(72)
    except OSError:
        return False
    return head[:16] == b"SQLite format 3\0" and head[68:72] == _APPLICATION_ID.to_bytes(4, "big")


def _sync_folder(folder: Path) -> None:
    """Make the folder's entries durable."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
