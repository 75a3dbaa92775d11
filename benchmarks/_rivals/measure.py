"""One way of releasing one data set, in a process of its own: values, processor time and peak memory."""

from __future__ import annotations

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
    """Run the way that the command line names on the data it names: ``WAY DRAWS IN.npz OUT.npz``.

    Times are those of the processor: others may use the machine. The first release is timed from the start of the process.
    """
    name, draws, source, target = sys.argv[1:]
    with np.load(source) as stored:
        data = {key: stored[key] for key in stored.files}
    release = ways[name](data)
    release()  # compiles, fills caches
    first = time.process_time()
    seconds: list[float] = []
    results: list[Mapping[str, Any]] = []
    for _ in range(int(draws)):
        start = time.process_time()
        results.append(release())
        seconds.append(time.process_time() - start)
    memory = _peak()
    values: dict[str, Any] = {key: np.array([result[key] for result in results]) for key in results[0]}
    np.savez(target, first=first, seconds=np.median(seconds), memory=memory, **values)


def _peak() -> float:
    """Peak memory of this program in MB; what the parent held before it started does not count."""
    status = Path("/proc/self/status")
    if status.exists():
        return float(status.read_text().split("VmHWM:")[1].split()[0]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
