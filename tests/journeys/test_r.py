"""The page for users of R: its blocks run, where R is installed."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "r.md"


def blocks() -> list[str]:
    return re.findall(r"^```r\n(.*?)^```", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


@pytest.mark.services
@pytest.mark.skipif(shutil.which("Rscript") is None, reason="R is not installed")
def test_the_blocks_of_r_run(tmp_path):
    found = blocks()
    assert len(found) == 3
    (tmp_path / "page.R").write_text("\n".join(found))
    command = tmp_path / "bin" / "isotone"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m isotone "$@"\n')
    command.chmod(0o755)
    environment = {**os.environ, "PATH": f"{command.parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        ["Rscript", "--vanilla", "page.R"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "PosetMechanism" in done.stdout
    assert '"element"' in done.stdout
