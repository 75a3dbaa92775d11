"""Faults meet their tests: in forks of a process that has collected the tests once, then, where that is not enough, with all loaded anew.

Each worker has a copy of the repository. A test that fails without a fault too catches nothing: what caught something runs once more
without one, and if it fails there the fault meets the others.
"""

from __future__ import annotations

import importlib
import math
import multiprocessing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from tests.mutants.faults import Fault
from tests.mutants.trial import LIBRARIES, Trial, plant, run_tests
from tests.mutants.warm import Warm, collected

__all__ = ["Task", "meet"]

LONGEST = 900
"""Seconds by the clock for the tests of one fault: on a busy machine a slow test is no caught fault."""

STARTING = 60
"""Seconds of processor time to load everything and to run the quick tests of one fault."""

Add = Callable[[str, Trial], None]
Run = Callable[[tuple[str, ...], Fault | None, set[str]], Trial | None]


@dataclass(frozen=True)
class Task:
    """A fault and its tests: those that are nearest, and others, which it meets after all faults have met the nearest."""

    fault: Fault
    tests: tuple[str, ...]
    others: tuple[str, ...] = ()
    limits: Mapping[str, float] = field(default_factory=dict)
    """Seconds of processor time of some tests, after which they count as failed."""
    anew: bool = True
    """Whether a survivor meets the nearest tests once more with all loaded anew: forks may miss what ran while tests were collected."""


def meet(tasks: Sequence[Task], add: Add, copies: Sequence[Path]) -> set[str]:
    """Run the tests of every fault in copies, side by side, and ``add`` what becomes of each as it is known. The tests that fail without a fault."""
    for library in LIBRARIES:
        importlib.import_module(library)
    unsound, survived = set[str](), dict[str, Trial]()
    left = {task.fault.name: task for task in tasks}

    def told(name: str, found: dict[str, Any] | None) -> None:
        if found is None:
            unsound.add(name)
        elif found["outcome"] == "passed" and name not in survived and left[name].anew:
            survived[name] = Trial(**found)
        else:
            left.pop(name, None)
            add(name, Trial(**found))

    for work in (_collected_once, _loaded_anew):
        shares = [list(left.values())[number :: len(copies)] for number in range(len(copies))]
        _side_by_side(work, list(zip(copies, shares, strict=True)), told)
    for name in left:  # could not be planted in memory, and survived
        add(name, survived[name])
    return unsound


def _side_by_side(
    work: Callable[[Path, list[Task], Connection], None],
    shares: list[tuple[Path, list[Task]]],
    told: Callable[[str, dict[str, Any] | None], None],
) -> None:
    forks, ends = multiprocessing.get_context("fork"), list[Connection]()
    for copy, tasks in shares:
        ours, theirs = forks.Pipe(duplex=False)
        forks.Process(target=work, args=(copy, tasks, theirs)).start()
        theirs.close()
        ends.append(ours)
    while ends:
        for end in wait(ends):
            assert isinstance(end, Connection)
            try:
                told(*end.recv())
            except EOFError:
                ends.remove(end)


def _collected_once(copy: Path, tasks: list[Task], tell: Connection) -> None:
    """Tell of the faults that can be planted in memory."""

    def work(warm: Warm) -> None:
        def run(task: Task) -> Run:
            def some(tests: tuple[str, ...], fault: Fault | None, without: set[str]) -> Trial | None:
                items = [item for item in warm.chosen(tests) if item.nodeid not in without]
                return warm.run(items, fault, LONGEST, task.limits)

            return some

        _each(tasks, run, tell)

    files = {test.partition("::")[0]: None for task in tasks for test in (*task.tests, *task.others)}
    if files:
        collected(copy, list(files), work)


def _loaded_anew(copy: Path, tasks: list[Task], tell: Connection) -> None:
    """Tell of all faults."""

    def run(task: Task) -> Run:
        limit = max(task.limits.values()) + STARTING if task.limits else math.inf

        def some(tests: tuple[str, ...], fault: Fault | None, without: set[str]) -> Trial:
            options = [f"--deselect={test}" for test in without]
            if fault is None:
                return run_tests(copy, tests, LONGEST)
            with plant(fault, copy):
                return run_tests(copy, tests, LONGEST, limit=limit, options=options)

        return some

    _each(tasks, run, tell)


def _each(tasks: Sequence[Task], run: Callable[[Task], Run], tell: Connection) -> None:
    sound: dict[str, bool] = {}
    later: list[tuple[Task, float]] = []

    def say(task: Task, trial: Trial, cpu: float) -> None:
        tell.send((task.fault.name, {**vars(trial), "cpu": cpu}))  # its class stands twice in this process

    for task in tasks:
        trial, cpu = _met(task.fault, task.tests, run(task), sound, tell)
        if trial is not None and trial.outcome == "passed" and task.others:
            later.append((task, cpu))
        elif trial is not None:
            say(task, trial, cpu)
    for task, before in later:
        trial, cpu = _met(task.fault, task.others, run(task), sound, tell)
        say(task, trial or Trial("passed", "", 0.0), before + cpu)


def _met(
    fault: Fault, tests: tuple[str, ...], run: Run, sound: dict[str, bool], tell: Connection
) -> tuple[Trial | None, float]:
    """What becomes of a fault: tests that fail without it too are left out, and the rest run again."""
    trial, cpu = Trial("passed", "", 0.0), 0.0
    while tests:
        trial = run(tests, fault, {test for test, is_sound in sound.items() if not is_sound})
        if trial is None:
            return None, cpu
        cpu += trial.cpu
        if trial.test and trial.test not in sound:
            clean = run((trial.test,), None, set())
            cpu += clean.cpu if clean else 0.0
            sound[trial.test] = clean is not None and clean.outcome == "passed"
            if not sound[trial.test]:
                tell.send((trial.test, None))
        if sound.get(trial.test, True):
            break
    return trial, cpu
