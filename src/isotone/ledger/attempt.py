"""One attempt at a release under a charge."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from isotone.errors import LedgerError
from isotone.ledger.entries import Charge, plain_text
from isotone.ledger.stores.store import ConflictError, Store

if TYPE_CHECKING:
    from isotone.ledger.stores.store import Execute

__all__ = ["Attempt"]


class Attempt:
    """One attempt at a release, given to the block of ``Ledger.attempt``.

    The block reads, calls :meth:`draw`, adds noise and calls :meth:`seal`.
    """

    def __init__(self, store: Store, charge: Charge, *, resumed: bool) -> None:
        self._store = store
        self._process = os.getpid()
        self._open = True
        self.charge = charge
        """The charge, with the state that this attempt brought it to."""
        self.resumed = resumed
        """Whether an earlier charge of the same request was taken over at no cost."""

    def draw(self) -> None:
        """Mark the charge as drawn.

        The mark is durable when this returns. Only then may a noise bit be drawn.

        One insert on the charge's primary key decides. Whoever loses it, for example a process that slept while its
        charge was taken over, gets a :class:`LedgerError` and must draw nothing.
        """
        self._require("charged", "draw()")
        try:
            self._outcome("drawn")
        except ConflictError as error:
            self._open = False
            raise LedgerError(
                f"Charge {self.charge.number} has an outcome already: another process took it over while this one was "
                "away. Nothing was drawn here. Run the request again to see how it ended."
            ) from error
        self.charge = replace(self.charge, state="drawn")

    def seal(self, release: str) -> None:
        """Record the content hash of the release that was drawn.

        It is durable when this returns.

        Call it when the files are on disk and before they are renamed into place.
        """
        release = plain_text(release, "release", empty=False)
        self._require("drawn", "seal()")
        row = (self.charge.ledger.dataset, self.charge.number, release)
        self._store.transact(lambda execute: execute("INSERT INTO isotone_sealed VALUES (?, ?, ?)", *row))
        self.charge = replace(self.charge, state="sealed", release=release)

    def end(self, error: Exception | None) -> None:
        """End the attempt.

        Called by :meth:`Ledger.attempt`.

        A block that ends before the draw, with an error or without, has ended: ``failed``, and spent. A process that is
        interrupted or killed does not come here and leaves no outcome.
        """
        ours, self._open = self._open and self._process == os.getpid(), False
        if not ours:
            return
        if self.charge.state == "drawn":
            _note(
                error,
                f"Charge {self.charge.number} was drawn and not sealed: its noise is lost and it stays spent.",
            )
        if self.charge.state != "charged":
            return
        try:
            self._outcome("failed")
            self.charge = replace(self.charge, state="failed")
            _note(error, f"Charge {self.charge.number} failed before the draw. It stays spent.")
        except ConflictError:
            pass  # taken over by another process: its outcome stands
        except LedgerError:
            if error is None:
                raise
            _note(error, self._unrecorded())

    def _unrecorded(self) -> str:
        """What becomes of a charge whose failure the store did not take, for example on a full disk."""
        said = (
            f"That charge {self.charge.number} failed could not be recorded, so it still counts as charged:"
        )
        if self.charge.request is None:
            return f"{said} it stays spent."
        return f"{said} the same request takes it over at no cost."

    def close(self) -> None:
        """Forbid further draws and seals, since the lock is about to be released."""
        self._open = False

    def _outcome(self, state: str) -> None:
        row = (self.charge.ledger.dataset, self.charge.number, state)

        def work(execute: Execute) -> None:
            execute("INSERT INTO isotone_outcome VALUES (?, ?, ?)", *row)

        self._store.transact(work)

    def _require(self, state: str, call: str) -> None:
        if self._process != os.getpid():
            raise LedgerError(f"{call} belongs to the process that began the attempt, not to a fork of it.")
        if not self._open:
            raise LedgerError(f"{call} came after the end of the attempt: nothing may be drawn or sealed.")
        if self.charge.state != state:
            raise LedgerError(
                f"{call} needs a charge that is {state}; charge {self.charge.number} is {self.charge.state}."
            )


def _note(error: Exception | None, words: str) -> None:
    """Say with ``error``, if there is one, what became of the charge."""
    if error is not None:
        error.add_note(words)
