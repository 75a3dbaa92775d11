"""Plant every fault of the list, one at a time, and print those that no test notices.

Run by ``make mutants``. Each worker has a copy of the repository, in which it plants a fault, runs the tests that
must catch it, and takes the fault out again. First the tests run without a fault: one that fails anyway catches
nothing. It is a development tool, not a part of the tests.

    python -m tests.mutants              all of them
    python -m tests.mutants ledger noise-3   some tables, some faults
    python -m tests.mutants --random 400 --operators PYTHON   as many drawn at random, by an environment with cosmic-ray

The exit code is 0 if every fault is caught or explained, 1 if a hole is left, and 2 if the list does not fit the code or
a test fails without a fault.
"""

from __future__ import annotations

import argparse
import importlib
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import TypeVar

from tests.mutants import at_random
from tests.mutants.faults import Fault, misplaced, read_faults
from tests.mutants.trial import LIBRARIES, Trial, make_copy, plant, run_tests

SECONDS = 600  # for one fault: on a busy machine a slow test is no caught fault

Item = TypeVar("Item", Fault, tuple[str, ...])


def main() -> int:
    """Run the faults that the command line names and say what survives."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutants", description="Plant faults and print those that no test notices."
    )
    parser.add_argument("names", nargs="*", help="tables (ledger) or faults (ledger-3); all if none is named")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument(
        "--random", type=int, default=0, help="so many faults drawn at random, beside the list"
    )
    parser.add_argument("--operators", default=sys.executable, help="a Python that has cosmic-ray")
    parser.add_argument("--seed", default="", help="the hash of the commit unless given")
    options = parser.parse_args()
    if options.random:
        return _at_random(
            options.random, options.seed or at_random.commit(), options.operators, options.workers
        )
    names = set(options.names)
    faults = [f for f in read_faults() if not names or f.name in names or f.name.rpartition("-")[0] in names]
    wrong = [reason for fault in faults if (reason := misplaced(fault))]
    if wrong or not faults:
        print("\n".join(wrong) or "No fault has such a name.")
        return 2
    for library in LIBRARIES:
        importlib.import_module(library)
    began, forks = time.monotonic(), multiprocessing.get_context("fork")
    with (
        tempfile.TemporaryDirectory(prefix="isotone-mutants-") as folder,
        ProcessPoolExecutor(options.workers, forks, _enter, (folder,)) as pool,
    ):
        clean = _each(pool, _without_fault, _by_file(faults))
        if any(trial.outcome != "passed" for trial in clean):
            print("These tests must pass without a fault first.")
            return 2
        trials = _each(pool, _with_fault, faults)
    holes = _report(faults, trials)
    cpu = sum(trial.cpu for trial in clean + trials) / 60
    print(f"{cpu:.1f} minutes of processor time, {(time.monotonic() - began) / 60:.1f} minutes by the clock.")
    return 1 if holes else 0


def _at_random(number: int, seed: str, operators: str, workers: int) -> int:
    """Draw faults, meet each with the tests of its module, and write down what survives."""
    drawn, kept = at_random.draw(number, seed, operators), at_random.Kept(seed)
    for library in LIBRARIES:
        importlib.import_module(library)
    forks = multiprocessing.get_context("fork")
    with (
        tempfile.TemporaryDirectory(prefix="isotone-mutants-") as folder,
        ProcessPoolExecutor(workers, forks, _enter, (folder,)) as pool,
    ):
        unsound = dict[str, None]()
        waiting = [one for one in drawn if one.fault.name not in kept.trials]
        while waiting:
            tasks = {pool.submit(_with_drawn, one, tuple(unsound)): one for one in waiting}
            for done in as_completed(tasks):
                one, trial = tasks[done], done.result()
                kept.add(one.fault.name, trial)
                word = f"{len(kept.trials)}/{number} {one.fault.name} {trial.cpu:.0f} s {at_random.verdict(trial)}"
                print(
                    f"{word} {one.fault.module}:{one.line} {one.before} -> {one.after}  {trial.why[:200]}",
                    flush=True,
                )
            caught_by = {trial.test: () for trial in kept.trials.values() if trial.test}
            for test in caught_by.keys() - unsound.keys():
                if pool.submit(_without_fault, (test,)).result().outcome != "passed":
                    unsound[test] = None
            waiting = [one for one in drawn if kept.trials[one.fault.name].test in unsound]
    trials = [kept.trials[one.fault.name] for one in drawn]
    path = at_random.write_survivors(drawn, trials, seed)
    words = [at_random.verdict(trial) for trial in trials]
    told = len(words) - words.count("broken")
    print(f"{words.count('caught')} of {told} caught ({len(drawn)} drawn); the survivors are in {path}.")
    return 0


_copy = Path()
"""The copy of this worker."""


def _enter(folder: str) -> None:
    global _copy
    _copy = Path(folder) / str(os.getpid())
    make_copy(_copy)


def _without_fault(tests: tuple[str, ...]) -> Trial:
    return run_tests(_copy, tests, 3600)


def _with_fault(fault: Fault) -> Trial:
    with plant(fault, _copy):
        return run_tests(_copy, fault.tests, SECONDS)


def _with_drawn(one: at_random.Drawn, unsound: tuple[str, ...]) -> Trial:
    return at_random.meet(one, _copy, unsound)


def _by_file(faults: Iterable[Fault]) -> list[tuple[str, ...]]:
    """The named tests, those of one file together."""
    files: dict[str, set[str]] = {}
    for test in {test for fault in faults for test in fault.tests}:
        files.setdefault(test.partition("::")[0], set()).add(test)
    return [(file,) if file in tests else tuple(sorted(tests)) for file, tests in sorted(files.items())]


def _each(pool: ProcessPoolExecutor, run: Callable[[Item], Trial], items: list[Item]) -> list[Trial]:
    """Run every item and print each as it ends."""
    waiting = {pool.submit(run, item): place for place, item in enumerate(items)}
    trials: dict[int, Trial] = {}
    for done in as_completed(waiting):
        place, trial = waiting[done], done.result()
        trials[place] = trial
        item = items[place]
        name = item.name if isinstance(item, Fault) else item[0].partition("::")[0]
        word = _verdict(item, trial) if isinstance(item, Fault) else f"{trial.outcome} without a fault"
        print(
            f"[{len(trials)}/{len(items)}] {name:12} {trial.cpu:5.1f} s  {word}  {trial.why[:1000]}",
            flush=True,
        )
    return [trials[place] for place in range(len(items))]


def _verdict(fault: Fault, trial: Trial) -> str:
    if trial.outcome == "failed":
        return "caught, but explained" if fault.survives else "caught"
    if trial.outcome == "passed":
        return "survives as explained" if fault.survives else "SURVIVES"
    return "ERROR"


def _report(faults: list[Fault], trials: list[Trial]) -> int:
    """Print all faults that are not caught; the number of holes among them."""
    verdicts = [_verdict(fault, trial) for fault, trial in zip(faults, trials, strict=True)]
    print()
    for fault, trial, verdict in zip(faults, trials, verdicts, strict=True):
        if verdict == "caught, but explained":
            print(f"{fault.name} is caught now: take its explanation out of the list.")
        elif verdict != "caught":
            told = fault.survives or trial.why or "No test that it names notices, and nothing explains why."
            print(f"{fault.name} {verdict}\n  {fault.module}: {fault.old!r} -> {fault.new!r}\n  {told}")
    holes = sum(verdict in ("SURVIVES", "ERROR") for verdict in verdicts)
    caught = sum(verdict.startswith("caught") for verdict in verdicts)
    slowest = sorted(zip(trials, faults, strict=True), key=lambda pair: -pair[0].cpu)[:5]
    print("Slowest: " + ", ".join(f"{fault.name} {trial.cpu:.0f} s" for trial, fault in slowest) + ".")
    print(f"{len(faults)} faults, {caught} caught, {len(faults) - caught - holes} explained, {holes} holes.")
    return holes


if __name__ == "__main__":
    sys.exit(main())
