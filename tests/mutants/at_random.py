"""Faults that are drawn at random over the packages that matter, and what becomes of them.

They are drawn by ``operators.py`` with a seed that is the hash of the commit, and planted in a copy of that commit. Each is met by the
tests that reach its line (``reach.py``), the quickest first and those that the list names for its module before them. What became of each
fault is kept at once, so that a run that was cut off goes on where it was. What survives is written to a file, where somebody who
wrote neither the code nor the tests says of each whether it is ``equivalent`` or a ``missing test``.
"""

from __future__ import annotations

import json
import math
import multiprocessing
import subprocess
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.mutants.faults import ROOT, Fault, read_faults
from tests.mutants.meeting import Task
from tests.mutants.reach import Reach, measure
from tests.mutants.trial import PARTS, Trial

__all__ = [
    "FOLDER",
    "Drawn",
    "Kept",
    "commit",
    "copy_of",
    "draw",
    "reached",
    "tasks",
    "test_files",
    "verdict",
    "write_survivors",
]

PACKAGES = (
    "noise",
    "privacy",
    "ledger",
    "reading",
    "linear",
    "counts",
    "tables",
    "curves",
    "distribution",
    "series",
    "forms",
    "release/verify",
    "release/kinds/*/kind",
    "release/kinds/*/*faults",
)
"""Where faults are drawn: folders and modules whose paths begin so."""

NEAR = 6
"""Seconds of processor time of the tests that are nearest to a fault."""

FAR = 60
"""Seconds with those of the others."""

MOST_NAMED = 20
"""The most tests that come first because the list names them for the module."""

SLACK, COMPILED = 8, 60
"""Seconds beyond five times the usual ones until a test counts as endless, without and with kernels to compile."""

CASES = 4
"""A test is taken to have so many cases that were not measured."""

FOLDER = ROOT / ".cache" / "mutation"


@dataclass(frozen=True)
class Drawn:
    """A fault that was drawn: where it is, the line before and after, and the operator of cosmic-ray."""

    fault: Fault
    line: int
    before: str
    after: str
    operator: str


def commit() -> str:
    """The hash of the commit, which is the seed."""
    return _git("rev-parse", "HEAD").strip()


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def copy_of(seed: str, number: int) -> Path:
    """A copy of the repository as the commit has it, which stays: what Python and numba compiled there is not compiled again."""
    copy = FOLDER / seed[:12] / f"copy-{number}"
    copy.mkdir(parents=True, exist_ok=True)
    archive = copy.with_suffix(".tar")
    _git("archive", f"--output={archive}", seed, *PARTS)
    subprocess.run(["tar", "-xf", str(archive), "-C", str(copy)], check=True)
    archive.unlink()
    return copy


def draw(number: int, seed: str, python: str, copy: Path) -> list[Drawn]:
    """``number`` faults, by cosmic-ray in its own environment. To draw takes minutes, so that what was drawn is kept."""
    kept = FOLDER / f"{seed[:12]}-drawn.jsonl"
    lines = kept.read_text(encoding="utf-8").splitlines() if kept.exists() else []
    if len(lines) < number:
        command = [python, str(ROOT / "tests" / "mutants" / "operators.py"), str(number), seed]
        modules = [path.relative_to(copy).as_posix() for path in _modules(copy)]
        with kept.open("w", encoding="utf-8") as file:
            subprocess.run([*command, *modules], cwd=copy, stdout=file, check=True)
        lines = kept.read_text(encoding="utf-8").splitlines()
    return [_drawn(place, json.loads(line), copy) for place, line in enumerate(lines[:number], 1)]


def _modules(copy: Path) -> list[Path]:
    source = copy / "src" / "isotone"
    found = {path for name in PACKAGES for path in source.glob(f"{name}*.py")}
    found |= {path for name in PACKAGES for path in source.glob(f"{name}*/**/*.py")}
    return sorted(path for path in found if path.name != "__init__.py")


def _drawn(place: int, row: dict[str, str], copy: Path) -> Drawn:
    path = copy / row["module"]
    text, line = path.read_text(encoding="utf-8"), int(row["line"])
    module = path.relative_to(copy / "src" / "isotone").as_posix()
    before, after = text.splitlines(), row["new"].splitlines()
    changed = next((i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), line - 1)
    shown = [lines[changed].strip() if changed < len(lines) else "" for lines in (before, after)]
    fault = Fault(f"random-{place}", module, text, row["new"], ())
    return Drawn(fault, changed + 1, shown[0], shown[1], row["operator"])


def tasks(faults: Iterable[tuple[Fault, int]], reach: Reach) -> list[Task]:
    """The faults, each with its line, and the tests that reach it: the nearest are those that are quick. Quick faults come first."""
    named: dict[str, set[str]] = {}
    for fault in read_faults():
        named.setdefault(fault.module, set()).update(fault.tests)
    found = [_task(fault, line, reach, named.get(fault.module, set())) for fault, line in faults]
    return [task for _, task in sorted(found, key=lambda pair: pair[0])]


