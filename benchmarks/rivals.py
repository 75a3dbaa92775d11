"""The strongest rivals: every kind of release against the best that can be had otherwise."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor, as_completed
from datetime import UTC, datetime

from benchmarks._rivals.environments import ROOT
from benchmarks._rivals.page import COSTS, SECTIONS, body, compute, write_page
from benchmarks._rivals.rows import keep_times, times
from benchmarks._rows import Rows, sources
from isotone.mechanism import Progress

__all__ = ["run"]

AT_ONCE = 3
"""Sections that are made at the same time, the longest first."""


def run(quick: bool, progress: Progress) -> str:
    """Every section in a process of its own; those that an interrupted run has finished are not made again."""
    if quick:
        return body({section: list(compute(section, True, progress)) for section in SECTIONS})
    finished, sections, before = Rows("rivals"), (*SECTIONS, COSTS), times()
    name = finished.get("run", lambda: f"{datetime.now(UTC):%Y-%m-%d %H:%M} {sources()[:8]}")
    left = sorted(set(sections) - set(finished.known), key=lambda section: -before.get(section, 0.0))
    with ThreadPoolExecutor(AT_ONCE) as pool:
        made = {pool.submit(_make, section, name): section for section in left}
        for done, future in enumerate(as_completed(made)):
            if future.exception() is None:  # a section that fails leaves the others as they are
                progress(
                    done / len(left), f"{made[future]}: {finished.get(made[future], future.result)} CPU s"
                )
    for future in made:
        future.result()
    keep_times(name, {section: float(finished.known[section]) for section in sections})
    finished.done()
    progress(1.0, "done")
    return write_page()


def _make(section: str, name: str) -> str:
    """Make a section with one thread, as small matrices lose time with more, and tell its CPU seconds."""
    alone = os.environ | {"OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "benchmarks._rivals", section, "--run", name]
    process = subprocess.Popen(command, cwd=ROOT, env=alone)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return f"{used.ru_utime + used.ru_stime:.0f}"
