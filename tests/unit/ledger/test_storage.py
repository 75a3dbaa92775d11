"""What the databases themselves guarantee: rows that stay, commits that are durable, damage that is seen."""

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from tests.support.ledger_worker import make

from isotone.errors import BudgetError, InputError, LedgerError
from isotone.ledger import Cost, Ledger, open_or_start
from isotone.ledger.stores import sqlite
from isotone.ledger.stores import sqlite as locks
from isotone.ledger.stores.postgres import PostgresStore
from isotone.ledger.stores.sqlite import TABLES
from isotone.privacy.guarantee import Guarantee

ONE = Guarantee.pure(1)
VALUES = {
    "isotone_ledger": "('survey', 'pure', '900', '0', '0', 'addition', 'add-remove', 'person', 'now')",
    "isotone_unit": "('survey', 'dog')",
    "isotone_charge": "('survey', 1, 'now', 'pure', '0', '0', '0', '', '', '', 'forged')",
    "isotone_reading": "('survey', 1, 1)",
    "isotone_ending": "('survey', 1, 1, 'died')",
    "isotone_outcome": "('survey', 1, 'failed')",
    "isotone_sealed": "('survey', 1, 'forged')",
    "isotone_period": "('survey', 1, 0, 'forged')",
}
KEYS = {
    "isotone_ledger": "dataset",
    "isotone_unit": "dataset",
    "isotone_reading": "dataset, number, turn",
    "isotone_ending": "dataset, number, turn",
    "isotone_period": "dataset, number, period",
}


def fill(ledger: Ledger) -> Ledger:
    """Put a row into every table."""
    with pytest.raises(KeyboardInterrupt), ledger.attempt(ONE, request="r"):
        os.kill(os.getpid(), signal.SIGINT)
    with ledger.attempt(ONE, request="r") as attempt:
        attempt.draw()
        attempt.seal("hash")
    row = f"('{ledger.dataset}', 1, 0, '[]')"
    ledger.store.transact(lambda run: run(f"INSERT INTO isotone_period VALUES {row}"))
    return ledger


def full(path: Path) -> Ledger:
    """A ledger with a row in every table."""
    return fill(Ledger(path, epsilon=2, dataset="survey"))


def rows(ledger: Ledger):
    return ledger.store.transact(lambda run: [run(f"SELECT * FROM {table}") for table in TABLES])


@pytest.mark.parametrize("table", TABLES)
def test_no_row_of_a_file_can_be_changed_removed_or_replaced(tmp_path, table):
    """Through a connection of our own, with SQLite's defaults: triggers must not depend on a setting."""
    ledger = full(tmp_path / "a.ledger")
    before = rows(ledger)
    columns = ", ".join(
        name
        for _, name, *_ in ledger.store.transact(
            lambda run: run(f"SELECT * FROM pragma_table_info('{table}')")
        )
    )
    other = VALUES[table].replace("'survey'", "'other'")
    statements = [
        f"UPDATE {table} SET dataset = 'x'",
        f"UPDATE OR REPLACE {table} SET dataset = 'x'",
        f"DELETE FROM {table}",
        f"INSERT OR REPLACE INTO {table} VALUES {VALUES[table]}",
        f"REPLACE INTO {table} VALUES {VALUES[table]}",
        f"INSERT OR REPLACE INTO {table} (rowid, {columns}) VALUES (1, {other[1:]}",
    ]
    with closing(sqlite3.connect(tmp_path / "a.ledger", isolation_level=None)) as connection:
        for statement in statements:
            with pytest.raises(sqlite3.IntegrityError, match="never changed or removed"):
                connection.execute(statement)
    assert rows(ledger) == before


@pytest.mark.services
@pytest.mark.parametrize("table", TABLES)
def test_no_row_of_a_server_can_be_changed_removed_or_replaced(place, table):
    if "://" not in place[0]:
        pytest.skip("this is about PostgreSQL")
    ledger = fill(make(place))
    row = VALUES[table].replace("'survey'", f"'{place[1]}'")
    key = KEYS.get(table, "dataset, number")
    for statement in (
        f"UPDATE {table} SET dataset = 'x'",
        f"DELETE FROM {table}",
        f"TRUNCATE {table} CASCADE",
        f"INSERT INTO {table} VALUES {row} ON CONFLICT ({key}) DO UPDATE SET dataset = 'x'",
    ):
        with pytest.raises(LedgerError, match="never changed or removed"):
            ledger.store.transact(lambda run, sql=statement: run(sql))


