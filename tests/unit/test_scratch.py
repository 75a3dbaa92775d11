"""Folders of a process: nobody else removes them while it lives, and the next process removes what a kill left."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from isotone.errors import IsotoneError
from isotone.process import orphans, own_folder, scratch

KEEPER = """
import sys, time
from pathlib import Path
from isotone.process import own_folder
print(own_folder(Path(sys.argv[1]), "a-", ".x").path, flush=True)
time.sleep(600)
"""


def names(parent: Path, prefix: str = "a-", suffix: str = ".x") -> list[Path]:
    return [found.path for found in orphans(parent, prefix, suffix)]


def test_a_folder_is_an_orphan_once_its_process_was_killed(tmp_path):
    keeper = subprocess.Popen(
        [sys.executable, "-c", KEEPER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert keeper.stdout is not None
        folder = Path(keeper.stdout.readline().strip())
        assert folder.is_dir()
        assert names(tmp_path) == []
    finally:
        keeper.send_signal(signal.SIGKILL)
        keeper.communicate()
    assert names(tmp_path) == [folder]
    assert names(tmp_path, "b-") == names(tmp_path, suffix=".y") == []


def test_a_folder_of_this_process_is_no_orphan_until_it_is_let_go(tmp_path):
    mine = own_folder(tmp_path, "a-", ".x")
    assert mine.path.stat().st_mode & 0o777 == 0o700
    assert names(tmp_path) == []
    mine.let_go()
    assert names(tmp_path) == [mine.path]
    (tmp_path / "a-file.x").touch()
    (tmp_path / "a-link.x").symlink_to(mine.path)
    assert names(tmp_path) == [mine.path]
    assert names(tmp_path / "missing") == []


def test_a_folder_that_is_swept_before_it_is_locked_is_made_again(tmp_path, monkeypatch):
    make, made = tempfile.mkdtemp, []

    def robbed(*given):
        made.append(make(*given))
        if len(made) == 1:
            os.rmdir(made[0])  # noqa: PTH106
        return made[-1]

    monkeypatch.setattr(tempfile, "mkdtemp", robbed)
    folder = own_folder(tmp_path, "a-", ".x")
    assert folder.path == Path(made[1])
    assert folder.path.is_dir()


def test_where_there_are_no_locks_nothing_is_swept(tmp_path, monkeypatch):
    monkeypatch.setattr("isotone.process.fcntl", None)
    own_folder(tmp_path, "a-", ".x").let_go()
    assert names(tmp_path) == []


def test_the_scratch_of_a_killed_process_is_removed_by_the_next_and_that_of_an_ended_one_by_itself(tmp_path):
    code = (
        "import os, sys; from isotone.process import scratch; (scratch() / 'rows').touch(); print(scratch())"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}

    def run(end: str) -> None:
        subprocess.run([sys.executable, "-c", f"{code}; {end}"], env=environment, check=False)

    run("os.kill(os.getpid(), 9)")
    (left,) = tmp_path.iterdir()
    assert (left / "rows").exists()
    run("os._exit(0) if os.fork() == 0 else os.wait()")  # a fork that ends does not take the folder along
    assert list(tmp_path.iterdir()) == []


def test_a_machine_without_room_for_temporary_files_is_said(monkeypatch):
    monkeypatch.setattr("isotone.process._mine", None)
    monkeypatch.setattr("tempfile.tempdir", "/nowhere")
    with pytest.raises(IsotoneError, match="TMPDIR"):
        scratch()
