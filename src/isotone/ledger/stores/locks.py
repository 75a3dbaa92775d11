"""Locks between processes, in a file beside the ledger.

The system lets go of a process's locks when the process ends, however it ends: a lock that can be taken proves that its
last holder is gone, without any time-out. One file serves every request of a ledger; each request is one byte far out
in it, found by a hash. Nothing is written there.

Locks of this kind belong to a process, so threads of one process are kept apart here, and all of them use one
descriptor: closing a second one would let go of every lock of the process.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from isotone.errors import LedgerError
from isotone.ledger.stores.store import BusyError

try:
    import fcntl
except ImportError:  # not a POSIX system
    fcntl = None

__all__ = ["LOCK_ENDING", "busy", "file_lock", "network_disk", "not_nested", "queue"]

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
        found = path.stat()
        known = _files.get((found.st_dev, found.st_ino))
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