def test_every_commit_reaches_the_disk(tmp_path, monkeypatch):
    found: list[tuple] = []

    class Watched(sqlite3.Connection):
        def execute(self, sql, *values):
            if sql == "COMMIT":
                settings = ("synchronous", "foreign_keys", "journal_mode")
                found.append(
                    tuple(super(Watched, self).execute(f"PRAGMA {x}").fetchone()[0] for x in settings)
                )
            return super().execute(sql, *values)

    connect = sqlite3.connect
    monkeypatch.setattr(sqlite.sqlite3, "connect", lambda *a, **k: connect(*a, factory=Watched, **k))
    full(tmp_path / "a.ledger")
    assert len(found) >= 5
    assert set(found) == {(3, 1, "delete")}  # EXTRA: the journal's folder is synchronised too


@pytest.mark.services
def test_every_commit_of_a_server_reaches_the_disk(place):
    if "://" not in place[0]:
        pytest.skip("this is about PostgreSQL")
    ledger = make(place)
    asked = ("SHOW synchronous_commit", "SHOW transaction_isolation")
    found = ledger.store.transact(lambda run: [run(sql)[0][0] for sql in asked])
    assert found == ["on", "serializable"]


@pytest.mark.parametrize("name", ["isotone_ending", "sqlite_autoindex_isotone_sealed_1"])
def test_damage_in_a_page_that_nobody_reads_is_noticed(tmp_path, name):
    path = tmp_path / "a.ledger"
    full(path)
    with closing(sqlite3.connect(path)) as connection:
        (size,) = connection.execute("PRAGMA page_size").fetchone()
        (page,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (name,)).fetchone()
    content = bytearray(path.read_bytes())
    content[(page - 1) * size : page * size] = b"\0" * size
    path.write_bytes(content)
    with pytest.raises(LedgerError, match="whole budget as spent"):
        Ledger(path)


@pytest.mark.parametrize(
    ("total", "first", "second"),
    [
        ({"rho": 1}, Guarantee.zcdp("3/4"), Guarantee.zcdp("251/1000")),
        ({"rho": 1}, Guarantee.zcdp("3/4"), Guarantee.pure("0.71")),
        ({"epsilon": 9, "delta": "1e-5"}, Guarantee.approximate(1, "6e-6"), Guarantee.approximate(1, "5e-6")),
    ],
)
def test_rho_and_delta_cannot_be_overspent(place, total, first, second):
    ledger = make(place, **total)
    ledger.charge(first)
    for spend in (ledger.charge, ledger.check, lambda g: ledger.attempt(g, request="r").__enter__()):
        with pytest.raises(BudgetError, match="too short"):
            spend(second)
    assert len(ledger.charges()) == 1


def test_a_composition_of_a_later_version_is_refused(tmp_path):
    path = tmp_path / "a.ledger"
    Ledger(path, epsilon=1).create()
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            "DROP TRIGGER isotone_ledger_UPDATE; UPDATE isotone_ledger SET rule = 'pld filter'"
        )
    with pytest.raises(LedgerError, match="'pld filter', which this version does not know"):
        Ledger(path)


# ---------------------------------------------------------------------------- addresses and places


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:SECRET@127.0.0.1:1/db",
        "postgresql://127.0.0.1:1/db?user=u&password=SECRET",
        "postgresql://127.0.0.1:1/db?password=x@SECRET",
        "postgresql://u:SECRET@127.0.0.1:1/db?sslpassword=SECRET&application_name=SECRET",
        "postgresql:///db?host=127.0.0.1&port=1&password=SECRET",
        "postgresql://u:SE/SECRET@127.0.0.1:1/db",
        "postgresql://u:SE?SECRET@127.0.0.1:1/db",
        "postgresql://127.0.0.1:1/db?pasword=SECRET",
        "postgresql://u:5432/SECRET@127.0.0.1:1/db",
    ],
)
def test_no_password_is_ever_shown(url, monkeypatch):
    monkeypatch.setenv("PGPASSWORD", "SECRET")
    store = PostgresStore(url)
    said = [repr(store)]
    for ask in (lambda store: store.address, lambda store: store.transact(lambda run: run("SELECT 1"))):
        try:
            said.append(str(ask(store)))
        except LedgerError as error:
            said += [str(error), repr(error.__cause__)]
    assert len(said) >= 4
    assert not [text for text in said if "SECRET" in text]


def test_a_short_name_of_a_user_does_not_eat_letters_of_a_message():
    store = PostgresStore("postgresql://e:SECRET@db.example.org/privacy")
    said = store._clean(Exception('role "e" does not exist, e: even with SECRET'))  # pyright: ignore[reportPrivateUsage]
    assert said == 'role "…" does not exist, …: even with …'


