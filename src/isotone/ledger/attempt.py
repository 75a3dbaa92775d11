"""One attempt at a release under a charge, and how it can end.

What ends an attempt may depend on what was read: an error of a library, a panic, a lack of memory. So every exception before
the seal has the same end, a charge that is spent and one sentence that says no more than the ledger does. There are two
exceptions. SIGINT and SIGTERM come from outside, and our own handler knows them from everything that a library raises; what
they stop before the draw is resumed at no cost. And a process that dies says nothing at all: that is resumed at no cost
once in the life of a request (``Entries.begin``), which leaves one bit (SECURITY.md).
"""

from __future__ import annotations

import os
import signal
import threading
from dataclasses import replace
from types import FrameType
from typing import Any, NoReturn

from isotone.errors import DeliveryError, LedgerError
from isotone.ledger.entries import Charge, Turn, plain_text
from isotone.ledger.stores.store import ConflictError, Execute, Store

__all__ = ["Attempt", "AttemptError", "Signals", "raise_alone"]

_UNTOLD = "What went wrong is not told, since it may depend on what the data holds"
_SENTENCES = {
    "reading": "Charge {number} was interrupted before anything was drawn. The same request takes it over at no cost.",
    "failed": "Charge {number} failed while the data was read. Nothing was drawn or released, and it stays spent. "
    f"{_UNTOLD}; 'isotone check' may look at that.",
    "died": "Charge {number} of this request failed: for the second time a process of it died while the data was read. It "
    "stays spent, and nothing was charged now. The request may be charged anew by running it again.",
    "drawn": "Charge {number} was drawn and not sealed: its noise is lost and it stays spent. "
    + _UNTOLD
    + ".",
    "unrecorded": "Charge {number} ended before anything was drawn, but the ledger could not record that. It counts as one "
    "whose process died.",
}


class AttemptError(LedgerError):
    """An attempt at a release ended.

    ``charge`` is its charge, which stays spent. The message follows from the charge's state alone.
    """

    def __init__(self, charge: Charge, end: str | None = None) -> None:
        super().__init__(_SENTENCES[end or charge.state].format(number=charge.number))
        self.charge = charge


class _Stop(BaseException):
    """Raised by our handler of signals, where the interpreter happens to be. Whoever catches it stops nothing."""


class Signals:
    """Our handler of SIGINT and SIGTERM during one attempt. Only the main thread has one, as Python has it.

    Before the draw the first signal stops the attempt. From the draw on it waits for the seal, since what was drawn would be
    lost. A second one finds the handler that was there before.
    """

    def __init__(self) -> None:
        self.stopped: int | None = None
        """The signal that came, if one did."""
        self._raising = False
        self._before: dict[int, Any] = {}
        if threading.current_thread() is not threading.main_thread():
            return
        for number in (signal.SIGINT, signal.SIGTERM):
            before = signal.getsignal(number)
            if before not in (None, signal.SIG_IGN):  # what is ignored, or not Python's, stays as it is
                self._before[number] = before
                signal.signal(number, self._handle)

    def _handle(self, number: int, _: FrameType | None) -> None:
        self.stopped = self.stopped or number
        if self._raising:
            self._raising = False
            raise _Stop
        self.restore()

    def watch(self) -> None:
        """Let a signal stop the block from here on, or now if one came already."""
        self._raising = True
        self._stop()

    def hold(self) -> None:
        """Let signals wait from here on. One that came, and whose exception somebody swallowed, stops the block now."""
        self.rest()
        self._stop()

    def rest(self) -> None:
        """Let signals wait from here on."""
        self._raising = False

    def _stop(self) -> None:
        if self.stopped is not None:
            raise _Stop

    def restore(self) -> None:
        """Give the signals back to those who had them before."""
        self.rest()
        while self._before:
            signal.signal(*self._before.popitem())

    def deliver(self) -> None:
        """Send the signal on that came during the attempt. The handler that was there before may raise or end the process."""
        number, self.stopped = self.stopped, None
        if number is not None:
            signal.raise_signal(number)


