"""The first commands of a small survey load only what they use, and compile nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SURVEY = """
[data]
path = "rows.csv"
[privacy]
epsilon = "1"
ledger = "survey.ledger"
unit = "person"
budget = { epsilon = "2" }
[order.parents]
b = "a"
c = "a"
[output]
folder = "out"
"""

COMMAND = """
import sys
from isotone.cli import main
sys.argv = ["isotone", *sys.argv[1:]]
try:
    main()
except SystemExit as stop:
    assert not stop.code, stop.code
heavy = ("duckdb", "matplotlib", "numba", "pandas", "pyarrow", "scipy.stats", "sklearn")
print("loaded:", *(name for name in heavy if name in sys.modules))
"""


def loaded(folder: Path, *arguments: str) -> set[str]:
    """Which heavy libraries a command loads."""
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, *arguments], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.splitlines()[-1].split()[1:])


def test_a_plan_of_counts_loads_no_library_that_it_does_not_use(tmp_path: Path) -> None:
    (tmp_path / "spec.toml").write_text(SURVEY)
    assert loaded(tmp_path, "plan", "spec.toml") == set()


def test_a_release_of_counts_with_its_report_draws_without_matplotlib(tmp_path: Path) -> None:
    (tmp_path / "spec.toml").write_text(SURVEY)
    (tmp_path / "rows.csv").write_text("a,b,c\n1,0,1\n1,1,0\n")
    assert loaded(tmp_path, "release", "spec.toml") == {"duckdb", "pyarrow"}
    assert "<svg" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
