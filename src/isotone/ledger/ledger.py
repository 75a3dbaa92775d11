"""The ledger of one data set, one attempt at a release under a charge, and extracts of charges.

One attempt at a release under a charge, and how it can end.

What ends an attempt may depend on what was read: an error of a library, a panic, a lack of memory. So every exception before
the seal has the same end, a charge that is spent and one sentence that says no more than the ledger does. There are two
exceptions. SIGINT and SIGTERM come from outside, and our own handler knows them from everything that a library raises; what
they stop before the draw is resumed at no cost. And a process that dies says nothing at all: that is resumed at no cost
once in the life of a request (``Entries.begin``), which leaves one bit (SECURITY.md).
"""

from __future__ import annotations

import json
import os
import re
import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn, TypeVar

from isotone.errors import DeliveryError, InputError, LedgerError
from isotone.ledger.entries import (
    Ask,
    Charge,
    Cost,
    Entries,
    LedgerTerms,
    Rule,
    Turn,
    plain_text,
    require_guarantee,
    store_path,
    wanted_budget,
)
from isotone.ledger.stores.postgres import PostgresStore
from isotone.ledger.stores.sqlite import (
    LOCK_ENDING,
    ConflictError,
    Execute,
    MissingError,
    SqliteStore,
    Store,
    in_memory,
    is_ledger_file,
    not_nested,
)
from isotone.privacy.guarantee import Guarantee, Neighbours, Number, checked_neighbours

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
            ending = self._ended()
        else:
            ending = AttemptError(self.charge, None if self.charge.state == "drawn" else "failed")
        if error is None or not (error is self._own or isinstance(error, DeliveryError)):
            return ending
        if ours:
            error.add_note(str(ending).partition(_UNTOLD)[0].strip())
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


# The privacy budget of one data set, and every charge against it.
#
# The order of things is what makes it safe. A charge is durable *before* the data is read, the mark ``drawn`` before the
# first bit of noise, the content hash before the release is in its place. So a crash, a kill or a full disk at any point can
# lose a release, but never release more than was charged. Rows are only ever added; the database itself refuses to change
# or remove one.
#
# Nothing that is stored comes from the data: names, units and requests are the steward's, and the only time is the charge's.


def store_at(where: str) -> Store:
    """The store at a path or a PostgreSQL URL."""
    if where.startswith(("postgresql://", "postgres://")):
        return PostgresStore(where)
    if "://" in where:
        scheme = where.partition("://")[0]
        raise LedgerError(f"A ledger is at a path or a postgresql:// URL, not at {scheme}://…")
    return SqliteStore(Path(where))


T = TypeVar("T")


def require_ledger(ledger: Any) -> None:
    """Refuse what is not a ledger before anything else happens."""
    if not isinstance(ledger, Ledger):
        raise InputError(
            f"ledger must be a Ledger, not a {type(ledger).__name__}. Open or create one first: "
            "Ledger('survey.ledger', epsilon=2)."
        )


