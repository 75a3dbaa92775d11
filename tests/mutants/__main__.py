"""Plant every fault of the list, one at a time, and print those that no test notices.

Run by ``make mutants``. Each worker has a copy of the repository, in which it plants a fault, runs the tests that
must catch it, and takes the fault out again. First the tests run without a fault: one that fails anyway catches
nothing. A fault is caught when a test fails. It is a development tool, not a part of the tests.

    python -m tests.mutants              all of them
    python -m tests.mutants ledger noise-3   some tables, some faults
"""

from __future__ import annotations

import argparse
import importlib
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
import zlib
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from tests.mutants.faults import ROOT, Fault, misplaced, read_faults

PARTS = (
    "src",
    "tests",
    "docs",
    "examples",
    "experiments",
    "benchmarks",
    "data",
    "pyproject.toml",
    "README.md",
)
LOADED_ONCE = ("hypothesis", "scipy.optimize", "scipy.stats")  # by all tests: forks have them
SECONDS = 600  # for one fault: on a busy machine a slow test is no caught fault
FAILED, PASSED, HUNG, BROKEN = 1, 0, -1, 99


def main() -> int:
    """Run the faults that the command line names and say what survives."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutants", description="Plant faults and print those that no test notices."
    )
    parser.add_argument("names", nargs="*", help="tables (ledger) or faults (ledger-3); all if none is named")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument(
        "--no-baseline", action="store_true", help="do not first run the tests without a fault"
    )
    options = parser.parse_args()
    names = set(options.names)
    faults = [f for f in read_faults() if not names or f.name in names or f.name.rpartition("-")[0] in names]
    wrong = [reason for fault in faults if (reason := misplaced(fault))]
    if wrong or not faults:
        print("\n".join(wrong) or "No fault has such a name.")
        return 2
    for library in LOADED_ONCE:
        importlib.import_module(library)
    with tempfile.TemporaryDirectory(prefix="isotone-mutants-") as folder:
        if not options.no_baseline:
            _make_copy(folder)
            code, text = _run(_copy, sorted({test for fault in faults for test in fault.tests}), 3600)
            if code != PASSED:
                print(f"The tests must pass without a fault first:\n{text}")
                return 2
        forks = multiprocessing.get_context("fork")
        with ProcessPoolExecutor(options.workers, forks, _make_copy, (folder,)) as pool:
            verdicts = list(pool.map(_verdict, faults))
    return _report(faults, verdicts)


_copy = ROOT
"""The copy of this worker."""


def _make_copy(folder: str) -> None:
    global _copy
    _copy = Path(folder) / str(os.getpid())
    for part in PARTS:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, _copy / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, _copy / part)


def _verdict(fault: Fault) -> str:
    """Plant the fault in the copy and run its tests: caught, survived, or what went wrong."""
    path = _copy / "src" / "isotone" / fault.module
    text, times = path.read_text(encoding="utf-8"), path.stat()
    began = time.monotonic()
    try:
        path.write_text(fault.planted(text), encoding="utf-8")
        # kept bytecode is told from the text by size and time: every fault gets a time of its own
        moment = times.st_mtime + 1 + zlib.crc32(fault.name.encode()) % 10**6
        os.utime(path, (moment, moment))
        code, said = _run(_copy, fault.tests, SECONDS)
    finally:
        path.write_text(text, encoding="utf-8")
        os.utime(path, (times.st_mtime, times.st_mtime))
    words = {
        FAILED: "caught",
        HUNG: f"NO VERDICT: the tests did not end within {SECONDS} s",
        PASSED: "SURVIVED",
    }
    verdict = words.get(code, f"ERROR {code}: {said}")
    why = next((line for line in said.splitlines() if line.startswith("FAILED")), "")
    print(f"{fault.name:14} {time.monotonic() - began:5.0f} s  {verdict}  {why[:150]}", flush=True)
    return verdict


def _run(copy: Path, tests: Iterable[str], seconds: float) -> tuple[int, str]:
    """The exit code of the tests in a copy, and what they said last.

    They run in a fork, which has the libraries loaded already: loading takes longer than most of these tests.
    """
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as said:
        child = os.fork()
        if child == 0:
            os._exit(_in_copy(copy, list(tests), said.fileno()))
        end = time.monotonic() + seconds
        while not (ended := os.waitpid(child, os.WNOHANG))[0]:
            if time.monotonic() > end:
                os.killpg(child, signal.SIGKILL)
                os.waitpid(child, 0)
                return HUNG, ""
            time.sleep(0.05)
        said.seek(0)
        return os.waitstatus_to_exitcode(ended[1]), "\n".join(said.read().splitlines()[-15:])


def _in_copy(copy: Path, tests: list[str], output: int) -> int:
    """Run the tests, in a group of processes of its own: what they start ends with them."""
    code = BROKEN
    try:
        os.setsid()
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
        code = int(pytest.main(["-q", "-x", "-m", "not services", "-p", "no:xdist", *tests]))
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return code


def _report(faults: list[Fault], verdicts: list[str]) -> int:
    """Print what survives and what is explained; the exit code is 1 if a hole is left."""
    holes = 0
    for fault, verdict in zip(faults, verdicts, strict=True):
        caught = verdict.startswith("caught")
        if caught and fault.survives:
            print(f"{fault.name} is caught now: take its explanation out of the list.")
        if fault.unrun:
            print(f"{fault.name} was marked as never run: take the mark off.")
        if not caught:
            holes += not fault.survives
            why = fault.survives or "NOT EXPLAINED"
            print(f"{fault.name} {verdict}\n  {fault.module}: {fault.old!r} -> {fault.new!r}\n  {why}")
    caught = sum(verdict.startswith("caught") for verdict in verdicts)
    print(f"{len(faults)} faults, {caught} caught, {len(faults) - caught - holes} explained, {holes} holes.")
    return 1 if holes else 0


if __name__ == "__main__":
    sys.exit(main())
