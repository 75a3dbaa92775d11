"""Faults meet their tests: in forks of a process that has collected the tests once, then, where that is not enough, with all loaded anew.

Each worker has a copy of the repository. A test that fails without a fault too catches nothing: what caught something runs once more
without one, and if it fails there the fault meets the others.
"""

from __future__ import annotations

import importlib
import math
import multiprocessing
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from tests.mutants.faults import Fault
from tests.mutants.trial import LIBRARIES, Trial, make_copy, plant, run_tests
from tests.mutants.warm import Warm, collected

__all__ = ["Task", "meet"]

LONGEST = 900
"""Seconds by the clock for the tests of one fault: on a busy machine a slow test is no caught fault."""

Add = Callable[[str, Trial], None]
Run = Callable[[tuple[str, ...], Fault | None, set[str]], Trial | None]


@dataclass(frozen=True)
class Task:
    """A fault and its tests: those that are nearest, and others."""

    fault: Fault
    tests: tuple[str, ...]
    others: tuple[str, ...] = ()


def meet(tasks: Sequence[Task], add: Add, workers: int, enough: float = math.inf) -> set[str]:
    """Run the tests of every fault, and ``add`` what becomes of each as it is known. The tests that fail without a fault.

    ``enough`` seconds of processor time of tests that pass, of those nearest to a fault and again of the others, and it has survived.
    """
    for library in LIBRARIES:
        importlib.import_module(library)
    unsound, survived = set[str](), dict[str, Trial]()
    left = {task.fault.name: task for task in tasks}

    def told(name: str, found: dict[str, Any] | None) -> None:
        if found is None:
            unsound.add(name)
        elif found["outcome"] == "passed" and name not in survived:
            survived[name] = Trial(**found)
            left[name] = Task(
                left[name].fault, left[name].tests
            )  # its nearest tests tell whether forks missed it
        else:
            left.pop(name, None)
            add(name, Trial(**found))

    with tempfile.TemporaryDirectory(prefix="isotone-mutants-") as folder:
        copies = [Path(folder) / str(number) for number in range(workers)]
        for work in (_collected_once, _loaded_anew):
            shares = [list(left.values())[number::workers] for number in range(workers)]
            _side_by_side(work, list(zip(copies, shares, strict=True)), enough, told)
    for name in left:  # could not be planted in memory, and survived
        add(name, survived[name])
    return unsound


def _side_by_side(
    work: Callable[[Path, list[Task], Connection, float], None],
    shares: list[tuple[Path, list[Task]]],
    enough: float,
    told: Callable[[str, dict[str, Any] | None], None],
) -> None:
    forks, ends = multiprocessing.get_context("fork"), list[Connection]()
    for copy, tasks in shares:
        if not copy.exists():
            make_copy(copy)
        ours, theirs = forks.Pipe(duplex=False)
        forks.Process(target=work, args=(copy, tasks, theirs, enough)).start()
        theirs.close()
        ends.append(ours)
    while ends:
        for end in wait(ends):
            assert isinstance(end, Connection)
            try:
                told(*end.recv())
            except EOFError:
                ends.remove(end)


def _collected_once(copy: Path, tasks: list[Task], tell: Connection, enough: float) -> None:
    """Tell of the faults that can be planted in memory."""

    def work(warm: Warm) -> None:
        def run(tests: tuple[str, ...], fault: Fault | None, without: set[str]) -> Trial | None:
            items = [item for item in warm.chosen(tests) if item.nodeid not in without]
            return warm.run(items, fault, LONGEST, enough)

        _each(tasks, run, tell)

    files = {test.partition("::")[0]: None for task in tasks for test in (*task.tests, *task.others)}
    if files:
        collected(copy, list(files), work)


def _loaded_anew(copy: Path, tasks: list[Task], tell: Connection, enough: float) -> None:
    """Tell of all faults."""

    def run(tests: tuple[str, ...], fault: Fault | None, without: set[str]) -> Trial:
        options = [f"--deselect={test}" for test in without]
        if fault is None:
            return run_tests(copy, tests, LONGEST)
        with plant(fault, copy):
            return run_tests(copy, tests, LONGEST, enough=enough, options=options)

    _each(tasks, run, tell)


def _each(tasks: list[Task], run: Run, tell: Connection) -> None:
    sound: dict[str, bool] = {}
    for task in tasks:
        trial, cpu = _met(task, run, sound, tell)
        if trial is not None:
            tell.send(
                (task.fault.name, {**vars(trial), "cpu": cpu})
            )  # its class stands twice in this process


def _met(task: Task, run: Run, sound: dict[str, bool], tell: Connection) -> tuple[Trial | None, float]:
    """What becomes of a fault: tests that fail without it too are left out, and the rest run again."""
    trial, cpu = Trial("passed", "", 0.0), 0.0
    for tests in (task.tests, task.others):
        while tests:
            trial = run(tests, task.fault, {test for test, is_sound in sound.items() if not is_sound})
            if trial is None:
                return None, cpu
            cpu += trial.cpu
            if trial.test and trial.test not in sound:
                clean = run((trial.test,), None, set())
                sound[trial.test] = clean is not None and clean.outcome == "passed"
                if not sound[trial.test]:
                    tell.send((trial.test, None))
            if sound.get(trial.test, True):
                break
        if trial.outcome != "passed":
            break
    return trial, cpu
