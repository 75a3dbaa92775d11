"""Folders and states: kills at every step, concurrent runs, changed folders, and what is never charged twice."""

import json
import os
import shutil
import signal

import pandas as pd
import pytest
from tests.support import flat
from tests.support.release_worker import Worker

import isotone as iso
from isotone.errors import InputError, IsotoneError
from isotone.ledger import Attempt, AttemptError, LostError
from isotone.process import scratch
from isotone.release import Ledger, load_release, load_spec, verify
from isotone.release.pipeline import Place
from isotone.release.result import seal

SPEC = """
[data]
path = "adults.csv"
unit = "person"
[privacy]
epsilon = "1"
ledger = "survey.ledger"
budget = { epsilon = "2.5" }
[order.parents]
twice = "hyp"
[output]
folder = "out"
report = false
title = "A survey"
"""


@pytest.fixture
def desk(tmp_path):
    """A folder with a spec and its data."""
    rows = [f"{i},{i % 2},{i % 4 == 1}" for i in range(40)]
    (tmp_path / "adults.csv").write_text("\n".join(["person,hyp,twice", *rows]) + "\n")
    (tmp_path / "spec.toml").write_text(SPEC)
    return tmp_path


def released(desk, **options):
    return flat.with_spec(load_spec(desk / "spec.toml"), **options)


def charges(desk):
    path = desk / "survey.ledger"
    return Ledger(path).charges() if path.exists() else []


def change(desk, old, new):
    path = desk / "spec.toml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def beside(desk):
    return sorted(path.name for path in desk.iterdir() if path.name.startswith((".out", "out.")))


def killed(desk, step, when):
    """The worker dies of SIGKILL, and nothing else."""
    assert Worker(desk / "spec.toml", step, when).end() == (-signal.SIGKILL, "")


BEFORE_THE_DRAW = [
    ("rehearse", "after", []),
    ("read", "before", ["reading"]),
    ("read", "after", ["reading"]),
    ("draw", "before", ["reading"]),
]
LOST = [("draw", "after"), ("noise", "after"), ("write", "after"), ("seal", "before")]
SEALED = [("seal", "after", False), ("publish", "after", True), ("report", "before", True)]


@pytest.mark.parametrize(("step", "when", "left"), BEFORE_THE_DRAW)
def test_a_kill_before_the_draw_is_resumed_at_no_cost(desk, step, when, left):
    killed(desk, step, when)
    assert [charge.state for charge in charges(desk)] == left
    _, _, fresh = released(desk)
    assert fresh
    assert [charge.state for charge in charges(desk)] == ["sealed"]
    assert verify(desk / "out").holds
    assert beside(desk) == []


@pytest.mark.parametrize(("step", "when"), LOST)
def test_a_kill_after_the_draw_is_said_to_be_lost_and_charged_again_only_when_asked(desk, step, when):
    killed(desk, step, when)
    with pytest.raises(LostError, match="drawn and never sealed"):
        released(desk)
    assert [charge.state for charge in charges(desk)] == ["drawn"]
    assert not (desk / "out").exists()
    released(desk, again=True)
    assert [charge.state for charge in charges(desk)] == ["drawn", "sealed"]
    assert verify(desk / "out").holds
    assert beside(desk) == []


@pytest.mark.parametrize(("step", "when", "there"), SEALED)
def test_what_was_sealed_before_a_kill_is_put_into_place_by_the_next_run(desk, step, when, there):
    change(desk, "report = false", "report = true")
    killed(desk, step, when)
    assert (desk / "out").exists() == there
    assert not (desk / "out" / "report.html").exists()
    release, folder, fresh = released(desk)
    (charge,) = charges(desk)
    assert not fresh
    assert charge.release == release.manifest.content_hash == load_release(folder).manifest.content_hash
    assert verify(folder).holds
    assert (folder / "report.html").exists()
    assert beside(desk) == []


def test_three_runs_at_once_end_with_one_charge_and_one_release(desk):
    runs = [Worker(desk / "spec.toml") for _ in range(3)]
    assert [run.end() for run in runs] == [(0, "")] * 3
    assert [charge.state for charge in charges(desk)] == ["sealed"]
    assert verify(desk / "out").holds


def test_a_release_is_on_the_disk_before_it_is_sealed(desk, monkeypatch):
    """A power cut after the seal must not take the files: they and the two folders that name them are synced."""
    synced, before_the_seal = set(), set()
    sync, sealed = os.fsync, Attempt.seal

    def told_sync(descriptor):
        sync(descriptor)
        synced.add(os.fstat(descriptor).st_ino)

    def told_seal(attempt, release):
        before_the_seal.update(synced)
        sealed(attempt, release)

    monkeypatch.setattr(os, "fsync", told_sync)
    monkeypatch.setattr(Attempt, "seal", told_seal)
    _, folder, _ = released(desk)
    needed = [folder / "release.csv", folder / "manifest.json", folder, folder.parent]
    assert {path.stat().st_ino for path in needed} <= before_the_seal


def test_a_foreign_folder_is_never_adopted(desk):
    """A folder beside the place, marked as ours but with other values, is not what the ledger sealed."""
    release, folder, _ = released(desk)
    forged = seal({**release.columns, "value": (7, 7)}, release.manifest)
    spec = load_spec(desk / "spec.toml")
    place = Place.of(folder, release.manifest.request)
    shutil.rmtree(folder)
    with place.written(forged, lambda: charges(desk)) as part:
        pass
    with pytest.raises(InputError, match="is not in"):
        flat.with_spec(spec)
    assert not folder.exists()
    assert part.exists()
    assert len(charges(desk)) == 1