def _task(fault: Fault, line: int, reach: Reach, named: set[str]) -> tuple[float, Task]:
    ranked = reach.of(fault.module, line)
    first = [test for test in ranked if reach.cpu[test] <= 1 and {test, test.partition("[")[0]} & named]
    ordered = list(dict.fromkeys([*first[:MOST_NAMED], *ranked]))
    if not ordered:  # where only processes that tests start get to
        return math.inf, Task(fault, tuple(sorted(named))[:MOST_NAMED])
    near, others, spent = list[str](), list[str](), 0.0
    for test in ordered:
        spent += reach.cpu[test]
        if spent <= NEAR or not near:
            near.append(test)
        elif spent <= FAR:
            others.append(test)
    slack = COMPILED if "@kernel" in fault.old else SLACK
    limits = {test: slack + 5 * reach.cpu[test] for test in (*near, *others)}
    for test in ordered:  # and their other cases, of which nobody measured what they reach
        name = test.partition("[")[0]
        spent += CASES * reach.cpu[test] * (name not in limits)
        if spent <= FAR and name != test and name not in limits:
            others.append(name)
            limits[name] = slack + 5 * CASES * reach.cpu[test]
    task = Task(fault, tuple(near), tuple(others), limits, reach.is_loaded(fault.module, line))
    return sum(reach.cpu[test] for test in near[:5]), task


def test_files(copy: Path) -> list[str]:
    """The files of tests that a fault drawn at random may be met by, and the examples in the code."""
    folders = ("unit", "laws", "attacks", "statistical", "neighbours")
    left_out = ("desk", "project", "audit", "svg")
    files = [path for folder in folders for path in sorted((copy / "tests" / folder).rglob("test_*.py"))]
    names = [path.relative_to(copy).as_posix() for path in files if path.parent.name not in left_out]
    return [*names, "src"]


def reached(seed: str, copy: Path) -> Reach:
    """What the tests of the commit reach, measured if it is not known yet."""
    kept = FOLDER / seed[:12] / "reach"
    arguments = (copy, test_files(copy), kept)
    done = multiprocessing.get_context("fork").Process(target=measure, args=arguments)
    done.start()
    done.join()
    return Reach(kept)


class Kept:
    """What became of the faults of one seed, a line each in a file, as soon as it is known."""

    def __init__(self, seed: str) -> None:
        self.path = FOLDER / f"{seed[:12]}.jsonl"
        lines = self.path.read_text(encoding="utf-8").splitlines() if self.path.exists() else []
        self.trials = {row.pop("name"): Trial(**row) for row in map(json.loads, lines)}

    def add(self, name: str, trial: Trial) -> None:
        """Keep one more. What is known of a fault last counts."""
        self.trials[name] = trial
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"name": name, **vars(trial)}) + "\n")


def verdict(trial: Trial) -> str:
    """``caught`` by a test that failed, ``survives``, or what tells nothing: ``endless``, ``lost``, or ``broken`` if the module cannot be loaded.

    Who runs out of time, or whose process was killed, was noticed by no test: a person says what it is, as for a survivor.
    """
    if trial.outcome == "passed":
        return "survives"
    if trial.outcome == "failed" or "broken code" in trial.why:
        return "caught"
    if "time of the processor" in trial.why:
        return "endless"
    return "broken" if "exit code 2" in trial.why or "exit code 4" in trial.why else "lost"


def write_survivors(drawn: list[Drawn], trials: list[Trial], seed: str) -> Path:
    """Survivors, and what ended without a test that failed, in a file, each with a place for what they are."""
    path = ROOT / "tests" / "mutants" / "random" / f"{seed[:12]}.toml"
    verdicts = [verdict(trial) for trial in trials]
    told, caught = len(verdicts) - verdicts.count("broken"), verdicts.count("caught")
    others = ", ".join(f"{verdicts.count(word)} {word}" for word in ("survives", "endless", "lost"))
    rows = [
        f"# {len(drawn)} faults drawn on {time.strftime('%Y-%m-%d')} with the seed {seed}: "
        f"{verdicts.count('broken')} cannot be loaded, {caught} of {told} others caught ({others}).",
        "# said: 'equivalent', 'missing test', 'test added' or 'caught', with a reason.",
    ]
    for one, word in zip(drawn, verdicts, strict=True):
        if word not in ("caught", "broken"):
            texts = [json.dumps(text, ensure_ascii=False) for text in (one.before, one.after)]
            rows += [
                "\n[[survivor]]",
                f'module = "{one.fault.module}"',
                f"line = {one.line}",
                f"before = {texts[0]}",
                f"after = {texts[1]}",
                f'operator = "{one.operator}"',
                *([] if word == "survives" else [f'ended = "{word}"']),
                'said = ""',
            ]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path
