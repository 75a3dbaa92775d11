"""Tests that run in a copy of the repository, with a fault planted in it or without one.

They run in a fork, which has the libraries loaded already: loading takes longer than most of these tests.
"""

from __future__ import annotations

import importlib
import json
import math
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import zlib
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.mutants.faults import ROOT, Fault

__all__ = ["LIBRARIES", "PARTS", "Trial", "enter", "make_copy", "plant", "run_tests", "verdict_of"]

LIBRARIES = ("hypothesis", "numba", "pandas", "scipy.optimize", "scipy.stats")
"""What many tests load: a fork of a process that has them begins at once."""

PARTS = (
    "src", "tests", "docs", "examples", "experiments", "benchmarks", "data", "pyproject.toml", "README.md",
)  # fmt: skip
_BROKEN = ("ImportError", "ModuleNotFoundError", "NameError", "SyntaxError", "UnboundLocalError")
_MARK = "mutants: "


@dataclass(frozen=True)
class Trial:
    """How the tests ended: ``passed``, ``failed``, or ``error`` if they say nothing about the code.

    ``why`` is the first test that failed and its exception, or what went wrong.
    """

    outcome: str
    why: str
    cpu: float
    """Seconds of processor time."""
    test: str = ""
    """The test that failed."""


def make_copy(copy: Path, root: Path = ROOT) -> None:
    """Copy the parts of the repository that tests use."""
    for part in PARTS:
        source = root / part
        if source.is_dir():
            shutil.copytree(source, copy / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(source, copy / part)


@contextmanager
def plant(fault: Fault, copy: Path) -> Generator[None]:
    """Plant the fault in a copy while the block runs."""
    path = copy / "src" / "isotone" / fault.module
    text, times = path.read_text(encoding="utf-8"), path.stat()
    try:
        path.write_text(fault.planted(text), encoding="utf-8")
        # kept bytecode is told from the text by size and time: every fault gets a time of its own
        moment = times.st_mtime + 1 + zlib.crc32(fault.name.encode()) % 10**6
        os.utime(path, (moment, moment))
        yield
    finally:
        path.write_text(text, encoding="utf-8")
        os.utime(path, (times.st_atime, times.st_mtime))


def run_tests(
    copy: Path, tests: Iterable[str], seconds: float, *, limit: float = math.inf, options: Iterable[str] = ()
) -> Trial:
    """Run the tests in a copy until one fails, or until ``limit`` seconds of processor time have passed."""
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
        child = os.fork()
        if child == 0:
            os._exit(_in_copy(copy, [*options, *tests], output.fileno(), limit))
        end = time.monotonic() + seconds
        while not (ended := os.wait4(child, os.WNOHANG))[0] and time.monotonic() < end:
            time.sleep(0.02)
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # also what a test that failed has left behind
        if not ended[0]:
            usage = os.wait4(child, 0)[2]
            judged = "error", f"the tests did not end within {seconds:.0f} s", ""
        else:
            output.seek(0)
            usage, judged = ended[2], _judge(os.waitstatus_to_exitcode(ended[1]), output.read())
        outcome, why, test = judged
        return Trial(outcome, why, usage.ru_utime + usage.ru_stime, test)


def _judge(code: int, said: str) -> tuple[str, str, str]:
    """What an exit code and the output of the tests mean, and which test failed.

    Tests that cannot be collected catch nothing, nor do those that fail because the planted text names what is not
    there: they would fail on any text that is wrong in that way.
    """
    if code == pytest.ExitCode.OK:
        return "passed", "", ""
    if code == -signal.SIGXCPU:
        return "error", "the tests did not end within their time of the processor", ""
    marked = [line.removeprefix(_MARK) for line in said.splitlines() if line.startswith(_MARK)]
    if code == pytest.ExitCode.TESTS_FAILED and marked:
        trial = verdict_of(*json.loads(marked[0]))
        return trial.outcome, trial.why, trial.test
    return "error", f"exit code {code}\n" + "\n".join(said.splitlines()[-15:]), ""


def verdict_of(test: str, exception: str, cpu: float = 0.0) -> Trial:
    """What it means that a test failed with an exception of this type."""
    why = f"{test} ({exception})"
    if exception in _BROKEN:
        return Trial("error", f"broken code: {why}", cpu, test)
    return Trial("failed", why, cpu, test)


class _Tell:
    """A plugin that prints the first failure on a line of its own."""

    def __init__(self) -> None:
        self.told: list[str] = []

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: Any, call: Any) -> Any:
        """Note a failure by its test and its exception."""
        report = yield
        if report.failed and not self.told:
            kind = call.excinfo.type.__name__ if call.excinfo else "strict xfail"
            self.told.append(json.dumps([item.nodeid, kind]))
        return report


def enter(copy: Path, output: int) -> None:
    """Make this process one of the copy: its folder, its modules, and a file for what it shows."""
    for stream in (1, 2):
        os.dup2(output, stream)
    os.chdir(copy)
    os.environ |= {"PYTHONPATH": str(copy / "src"), "MPLBACKEND": "Agg"}
    os.environ.setdefault("NUMBA_CACHE_DIR", str(ROOT / ".cache" / "numba"))
    sys.path[:] = [
        str(copy),
        str(copy / "src"),
        *(p for p in sys.path if not p.startswith(str(ROOT / "src"))),
    ]
    for name in [name for name in sys.modules if name.partition(".")[0] in ("tests", "isotone")]:
        del sys.modules[name]  # those of the copy are loaded
    _share_kernels()


def _share_kernels() -> None:
    """Kernels are kept by a hash of all they are made of. numba asks for the file and the folder too, which differ for every copy and fault."""
    with suppress(ImportError):
        locator: Any = importlib.import_module("numba.core.caching").UserProvidedCacheLocator
        locator.get_suitable_cache_subpath = classmethod(lambda cls, path: "copies")
        locator.get_source_stamp = lambda self: "by its fingerprint"


def _in_copy(copy: Path, tests: list[str], output: int, limit: float) -> int:
    """Run the tests in a group of processes of its own: what they start ends with them."""
    code, tell = 99, _Tell()
    try:
        if limit < math.inf:
            whole = int(time.process_time() + limit) + 1
            resource.setrlimit(resource.RLIMIT_CPU, (whole, resource.RLIM_INFINITY))
        os.setsid()
        enter(copy, output)
        options = ["-q", "-x", "-m", "not services", "-p", "no:xdist"]
        code = int(pytest.main([*options, *tests], plugins=[tell]))
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for line in tell.told:
            os.write(output, f"\n{_MARK}{line}\n".encode())
    return code
