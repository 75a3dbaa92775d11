"""What a release leaves on the disk when it fails or is killed, and what the times of its files say."""

import os
import shutil
import subprocess
import sys
import threading
import time
from datetime import datetime
from pathlib import Path

import pytest
from tests.support import flat

import isotone as iso
from isotone.errors import IsotoneError, LedgerError
from isotone.ledger import Attempt, AttemptError
from isotone.process import scratch
from isotone.reading.engine import connect
from isotone.release import load_release, verify

P = iso.Poset.chain(["twice", "hyp"])


@pytest.fixture(autouse=True)
def short_report(monkeypatch):
    """Reports are no matter here, and would take most of the time."""
    monkeypatch.setattr("isotone.release.report.report_html", lambda release: "a page")


@pytest.fixture
def data(tmp_path):
    rows = [f"{i},{i % 2},{i % 4 == 1}" for i in range(40)]
    (tmp_path / "d.csv").write_text("\n".join(["person,hyp,twice", *rows]) + "\n")
    return tmp_path / "d.csv"


def ledger_at(folder, name="a"):
    folder.joinpath(name).mkdir(exist_ok=True)
    return iso.Ledger(folder / name / "survey.ledger", epsilon=9, unit="person")


def release(data, ledger, **options):
    return flat.counts(
        data, P, epsilon=1, ledger=ledger, unit="person", folder=data.parent / "out", **options
    )


def parts(folder):
    return sorted(path.name for path in folder.iterdir() if path.name.startswith(".out"))


KILLED = """
import os, sys
import isotone as iso
from isotone.ledger import Attempt
from isotone.release.pipeline import Place

data, ledger, step, after, request = sys.argv[1:]
owner, name = {"seal": Attempt, "publish": Place}[step], step
original = getattr(owner, name)

def dying(*given):
    if after:
        original(*given)
    os._exit(9)

setattr(owner, name, dying)
iso.Counts(iso.Poset.chain(["twice", "hyp"]), unit="person").release(
    data, epsilon=1, ledger=iso.Ledger(ledger, epsilon=9, unit="person"),
    folder=os.path.join(os.path.dirname(data), "out"), request=request or None)
"""


def killed(data, ledger, step, *, after=False, request=""):
    """A release whose process ends in a step, or just after it, as a killed one does."""
    given = [str(data), ledger.address, step, "after" if after else "", request]
    done = subprocess.run([sys.executable, "-c", KILLED, *given], capture_output=True, check=False)
    assert done.returncode == 9, done.stderr


@pytest.mark.parametrize("request_name", [None, "wave"])
def test_a_seal_that_fails_leaves_no_drawn_values(data, monkeypatch, request_name):
    def full(attempt, release):
        raise LedgerError("The disk is full.")

    monkeypatch.setattr(Attempt, "seal", full)
    with pytest.raises(AttemptError, match="not sealed"):
        release(data, ledger_at(data.parent), request=request_name)
    assert parts(data.parent) == []


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, MemoryError])
def test_no_error_leaves_drawn_values(data, monkeypatch, kind):
    def stop(attempt, release):
        raise kind

    monkeypatch.setattr(Attempt, "seal", stop)
    with pytest.raises(AttemptError, match="not sealed"):
        release(data, ledger_at(data.parent))
    assert parts(data.parent) == []


def test_a_seal_whose_answer_is_lost_keeps_the_values(data, monkeypatch):
    """A connection may break after the server has sealed. The ledger then knows the release, so it is kept."""
    seal = Attempt.seal

    def broken(attempt, content_hash):
        seal(attempt, content_hash)
        raise LedgerError("The connection broke.")

    ledger = ledger_at(data.parent)
    with monkeypatch.context() as patch:
        patch.setattr(Attempt, "seal", broken)
        with pytest.raises(LedgerError, match="broke"):
            release(data, ledger, request="wave")
    assert len(parts(data.parent)) == 1
    stored = release(data, ledger, request="wave")
    assert [charge.release for charge in ledger.charges()] == [stored.manifest.content_hash]
    assert parts(data.parent) == []
    assert verify(data.parent / "out").holds


def test_unnamed_parts_of_killed_processes_are_swept_and_what_was_sealed_is_kept(data):
    ledger = ledger_at(data.parent)
    for after in (False, True):
        killed(data, ledger, "seal", after=after)
    assert len(parts(data.parent)) == 1  # the second found the first unsealed, and removed it
    release(data, ledger)
    assert parts(data.parent) == []
    assert [charge.state for charge in ledger.charges()] == ["drawn", "sealed", "sealed"]
    kept = load_release(data.parent / "out.charge-2")
    assert kept.manifest.content_hash == ledger.charges()[1].release


def test_a_part_that_another_ledger_sealed_is_left_alone(data):
    """Two ledgers, one request, one folder: what the first has sealed is not the second's to remove."""
    first, second = ledger_at(data.parent), ledger_at(data.parent, "b")
    second.charge(iso.Guarantee.pure(1, unit="person"), "so that the numbers of charges differ")
    killed(data, first, "publish", request="wave")
    release(data, second, request="wave")
    shutil.move(data.parent / "out", data.parent / "of the second")
    stored = release(data, first, request="wave")
    assert [charge.release for charge in first.charges()] == [stored.manifest.content_hash]
    assert len(first.charges()) == 1