def test_an_address_says_host_port_and_database():
    assert PostgresStore("postgresql://u:p@db.example.org:5433/privacy?password=q").address == (
        "postgresql://db.example.org:5433/privacy"
    )


def test_a_network_disk_is_refused_before_the_charge(tmp_path, monkeypatch):
    ledger = Ledger(tmp_path / "a.ledger", epsilon=1)
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
        f"36 22 0:32 / {str(tmp_path).replace(' ', chr(92) + '040')} rw shared:1 - nfs4 server:/x rw\n"
    )
    assert locks.network_disk(tmp_path, mounts) == "nfs4"
    assert locks.network_disk(tmp_path.parent, mounts) is None
    monkeypatch.setattr(locks, "network_disk", lambda folder: "nfs4")
    with pytest.raises(LedgerError, match=r"network disk \(nfs4\)"), ledger.attempt(ONE, request="r"):
        pytest.fail("charged without a lock")
    assert ledger.charges() == []


def test_a_disk_without_locks_is_refused_before_the_charge(tmp_path, monkeypatch):
    ledger = Ledger(tmp_path / "a.ledger", epsilon=1)

    def refuse(*_):
        raise OSError(37, "No locks available")

    monkeypatch.setattr(locks.fcntl, "lockf", refuse)
    with pytest.raises(OSError, match="No locks"):
        locks.fcntl.lockf(0, 0)
    with pytest.raises(LedgerError, match="No locks available"), ledger.attempt(ONE, request="r"):
        pytest.fail("charged without a lock")
    assert ledger.charges() == []


def test_a_link_to_a_ledger_has_the_same_lock(tmp_path):
    (tmp_path / "link.ledger").symlink_to(tmp_path / "a.ledger")
    ledger = Ledger(tmp_path / "link.ledger", epsilon=1, dataset="x").create()
    assert (tmp_path / "a.ledger").is_file()
    assert (tmp_path / "link.ledger").is_symlink()
    with ledger.attempt(ONE, request="r") as attempt:
        assert not (tmp_path / "link.ledger.lock").exists()
        assert (tmp_path / "a.ledger.lock").exists()
        attempt.draw()
        attempt.seal("hash")


def test_a_lock_file_that_was_removed_meanwhile_is_not_the_lock(tmp_path, monkeypatch):
    """Who waited for a lock on a file that is gone would hold it beside somebody with the new file."""
    path, taken, true = tmp_path / "a.lock", [], locks._lock

    def lock(file, where, place, *, wait):
        true(file, where, place, wait=wait)
        taken.append(file)
        if len(taken) == 1:
            where.unlink()

    monkeypatch.setattr(locks, "_lock", lock)
    with locks.file_lock(path, "key", wait=True):
        assert len(taken) == 2
        assert os.path.samestat(os.fstat(taken[-1].descriptor), path.stat())


def test_a_ledger_that_another_process_is_starting_is_not_taken_for_another_one(tmp_path):
    Ledger(tmp_path / "survey.ledger", epsilon=1).create()
    (tmp_path / "survey.ledger").rename(tmp_path / "survey.ledger.new")
    assert open_or_start(tmp_path / "survey.ledger", epsilon=1).remaining() == Cost(Fraction(1))


def test_a_mistyped_path_starts_no_second_budget(tmp_path):
    first = open_or_start(tmp_path / "survey.ledger", epsilon=1)
    first.charge(ONE)
    assert open_or_start(tmp_path / "survey.ledger", epsilon=1).remaining() == Cost()
    with pytest.raises(LedgerError, match=r"its folder has 'survey.ledger'"):
        open_or_start(tmp_path / "survy.ledger", epsilon=1)
    with pytest.raises(LedgerError, match="does not exist"):
        open_or_start(tmp_path / "survy" / "survey.ledger", epsilon=1)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["survey.ledger", "survey.ledger.lock"]


@pytest.mark.services
def test_a_mistyped_name_on_a_server_starts_no_budget(place):
    if "://" not in place[0]:
        pytest.skip("this is about PostgreSQL")
    make(place)
    assert open_or_start(place[0], dataset=place[1], epsilon=2).remaining() == Cost(Fraction(2))
    with pytest.raises(LedgerError, match="has no data set"):
        open_or_start(place[0], dataset=place[1] + "x", epsilon=2)


