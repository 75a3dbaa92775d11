"""An open series: kills at every step, two closers, lost rows, and one of ledger and secrets put back."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.kills import Killed, every_kill, moments

from isotone.errors import InputError, LedgerError
from isotone.ledger import Attempt, BusyError, Charge, Ledger, LostError, SealedError
from isotone.ledger.ledger import AttemptError
from isotone.ledger.stores import sqlite
from isotone.privacy.guarantee import Guarantee
from isotone.series import state
from isotone.series.state import OpenSeries, SeriesRequest, open_series

T = 3
NOISE = np.arange(100, 100 + T * 2).reshape(T, 1, 2)


def opened(ledger: Ledger, folder: Path, called: str = "series", **more: Any) -> OpenSeries:
    return open_series(
        ledger, folder, say, SeriesRequest(Guarantee.pure(1), called, "test"), lambda: NOISE, **more
    )


def say(charge: Charge, noise: str) -> bytes:
    """What an opening says, as far as the state looks at it."""
    periods = [f"week {t}" for t in range(T)]
    manifest = {"description": {"periods": periods}, "charge": charge.number, "noise": noise}
    return state.canonical({"manifest": manifest})


class Reader:
    """Counts that are new at every look, and a register of which the last state is known."""

    def __init__(self) -> None:
        self.looks = 0

    def __call__(self, key: bytes, old: Path | None, new: Path) -> np.ndarray:
        self.looks += 1
        before = b"" if old is None else old.read_bytes()
        new.write_bytes(before + bytes([self.looks % 256]))
        return np.array([[1000 * self.looks, 7]])


@pytest.fixture
def ledger(place: tuple[str, str]) -> Ledger:
    where, dataset = place
    return Ledger(where, dataset=dataset, epsilon=3)


def test_a_period_is_shown_once_and_repeated_without_a_look(ledger: Ledger, tmp_path: Path) -> None:
    series, read = opened(ledger, tmp_path / "s"), Reader()
    first = series.close(0, read)
    again = OpenSeries(ledger, tmp_path / "s").close(0, read)
    assert (first.fresh, again.fresh, read.looks) == (True, False, 1)
    assert first.values.tolist() == again.values.tolist() == [[1100, 108]]
    assert series.shown()[0].tolist() == [[1100, 108]]


def test_the_secret_folder_is_for_its_owner_and_holds_no_noise_of_what_was_shown(
    ledger: Ledger, tmp_path: Path
) -> None:
    series, read = opened(ledger, tmp_path / "s"), Reader()
    assert (tmp_path / "s").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "s" / "secret.json").stat().st_mode & 0o777 == 0o600
    series.close(1, read)  # the first one is passed over
    secret = json.loads((tmp_path / "s" / "secret.json").read_bytes())
    assert secret["periods"][0] == {"skipped": True}
    assert "noise" not in secret["periods"][1]
    assert "salt" not in secret["periods"][1]
    assert secret["periods"][2]["noise"] == NOISE[2].tolist()
    with pytest.raises(InputError, match="passed over"):
        series.close(0, read)
    assert read.looks == 1


def test_the_opening_says_the_hash_of_salted_noise_and_nothing_of_the_key(
    ledger: Ledger, tmp_path: Path
) -> None:
    series = opened(ledger, tmp_path / "s")
    secret = json.loads((tmp_path / "s" / "secret.json").read_bytes())
    salts = [part["salt"] for part in secret["periods"]]
    assert len(set(salts)) == T
    text = (tmp_path / "s" / "opening.json").read_text()
    assert secret["key"] not in text
    assert not any(salt in text for salt in salts)
    leaves = [
        hashlib.sha256(bytes.fromhex(p["salt"]) + state.canonical(p["noise"])).digest()
        for p in secret["periods"]
    ]
    assert series.opening["noise"] == hashlib.sha256(b"".join(leaves)).hexdigest()


def test_every_series_has_a_key_of_its_own(ledger: Ledger, tmp_path: Path) -> None:
    keys = set[str]()
    for called in ("one", "two"):
        opened(ledger, tmp_path / called, called)
        keys.add(json.loads((tmp_path / called / "secret.json").read_bytes())["key"])
    assert len(keys) == 2
    assert all(len(bytes.fromhex(key)) == 32 for key in keys)


def test_at_the_end_secrets_are_destroyed_and_the_ledger_says_so(ledger: Ledger, tmp_path: Path) -> None:
    series, read = opened(ledger, tmp_path / "s"), Reader()
    for t in range(T):
        series.close(t, read)
    assert series.ended
    assert sorted(file.name for file in (tmp_path / "s").iterdir()) == ["opening.json"]
    assert series.close(1, read).values.tolist() == [[2000 + 102, 7 + 103]]
    assert read.looks == T


@pytest.mark.parametrize("period", range(T))
def test_a_kill_at_any_step_shows_nothing_twice_with_other_data(
    place: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, period: int
) -> None:
    """For each moment there is a series that a process died of at that moment, and that the next one closes."""
    ledger = Ledger(place[0], dataset=place[1], epsilon=100)
    kills = 0

    def begun(number: int) -> tuple[OpenSeries, Reader]:
        series, read = opened(ledger, tmp_path / f"s{number}", called=f"series {number}"), Reader()
        for t in range(period):
            series.close(t, read)
        return series, read

    now = [begun(0)]
    for killed in every_kill(
        monkeypatch, lambda: OpenSeries(ledger, now[0][0].folder).close(period, now[0][1])
    ):
        series, read = now[0]
        kills += killed
        durable: set[str] = set()
        path = series.folder / "secret.json"
        content = path.read_bytes().strip(b"\0") if path.exists() else b""
        if content:  # once values are in the secret file they are the only ones
            part = json.loads(content)["periods"][period]
            if "values" in part:
                assert "noise" not in part
                durable.add(json.dumps(part["values"]))
        if period in series.shown():
            durable.add(json.dumps(series.shown()[period].tolist()))
        looks = read.looks
        final = series.close(period, read)
        assert read.looks == looks + (not durable)
        assert {json.dumps(final.values.tolist())} == (durable or {json.dumps(final.values.tolist())})
        for t in range(period + 1, T):
            series.close(t, read)
        assert series.ended
        if killed:
            now[0] = begun(kills)
    assert kills > 5


class Panic(BaseException):
    """What a library raises that is written in another language."""


@pytest.mark.parametrize("error", [ValueError, MemoryError, Panic, KeyboardInterrupt, SystemExit, InputError])
def test_whatever_ends_a_reading_leaves_the_period_empty(
    ledger: Ledger, tmp_path: Path, error: type[BaseException]
) -> None:
    series, read = opened(ledger, tmp_path / "s"), Reader()
    series.close(0, read)

    def fails(key: bytes, old: Path | None, new: Path) -> Any:
        new.write_bytes(b"half of it")
        raise error("Ann Miller, row 7")

    with pytest.raises(LedgerError, match="week 1 stays empty") as told:
        series.close(1, fails)
    assert told.value.__context__ is None
    assert told.value.__cause__ is None
    assert "noise" not in json.loads((tmp_path / "s" / "secret.json").read_bytes())["periods"][1]
    for _ in range(2):
        with pytest.raises(InputError, match="week 1 was passed over"):
            series.close(1, read)
    assert read.looks == 1
    assert series.close(2, read).values.tolist() == [[2104, 112]]
    assert sorted(series.shown()) == [0, 2]


def test_counts_of_another_form_leave_the_period_empty(ledger: Ledger, tmp_path: Path) -> None:
    series = opened(ledger, tmp_path / "s")
    with pytest.raises(LedgerError, match="week 0 stays empty"):
        series.close(0, lambda key, old, new: np.zeros((2, 2), np.int64))
    assert series.shown() == {}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_a_reading_as_often_as_one_likes(ledger: Ledger, tmp_path: Path, number: int) -> None:
    series, read = opened(ledger, tmp_path / "s"), Reader()
    heard: list[int] = []

    def stopped(key: bytes, old: Path | None, new: Path) -> Any:
        signal.raise_signal(number)
        raise AssertionError("the reading goes on")

    before = signal.signal(number, lambda number, _: heard.append(number))
    try:
        for _ in range(3):
            with pytest.raises(LedgerError, match="Close it again"):
                series.close(0, stopped)
    finally:
        signal.signal(number, before)
    assert heard == [number] * 3
    assert series.close(0, read).values.tolist() == [[1100, 108]]


def test_the_second_death_of_a_reading_leaves_the_period_empty(ledger: Ledger, tmp_path: Path) -> None:
    series, read = opened(ledger, tmp_path / "s"), Reader()
    for _ in range(2):
        child = os.fork()
        if child == 0:
            OpenSeries(ledger, tmp_path / "s").close(0, lambda key, old, new: os._exit(9))
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    with pytest.raises(LedgerError, match="week 0 stays empty"):
        series.close(0, read)
    assert read.looks == 0


def test_two_closers_show_the_same(ledger: Ledger, tmp_path: Path) -> None:
    opened(ledger, tmp_path / "s")
    read, shown = Reader(), []
    gate = threading.Barrier(4)

    def close() -> None:
        gate.wait()
        shown.append(OpenSeries(ledger, tmp_path / "s").close(0, read).values.tolist())

    threads = [threading.Thread(target=close) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert shown == [[[1100, 108]]] * 4
    assert read.looks == 1


def test_who_finds_another_at_work_can_leave(ledger: Ledger, tmp_path: Path) -> None:
    series = opened(ledger, tmp_path / "s")
    busy: list[bool] = []

    def other() -> None:
        try:
            OpenSeries(ledger, tmp_path / "s").close(0, Reader(), wait=False)
        except BusyError:
            busy.append(True)

    def read(key: bytes, old: Path | None, new: Path) -> np.ndarray:
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        return Reader()(key, old, new)

    series.close(0, read)
    assert busy == [True]


def test_secrets_that_were_put_back_stop_the_series(ledger: Ledger, tmp_path: Path) -> None:
    series, read = opened(ledger, tmp_path / "s"), Reader()
    series.close(0, read)
    shutil.copytree(tmp_path / "s", tmp_path / "copy")
    series.close(1, read)
    shutil.rmtree(tmp_path / "s")
    shutil.copytree(tmp_path / "copy", tmp_path / "s")
    put_back = OpenSeries(ledger, tmp_path / "s")
    assert put_back.waiting == [2]  # the noise of the second one is there again, and has met data
    for period in (
        2,
        1,
        2,
    ):  # what was shown is shown again, and its noise is gone; the register is too old to go on
        if period == 1:
            assert put_back.close(1, read).values.tolist() == series.shown()[1].tolist()
            assert "noise" not in json.loads((tmp_path / "s" / "secret.json").read_bytes())["periods"][1]
        else:
            with pytest.raises(LedgerError, match="could shrink"):
                put_back.close(2, read)
    assert read.looks == 2


def test_secrets_that_outlive_the_series_in_a_copy_close_nothing(ledger: Ledger, tmp_path: Path) -> None:
    series, read = opened(ledger, tmp_path / "s"), Reader()
    series.close(0, read)
    shutil.copytree(tmp_path / "s", tmp_path / "copy")
    for t in range(1, T):
        series.close(t, read)
    shutil.rmtree(tmp_path / "s")
    shutil.copytree(tmp_path / "copy", tmp_path / "s")
    late = OpenSeries(ledger, tmp_path / "s")
    assert late.waiting == []
    assert late.close(1, read).values.tolist() == series.shown()[1].tolist()
    assert read.looks == T
    assert sorted(file.name for file in (tmp_path / "s").iterdir()) == ["opening.json"]


def test_what_can_still_be_closed_is_what_comes_after_the_last_period(ledger: Ledger, tmp_path: Path) -> None:
    series, read = opened(ledger, tmp_path / "s"), Reader()
    assert series.waiting == [0, 1, 2]
    series.close(1, read)
    assert series.waiting == [2]
    with pytest.raises(LedgerError):
        series.close(2, lambda *_: [][0])
    assert series.waiting == []


def test_a_ledger_that_was_put_back_gets_its_rows_again(tmp_path: Path) -> None:
    where = tmp_path / "a.ledger"
    ledger, read = Ledger(where, epsilon=3), Reader()
    series = opened(ledger, tmp_path / "s")
    series.close(0, read)
    shutil.copy(where, tmp_path / "old.ledger")
    shown = series.close(1, read)
    shutil.copy(tmp_path / "old.ledger", where)
    again = OpenSeries(Ledger(where), tmp_path / "s")
    again.close(2, read)  # the lost row comes back with the values that were shown
    assert again.shown()[1].tolist() == shown.values.tolist()
    assert read.looks == 3


@pytest.mark.parametrize("harm", ["lost", "older", "other"])
def test_a_register_that_is_not_the_last_stops_the_series(ledger: Ledger, tmp_path: Path, harm: str) -> None:
    series, read = opened(ledger, tmp_path / "s"), Reader()
    series.close(0, read)
    (first,) = (tmp_path / "s").glob("register-*")
    before = first.read_bytes()
    series.close(1, read)
    (second,) = (tmp_path / "s").glob("register-*")
    if harm == "lost":
        second.unlink()
    else:
        second.write_bytes(before if harm == "older" else second.read_bytes() + b"x")
    with pytest.raises(LedgerError, match="could shrink"):
        series.close(2, read)
    assert read.looks == 2
    assert series.close(1, read).values.tolist() == [[2102, 110]]


def test_other_secrets_and_another_opening_are_refused(ledger: Ledger, tmp_path: Path) -> None:
    opened(ledger, tmp_path / "s")
    said = json.loads((tmp_path / "s" / "opening.json").read_bytes())
    said["manifest"]["description"]["periods"].append("one more")
    (tmp_path / "s" / "opening.json").write_bytes(state.canonical(said))
    with pytest.raises(LedgerError, match="sealed with"):
        OpenSeries(ledger, tmp_path / "s")


def test_noise_of_another_series_meets_no_data_here(ledger: Ledger, tmp_path: Path) -> None:
    opened(ledger, tmp_path / "s", called="one")
    other, read = opened(ledger, tmp_path / "t", called="two"), Reader()
    shutil.copy(tmp_path / "s" / "secret.json", tmp_path / "t" / "secret.json")
    with pytest.raises(LedgerError, match="belong to another series"):
        other.close(0, read)
    assert read.looks == 0


def test_a_ledger_that_says_other_values_stops_the_series(ledger: Ledger, tmp_path: Path) -> None:
    series, read = opened(ledger, tmp_path / "s"), Reader()
    series.close(0, read)
    secret = json.loads((tmp_path / "s" / "secret.json").read_bytes())
    secret["periods"][0]["values"] = [[1, 2]]
    (tmp_path / "s" / "secret.json").write_bytes(state.canonical(secret))
    with pytest.raises(LedgerError, match="disagree"):
        series.close(0, read)
    assert series.shown()[0].tolist() == [[1100, 108]]


def test_values_are_durable_before_the_ledger_has_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A power cut after the row is there must not bring the noise back: first the file, then its folder, then the row."""
    folder = tmp_path / "s"
    series, steps = opened(Ledger(tmp_path / "a.ledger", epsilon=3), folder), list[str]()
    sync, replace, transact = os.fsync, Path.replace, sqlite.SqliteStore.transact

    def synced(descriptor: int) -> None:
        steps.append(f"sync {Path(f'/proc/self/fd/{descriptor}').readlink().name}")
        sync(descriptor)

    def replaced(path: Path, target: Path) -> Path:
        steps.append(f"replace {target.name}")
        return replace(path, target)

    def transacted(self: sqlite.SqliteStore, work: Any) -> Any:
        steps.append("transact")
        return transact(self, work)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "replace", replaced)
    monkeypatch.setattr(sqlite.SqliteStore, "transact", transacted)
    series.close(0, Reader())
    last = len(steps) - 1 - steps[::-1].index("replace secret.json")
    assert steps[last - 1 : last + 3] == ["sync secret.json.new", "replace secret.json", "sync s", "transact"]