def test_a_part_of_a_charge_that_was_made_at_another_time_is_left_alone(data, monkeypatch):
    """The same data set, request and number, in a ledger that was started anew: only the time tells them apart."""
    first = ledger_at(data.parent)
    monkeypatch.setattr("isotone.ledger.entries._now", lambda: "2001-01-01T00:00:00+00:00")
    killed(data, first, "seal", request="wave")
    (part,) = parts(data.parent)
    shutil.rmtree(data.parent / "a")
    release(data, ledger_at(data.parent), request="wave")
    assert parts(data.parent) == [part]


def test_a_part_that_was_changed_is_not_moved_aside_as_the_release(data):
    """What the ledger sealed is known by its hash; a folder that says so of itself is not it."""
    ledger = ledger_at(data.parent)
    killed(data, ledger, "publish")
    (part,) = parts(data.parent)
    text = (data.parent / part / "release.csv").read_text()
    (data.parent / part / "release.csv").write_text(text.replace("hyp,", "hyp,9"))
    release(data, ledger)
    assert not (data.parent / "out.charge-1").exists()
    assert parts(data.parent) == [part]


def test_the_name_of_a_release_is_on_the_disk_when_it_is_there(data, monkeypatch):
    """The folder above is synchronised after the rename, so that a power cut does not take back what was shown."""
    steps = []
    sync, rename = os.fsync, Path.rename

    def told_sync(descriptor):
        sync(descriptor)
        if os.path.samestat(os.fstat(descriptor), data.parent.stat()):
            steps.append("folder")

    def told_rename(self, target):
        if Path(target).name == "out":
            steps.append("rename")
        return rename(self, target)

    monkeypatch.setattr(os, "fsync", told_sync)
    monkeypatch.setattr(Path, "rename", told_rename)
    release(data, ledger_at(data.parent))
    assert steps[steps.index("rename") :] == ["rename", "folder"]


def test_a_living_process_publishes_what_it_sealed_itself(data, monkeypatch):
    """Another run of the request, between seal and rename, waits for the release and does not take it away."""
    ledger, seal, others = ledger_at(data.parent), Attempt.seal, []

    def sealed(attempt, content_hash):
        seal(attempt, content_hash)
        other = threading.Thread(target=lambda: others.append(release(data, ledger, request="wave")))
        other.start()
        other.join(0.5)
        others.append(other)

    monkeypatch.setattr(Attempt, "seal", sealed)
    made = release(data, ledger, request="wave")
    others[0].join()
    assert others[1].columns == made.columns
    assert len(ledger.charges()) == 1
    assert parts(data.parent) == []


def test_two_processes_draw_one_report_one_after_the_other(data, monkeypatch):
    made = release(data, ledger_at(data.parent))
    inside, most = [], []

    def write(*given):
        inside.append(1)
        most.append(len(inside))
        time.sleep(0.05)
        inside.pop()

    monkeypatch.setattr("isotone.release.result.write_file", write)
    writers = [threading.Thread(target=made.save_report, args=(data.parent / "out",)) for _ in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert most == [1, 1, 1]


def test_a_release_that_cannot_be_moved_says_what_repairs_it(data, monkeypatch):
    def refuse(self, target):
        raise OSError(13, "Permission denied")

    ledger = ledger_at(data.parent).create()
    monkeypatch.setattr("pathlib.Path.rename", refuse)
    with pytest.raises(IsotoneError, match="by hand"):
        release(data, ledger)
    with pytest.raises(IsotoneError, match=r"Run the same request again"):
        release(data, ledger, request="wave")
    assert len(parts(data.parent)) == 2


def test_the_times_of_files_are_that_of_the_charge(data, monkeypatch):
    """The time of writing minus that of the charge would be the time of reading, and archives keep times of files."""
    ledger = ledger_at(data.parent)
    late = datetime(2001, 1, 1).astimezone().isoformat()
    monkeypatch.setattr("isotone.ledger.entries._now", lambda: late)
    made = release(data, ledger)
    made.save(data.parent / "saved")
    wanted = datetime.fromisoformat(late).timestamp()
    for folder in (data.parent / "out", data.parent / "saved"):
        files = sorted(folder.iterdir())
        assert [file.name for file in files] == ["manifest.json", "release.csv", "report.html"]
        assert {file.stat().st_mtime for file in (folder, *files)} == {wanted}


def test_drawn_values_are_for_their_owner_until_they_are_sealed(data, monkeypatch):
    seen = []
    seal = Attempt.seal

    def look(attempt, content_hash):
        seen.extend(data.parent.glob(".out*"))
        assert [part.stat().st_mode & 0o777 for part in seen] == [0o700]
        seal(attempt, content_hash)

    monkeypatch.setattr(Attempt, "seal", look)
    mask = os.umask(0o022)
    try:
        release(data, ledger_at(data.parent))
    finally:
        os.umask(mask)
    assert len(seen) == 1
    assert (data.parent / "out").stat().st_mode & 0o777 == 0o755


def test_rows_spill_into_the_folder_of_this_process():
    (where,) = connect().execute("SELECT current_setting('temp_directory')").fetchone()
    assert where == str(scratch())