def test_a_unit_has_a_name_of_its_own(tmp_path):
    ledger = Ledger(tmp_path / "a.ledger", epsilon=2)
    ledger.charge(Guarantee.pure(1, unit="person_id"))
    with pytest.raises(LedgerError, match=r"name='person_id'"):
        ledger.charge(Guarantee.pure(1, unit="pid"))


@pytest.mark.parametrize(
    "arguments",
    [
        {"where": 5},
        {"where": ""},
        {"where": b"a.ledger"},
        {"dataset": ""},
        {"dataset": 7},
        {"unit": 7},
        {"unit": ""},
        {"neighbours": "swap"},
        {"epsilon": True},
    ],
)
def test_a_wrong_argument_makes_no_file(tmp_path, monkeypatch, arguments):
    monkeypatch.chdir(tmp_path)
    given: dict[str, Any] = {"where": "a.ledger", "epsilon": 1, **arguments}
    with pytest.raises(InputError):
        Ledger(given.pop("where"), **given)
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------------------- files, locks and forks


def test_a_removed_file_is_never_charged(tmp_path):
    """Who removes holds the lock of creators until the file is gone, so that no other puts a new data set into it."""
    path = tmp_path / "a.ledger"
    ledger, other = Ledger(path, epsilon=1).create(), Ledger(path, epsilon=1)
    waiting: list[threading.Thread] = []

    def discard(execute):
        execute("DELETE FROM isotone_ledger")

    true = Path.unlink

    def unlink(self, missing_ok=False):
        if self == path and not waiting:
            waiting.append(threading.Thread(target=lambda: other.charge(ONE)))
            waiting[0].start()
            waiting[0].join(0.3)  # long enough to charge, were it not for the lock
        true(self, missing_ok=missing_ok)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "unlink", unlink)
        ledger.store.remove(discard)
    waiting[0].join()
    assert len(Ledger(path).charges()) == 1


def test_nobody_but_sqlite_opens_the_file(tmp_path, monkeypatch):
    """To close it once, opened in any other way, lets go of the locks of every thread of the process."""
    path, opened = tmp_path / "survey.ledger", []

    def told(name, arguments):
        if name == "open" and isinstance(arguments[0], (str, bytes, os.PathLike)) and armed:
            opened.append(os.fsdecode(arguments[0]))

    armed: list[bool] = []
    sys.addaudithook(told)
    armed.append(True)
    try:
        for _ in range(2):
            ledger = open_or_start(path, epsilon=3)
            fill(ledger) if not ledger.charges() else ledger.charge(ONE)
            with pytest.raises(LedgerError, match=r"its folder has 'survey.ledger'"):
                open_or_start(tmp_path / "other.ledger", epsilon=1)
        ledger.export()  # pyright: ignore
    finally:
        armed.clear()
    assert [name for name in opened if name.startswith(str(path)) and not name.endswith(".lock")] == []
    assert any(name.endswith(".lock") for name in opened)  # the hook sees what Python opens


def test_a_look_into_the_folder_lets_go_of_no_lock(tmp_path):
    """A charge is under way in one thread while another looks for ledgers: a second process must not get in between."""
    path = tmp_path / "survey.ledger"
    ledger = Ledger(path, epsilon=1).create()
    inside, looked = threading.Event(), threading.Event()

    def slow(execute):
        execute("INSERT INTO isotone_unit VALUES ('survey', 'person')")
        inside.set()
        assert looked.wait(60)

    charging = threading.Thread(target=lambda: ledger.store.transact(slow))
    charging.start()
    assert inside.wait(60)
    with pytest.raises(LedgerError, match="its folder has"):
        open_or_start(tmp_path / "other.ledger", epsilon=1)
    code = f"import sqlite3; sqlite3.connect({str(path)!r}, timeout=0).execute('BEGIN IMMEDIATE')"
    second = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    looked.set()
    charging.join()
    assert "database is locked" in second.stderr


def test_a_look_into_the_folder_lets_go_of_no_request(tmp_path):
    """The lock file stands beside the ledger: to open and close it would end the locks of this process."""
    ledger = Ledger(tmp_path / "survey.ledger", epsilon=1).create()
    with ledger.attempt(ONE, request="r") as attempt:
        with pytest.raises(LedgerError, match="its folder has"):
            open_or_start(tmp_path / "other.ledger", epsilon=1)
        assert held_elsewhere(tmp_path / "survey.ledger.lock", "survey\0r")
        attempt.draw()
        attempt.seal("hash")


