"""The strongest rivals: every kind of release against the best that can be had otherwise."""

from __future__ import annotations

import os
import subprocess
import sys

from benchmarks._rivals.environments import ROOT
from benchmarks._rivals.page import SECTIONS, body, compute, write_page
from isotone.mechanism import Progress

__all__ = ["run"]


def run(quick: bool, progress: Progress) -> str:
    """Every section in a process of its own, with one thread, as small matrices lose time with more."""
    if quick:
        return body({section: list(compute(section, True, progress)) for section in SECTIONS})
    alone = os.environ | {"OMP_NUM_THREADS": "1"}
    for done, section in enumerate(SECTIONS):
        progress(done / len(SECTIONS), section)
        subprocess.run([sys.executable, "-m", "benchmarks._rivals", section], cwd=ROOT, env=alone, check=True)
    progress(1.0, "done")
    return write_page()
