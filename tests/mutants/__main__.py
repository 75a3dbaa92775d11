"""Plant every fault of the list, one at a time, and print those that no test notices.

Run by ``make mutants``. Each worker has a copy of the repository, in which it plants a fault, runs the tests that
must catch it, and takes the fault out again. A test that failed runs once more without a fault: one that fails anyway catches
nothing. It is a development tool, not a part of the tests.

    python -m tests.mutants              all of them
    python -m tests.mutants ledger noise-3   some tables, some faults
    python -m tests.mutants --random 400 --operators PYTHON   as many drawn at random, by an environment with cosmic-ray

The exit code is 0 if every fault is caught or explained, 1 if a hole is left, and 2 if the list does not fit the code or
a test fails without a fault.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.mutants import at_random
from tests.mutants.faults import Fault, misplaced, read_faults
from tests.mutants.meeting import Task, meet
from tests.mutants.trial import Trial, make_copy


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
    began = time.monotonic()
    known, by_name = dict[str, Trial](), {fault.name: fault for fault in faults}

    def add(name: str, trial: Trial) -> None:
        known[name] = trial
        word = _verdict(by_name[name], trial)
        print(
            f"[{len(known)}/{len(faults)}] {name:12} {trial.cpu:5.1f} s  {word}  {trial.why[:1000]}",
            flush=True,
        )

    with tempfile.TemporaryDirectory(prefix="isotone-mutants-") as folder:
        copies = [Path(folder) / str(number) for number in range(options.workers)]
        for copy in copies:
            make_copy(copy)
        unsound = meet([Task(fault, fault.tests) for fault in faults], add, copies)
    trials = [known[fault.name] for fault in faults]
    holes = _report(faults, trials)
    cpu = sum(trial.cpu for trial in trials) / 60
    print(f"{cpu:.1f} minutes of processor time, {(time.monotonic() - began) / 60:.1f} minutes by the clock.")
    if unsound:
        print("These tests fail without a fault: " + ", ".join(sorted(unsound)))
    return 2 if unsound else 1 if holes else 0


def _at_random(number: int, seed: str, operators: str, workers: int) -> int:
    """Draw faults, meet each with the tests of its module, and write down what survives."""
    copies = [at_random.copy_of(seed, place) for place in range(workers)]
    drawn, kept = at_random.draw(number, seed, operators, copies[0]), at_random.Kept(seed)
    reach = at_random.reached(seed, copies[0])
    by_name = {one.fault.name: one for one in drawn}

    def add(name: str, trial: Trial) -> None:
        kept.add(name, trial)
        one, word = (
            by_name[name],
            f"{len(kept.trials)}/{number} {name} {trial.cpu:.0f} s {at_random.verdict(trial)}",
        )
        print(
            f"{word} {one.fault.module}:{one.line} {one.before} -> {one.after}  {trial.why[:200]}", flush=True
        )

    waiting = [(one.fault, one.line) for one in drawn if one.fault.name not in kept.trials]
    meet(at_random.tasks(waiting, reach), add, copies)
    trials = [kept.trials[one.fault.name] for one in drawn]
    path = at_random.write_survivors(drawn, trials, seed)
    words = [at_random.verdict(trial) for trial in trials]
    told = len(words) - words.count("broken")
    print(f"{words.count('caught')} of {told} caught ({len(drawn)} drawn); the survivors are in {path}.")
    return 0


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
