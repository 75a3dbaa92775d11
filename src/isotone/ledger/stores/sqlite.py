"""A ledger in one SQLite file: the tables, the locks beside it, and the interface that other stores have too.

What a ledger asks of the place that keeps its rows, and the tables that it keeps there.

Two outcomes of a charge, ``drawn`` and ``failed``, are rivals for one primary key: the database itself lets only one of them
happen, and only once. Each time that the data of a charge is read is a *turn*. A turn ends with an outcome, with a row of its
own ("interrupted" by our handler of a signal, "died" where the next process found its lock free), or not yet.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import sqlite3
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

from isotone.errors import LedgerError

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


class MissingError(LedgerError):
    """There is no ledger at this place."""


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

    @property
    def ready(self) -> bool:
        """Whether a lock would leave nothing behind that was not there."""
        ...

    def has_tables(self, execute: Execute) -> bool:
        """Whether the tables of a ledger are there."""
        ...

    def require_place(self) -> None:
        """Refuse a place where no ledger can ever be made."""
        ...

    def create(self, work: Callable[[Execute], T]) -> T:
        """Make the tables if they are missing and run ``work``, all of it or nothing. Creators wait for each other."""
        ...

    def transact(self, work: Callable[[Execute], T]) -> T:
        """Run ``work(execute)`` in one serialisable transaction, durable when this returns.

        Raises :class:`MissingError` where there is no file.
        """
        ...

    def remove(self, work: Callable[[Execute], None]) -> None:
        """Run ``work``, which removes the last row of a data set, and leave nothing behind where the place was its own."""
        ...

    def lock(self, key: str, *, wait: bool) -> AbstractContextManager[None]:
        """Hold ``key`` against every other process until the block or this process ends, however it ends.

        Who finds it held waits for the other's end, or with ``wait=False`` gets a :class:`BusyError`. No time-out
        is involved: a lock that can be taken has no living holder.
        """
        ...


APPEND_ONLY = "rows of a ledger are never changed or removed"

_CHARGE = "dataset TEXT NOT NULL, number INTEGER NOT NULL"
_OF_CHARGE = "PRIMARY KEY (dataset, number), FOREIGN KEY (dataset, number) REFERENCES isotone_charge"
_TABLES = (
    """CREATE TABLE IF NOT EXISTS isotone_ledger (
        dataset TEXT PRIMARY KEY, kind TEXT NOT NULL, epsilon TEXT NOT NULL, delta TEXT NOT NULL,
        rho TEXT NOT NULL, rule TEXT NOT NULL, neighbours TEXT NOT NULL, unit TEXT, created TEXT NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS isotone_unit (
        dataset TEXT PRIMARY KEY REFERENCES isotone_ledger, unit TEXT NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS isotone_charge (
        dataset TEXT NOT NULL REFERENCES isotone_ledger, number INTEGER NOT NULL, time TEXT NOT NULL,
        kind TEXT NOT NULL, epsilon TEXT NOT NULL, delta TEXT NOT NULL, rho TEXT NOT NULL,
        mechanism TEXT NOT NULL, description TEXT NOT NULL, spec TEXT NOT NULL, request TEXT,
        PRIMARY KEY (dataset, number))""",
    f"""CREATE TABLE IF NOT EXISTS isotone_reading ({_CHARGE}, turn INTEGER NOT NULL,
        PRIMARY KEY (dataset, number, turn), FOREIGN KEY (dataset, number) REFERENCES isotone_charge)""",
    f"""CREATE TABLE IF NOT EXISTS isotone_ending ({_CHARGE}, turn INTEGER NOT NULL,
        manner TEXT NOT NULL CHECK (manner IN ('interrupted', 'died')),
        PRIMARY KEY (dataset, number, turn), FOREIGN KEY (dataset, number, turn) REFERENCES isotone_reading)""",
    f"""CREATE TABLE IF NOT EXISTS isotone_outcome (
        {_CHARGE}, state TEXT NOT NULL CHECK (state IN ('drawn', 'failed')), {_OF_CHARGE})""",
    f"""CREATE TABLE IF NOT EXISTS isotone_sealed ({_CHARGE}, release TEXT NOT NULL,
        PRIMARY KEY (dataset, number), FOREIGN KEY (dataset, number) REFERENCES isotone_outcome)""",
    f"""CREATE TABLE IF NOT EXISTS isotone_period ({_CHARGE}, period INTEGER NOT NULL, shown TEXT NOT NULL,
        PRIMARY KEY (dataset, number, period), FOREIGN KEY (dataset, number) REFERENCES isotone_sealed)""",
)
_KEYS = {
    "isotone_ledger": ("dataset",),
    "isotone_unit": ("dataset",),
    "isotone_charge": ("dataset", "number"),
    "isotone_reading": ("dataset", "number", "turn"),
    "isotone_ending": ("dataset", "number", "turn"),
    "isotone_outcome": ("dataset", "number"),
    "isotone_sealed": ("dataset", "number"),
    "isotone_period": ("dataset", "number", "period"),
}
TABLES = tuple(_KEYS)
_WITHOUT_CHARGE = "isotone_ledger"
"""Its row may be removed while the data set has no charge; nothing else ever is."""
_CHARGED = "EXISTS (SELECT 1 FROM isotone_charge WHERE dataset = OLD.dataset)"


def sqlite_schema() -> Sequence[str]:
    """Tables, and triggers that refuse to change, remove or replace a row.

    ``INSERT OR REPLACE`` removes the old row without a word to the DELETE trigger, so that inserts are watched too: for
    a key that exists, and for a row number that exists.
    """
    refuse = f"BEGIN SELECT RAISE(ABORT, '{APPEND_ONLY}'); END"
    triggers: list[str] = []
    for table, key in _KEYS.items():
        same = " AND ".join(f"{column} = NEW.{column}" for column in key)
        exists = f"EXISTS (SELECT 1 FROM {table} WHERE ({same}) OR rowid = NEW.rowid)"
        removal = f"WHEN {_CHARGED} " if table == _WITHOUT_CHARGE else ""
        triggers += [
            f"CREATE TRIGGER IF NOT EXISTS {table}_{verb} BEFORE {verb} ON {table} {when}{refuse}"
            for verb, when in (("UPDATE", ""), ("DELETE", removal), ("INSERT", f"WHEN {exists} "))
        ]
    return [*_TABLES, *triggers]


def postgres_schema() -> Sequence[str]:
    """Tables, and triggers that refuse to change or remove a row."""
    refusal = f"RAISE EXCEPTION '{APPEND_ONLY}';"
    functions = (
        f"CREATE OR REPLACE FUNCTION isotone_append_only() RETURNS trigger AS $$ BEGIN {refusal} END $$ LANGUAGE plpgsql",
        f"CREATE OR REPLACE FUNCTION isotone_without_charge() RETURNS trigger AS $$ BEGIN "
        f"IF {_CHARGED} THEN {refusal} END IF; RETURN OLD; END $$ LANGUAGE plpgsql",
    )
    triggers = [
        f"CREATE OR REPLACE TRIGGER {table}_append_only BEFORE UPDATE "
        f"{'' if table == _WITHOUT_CHARGE else 'OR DELETE '}OR TRUNCATE ON {table} "
        "FOR EACH STATEMENT EXECUTE FUNCTION isotone_append_only()"
        for table in TABLES
    ]
    removal = (
        f"CREATE OR REPLACE TRIGGER {_WITHOUT_CHARGE}_removal BEFORE DELETE ON {_WITHOUT_CHARGE} "
        "FOR EACH ROW EXECUTE FUNCTION isotone_without_charge()"
    )
    return [*_TABLES, *functions, *triggers, removal]


# Locks between processes, in a file beside the ledger.
#
# The system lets go of a process's locks when the process ends, however it ends: a lock that can be taken proves that its
# last holder is gone, without any time-out. One file serves every request of a ledger; each request is one byte far out
# in it, found by a hash. Nothing is written there.
#
# Locks of this kind belong to a process, so threads of one process are kept apart here, and all of them use one
# descriptor: closing a second one would let go of every lock of the process.

try:
    import fcntl
except ImportError:  # not a POSIX system
    fcntl = None


LOCK_ENDING = ".lock"
"""What the name of a lock file adds to that of its ledger."""

_NETWORK = frozenset(
    {
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "smbfs",
        "afs",
        "davfs",
        "fuse.sshfs",
        "fuse.davfs2",
        "fuse.rclone",
        "fuse.s3fs",
    }
)


@dataclass
class _LockFile:
    """A lock file that this process has open."""

    descriptor: int
    owners: set[int] = field(default_factory=set[int])
    """The bytes that a thread of this process holds or waits for."""


_guard = threading.Condition()
_files: dict[tuple[int, int], _LockFile] = {}
_inside = threading.local()
_waiting: set[int] = set()
"""The descriptors of folders in whose queues threads of this process stand."""


def _forget() -> None:
    """Drop the parent's locks in a forked child, and leave its queues: they would be held as long as the child lives."""
    global _guard, _files, _inside, _waiting
    for descriptor in _waiting:
        with suppress(OSError):
            os.close(descriptor)
    _guard, _files, _inside, _waiting = threading.Condition(), {}, threading.local(), set()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def busy(what: str) -> BusyError:
    """The error for a request that somebody alive works on."""
    return BusyError(
        f"Another process works on the same request ({what}). Wait for its end; then the release is there, or "
        "the same request takes the charge over. Nothing was charged."
    )


@contextmanager
def not_nested(key: tuple[str, ...]) -> Generator[None]:
    """Raise an error if a thread would wait for a lock that it holds itself.

    It would wait for ever. The first entry of ``key`` is where the ledger is; every name of one file means the same.
    """
    place = key[0] if "://" in key[0] else os.path.realpath(key[0])
    key = (place, *key[1:])
    held: set[tuple[str, ...]] = _inside.__dict__.setdefault("held", set())
    if key in held:
        raise BusyError("This request is already under way in the same thread. Finish that attempt first.")
    held.add(key)
    try:
        yield
    finally:
        held.discard(key)


@contextmanager
def queue(folder: Path) -> Generator[None]:
    """Stand in line with every thread and process that works on a ledger of ``folder``, and be next while the block runs.

    SQLite alone lets who waits look again from time to time, and in a crowd somebody may never find it free. This is
    for fairness and nothing else: where a folder cannot be locked there is no line.
    """
    descriptor = _stand_in_line(folder)
    try:
        yield
    finally:
        if descriptor is not None:
            _waiting.discard(descriptor)
            with suppress(OSError):  # by name: a child that was forked meanwhile has the descriptor too
                _flock(descriptor, unlock=True)
            os.close(descriptor)


def _stand_in_line(folder: Path) -> int | None:
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    _waiting.add(descriptor)
    try:
        _flock(descriptor)
    except BaseException as error:
        _waiting.discard(descriptor)
        os.close(descriptor)
        if isinstance(error, OSError):
            return None
        raise
    return descriptor


def _flock(descriptor: int, *, unlock: bool = False) -> None:
    """Lock an open folder, or unlock it. Such locks are of one descriptor, and not of the process."""
    if fcntl is None:
        raise OSError("there are no locks")
    fcntl.flock(descriptor, fcntl.LOCK_UN if unlock else fcntl.LOCK_EX)


@contextmanager
def file_lock(path: Path, key: str, *, wait: bool) -> Generator[None]:
    """Hold ``key`` in the lock file at ``path`` while the block runs."""
    place = int.from_bytes(hashlib.sha256(key.encode()).digest()[:7], "big")
    _require_locks(path)
    while True:
        file = _claim(path, place, wait=wait)
        try:
            _lock(file, path, place, wait=wait)
            if _is_at(file, path):  # otherwise somebody removed the lock file meanwhile: use the new one
                break
        except BaseException:
            _let_go(file, place)
            raise
        _let_go(file, place)
    try:
        yield
    finally:
        _let_go(file, place)


def _claim(path: Path, place: int, *, wait: bool) -> _LockFile:
    """Be the one thread of this process that deals with ``place``."""
    with _guard:
        while True:
            file = _open(path)
            if place not in file.owners:
                file.owners.add(place)
                return file
            if not wait:
                raise busy(str(path))
            _guard.wait()


def _open(path: Path) -> _LockFile:
    try:
        result = path.stat()
        known = _files.get((result.st_dev, result.st_ino))
        if known is not None:
            return known
    except FileNotFoundError:
        pass
    except OSError as error:
        raise _unusable(path, error) from error
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise _unusable(path, error) from error
    status = os.fstat(descriptor)
    return _files.setdefault((status.st_dev, status.st_ino), _LockFile(descriptor))


def _lock(file: _LockFile, path: Path, place: int, *, wait: bool) -> None:
    assert fcntl is not None
    try:
        fcntl.lockf(file.descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB), 1, place)
    except OSError as error:
        if not wait and error.errno in (errno.EACCES, errno.EAGAIN):
            raise busy(str(path)) from None
        raise _unusable(path, error) from error


def _let_go(file: _LockFile, place: int) -> None:
    assert fcntl is not None
    with _guard:
        with suppress(OSError):  # a disk that gave no lock has none to take back
            fcntl.lockf(file.descriptor, fcntl.LOCK_UN, 1, place)
        file.owners.discard(place)
        if not file.owners:
            for key in [key for key, value in _files.items() if value is file]:
                del _files[key]
            os.close(file.descriptor)
        _guard.notify_all()


def _is_at(file: _LockFile, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.descriptor), path.stat())
    except FileNotFoundError:
        return False


