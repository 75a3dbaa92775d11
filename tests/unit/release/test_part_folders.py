"""What a release leaves on the disk when it fails or is killed, and what the times of its files say."""

import os
import shutil
import threading
import time
from datetime import datetime

import pytest

import isotone as iso
from isotone.errors import IsotoneError, LedgerError
from isotone.ledger import Attempt, AttemptError
from isotone.reading.engine import connect
from isotone.release import load_release, verify
from isotone.release.place import Place
from isotone.scratch import scratch

P = iso.Poset.chain(["twice", "hyp"])


@pytest.fixture(autouse=True)
def short_report(monkeypatch):
    """Reports are no matter here, and would take most of the time."""
    monkeypatch.setattr("isotone.release.reporting.html_report.report_html", lambda release: "a page")


@pytest.fixture
def data(tmp_path):
    rows = [f"{i},{i % 2},{i % 4 == 1}" for i in range(40)]
    (tmp_path / "d.csv").write_text("\n".join(["person,hyp,twice", *rows]) + "\n")
    return tmp_path / "d.csv"


def ledger_at(folder, name="a"):
    folder.joinpath(name).mkdir(exist_ok=True)
    return iso.Ledger(folder / name / "survey.ledger", epsilon=9, unit="person")


def release(data, ledger, **options):
    return iso.release_counts(
        data, P, epsilon=1, ledger=ledger, unit="person", folder=data.parent / "out", **options
    )


def parts(folder):
    return sorted(path.name for path in folder.iterdir() if path.name.startswith(".out"))


def killed(data, ledger, owner, name, *, after=False, **options):
    """A release whose process ends in a step, or just after it, as a killed one does."""
    child = os.fork()
    if child == 0:
        original = getattr(owner, name)

        def dying(*given):
            if after:
                original(*given)
            os._exit(9)

        setattr(owner, name, dying)
        release(data, ledger, **options)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9


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
        killed(data, ledger, Attempt, "seal", after=after)
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
    killed(data, first, Place, "publish", request="wave")
    release(data, second, request="wave")
    shutil.move(data.parent / "out", data.parent / "of the second")
    stored = release(data, first, request="wave")
    assert [charge.release for charge in first.charges()] == [stored.manifest.content_hash]
    assert len(first.charges()) == 1


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