def test_a_changed_release_is_not_shown_as_the_release(desk):
    _, folder, _ = released(desk)
    text = (folder / "release.csv").read_text()
    (folder / "release.csv").write_text(text.replace("hyp,", "hyp,9"))
    with pytest.raises(InputError, match="not the one that the ledger knows"):
        released(desk)
    assert len(charges(desk)) == 1


def test_a_release_resealed_by_a_stranger_is_not_shown_as_the_release(desk):
    release, folder, _ = released(desk)
    seal({**release.columns, "value": (7, 7)}, release.manifest).save(folder, report=False)
    forged = load_release(folder)
    assert forged.manifest.hash_with(forged.columns) == forged.manifest.content_hash  # sealed in itself
    with pytest.raises(InputError, match="not the one that the ledger knows"):
        released(desk)


def test_a_changed_title_or_report_is_not_charged_again(desk):
    first, _, _ = released(desk)
    change(desk, "A survey", "Another title")
    change(desk, "report = false", "report = true")
    again, folder, fresh = released(desk)
    assert not fresh
    assert again.manifest.stated.title == "A survey"
    assert again.columns == first.columns
    assert (folder / "report.html").exists()
    assert len(charges(desk)) == 1


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('epsilon = "1"\n', 'epsilon = "1/2"\n'),
        ('twice = "hyp"', 'hyp = "twice"'),
        ('unit = "person"', 'unit = "person"\nmissing = "yes"'),
        ("report = false", "report = false\nconfidence = 0.9"),
        ('path = "adults.csv"', 'path = "copy.csv"'),
    ],
)
def test_a_changed_spec_does_not_return_the_old_release(desk, old, new):
    shutil.copy(desk / "adults.csv", desk / "copy.csv")
    first, _, _ = released(desk)
    change(desk, old, new)
    with pytest.raises(InputError, match="holds another release"):
        released(desk)
    assert len(charges(desk)) == 1
    change(desk, 'folder = "out"', 'folder = "other"')
    second, _, fresh = released(desk)
    assert fresh
    assert second.manifest.request != first.manifest.request
    assert len(charges(desk)) == 2


def test_another_folder_for_the_same_request_is_explained(desk):
    released(desk)
    change(desk, 'folder = "out"', 'folder = "other"')
    with pytest.raises(InputError, match="released before"):
        released(desk)
    assert len(charges(desk)) == 1


def test_a_new_draw_moves_the_old_release_aside(desk):
    first, folder, _ = released(desk)
    released(desk, again=True)
    assert beside(desk) == ["out.charge-1"]
    assert load_release(desk / "out.charge-1").columns == first.columns
    assert load_release(folder).manifest.charge == 2
    last, _, fresh = released(desk)  # who asks once more gets the last one
    assert (last.manifest.charge, fresh, len(charges(desk))) == (2, False, 2)


@pytest.mark.parametrize("kind", ["file", "full", "below a file", "read-only"])
def test_a_folder_that_cannot_take_the_release_is_refused_before_the_charge(desk, kind):
    name = "out"
    if kind == "file":
        (desk / "out").write_text("in the way")
    elif kind == "full":
        (desk / "out").mkdir()
        (desk / "out" / "notes.txt").write_text("mine")
    elif kind == "below a file":
        name = "adults.csv/out"
    elif os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    else:
        (desk / "locked").mkdir(mode=0o500)
        name = "locked/out"
    change(desk, 'folder = "out"', f'folder = "{name}"')
    with pytest.raises(InputError):
        released(desk)
    assert charges(desk) == []
    assert beside(desk) == []


def memory(desk, ledger, **options):
    data = pd.DataFrame({"person": range(9), "hyp": [1] * 9})
    return flat.counts(data, iso.Poset.chain(["hyp"]), epsilon=1, ledger=ledger, unit="person", **options)


def test_data_in_memory_is_released_anew_unless_the_request_is_named(desk):
    with iso.Ledger(desk / "m.ledger", epsilon=9) as ledger:
        memory(desk, ledger)
        memory(desk, ledger)
        assert len(ledger.charges()) == 2
        first = memory(desk, ledger, request="wave 1", folder=desk / "wave")
        again = memory(desk, ledger, request="wave 1", folder=desk / "wave")
        assert len(ledger.charges()) == 3
        assert again.columns == first.columns
        with pytest.raises(IsotoneError, match="released before"):
            memory(desk, ledger, request="wave 1")
        memory(desk, ledger, request="wave 2")
        memory(desk, ledger, request="wave 1", again=True)
        assert len(ledger.charges()) == 5


def test_a_read_that_fails_stays_spent_and_is_not_resumed(desk, monkeypatch):
    from isotone.release.pipeline import Job

    read = Job.read
    fail = lambda self, frame: read(self, frame) if not charges(desk) else 1 / 0  # noqa: E731
    monkeypatch.setattr(Job, "read", fail)
    with pytest.raises(AttemptError):
        released(desk)
    monkeypatch.setattr(Job, "read", read)
    released(desk)
    assert [charge.state for charge in charges(desk)] == ["failed", "sealed"]


def test_nothing_of_a_rehearsal_remains(desk, monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere else"))
    released(desk)
    assert list(scratch().iterdir()) == []
    stored = json.loads((desk / "out" / "manifest.json").read_text())
    assert stored["charge"] == 1
