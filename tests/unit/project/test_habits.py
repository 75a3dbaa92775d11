"""What the project says about itself: one version, a changelog, ratios that are kept."""

import re
from importlib.metadata import version
from pathlib import Path

from benchmarks._history import ratios, record, slower

import isotone

ROOT = Path(__file__).resolve().parents[3]


def test_the_version_is_written_once_and_cited_rightly():
    assert version("isotone") == isotone.__version__
    assert f"\nversion: {isotone.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert 'dynamic = ["version"]' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def test_the_changelog_has_this_version_and_what_comes_next():
    headings = re.findall(
        r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    assert headings[0] == "Unreleased" or headings[0] == isotone.__version__
    assert isotone.__version__ in headings


def test_every_locked_package_has_a_hash():
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    packages = re.split(r"\n(?=\S)", lock.strip())
    assert len(packages) > 50
    assert all("--hash=sha256:" in package for package in packages)


REPORT = """
| | ours | theirs | ratio |
|---|---|---|---|
| closure | 0.1 s | 1 s | 10× |
| height | 1 s | 1 s | **1.0×** |
"""


def test_ratios_of_a_report_are_kept_and_changes_are_listed(tmp_path):
    history = tmp_path / "history.csv"
    found = ratios(REPORT)
    assert found == {("closure", "ratio"): 10.0, ("height", "ratio"): 1.0}
    assert slower(history, "order", found) == []
    record(history, "order", "a machine", found)
    assert slower(history, "order", {("closure", "ratio"): 11.0, ("height", "ratio"): 1.1}) == []
    assert slower(history, "order", {("closure", "ratio"): 5.0}) == ["order: closure / ratio was 10×, is 5×"]
    assert slower(history, "noise", {("closure", "ratio"): 5.0}) == []
    record(history, "order", "a machine", {("closure", "ratio"): 5.0})
    assert slower(history, "order", {("closure", "ratio"): 5.5}) == []
