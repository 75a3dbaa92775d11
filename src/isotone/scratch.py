"""Folders that belong to one process and do not outlive it by much.

A process holds a lock on each of its folders. The system lets go of the lock when the process ends, however it ends, so
a folder whose lock can be taken has no living owner, and whoever comes next may remove it. There is no time-out. Where a
disk has no such locks, no folder is ever taken for one without an owner.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from isotone.errors import IsotoneError

try:
    import fcntl
except ImportError:  # not a POSIX system
    fcntl = None

__all__ = ["OwnFolder", "alone_in", "orphans", "own_folder", "scratch", "taken"]

_PREFIX = "isotone-scratch-"


@dataclass
class OwnFolder:
    """A folder that this process made, or took from one that has ended."""

    path: Path
    _handle: int | None

    def let_go(self) -> None:
        """Own the folder no longer. It stays where it is."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


def own_folder(parent: Path, prefix: str, suffix: str = "") -> OwnFolder:
    """A new folder in ``parent`` for this user alone, locked until :meth:`OwnFolder.let_go`."""
    while True:
        path = Path(tempfile.mkdtemp(suffix, prefix, parent))
        try:
            return OwnFolder(path, _lock(path, wait=False))
        except (BlockingIOError, FileNotFoundError):
            continue  # somebody took it for an orphan before it was locked
        except OSError:
            return OwnFolder(path, None)  # a disk without locks


def taken(path: Path) -> OwnFolder | None:
    """A folder once its process has ended or let it go, or None if it is gone by then, or cannot be locked."""
    try:
        return OwnFolder(path, _lock(path, wait=True))
    except OSError:
        return None


@contextmanager
def alone_in(folder: Path) -> Generator[None]:
    """Let one process at a time into the block, of all that come here for the same folder."""
    owned = taken(folder)
    try:
        yield
    finally:
        if owned is not None:
            owned.let_go()


def orphans(parent: Path, prefix: str, suffix: str = "") -> Iterator[OwnFolder]:
    """The folders of this user with such names whose process has ended, each locked while it is looked at."""
    try:
        names = sorted(entry.name for entry in os.scandir(parent) if entry.is_dir(follow_symlinks=False))
    except OSError:
        return
    for name in names:
        if not (name.startswith(prefix) and name.endswith(suffix)):
            continue
        try:
            handle = _lock(parent / name, wait=False)
        except OSError:  # it has an owner, it is gone, or nobody can know
            continue
        result = OwnFolder(parent / name, handle)
        try:
            if os.fstat(handle).st_uid == os.getuid():
                yield result
        finally:
            result.let_go()


def _lock(path: Path, *, wait: bool) -> int:
    """A handle of the folder with its lock. An OSError says why there is none."""
    if fcntl is None:
        raise OSError("there are no locks")
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        if os.path.samestat(os.fstat(handle), path.stat()):
            return handle
        raise FileNotFoundError(path)
    except BaseException:
        os.close(handle)
        raise


_mine: tuple[int, OwnFolder] | None = None


def scratch() -> Path:
    """The folder of this process for what must not outlive it, such as spilled rows of an engine, files of a rehearsal.

    It is removed when the process ends. What a killed process left is removed by the next one that comes here.
    """
    global _mine
    if _mine is None or _mine[0] != os.getpid() or not _mine[1].path.is_dir():
        try:
            parent = Path(tempfile.gettempdir())
            for left in orphans(parent, _PREFIX):
                shutil.rmtree(left.path, ignore_errors=True)
            _mine = os.getpid(), own_folder(parent, _PREFIX)
        except OSError as error:
            raise IsotoneError(
                f"No folder for temporary files can be written: {error.strerror or error}. Name one in TMPDIR."
            ) from None
        atexit.register(_remove, *_mine)
    return _mine[1].path


def _remove(process: int, folder: OwnFolder) -> None:
    """Remove a folder when the process that made it ends. A fork of it leaves it alone."""
    if process == os.getpid():
        with suppress(OSError):
            shutil.rmtree(folder.path, ignore_errors=True)
        folder.let_go()