class Attempt:
    """One attempt at a release, given to the block of ``Ledger.attempt``.

    The block reads, calls :meth:`draw`, adds noise and calls :meth:`seal`.
    """

    def __init__(self, store: Store, turn: Turn, signals: Signals) -> None:
        self._store = store
        self._turn = turn.number
        self._signals = signals
        self._process = os.getpid()
        self._open = True
        self._own: LedgerError | None = None
        self.charge = turn.charge
        """The charge, with the state that this attempt brought it to."""

    @property
    def resumed(self) -> bool:
        """Whether an earlier charge of the same request was taken over at no cost."""
        return self._turn > 1

    def draw(self) -> None:
        """Mark the charge as drawn.

        The mark is durable when this returns. Only then may a noise bit be drawn.

        One insert on the charge's primary key decides. Whoever loses it, for example a process that slept while its
        charge was taken over, gets a :class:`LedgerError` and must draw nothing.
        """
        self._require("reading", "draw()")
        self._signals.hold()
        try:
            self._record("isotone_outcome", "drawn")
        except ConflictError:
            self._open = False  # its outcome is not ours
            self._refuse(
                f"Charge {self.charge.number} has an outcome already: another process took it over while this one was "
                "away. Nothing was drawn here. Run the request again to see how it ended."
            )
        self.charge = replace(self.charge, state="drawn")

    def seal(self, release: str) -> None:
        """Record the content hash of the release that was drawn.

        It is durable when this returns.

        Call it when the files are on disk and before they are renamed into place.
        """
        self._require("drawn", "seal()")
        release = plain_text(release, "release", empty=False)
        self._record("isotone_sealed", release)
        self.charge = replace(self.charge, state="sealed", release=release)

    def end(self, error: BaseException | None) -> BaseException | None:
        """End the attempt, and say what the caller is told. Called by :meth:`Ledger.attempt`.

        What the ledger itself said, and that a release that was made could not be written, is told as it is, with what became
        of the charge: neither depends on what the data holds beyond what is released.
        """
        self._signals.rest()
        ours, self._open = self._open and self._process == os.getpid(), False
        if self.charge.state == "sealed":
            return error
        if ours and self.charge.state == "reading":
            told = self._ended()
        else:
            told = AttemptError(self.charge, None if self.charge.state == "drawn" else "failed")
        if error is None or not (error is self._own or isinstance(error, DeliveryError)):
            return told
        if ours:
            error.add_note(str(told).partition(_UNTOLD)[0].strip())
        return error

    def _ended(self) -> AttemptError:
        """Record how the reading ended."""
        own = self._own
        try:
            if self._signals.stopped is not None and self.charge.request is not None:
                self._record("isotone_ending", self._turn, "interrupted")
            else:
                self._record("isotone_outcome", "failed")
                self.charge = replace(self.charge, state="failed")
        except ConflictError:  # taken over by another process: its outcome stands
            return AttemptError(self.charge, "failed")
        except Exception:
            return AttemptError(self.charge, "unrecorded")
        finally:
            self._own = own
        return AttemptError(self.charge)

    def _record(self, table: str, *values: str | int) -> None:
        row = (self.charge.ledger.dataset, self.charge.number, *values)

        def work(execute: Execute) -> None:
            execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", *row)

        try:
            self._store.transact(work)
        except LedgerError as error:
            self._own = error
            raise

    def _require(self, state: str, call: str) -> None:
        if self._process != os.getpid():
            self._refuse(f"{call} belongs to the process that began the attempt, not to a fork of it.")
        if not self._open:
            self._refuse(f"{call} came after the end of the attempt: nothing may be drawn or sealed.")
        if self.charge.state != state:
            self._refuse(
                f"{call} needs a charge that is {state}; charge {self.charge.number} is {self.charge.state}."
            )

    def _refuse(self, sentence: str) -> NoReturn:
        self._own = LedgerError(sentence)
        raise self._own from None


def raise_alone(error: BaseException) -> NoReturn:
    """Raise an error without those that were raised before it, whose words and frames may quote data."""
    try:
        raise error.with_traceback(None)
    except BaseException as raised:
        raised.__context__ = raised.__cause__ = None
        raise
