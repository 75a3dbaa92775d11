"""``isotone demo``: the way from data to a verified release, on data that ships with the package."""

import re
import sys
import tempfile
from pathlib import Path

from typer.testing import CliRunner

import isotone as iso
from isotone.cli import app
from isotone.cli.demo import SPEC, write_example

START = Path(__file__).resolve().parents[2] / "docs" / "start.md"


def test_the_demo_plans_releases_and_verifies(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    done = CliRunner().invoke(app, ["demo"])
    assert done.exit_code == 0, done.output
    (folder,) = tmp_path.glob("isotone-demo-*")
    assert iso.verify(folder / "published").holds
    assert (folder / "published" / "report.html").exists()
    assert iso.Ledger(folder / "survey.ledger").remaining().epsilon * 2 == 1


def test_the_demo_is_the_survey_of_the_first_page(tmp_path, monkeypatch):
    """The same rows as the script there makes, and the same spec."""
    text = START.read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    script = next(
        code for code in re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL) if "residents.csv" in code
    )
    exec(compile(script, str(START), "exec"), {})
    (tmp_path / "demo").mkdir()
    write_example(tmp_path / "demo")
    made, shown = (
        (tmp_path / name).read_text().splitlines() for name in ("demo/residents.csv", "residents.csv")
    )
    assert made == shown
    assert SPEC in text


def test_the_version_is_printed():
    assert CliRunner().invoke(app, ["--version"]).output == f"isotone {iso.__version__}\n"


def test_a_flag_is_shown_as_a_flag():
    for words in (["release", "--help"], ["--help"], ["ledger", "--help"]):
        assert "<bool>" not in CliRunner().invoke(app, words).output


def test_the_demo_says_at_once_that_the_desk_is_not_installed(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setitem(sys.modules, "isotone.desk.server", None)
    done = CliRunner().invoke(app, ["demo", "--serve"])
    assert "The desk needs more libraries" in str(done.exception)
    assert list(tmp_path.iterdir()) == []


def test_plans_side_by_side_show_errors_as_errors(tmp_path, monkeypatch):
    write_example(tmp_path)
    done = CliRunner().invoke(
        app, ["plan", str(tmp_path / "spec.toml"), "--epsilon", "0.5,1", "--guess", "1000"]
    )
    rows = [line for line in done.output.splitlines() if "PosetMechanism" in line]
    assert [line.count("± ") for line in rows] == [1, 1]
    assert [line.count("%") for line in rows] == [1, 1]  # the error as a share of the guess