class Ledger:
    """A privacy budget in a file (or a PostgreSQL URL) that survives crashes and is safe between processes.

    Parameters
    ----------
    where
        A path, or ``postgresql://…`` for a ledger that several machines share.
    epsilon, delta, rho
        The total budget: ``epsilon`` (pure), ``epsilon`` and ``delta`` (approximate), or ``rho`` (zCDP).
        Needed where there is no ledger yet, which its first charge then makes (or :meth:`create`); an existing one is
        opened without, and refuses other numbers than its own.
    composition, final_delta
        How charges add up, fixed at creation. ``"addition"`` (default) adds numbers of the budget's kind. ``"zcdp filter"``
        takes charges of every kind as δ-approximate ρ-zCDP and stops when the sum of ρ or of δ would pass ``rho`` or ``delta``
        (0 unless given); the total is stated as (ε, δ)-DP at ``final_delta`` (docs/theory/composition.md).
    dataset
        The steward's name for the data; the file's stem unless given, and what the file says when it is only opened.
        Must not be derived from the contents.
    unit
        What is protected, in words ("person"); fixed at creation, or by the first charge when not given. The column
        that holds the unit may be called anything: see ``name`` of ``iso.Unit``.
    neighbours
        "add-remove" (default) or "replace".

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> with Ledger(folder.name + "/survey.ledger", epsilon=2) as ledger:
    ...     with ledger.attempt(Guarantee.pure("0.5"), request="counts 2021") as attempt:
    ...         attempt.draw()  # then the noise
    ...         attempt.seal("content hash")
    ...     print(attempt.charge.state, ledger.remaining())
    sealed ε = 1.5
    >>> folder.cleanup()
    """

    def __init__(
        self,
        where: str | os.PathLike[str],
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        composition: Rule | None = None,
        final_delta: Number | None = None,
        dataset: str | None = None,
        unit: str | None = None,
        neighbours: Neighbours | None = None,
    ) -> None:
        total, rule = wanted_budget(epsilon, delta, rho, composition, final_delta)
        if dataset is not None:
            dataset = plain_text(dataset, "dataset", empty=False)
        if unit is not None:
            unit = plain_text(unit, "unit", empty=False)
        if neighbours is not None:
            neighbours = checked_neighbours(neighbours)
        self.store: Store = store_at(store_path(where))
        self._terms = LedgerTerms(total, rule, unit, neighbours)
        self.dataset: str = dataset if dataset is not None else self._default_dataset()
        self._transact(lambda entries: entries.require_terms(self._terms))

    def _default_dataset(self) -> str:
        """The name when none is given.

        The name in the file when it is only opened, the file's stem for a new ledger.
        """
        if self.store.default_dataset is None:
            raise InputError(
                "A ledger on a server needs dataset='…': a name for the data that the steward gives."
            )
        if self._terms.total is None:
            names = self.store.transact(lambda execute: execute("SELECT dataset FROM isotone_ledger"))
            if len(names) == 1:
                return names[0][0]
        return self.store.default_dataset

    def create(self) -> Ledger:
        """Make the ledger now, if there is none, and not with the first charge."""
        self._write(lambda _: None)
        return self

    def change(
        self,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        composition: Rule | None = None,
        final_delta: Number | None = None,
        unit: str | None = None,
        neighbours: Neighbours | None = None,
    ) -> Ledger:
        """Give a ledger that has no charge another total, rule, unit and neighbours, all at once, as if it were new.

        A charge that another process makes at this moment comes before, and nothing is changed, or after.
        """
        total, rule = wanted_budget(epsilon, delta, rho, composition, final_delta)
        if total is None:
            raise InputError("A ledger needs its total: epsilon (with delta if you like) or rho.")
        named = None if unit is None else plain_text(unit, "unit", empty=False)
        terms = LedgerTerms(
            total, rule, named, None if neighbours is None else checked_neighbours(neighbours)
        )

        def work(execute: Execute) -> None:
            entries = Entries(self, execute)
            entries.discard()
            entries.start(terms)

        self.store.transact(work)
        self._terms = terms
        return self

    def remove(self) -> None:
        """Remove a ledger that has no charge."""
        self.store.remove(lambda execute: Entries(self, execute).discard())

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        return None  # nothing is held open: every charge is complete by itself

    def __repr__(self) -> str:
        return f"Ledger({self.store.address!r}, dataset={self.dataset!r}, left: {self.remaining()})"

    @property
    def address(self) -> str:
        """Where the ledger is (never with a password)."""
        return self.store.address

    @property
    def budget(self) -> Guarantee:
        """The total."""
        return self._transact(Entries.budget)

    @property
    def total(self) -> Cost:
        """The total as an amount."""
        return Cost.of(self.budget)

    @property
    def composition(self) -> Rule:
        """The rule by which charges add up. It alone admits a charge."""
        return self._transact(Entries.composition).rule

    @property
    def overall(self) -> Guarantee:
        """What all releases together guarantee when the whole total is spent.

        For a zCDP filter it is (ε, δ)-DP at the δ that was fixed at creation. It is about the total and not about what
        was spent so far.
        """
        return self._transact(lambda entries: entries.composition().overall(entries.budget()))

    def spent(self) -> Cost:
        """All charges together, whatever their state."""
        return self._transact(Entries.spent)

    def spent_otherwise(self) -> Cost:
        """All charges together by the other rule, for information. It admits and refuses nothing."""
        return self._transact(Entries.spent_otherwise)

    def remaining(self) -> Cost:
        """What is left."""
        return self._transact(lambda entries: Cost.of(entries.budget()) - entries.spent())

    def charges(self) -> list[Charge]:
        """Every charge, in order."""
        return self._transact(Entries.charges)

    def sealed(self, request: str) -> list[Charge]:
        """The sealed charges of a request.

        ``.release`` is the content hash of each.
        """
        request = plain_text(request, "request", empty=False)
        return [charge for charge in self.charges() if charge.request == request and charge.finished]

    def check(self, guarantee: Guarantee) -> None:
        """Raise the errors that ``charge`` would, without charging."""
        require_guarantee(guarantee)
        self._transact(lambda entries: entries.require(guarantee))

    def charge(
        self, guarantee: Guarantee, description: str = "", *, mechanism: str = "", spec: str = ""
    ) -> Charge:
        """Spend ``guarantee``.

        The charge is durable when this returns. If too little is left, nothing is spent.

        For releases that are drawn elsewhere; such a charge is never resumed. See :meth:`attempt` for our own.
        """
        ask = Ask.of(guarantee, description, mechanism, spec, None)
        return self._write(lambda entries: entries.add(ask))

    @contextmanager
    def attempt(
        self,
        guarantee: Guarantee,
        *,
        request: str | None = None,
        description: str = "",
        mechanism: str = "",
        again: bool = False,
        wait: bool = True,
    ) -> Generator[Attempt]:
        """Charge, and go through the states of a release.

        In the block: read the data, :meth:`Attempt.draw`, add noise, :meth:`Attempt.seal`. Whatever ends the block before the
        seal ends it: the charge is ``failed``, or drawn and lost, stays spent, and an :class:`AttemptError` says so and
        nothing of what was raised. Only what SIGINT or SIGTERM stopped before the draw, and once what died there, is
        taken over by the same ``request`` at no cost.

        Parameters
        ----------
        guarantee
            What is charged, before the block begins.
        request
            What identifies the release: a name, or a hash of its public parameters. One live attempt of a request
            excludes all others. None: never resumed, excludes no other.
        again
            Draw once more although the request was sealed (otherwise :class:`SealedError`) or lost (:class:`LostError`).
        wait
            Whether to wait while another process works on the request; otherwise :class:`BusyError`.
        """
        ask = Ask.of(guarantee, description, mechanism, "", request)
        key = (self.dataset, ask.request or "")
        if not self.store.ready:
            self._in_memory(lambda entries: entries.begin(ask, again=again))  # no lock where this is refused
        with (
            not_nested((self.address, *key)) if ask.request is not None else nullcontext(),
            self.store.lock("\0".join(key), wait=wait) if ask.request is not None else nullcontext(),
        ):
            signals, end = Signals(), None
            try:
                turn = self._write(lambda entries: entries.begin(ask, again=again))
                attempt = Attempt(self.store, turn, signals)
                if turn.charge.state == "failed":
                    end = AttemptError(turn.charge, "died")
                else:
                    try:
                        signals.watch()
                        yield attempt
                    except BaseException as error:
                        end = attempt.end(error)
                    else:
                        end = attempt.end(None)
            except BaseException as error:  # nothing was charged
                end = error
            finally:
                signals.restore()
        try:
            signals.deliver()
        except BaseException as error:
            end = error
        if end is not None:
            raise_alone(end)

    def export(self) -> dict[str, Any]:
        """The whole ledger as plain values, for an archive or a report."""
        budget = self.budget
        return {
            "dataset": self.dataset,
            "kind": budget.kind,
            "neighbours": budget.neighbours,
            "unit": budget.unit,
            "budget": Cost.of(budget).export(),
            "composition": self.composition,
            "overall": Cost.of(self.overall).export(),
            "spent": self.spent().export(),
            "spent by the other rule, for information": self.spent_otherwise().export(),
            "charges": [charge.export() for charge in self.charges()],
        }

    def _transact(self, work: Callable[[Entries], T]) -> T:
        """Look into the ledger, or into the one that its first charge would make."""
        try:
            return self.store.transact(lambda execute: work(Entries(self, execute).required()))
        except MissingError:
            if self._terms.total is None:
                raise
        return self._in_memory(work)

    def _write(self, work: Callable[[Entries], T]) -> T:
        """Add to the ledger, in one transaction that also makes it if there is none."""

        def inside(execute: Execute) -> T:
            entries = Entries(self, execute)
            entries.require_terms(self._terms)
            return work(entries)

        def made(execute: Execute) -> T:
            Entries(self, execute).start(self._terms)
            return inside(execute)

        try:
            return self.store.transact(inside)
        except MissingError:
            if self._terms.total is None:
                raise
        self._in_memory(work)  # what is refused leaves nothing behind
        return self.store.create(made)

    def _in_memory(self, work: Callable[[Entries], T]) -> T:
        self.store.require_place()

        def made(execute: Execute) -> T:
            entries = Entries(self, execute, kept=False)
            entries.start(self._terms)
            return work(entries)

        return in_memory(made)

    def _finish(self, number: int, release: str) -> None:
        row = (self.dataset, number)
        release = plain_text(release, "release")

        def work(execute: Execute) -> None:
            execute("INSERT INTO isotone_outcome VALUES (?, ?, 'drawn')", *row)
            execute("INSERT INTO isotone_sealed VALUES (?, ?, ?)", *row, release)

        self.store.transact(work)


