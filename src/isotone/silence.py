"""Standard output, standard error and logging, closed to libraries while private data is read.

An engine may print what it reads before Python knows of an error: a panic in Rust does. So the descriptors 1 and 2 lead
nowhere meanwhile, for the whole process and all its threads, and so do ``sys.stdout``, ``sys.stderr`` and ``logging``, which in a
notebook are not these descriptors. A progress function that was wrapped by :func:`silent` is heard all the same.
"""

from __future__ import annotations

import ctypes
import io
import logging
import os
import sys
import threading
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, TextIO

from isotone.mechanism import Progress, no_progress

__all__ = ["silent"]

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
