"""One way of releasing one data set, in a process of its own: values, seconds and peak memory."""

from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Data = Mapping[str, NDArray[Any]]
Release = Callable[[], Mapping[str, Any]]
Way = Callable[[Data], Release]


def serve(ways: Mapping[str, Way]) -> None:
    """Run the way that the command line names on the data it names: ``WAY DRAWS IN.npz OUT.npz``."""
    name, draws, source, target = sys.argv[1:]
    with np.load(source) as stored:
        data = {key: stored[key] for key in stored.files}
    release = ways[name](data)
    release()  # compiles, fills caches
    prepared = _age()
    seconds: list[float] = []
    results: list[Mapping[str, Any]] = []
    for _ in range(int(draws)):
        start = time.perf_counter()
        results.append(release())
        seconds.append(time.perf_counter() - start)
    memory = _peak()
    values: dict[str, Any] = {key: np.array([result[key] for result in results]) for key in results[0]}
    np.savez(target, prepared=prepared, seconds=np.median(seconds), memory=memory, **values)


def _age() -> float:
    """Seconds since this process started, imports included (where the system tells; else processor time)."""
    stat = Path("/proc/self/stat")
    if not stat.exists():
        return time.process_time()
    started = int(stat.read_text().rsplit(")", 1)[1].split()[19]) / os.sysconf("SC_CLK_TCK")
    return time.clock_gettime(time.CLOCK_BOOTTIME) - started


def _peak() -> float:
    """Peak memory of this program in MB; what the parent held before it started does not count."""
    status = Path("/proc/self/status")
    if status.exists():
        return float(status.read_text().split("VmHWM:")[1].split()[0]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