def open_or_start(where: str | os.PathLike[str], **options: Any) -> Ledger:
    """Open a ledger, or start it with the total in ``options`` if it is the first one in its folder.

    A mistyped path must not give a data set a second, fresh budget. So a total in a spec starts a ledger only in a
    folder that exists and has no other ledger; a further one, and any on a server, is made by ``isotone ledger create``.
    """
    totals = ("epsilon", "delta", "rho", "composition", "final_delta")
    if all(options.get(name) is None for name in totals):
        return Ledger(where, **options)
    text = os.fspath(where)
    if "://" in text:
        Ledger(where, **{name: value for name, value in options.items() if name not in totals})
        return Ledger(where, **options)  # it is there: now compare the total
    path = Path(text)
    if not path.exists():
        # the ledger itself, whole or half made, may be there by now: another process starts it at this moment
        own = {path.name, path.name + ".new"}
        others = [name for name in _ledgers_in(path.parent) if name not in own]
        if others:
            names = ", ".join(map(repr, others))
            raise LedgerError(
                f"There is no ledger {str(path)!r}, but its folder has {names}. Correct the path; or, if the data really "
                f"needs a second budget, make it with 'isotone ledger create {path}' and its total."
            )
    return Ledger(where, **options)


def _ledgers_in(folder: Path) -> list[str]:
    """The ledgers of a folder. Lock files are not looked into: to close one lets go of the locks of this process."""
    try:
        files = [entry for entry in folder.iterdir() if entry.is_file() and entry.suffix != LOCK_ENDING]
    except OSError:
        return []
    return sorted(file.name for file in files if is_ledger_file(file))