def test_a_new_ledger_is_on_the_disk_with_its_name(tmp_path, monkeypatch):
    """The folder is synchronised after the rename: a power cut must not take the ledger of a charge that returned."""
    steps: list[str] = []
    sync, rename = os.fsync, Path.rename

    def told_sync(descriptor):
        sync(descriptor)
        if os.path.samestat(os.fstat(descriptor), tmp_path.stat()):
            steps.append("folder")

    def told_rename(self, target):
        steps.append("rename")
        return rename(self, target)

    monkeypatch.setattr(os, "fsync", told_sync)
    monkeypatch.setattr(Path, "rename", told_rename)
    ledger = Ledger(tmp_path / "a.ledger", epsilon=1).create()
    assert steps == ["rename", "folder"]
    ledger.remove()
    assert steps == ["rename", "folder", "folder"]


def held_elsewhere(path: Path, key: str) -> bool:
    """Whether another process finds the lock taken."""
    child = os.fork()
    if child == 0:
        try:
            with locks.file_lock(path, key, wait=False):
                os._exit(0)
        except locks.BusyError:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1


def test_one_request_that_ends_leaves_the_locks_of_others(tmp_path):
    """All locks of a process are on one descriptor, which is closed with the last of them only."""
    path = tmp_path / "a.lock"
    with locks.file_lock(path, "first", wait=True):
        with locks.file_lock(path, "second", wait=True):
            assert held_elsewhere(path, "first")
            assert held_elsewhere(path, "second")
        assert held_elsewhere(path, "first")
        assert not held_elsewhere(path, "second")
    assert not held_elsewhere(path, "first")


def test_a_fork_does_not_believe_to_hold_the_locks_of_its_parent(tmp_path):
    """In the child the parent's locks are those of another process, to be waited for and not its own."""
    path = tmp_path / "a.lock"
    with locks.file_lock(path, "key", wait=True), locks.not_nested(("a", "key")):
        child = os.fork()
        if child == 0:
            code = 0
            try:
                with locks.not_nested(("a", "key")):  # the thread of the child has begun nothing
                    code += 1
                code += 2 * bool(locks._files)
                with locks.file_lock(path, "other", wait=False):
                    code += 4
                with locks.file_lock(path, "key", wait=False):
                    code += 8
            except locks.BusyError:
                code += 16
            os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1 + 4 + 16
        assert held_elsewhere(path, "key")


def test_a_child_that_is_forked_in_a_transaction_does_not_hold_up_the_line(tmp_path):
    ledger = Ledger(tmp_path / "a.ledger", epsilon=9).create()
    children = []

    def work(execute):
        child = os.fork()
        if child == 0:
            signal.pause()
        children.append(child)

    try:
        ledger.store.transact(work)
        ledger.charge(ONE)
        code = (
            f"from isotone.ledger import Ledger; print(len(Ledger({str(tmp_path / 'a.ledger')!r}).charges()))"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
        )
        assert done.stdout == "1\n"
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def test_a_folder_that_cannot_be_locked_has_no_line(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(37, "No locks available")

    ledger = Ledger(tmp_path / "a.ledger", epsilon=9).create()
    monkeypatch.setattr(locks.fcntl, "flock", refuse)
    assert ledger.charge(ONE).number == 1
    assert not locks._waiting


def test_the_line_is_kept_while_a_transaction_runs_and_no_longer(tmp_path):
    ledger = Ledger(tmp_path / "a.ledger", epsilon=9).create()
    code = (
        "import fcntl, os, sys; fcntl.flock(os.open(sys.argv[1], os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB)"
    )

    def free():
        return (
            subprocess.run(
                [sys.executable, "-c", code, str(tmp_path)], stderr=subprocess.DEVNULL, check=False
            ).returncode
            == 0
        )

    assert not ledger.store.transact(lambda run: free())
    assert free()


def test_a_transaction_has_the_write_lock_from_its_start(tmp_path):
    """Where folders cannot be locked there is no line, and two that have read the same budget must not both charge it."""
    path = tmp_path / "a.ledger"
    ledger = Ledger(path, epsilon=9).create()

    def another_begins(run):
        with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")

    with pytest.raises(LedgerError, match="Another process held the ledger"):
        ledger.store.transact(another_begins)


def test_a_request_of_one_thread_is_one_under_every_name_of_its_ledger(tmp_path):
    path, link = tmp_path / "a.ledger", tmp_path / "b.ledger"
    path.touch()
    link.symlink_to(path)
    with locks.not_nested((str(path), "request")):
        with (
            pytest.raises(LedgerError, match="under way in the same thread"),
            locks.not_nested((str(link), "request")),
        ):
            pass
        with locks.not_nested((str(link), "another")):
            pass
