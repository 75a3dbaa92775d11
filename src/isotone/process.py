"""What a release needs of its process: folders that do not outlive it by much, and streams that stay silent.

A process holds a lock on each of its folders. The system lets go of the lock when the process ends, however it ends, so
a folder whose lock can be taken has no living owner, and whoever comes next may remove it. There is no time-out. Where a
disk has no such locks, no folder is ever taken for one without an owner.
"""

from __future__ import annotations

import atexit
import ctypes
import io
import logging
import os
import shutil
import sys
import tempfile
import threading
import warnings
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from isotone.errors import IsotoneError
from isotone.mechanism import Progress, no_progress

try:
    import fcntl
except ImportError:  # not a POSIX system
    fcntl = None


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


# Standard output, standard error and logging, closed to libraries while private data is read.
#
# An engine may print what it reads before Python knows of an error: a panic in Rust does. So the descriptors 1 and 2 lead
# nowhere meanwhile, for the whole process and all its threads, and so do ``sys.stdout``, ``sys.stderr`` and ``logging``, which in a
# notebook are not these descriptors. A progress function that was wrapped by :func:`silent` is heard all the same.

_guard = threading.Lock()
_closed: ExitStack | None = None
_users = 0
_speaking = threading.local()


class _Gate(io.TextIOBase):
    """In place of a standard stream: what is written is dropped, but by a thread that reports progress."""

    def __init__(self, behind: TextIO, way_out: TextIO) -> None:
        self._behind, self._way_out = behind, way_out

    def write(self, text: str, /) -> int:
        """Pass text on for progress alone."""
        if getattr(_speaking, "now", False):
            self._way_out.write(text)
        return len(text)

    def flush(self) -> None:
        """Show what was passed on."""
        if getattr(_speaking, "now", False):
            self._way_out.flush()

    def writable(self) -> bool:
        """Whether it can be written to."""
        return True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._behind, name)

    def isatty(self) -> bool:
        """Whether a person looks at it."""
        return self._behind.isatty()

    def fileno(self) -> int:
        """The descriptor, which leads nowhere for now."""
        return self._behind.fileno()


@contextmanager
def silent(progress: Progress) -> Generator[Progress]:
    """Close the standard streams while the block runs, and yield ``progress`` so that it is heard."""

    def heard(fraction: float, what: str) -> None:
        _speaking.now = True
        try:
            progress(fraction, what)
        finally:
            _speaking.now = False

    _enter()
    try:
        yield progress if progress is no_progress else heard
    finally:
        _leave()


@contextmanager
def unheard(progress: Progress = no_progress) -> Generator[Progress]:
    """What private data is read in: streams are closed, and nothing is warned of or raised over a float that is too large."""
    with warnings.catch_warnings(), np.errstate(all="ignore"), silent(progress) as tell:
        warnings.simplefilter("ignore")
        yield tell


def _enter() -> None:
    global _closed, _users
    with _guard:
        if _closed is None:
            with ExitStack() as closing:
                _close(closing)
                _closed = closing.pop_all()
        _users += 1


def _leave() -> None:
    global _closed, _users
    with _guard:
        _users -= 1
        if _users == 0 and _closed is not None:
            _closed.close()
            _closed = None


def _close(closing: ExitStack) -> None:
    """Close what is open, each with how it is opened again. Whatever is buffered until then goes nowhere."""
    ways_out = {number: _close_descriptor(number, closing) for number in (1, 2)}
    for name, number in (("stdout", 1), ("stderr", 2)):
        behind: TextIO | None = getattr(sys, name)
        if behind is None:
            continue
        with suppress(OSError, ValueError):
            behind.flush()
        own = None
        with suppress(OSError, ValueError, AttributeError):
            own = ways_out[number] if behind.fileno() == number else None
        gate = _Gate(behind, own or behind)
        setattr(sys, name, gate)
        closing.callback(_open_stream, name, gate, behind)
    before = logging.root.manager.disable
    logging.disable(sys.maxsize)
    closing.callback(logging.disable, before)


def _open_stream(name: str, gate: _Gate, behind: TextIO) -> None:
    if getattr(sys, name) is gate:  # whoever put another stream there meanwhile keeps it
        setattr(sys, name, behind)


def _close_descriptor(number: int, closing: ExitStack) -> TextIO | None:
    """Lead a descriptor nowhere, and give the way out that it was; None where there is no such descriptor."""
    stream: TextIO | None = sys.stdout if number == 1 else sys.stderr
    if (sys.__stdout__ if number == 1 else sys.__stderr__) is None:
        return None  # the process was started without it: by now it may be any file
    with suppress(OSError, ValueError, AttributeError):
        assert stream is not None
        stream.flush()
    try:
        kept = os.dup(number)
    except OSError:
        return None
    way_out = os.fdopen(
        kept, "w", encoding=getattr(stream, "encoding", None) or "utf-8", errors="backslashreplace"
    )
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        _flush_libraries()
        os.dup2(nowhere, number)
    finally:
        os.close(nowhere)
    closing.callback(_open_descriptor, number, way_out)
    return way_out


def _open_descriptor(number: int, way_out: TextIO) -> None:
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        with suppress(OSError, ValueError, AttributeError):
            if stream is not None and stream.fileno() == number:
                stream.flush()  # what a library has written and not sent goes nowhere too
    _flush_libraries()
    with suppress(OSError, ValueError):
        way_out.flush()
    os.dup2(way_out.fileno(), number)
    way_out.close()


def _flush_libraries() -> None:
    """Empty the buffers of the C library's streams."""
    with suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).fflush(None)