EXTRACT_FORMAT = "isotone ledger extract 1"
_LONGEST = 100_000
_NUMBER = re.compile(r"[0-9]{1,400}(/[1-9][0-9]{0,399})?")  # never 1e999999999, which takes minutes to read
_TEXT = (str,)
_MAYBE = (str, type(None))
_COST: dict[str, Any] = {"epsilon": _TEXT, "delta": _TEXT, "rho": _TEXT}
_FORM: dict[str, Any] = {
    "format": _TEXT,
    "dataset": _TEXT,
    "kind": _TEXT,
    "neighbours": _TEXT,
    "unit": _TEXT,
    "budget": _COST,
    "charge": {
        "number": (int,),
        "time": _TEXT,
        "kind": _TEXT,
        "guarantee": _COST,
        "mechanism": _TEXT,
        "description": _TEXT,
        "spec": _TEXT,
        "request": _MAYBE,
        "state": _TEXT,
        "release": _MAYBE,
    },
}


def extract_charge(ledger: Ledger, number: int) -> bytes:
    """The charge ``number`` of a ledger as canonical JSON."""
    if isinstance(number, bool) or not hasattr(number, "__index__"):
        raise InputError(f"The number of a charge is a whole number, not {number!r}.")
    budget = ledger.budget
    for charge in ledger.charges():
        if charge.number == number:
            return canonical(
                {
                    "format": EXTRACT_FORMAT,
                    "dataset": ledger.dataset,
                    "kind": budget.kind,
                    "neighbours": budget.neighbours,
                    "unit": budget.unit,
                    "budget": Cost.of(budget).export(),
                    "charge": charge.export(),
                    **_periods(ledger, number),
                }
            )
    raise LedgerError(
        f"The ledger {ledger.address} has no charge {number}. 'isotone ledger show' lists them all."
    )