def _unusable(path: Path, error: OSError) -> LedgerError:
    return LedgerError(
        f"The lock file {path} cannot be used ({error.strerror or error}). A ledger needs a folder that can be written, on "
        "a disk with working locks. Nothing was charged."
    )


def _require_locks(path: Path) -> None:
    """Refuse where a lock would not mean what it must mean."""
    if fcntl is None:
        raise LedgerError(
            "This system has no POSIX file locks, which a ledger in a file needs. Keep the ledger in PostgreSQL."
        )
    kind = network_disk(path.parent)
    if kind is not None:
        raise LedgerError(
            f"The folder {path.parent} is on a network disk ({kind}), whose locks cannot be relied on. Keep the ledger on "
            "a local disk, or in PostgreSQL for several machines. Nothing was charged."
        )


def network_disk(folder: Path, mounts: Path = Path("/proc/self/mountinfo")) -> str | None:
    """The kind of network disk that ``folder`` is on.

    None for a local disk, or where the system does not say.
    """
    try:
        lines = mounts.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
        where = os.path.realpath(folder)
    except OSError:
        return None
    best, kind = -1, ""
    for line in lines:
        before, _, after = line.partition(" - ")
        if len(before.split()) < 5 or not after:
            continue
        point = re.sub(
            r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), before.split()[4]
        )  # spaces are \\040
        inside = where == point or where.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= best:
            best, kind = len(point), after.split()[0]
    return kind if kind in _NETWORK else None


# A ledger in one SQLite file.
#
# The file is opened by SQLite alone, here. Its locks are POSIX locks, and a process that opens the file by any other way and
# closes it again loses all of them, those of its other threads included: another process could then write over a charge.

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
                sync(target.parent)
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
                sync(target.parent)
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
            f"There is no ledger at {self.path}. Say what may be spent in all, and the first release makes it: Ledger(path, epsilon=1), "
            "budget = { epsilon = \"1\" } in [privacy] of a spec, or 'isotone ledger create PATH --epsilon 1'."
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
                f"The file {self.path} is not a readable ledger ({error}). If it is another file, name the ledger. If it was "
                "one, restore it from a copy; until then treat its whole budget as spent."
            ) from error

    def _check_format(self, connection: sqlite3.Connection) -> None:
        (result,) = connection.execute("PRAGMA application_id").fetchone()
        if result != _APPLICATION_ID:
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


def sync(path: Path) -> None:
    """Make a file, or the entries of a folder, durable."""
    if os.name == "posix":
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
