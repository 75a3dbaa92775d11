"""The tests that look quickly in ``make test``, at all they can look at: every kill, more draws, scales off by a tenth."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def _run(*paths: str) -> str:
    command = [sys.executable, "-m", "pytest", "-q", "-m", "not services", *paths]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "ISOTONE_CLOSELY": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    return f"{', '.join(paths)}: as stated"


def _asking() -> list[str]:
    """The files outside tests/statistical that ask how closely to look."""
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    asking = [path for path in files if "tests.support.effort" in path.read_text(encoding="utf-8")]
    return [str(path.relative_to(ROOT)) for path in asking if "statistical" not in path.parts]


def audit_scales_off_by_a_tenth() -> str:
    return _run("tests/statistical")


def audit_every_repetition() -> str:
    return _run(*_asking())