def _periods(ledger: Ledger, number: int) -> dict[str, Any]:
    """The hashes of what the periods of a series showed, if the charge is that of one."""
    sql = "SELECT period, shown FROM isotone_period WHERE dataset = ? AND number = ? ORDER BY period"
    rows = ledger.store.transact(lambda execute: execute(sql, ledger.dataset, number))
    result = {str(period): f"sha256:{sha256(shown.encode()).hexdigest()}" for period, shown in rows}
    return {"periods": result} if result else {}


def read_extract(content: bytes) -> dict[str, Any]:
    """The entries of an extract.

    Anything but the exact bytes that :func:`extract_charge` writes raises an error.
    """
    if len(content) > _LONGEST:
        raise LedgerError(f"This is no extract of a charge: it is longer than {_LONGEST} bytes.")
    try:
        entries = json.loads(content.decode())
        same = canonical(entries) == content
    except (ValueError, RecursionError):
        raise LedgerError("This is no extract of a charge: it is not JSON.") from None
    periods = entries.pop("periods", {}) if isinstance(entries, dict) else {}
    listed = isinstance(periods, dict) and all(t.isdecimal() and type(x) is str for t, x in periods.items())
    if not (same and listed and _has_form(entries, _FORM) and entries["format"] == EXTRACT_FORMAT):
        raise LedgerError(
            f"This is no extract of a charge in the form {EXTRACT_FORMAT!r}. Write it with 'isotone ledger extract'."
        )
    costs = (entries["budget"], entries["charge"]["guarantee"])
    if not all(_NUMBER.fullmatch(text) for cost in costs for text in cost.values()):
        raise LedgerError("The numbers in this extract of a charge cannot be read.")
    return {**entries, "periods": {int(t): shown for t, shown in periods.items()}}


def _has_form(value: Any, form: Any) -> bool:
    if not isinstance(form, dict):
        return type(value) in form  # exactly: True is no number
    return (
        isinstance(value, dict)
        and value.keys() == form.keys()
        and all(_has_form(value[key], part) for key, part in form.items())
    )


def canonical(value: Any) -> bytes:
    """Canonical JSON, of which the same value always has the same bytes."""
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    ).encode()
