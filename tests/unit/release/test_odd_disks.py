"""A disk that is full from any step on, and folders with odd names: clear errors, and nothing paid for twice."""

import re
import resource
from pathlib import Path

import pytest
from tests.support import flat
from tests.support.release_worker import Worker, fill

from isotone.errors import InputError
from isotone.ledger import LostError
from isotone.release import Ledger, load_spec, verify
from isotone.release.pipeline import Place

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
folder = "FOLDER"
report = REPORT
"""


def desk(folder: Path, output: str = "out", report: str = "false") -> Path:
    rows = [f"{i},{i % 2},{i % 4 == 1}" for i in range(40)]
    (folder / "adults.csv").write_text("\n".join(["person,hyp,twice", *rows]) + "\n")
    spec = folder / "spec.toml"
    spec.write_text(SPEC.replace("FOLDER", output).replace("REPORT", report), encoding="utf-8")
    return spec


def states(folder: Path) -> list[str]:
    path = folder / "survey.ledger"
    return [charge.state for charge in Ledger(path).charges()] if path.exists() else []


def hidden(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name.startswith("."))


FULL = [
    ("rehearse", "before", [], "would fail|could not be written|cannot be"),
    ("free", "before", [], "cannot be written"),
    ("free", "after", [], "survey.ledger"),
    ("read", "before", ["reading"], "could not record that.*process died"),
    ("draw", "before", ["reading"], "survey.ledger.*could not record that.*process died"),
    ("draw", "after", ["drawn"], "could not be written.*its noise is lost"),
    ("write", "after", ["drawn"], "survey.ledger.*its noise is lost"),
    ("seal", "after", ["sealed"], "saved in.*report could not be made"),
    ("report", "before", ["sealed"], "saved in.*report could not be made"),
]


@pytest.mark.parametrize(
    ("step", "when", "left", "message"), FULL, ids=[f"{when} {step}" for step, when, *_ in FULL]
)
def test_a_disk_that_fills_up_is_said_and_the_next_run_pays_for_no_draw_twice(
    tmp_path, step, when, left, message
):
    spec = desk(tmp_path, report="true")
    code, said = Worker(spec, step, when, fill).end()
    assert code == 3, said
    assert ("stays spent" in said) == (left == ["drawn"])
    assert re.search(message, said), said
    assert states(tmp_path) == left
    if left == ["drawn"]:
        with pytest.raises(LostError):
            flat.with_spec(load_spec(spec))
        flat.with_spec(load_spec(spec), again=True)
    else:
        flat.with_spec(load_spec(spec))
    assert states(tmp_path) == (["drawn", "sealed"] if left == ["drawn"] else ["sealed"])
    assert verify(tmp_path / "out").holds
    assert (tmp_path / "out" / "report.html").exists()
    assert hidden(tmp_path) == []


@pytest.mark.parametrize(
    "name", ["a/b/c", "out/", "./out//", "Zürich 東京 🗼", "out.", "-o", "a'b\"", "[o]*?", "n" * 214]
)
def test_folders_with_odd_names_take_a_release(tmp_path, name):
    spec = desk(tmp_path, name.replace('"', '\\"'))
    _, folder, _ = flat.with_spec(load_spec(spec))
    assert folder.resolve() == (tmp_path / name).resolve()
    assert verify(folder).holds
    _, _, fresh = flat.with_spec(load_spec(spec))
    assert not fresh
    assert states(tmp_path) == ["sealed"]


def test_a_folder_behind_a_link_takes_a_release(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "out").symlink_to("real", target_is_directory=True)
    flat.with_spec(load_spec(desk(tmp_path)))
    assert (tmp_path / "out").is_symlink()
    assert verify(tmp_path / "real").holds


@pytest.mark.parametrize(
    "name", [*("n" * size for size in (216, 228, 255, 5_000)), "loop", "file", "file/out"]
)
def test_folders_that_cannot_be_are_refused_before_the_charge(tmp_path, name):
    """Names just short enough for themselves are too long for the folder that is renamed to them."""
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(InputError):
        flat.with_spec(load_spec(desk(tmp_path, name)))
    assert states(tmp_path) == []
    assert hidden(tmp_path) == []


def test_a_disk_without_room_for_the_files_is_refused_before_the_charge(tmp_path, monkeypatch):
    """The room is tried where the release goes: the disk of the rehearsal may be another one."""
    tried: list[list[int]] = []
    free = Place.require_free

    def note(self, sizes, *given, **options):
        tried.append(sizes)
        free(self, [2 << 20, *sizes], *given, **options)

    spec = desk(tmp_path)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    with monkeypatch.context() as patch:
        patch.setattr(Place, "require_free", note)
        resource.setrlimit(resource.RLIMIT_FSIZE, ((1 << 20) + 1, limits[1]))
        try:
            with pytest.raises(InputError, match="cannot be written"):
                flat.with_spec(load_spec(spec))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert states(tmp_path) == []
    assert hidden(tmp_path) == []
    flat.with_spec(load_spec(spec))
    written = [(tmp_path / "out" / name).stat().st_size for name in ("release.csv", "manifest.json")]
    assert tried == [pytest.approx(written, rel=0.25)]