def test_registers_that_are_no_longer_used_are_overwritten(ledger: Ledger, tmp_path: Path) -> None:
    series, read = opened(ledger, tmp_path / "s"), Reader()
    series.close(0, read)
    (first,) = (tmp_path / "s").glob("register-*")
    os.link(first, tmp_path / "kept")
    assert set((tmp_path / "kept").read_bytes()) != {0}
    series.close(1, read)
    assert set((tmp_path / "kept").read_bytes()) == {0}


def test_a_series_is_charged_once(ledger: Ledger, tmp_path: Path) -> None:
    opened(ledger, tmp_path / "s")
    with pytest.raises(SealedError):
        opened(ledger, tmp_path / "t")
    with pytest.raises(InputError, match="something at"):
        opened(ledger, tmp_path / "s")
    assert str(ledger.spent().epsilon) == "1"


def test_an_error_while_noise_is_drawn_is_no_free_second_try(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(state, "random_key", lambda: (_ for _ in ()).throw(ValueError))
        with pytest.raises(AttemptError):
            opened(ledger, tmp_path / "s")
    assert not (tmp_path / "s").exists()
    assert opened(ledger, tmp_path / "s").periods == T
    assert str(ledger.spent().epsilon) == "2"


def test_an_opening_that_ends_at_any_step_goes_on_under_its_charge(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that ends cleans nothing up. What it left has met no data, and nobody closes a period with it."""
    draws: list[int] = []

    def draw() -> np.ndarray:
        draws.append(len(draws))
        return NOISE + 1000 * len(draws)

    def open_in(folder: Path, name: str) -> OpenSeries:
        return open_series(ledger, folder, say, SeriesRequest(Guarantee.pure("1/1000"), name, "test"), draw)

    outcomes, killed = set[str](), True
    at = 0
    while killed:
        at += 1
        folder, name, before = tmp_path / f"s{at}", f"series {at}", len(draws)
        with monkeypatch.context() as patched:
            patched.setattr(state, "_remove", lambda _: None)
            patched.setattr(Path, "rmdir", lambda _: None)
            patched.setattr(Attempt, "end", lambda _, error: error)
            moments(patched, at)
            killed = False
            try:
                open_in(folder, name)
            except (Killed, LedgerError):
                killed = True
        try:
            found = OpenSeries(ledger, folder)
        except (InputError, LedgerError):
            outcomes.add("drawn" if len(draws) > before else "nothing drawn")
            states = [charge.state for charge in ledger.charges() if charge.request == name]
            if "drawn" in states:  # between the two last rows of the ledger
                outcomes.add("lost")
                with pytest.raises(LostError):
                    open_in(folder, name)
                continue
            found = open_in(folder, name)
        else:
            outcomes.add("whole")
        secret = json.loads((folder / "secret.json").read_bytes())
        assert [part["noise"] for part in secret["periods"]] == (NOISE + 1000 * len(draws)).tolist()
        assert found.close(0, Reader()).fresh
        assert len([charge for charge in ledger.charges() if charge.request == name]) == 1
    assert outcomes == {"nothing drawn", "drawn", "lost", "whole"}
    assert at > 10


def test_two_who_open_at_once_leave_each_other_alone(ledger: Ledger, tmp_path: Path) -> None:
    """Who comes second is refused, and removes nothing of the first, whichever series it is."""
    told: list[str] = []

    def draw() -> np.ndarray:
        for called in ("series", "another"):
            with pytest.raises(BusyError) as refused:
                threaded(lambda called=called: opened(ledger, tmp_path / "s", called))
            told.append(str(refused.value))
        return NOISE

    series = open_series(
        ledger, tmp_path / "s", say, SeriesRequest(Guarantee.pure(1), "series", "test"), draw
    )
    assert len(told) == 2
    assert all(f"Somebody else is opening a series in {tmp_path / 's'}" in words for words in told)
    assert series.close(0, Reader()).fresh
    assert str(ledger.spent().epsilon) == "1"


def threaded(work: Any) -> None:
    """Do it in a thread of its own, and raise what it raises."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(work).result()


@pytest.mark.parametrize("left", ["opening.json", "register-0-00.parquet", "mine.txt"])
def test_what_another_series_left_is_not_taken_over(ledger: Ledger, tmp_path: Path, left: str) -> None:
    folder = tmp_path / "s"
    folder.mkdir()
    (folder / "secret.json").write_text('{"charge": 7}')
    (folder / left).write_text("{}")
    with pytest.raises(InputError, match="something at"):
        opened(ledger, folder)
    assert sorted(file.name for file in folder.iterdir()) == sorted(["secret.json", left])
    assert not ledger.charges()


def test_a_full_disk_shows_nothing(ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    series, read = opened(ledger, tmp_path / "s"), Reader()
    with monkeypatch.context() as patched:
        patched.setattr(
            Path, "replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device"))
        )
        with pytest.raises(LedgerError, match="Nothing was shown"):
            series.close(0, read)
    assert series.shown() == {}
    assert series.close(0, read).values.tolist() == [[1100, 108]]  # without room there was no look


def test_a_disk_that_fills_leaves_nothing_behind_and_can_be_tried_again(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(InputError, match=r"\(No space left on device\)\. Nothing was charged\.$"):
            opened(ledger, tmp_path / "s")
    series, read = opened(ledger, tmp_path / "s"), Reader()
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(LedgerError, match="Nothing was shown"):
            series.close(0, read)
    assert not (tmp_path / "s" / "secret.json.new").exists()
    assert series.close(0, read).values.tolist() == [[1100, 108]]


def test_periods_that_were_not_planned_are_refused(ledger: Ledger, tmp_path: Path) -> None:
    series = opened(ledger, tmp_path / "s")
    for period in (-1, T, 99):
        with pytest.raises(InputError, match="periods 0 to 2"):
            series.close(period, Reader())
