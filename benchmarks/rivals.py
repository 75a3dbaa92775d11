"""The strongest rivals: every kind of release against the best that can be had otherwise."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from functools import partial

from benchmarks._rivals.environments import ROOT
from benchmarks._rivals.page import COSTS, SECTIONS, body, compute, write_page
from benchmarks._rows import Rows
from isotone.mechanism import Progress

__all__ = ["run"]


def run(quick: bool, progress: Progress) -> str:
    """Every section in a process of its own; those that an interrupted run has finished are not made again."""
    if quick:
        return body({section: list(compute(section, True, progress)) for section in SECTIONS})
    finished, sections = Rows("rivals"), (*SECTIONS, COSTS)
    for done, section in enumerate(sections):
        progress(done / len(sections), section)
        print(f"{section}: {finished.get(section, partial(_make, section))}", file=sys.stderr, flush=True)
    finished.done()
    progress(1.0, "done")
    return write_page()


def _make(section: str) -> str:
    """Make a section with one thread, as small matrices lose time with more, and say how long it took."""
    start = time.monotonic()
    alone = os.environ | {"OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, "-m", "benchmarks._rivals", section], cwd=ROOT, env=alone, check=True)
    return f"{time.monotonic() - start:.0f} s"
