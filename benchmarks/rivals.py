"""The strongest rivals: every kind of release against the best that can be had otherwise."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from datetime import UTC, datetime
from functools import partial

from benchmarks._rivals.environments import ROOT
from benchmarks._rivals.page import COSTS, SECTIONS, body, compute, write_page
from benchmarks._rivals.rows import keep_times, times
from benchmarks._rows import Rows, sources
from isotone.mechanism import Progress

__all__ = ["run"]


def run(quick: bool, progress: Progress) -> str:
    """Every section in a process of its own; those that an interrupted run has finished are not made again."""
    if quick:
        return body({section: list(compute(section, True, progress)) for section in SECTIONS})
    finished, sections, before = Rows("rivals"), (*SECTIONS, COSTS), times()
    name = finished.get("run", lambda: f"{datetime.now(UTC):%Y-%m-%d %H:%M} {sources()[:8]}")
    for done, section in enumerate(sections):
        progress(done / len(sections), section)
        took = float(finished.get(section, partial(_make, section, name)))
        left = [
            f"{each} ({before[each]:.0f} s last time)" if each in before else each
            for each in sections[done + 1 :]
        ]
        print(
            f"{section}: {took:.0f} CPU s; left: {', '.join(left) or 'nothing'}", file=sys.stderr, flush=True
        )
    keep_times(name, {section: float(finished.known[section]) for section in sections})
    finished.done()
    progress(1.0, "done")
    return write_page()


def _make(section: str, name: str) -> str:
    """Make a section with one thread, as small matrices lose time with more, and tell its CPU seconds."""
    alone, start = os.environ | {"OMP_NUM_THREADS": "1"}, _children()
    command = [sys.executable, "-m", "benchmarks._rivals", section, "--run", name]
    subprocess.run(command, cwd=ROOT, env=alone, check=True)
    return f"{_children() - start:.0f}"


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
