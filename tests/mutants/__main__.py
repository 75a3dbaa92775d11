"""Plant every fault of the list, one at a time, and print those that no test notices.

Run by ``make mutants``. Each worker has a copy of the repository, in which it plants a fault, runs the tests that
must catch it, and takes the fault out again. First the tests run without a fault: one that fails anyway catches
nothing. A fault is caught when a test fails. It is a development tool, not a
part of the tests: it takes the better part of an hour on two cores.

    python -m tests.mutants              all of them
    python -m tests.mutants ledger noise-3   some tables, some faults
"""

from __future__ import annotations

import argparse
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from subprocess import PIPE, STDOUT

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
SECONDS = 600  # for one fault: on a busy machine a slow test is no caught fault
FAILED, PASSED, HUNG = 1, 0, -1


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
    with tempfile.TemporaryDirectory(prefix="isotone-mutants-") as folder:
        copies: queue.Queue[Path] = queue.Queue()
        for number in range(options.workers):
            copies.put(_copy(Path(folder) / str(number)))
        if not options.no_baseline:
            code, text = _run(
                copies.queue[0], sorted({test for fault in faults for test in fault.tests}), 3600
            )
            if code != PASSED:
                print(f"The tests must pass without a fault first:\n{text}")
                return 2
        with ThreadPoolExecutor(options.workers) as pool:
            verdicts = list(pool.map(lambda fault: _verdict(fault, copies), faults))
    return _report(faults, verdicts)


def _copy(target: Path) -> Path:
    for part in PARTS:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, target / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target / part)
    return target


def _verdict(fault: Fault, copies: queue.Queue[Path]) -> str:
    """Plant the fault in a free copy and run its tests: caught, survived, or what went wrong."""
    copy = copies.get()
    path = copy / "src" / "isotone" / fault.module
    text, times = path.read_text(encoding="utf-8"), path.stat()
    began = time.monotonic()
    try:
        path.write_text(fault.planted(text), encoding="utf-8")
        # kept bytecode is told from the text by size and time: every fault gets a time of its own
        moment = times.st_mtime + 1 + zlib.crc32(fault.name.encode()) % 10**6
        os.utime(path, (moment, moment))
        code, said = _run(copy, fault.tests, SECONDS)
    finally:
        path.write_text(text, encoding="utf-8")
        os.utime(path, (times.st_mtime, times.st_mtime))
        copies.put(copy)
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
    """The exit code of the tests in a copy, and what they said last."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(copy / "src"),
        "NUMBA_CACHE_DIR": os.environ.get("NUMBA_CACHE_DIR", str(ROOT / ".cache" / "numba")),
        "MPLBACKEND": "Agg",
    }
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-m", "not services", "-p", "no:xdist", *tests]
    # in a group of its own: what the tests started ends with them
    with subprocess.Popen(
        command, cwd=copy, env=environment, stdout=PIPE, stderr=STDOUT, text=True, start_new_session=True
    ) as process:
        try:
            said, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return HUNG, ""
    return process.returncode, "\n".join(said.splitlines()[-15:])


def _report(faults: list[Fault], verdicts: list[str]) -> int:
    """Print what survives and what is explained; the exit code is 1 if a hole is left."""
    holes = 0
    for fault, verdict in zip(faults, verdicts, strict=True):
        caught = verdict.startswith("caught")
        if caught and fault.survives:
            print(f"{fault.name} is caught now: take its explanation out of the list.")
        if not caught:
            holes += not fault.survives
            why = fault.survives or "NOT EXPLAINED"
            print(f"{fault.name} {verdict}\n  {fault.module}: {fault.old!r} -> {fault.new!r}\n  {why}")
    caught = sum(verdict.startswith("caught") for verdict in verdicts)
    print(f"{len(faults)} faults, {caught} caught, {len(faults) - caught - holes} explained, {holes} holes.")
    return 1 if holes else 0


if __name__ == "__main__":
    sys.exit(main())
