"""An open series: its noise, its register and what it has shown.

All noise is drawn when the series is opened, and lies as numbers in a secret file. To close a period its noise is replaced
by its values, in one step that is durable before anything else happens; then the values become a row of the ledger; then
the register of that period takes the place of the last one; and only then is anything shown. Whoever comes again, after a
kill or by mistake, gets the values that are there and reads no data. So the noise of a period never meets other data,
and what was shown is never lost.

What ends a reading may depend on what was read. So whatever ends it leaves the period empty for ever, and the next one
counts all that was reached by then. Only what SIGINT or SIGTERM stopped, and once a process that died, begins anew.

If the ledger *or* the secret folder is put back to an earlier state, this is found out, or does no harm. If both are put
back together nobody can find out, and the same noise could meet other data: keep no copy of them.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from isotone.array_types import Ints
from isotone.errors import InputError, LedgerError
from isotone.ledger import Charge, Ledger
from isotone.ledger.ledger import Signals, canonical, raise_alone
from isotone.ledger.stores.sqlite import BusyError, ConflictError, file_lock, sync
from isotone.noise.bits import random_bits
from isotone.privacy.guarantee import Guarantee
from isotone.series.register import Register, random_key

SECRET, OPENING = "secret.json", "opening.json"
"""The file of noise and key, and what is public of the series, in the folder of the secrets."""
FORMAT = "isotone series 1"
_END = "secrets destroyed"
_ROOM = 1 << 20
"""Bytes that the secret folder must have room for, more than noise and opening of a thousand counts take."""

Read = Callable[[bytes, Path | None, Path], Ints]
"""Grows a register under this key from an old file, if there is one, to a new one, and counts it, a row for each group."""


@dataclass(frozen=True)
class Closing:
    """What one period shows: a row of values for each group. ``fresh`` says whether it was closed now."""

    period: int
    values: Ints
    fresh: bool


class SeriesRequest(NamedTuple):
    """What a series is charged for, in the words of the ledger."""

    guarantee: Guarantee
    name: str
    mechanism: str
    description: str = ""


def open_series(
    ledger: Ledger,
    folder: Path,
    say: Callable[[Charge, str], bytes],
    request: SeriesRequest,
    draw: Callable[[], Ints],
    *,
    again: bool = False,
) -> OpenSeries:
    """Charge once, draw all noise of a series and keep it in the secret ``folder``.

    ``say`` makes the opening, which is public: what is planned and by which mechanism. It is told the charge and the hash of
    all noise, each period's with a salt of its own. ``draw`` returns noise by period, group and stage. The charge is sealed
    with the hash of the opening, and no period is closed without: noise of a process that died before has met no data, and
    the same request draws again under the same charge.
    """
    with _alone_in(folder):
        tried = [charge for charge in ledger.charges() if charge.request == request.name]
        _require_room(folder, {charge.number for charge in tried if not charge.finished})
        begun = ready = False
        try:
            with ledger.attempt(
                request.guarantee,
                request=request.name,
                mechanism=request.mechanism,
                description=request.description,
                again=again,
                wait=False,
            ) as attempt:
                begun = True
                noise = draw()
                periods = [{"salt": random_key().hex(), "noise": part.tolist()} for part in noise]
                leaves = [
                    hashlib.sha256(bytes.fromhex(p["salt"]) + canonical(p["noise"])).digest() for p in periods
                ]
                opening = say(attempt.charge, hashlib.sha256(b"".join(leaves)).hexdigest())
                secret = {"format": FORMAT, "dataset": ledger.dataset, "charge": attempt.charge.number}
                _write(folder / SECRET, canonical({**secret, "key": random_key().hex(), "periods": periods}))
                _write(folder / OPENING, opening)
                sync(folder.parent)
                ready = True
                attempt.draw()
                attempt.seal(_digest(opening))
        except BaseException:
            if begun and not ready:  # what was drawn must not lie around
                for file in folder.iterdir():
                    _remove(file)
            if not any(folder.iterdir()):
                folder.rmdir()
            raise
    return OpenSeries(ledger, folder)


class OpenSeries:
    """A series that was opened before, in its secret folder, under its charge."""

    def __init__(self, ledger: Ledger, folder: Path) -> None:
        self.ledger, self.folder = ledger, folder
        try:
            content = (folder / OPENING).read_bytes()
            self.opening: dict[str, Any] = json.loads(content)["manifest"]
            self.number: int = self.opening["charge"]
        except (OSError, ValueError, LookupError, TypeError):
            raise InputError(f"There is no series in {folder}. Open it first.") from None
        charge = next((charge for charge in ledger.charges() if charge.number == self.number), None)
        self.seal = _digest(content)
        if charge is not None and not charge.finished:
            raise InputError(f"The opening of the series in {folder} was interrupted. Open it again.")
        if charge is None or charge.release != self.seal:
            raise LedgerError(
                f"The series in {folder} is not what charge {self.number} of the ledger {ledger.address} was sealed with. "
                "Either of them is not the one it was opened with: the series stops."
            )

    @property
    def periods(self) -> int:
        """How many periods are planned."""
        return len(self._names)

    @property
    def _names(self) -> list[str]:
        return self.opening["description"]["periods"]

    def shown(self) -> dict[int, Ints]:
        """The values of every period in the ledger."""
        rows = self._rows()
        return {t: np.array(json.loads(text), np.int64) for t, text in rows.items() if t < self.periods}

    @property
    def ended(self) -> bool:
        """Whether the ledger says that the secrets were destroyed."""
        return self.periods in self._rows()

    @property
    def waiting(self) -> list[int]:
        """The periods that can still be closed."""
        rows = self._rows()
        secret = self._secret(rows)
        if secret is None:
            return []
        last = _last(rows, secret)
        noisy = [t for t, part in enumerate(secret["periods"]) if "noise" in part]
        return [t for t in noisy if last is None or t > last]

    def close(
        self, period: int, read: Read, *, ready: Callable[[], object] = tuple, wait: bool = True
    ) -> Closing:
        """Close a period, or say again what it showed.

        ``read`` is called only where nothing is known about the period: never twice for one that has values. Whatever ends it
        leaves the period empty. ``ready`` is called before, looks at no row, and may refuse.
        """
        if not 0 <= period < self.periods:
            raise InputError(f"The series has periods 0 to {self.periods - 1}, not {period}.")
        with self.alone(wait=wait):
            rows = self._rows()
            secret = self._secret(rows)
            fresh = False
            if secret is not None:
                fresh = period not in rows and "values" not in secret["periods"][period]
                if fresh:
                    self._measure(period, rows, secret, ready, read)
                self._record(rows, secret)
                self._adopt(rows, secret)
            elif period not in rows:
                raise LedgerError("The secrets of this series are gone: no period can be closed any more.")
            elif self.periods - 1 in rows:
                self.destroy()  # once more, if it was interrupted
            return Closing(period, np.array(json.loads(rows[period]), np.int64), fresh)

    def _measure(
        self,
        period: int,
        rows: dict[int, str],
        secret: dict[str, Any],
        ready: Callable[[], object],
        read: Read,
    ) -> None:
        """Read, and replace the noise of the period by its values, durably."""
        parts: list[dict[str, Any]] = secret["periods"]
        last = _last(rows, secret)
        if (last is not None and period < last) or "noise" not in parts[period]:
            raise InputError(
                f"{self._names[period]} was passed over, or could not be read to its end: it stays empty, and its noise was destroyed."
            )
        key, old = bytes.fromhex(secret["key"]), self._register(rows, secret)
        new = self.folder / f"register-{period}-{random_bits(64):016x}.parquet"
        noise = np.array(parts[period]["noise"], np.int64)
        ready()
        counts = self._read_once(period, secret, lambda: read(key, old, new))
        parts[:period] = [part if "values" in part else {"skipped": True} for part in parts[:period]]
        parts[period] = {"values": (counts + noise).tolist()}
        secret["register"] = {"file": new.name, "period": period, "mac": _mac(key, new, self.number, period)}
        _write(self.folder / SECRET, canonical(secret))

    def _read_once(self, period: int, secret: dict[str, Any], read: Callable[[], Ints]) -> Ints:
        """What a reading gives. That it began is durable before it begins, and that it ended before anybody is told."""
        parts: list[dict[str, Any]] = secret["periods"]
        before = dict(parts[period])
        counts, signals = None, Signals()
        try:
            if before.get("begun", 0) < 2:  # otherwise two processes died of it
                parts[period] = before | {"begun": before.get("begun", 0) + 1}
                _write(self.folder / SECRET, canonical(secret))
                counts = _told(signals, read)
            if counts is None or np.shape(counts) != np.shape(before["noise"]):
                counts, parts[period] = None, before if signals.stopped is not None else {"skipped": True}
                _write(self.folder / SECRET, canonical(secret))
        finally:
            signals.restore()
        signals.deliver()
        if counts is None:
            raise_alone(
                LedgerError(
                    f"{self._names[period]} was interrupted before anything was shown. Close it again."
                    if "noise" in parts[period]
                    else f"The data could not be read to its end: {self._names[period]} stays empty, and its noise was destroyed. What went wrong is not "
                    "told, since it may depend on what the data holds. The next period counts all that was reached by then."
                )
            )
        return counts

    def _record(self, rows: dict[int, str], secret: dict[str, Any]) -> None:
        """Put values that the ledger does not have, of this period or of a ledger that was put back, into it."""
        for t, part in enumerate(secret["periods"]):
            if "values" in part and t not in rows:
                rows[t] = canonical(part["values"]).decode()
                row = (self.ledger.dataset, self.number, t, rows[t])
                self.ledger.store.transact(
                    lambda execute, row=row: execute("INSERT INTO isotone_period VALUES (?, ?, ?, ?)", *row)
                )

    def _adopt(self, rows: dict[int, str], secret: dict[str, Any]) -> None:
        """Forget what is no longer needed: other registers, noise of what is shown and, at the end, all secrets."""
        parts: list[dict[str, Any]] = secret["periods"]
        if any(
            "values" in part and canonical(part["values"]).decode() != rows[t] for t, part in enumerate(parts)
        ):
            raise LedgerError("The ledger and the secret folder disagree about a period: the series stops.")
        used = [t for t in rows if "noise" in parts[t]]
        if used:  # the ledger knows more than the folder, which was put back: this noise has met data
            for t in used:
                parts[t] = {"values": json.loads(rows[t])}
            _write(self.folder / SECRET, canonical(secret))
        self._tidy(secret)
        if self.periods - 1 in rows:
            self.destroy()

    def _register(self, rows: dict[int, str], secret: dict[str, Any]) -> Path | None:
        """The register of the last closed period, None before the first. It is looked at before anybody builds on it."""
        kept, reached = secret.get("register"), None
        path = None if kept is None else self.folder / kept["file"]
        if kept is not None and path is not None:
            mac = (
                _mac(bytes.fromhex(secret["key"]), path, self.number, kept["period"])
                if path.exists()
                else None
            )
            reached = kept["period"] if mac == kept["mac"] else -1
        if reached != _last(rows, secret):
            raise LedgerError(
                "The register of this series is missing, or is not that of the last closed period. Without it a person's "
                "history could shrink: the series stops, and what was shown stands."
            )
        return path

    def _tidy(self, secret: dict[str, Any]) -> None:
        """Remove every register but the one that is in use."""
        current = (secret.get("register") or {}).get("file")
        for file in self.folder.glob("register-*"):
            if file.name != current:
                _remove(file)

    def erase(self, unit: str, register: Callable[[bytes], Register]) -> None:
        """Freeze the lines of a unit in the register under random names, as its owner asked to be forgotten.

        What they reached stays counted; if the unit comes back it has a second history, which costs as much again.
        """
        with self.alone(wait=True):
            rows = self._rows()
            secret = self._secret(rows)
            old = None if secret is None else self._register(rows, secret)
            if secret is None or old is None:
                return
            key, last = bytes.fromhex(secret["key"]), secret["register"]["period"]
            new = self.folder / f"register-{last}-{random_bits(64):016x}.parquet"
            register(key).erase(unit, old, new)
            secret["register"] = {"file": new.name, "period": last, "mac": _mac(key, new, self.number, last)}
            _write(self.folder / SECRET, canonical(secret))
            self._tidy(secret)

    def destroy(self) -> None:
        """Destroy noise, salts, keys and register, and let the ledger say so. No period can be closed afterwards.

        What disks, snapshots and backups keep of a file that was removed is beyond reach.
        """
        for file in [*self.folder.glob("register-*"), *self.folder.glob("secret.json*")]:
            _remove(file)
        sync(self.folder)
        row = (self.ledger.dataset, self.number, self.periods, _END)
        with suppress(ConflictError):  # it says so already
            self.ledger.store.transact(
                lambda execute: execute("INSERT INTO isotone_period VALUES (?, ?, ?, ?)", *row)
            )

    @contextmanager
    def alone(self, *, wait: bool) -> Generator[None]:
        """Hold the series against every other process."""
        with self.ledger.store.lock(f"{self.ledger.dataset}\0series {self.number}", wait=wait):
            yield

    def _rows(self) -> dict[int, str]:
        sql = "SELECT period, shown FROM isotone_period WHERE dataset = ? AND number = ?"
        return dict(
            self.ledger.store.transact(lambda execute: execute(sql, self.ledger.dataset, self.number))
        )

    def _secret(self, rows: dict[int, str]) -> dict[str, Any] | None:
        path = self.folder / SECRET
        if self.periods in rows:
            return None
        try:
            secret: dict[str, Any] = json.loads(path.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValueError):
            if self.periods - 1 in rows:  # they were being destroyed
                return None
            raise LedgerError(f"The secrets in {self.folder} cannot be read. Nothing was shown.") from None
        if (secret["dataset"], secret["charge"]) != (self.ledger.dataset, self.number):
            raise LedgerError(f"The secrets in {self.folder} belong to another series.")
        return secret


def _last(rows: dict[int, str], secret: dict[str, Any]) -> int | None:
    """The last period that was closed, by the ledger or by the folder."""
    return max({*rows, *(t for t, part in enumerate(secret["periods"]) if "values" in part)}, default=None)


def _told(signals: Signals, read: Callable[[], Ints]) -> Ints | None:
    """The counts, or nothing of whatever was raised."""
    try:
        signals.watch()
        counts = read()
        signals.hold()
    except BaseException:
        return None
    return counts


def _mac(key: bytes, path: Path, charge: int, period: int) -> str:
    code = hmac.new(key, f"{charge}\0{period}\0".encode(), hashlib.sha256)
    for file in sorted(path.glob("*.parquet")) if path.is_dir() else [path]:
        with file.open("rb") as stream:
            while block := stream.read(1 << 20):
                code.update(block)
    return code.hexdigest()


def _digest(content: bytes) -> str:
    return "sha256:" + hashlib.sha256(content).hexdigest()


@contextmanager
def _alone_in(folder: Path) -> Generator[None]:
    """Hold a folder against everybody else who opens a series in it. Nothing is left behind."""
    held = folder.with_name(f"{folder.name}.lock")
    if not folder.parent.is_dir():
        raise InputError(f"The folder {folder.parent} does not exist. Create it first. Nothing was charged.")
    with ExitStack() as stack:
        try:
            stack.enter_context(file_lock(held, "opening", wait=False))
        except BusyError:
            raise BusyError(
                f"Somebody else is opening a series in {folder}. Wait for the end of that, and then close its periods. Nothing was charged."
            ) from None
        stack.callback(held.unlink, missing_ok=True)
        yield


def _is_left(folder: Path, unsealed: set[int]) -> bool:
    """Whether a folder holds only what an opening that died has left, which met no data."""
    names = {file.name.removesuffix(".new") for file in folder.iterdir()}
    if names <= {"room"} or (not (folder / SECRET).is_file() and names <= {"room", SECRET}):
        return True
    try:
        return (
            names <= {"room", SECRET, OPENING}
            and json.loads((folder / SECRET).read_bytes())["charge"] in unsealed
        )
    except (OSError, ValueError, LookupError, TypeError):
        return False


def _require_room(folder: Path, unsealed: set[int]) -> None:
    """Make the secret folder, and refuse before the charge where it cannot be made or the disk is full."""
    if folder.exists() and (not folder.is_dir() or not _is_left(folder, unsealed)):
        raise InputError(
            f"There is something at {folder}. A series needs a folder of its own, which it makes: name another one. Nothing was charged."
        )
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        folder.chmod(0o700)
        _write(folder / "room", b"0" * _ROOM)
        (folder / "room").unlink()
    except (OSError, LedgerError) as error:
        reason = getattr(error.__cause__ or error, "strerror", None)
        raise InputError(f"The folder {folder} cannot be written ({reason}). Nothing was charged.") from None


def _write(path: Path, content: bytes) -> None:
    """Put a file in its place whole, for its owner alone, durably."""
    unborn = path.with_name(path.name + ".new")
    try:
        descriptor = os.open(unborn, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        unborn.replace(path)
        sync(path.parent)
    except OSError as error:
        with suppress(OSError):
            _remove(unborn)  # a part of it holds noise, too
        raise LedgerError(f"{path} cannot be written ({error.strerror}). Nothing was shown.") from error


def _remove(path: Path) -> None:
    """Overwrite a file once, as far as the disk does so in place, and remove it."""
    if path.is_dir():
        for inner in path.iterdir():
            _remove(inner)
        path.rmdir()
        return
    with suppress(OSError), path.open("r+b") as stream:
        left = path.stat().st_size
        while left > 0:
            left -= stream.write(b"\0" * min(left, 1 << 20))
        stream.flush()
        os.fsync(stream.fileno())
    path.unlink(missing_ok=True)
