"""``isotone demo``: the way from data to a verified release, on data that ships with the package."""

import re
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
