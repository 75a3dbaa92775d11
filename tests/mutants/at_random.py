"""Faults that are drawn at random over the packages that matter, and what becomes of them.

They are drawn by ``operators.py`` with a seed that is the hash of the commit. Each is met by the tests that concern its module: first
those that the list names for it, those of its name and those that import it, then those of its package and the laws. What became of each
fault is kept at once, so that a run that was cut off goes on where it was. What survives is written to a file, where somebody who
wrote neither the code nor the tests says of each whether it is ``equivalent`` or a ``missing test``.
"""

from __future__ import annotations

import json
import re
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from tests.mutants.faults import ROOT, Fault, read_faults
from tests.mutants.trial import Trial

__all__ = ["Drawn", "Kept", "commit", "draw", "test_files", "verdict", "write_survivors"]

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

_SOURCE = ROOT / "src" / "isotone"
_FOLDER = ROOT / ".cache" / "mutation"


@dataclass(frozen=True)
class Drawn:
    """A fault that was drawn: its tests, where it is, the line before and after, and the operator of cosmic-ray."""

    fault: Fault
    """With the tests that are nearest to it."""
    others: tuple[str, ...]
    line: int
    before: str
    after: str
    operator: str


def commit() -> str:
    """The hash of the commit, which is the seed."""
    return subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()


def draw(number: int, seed: str, python: str) -> list[Drawn]:
    """``number`` faults, by cosmic-ray in its own environment. To draw takes minutes, so that what was drawn is kept."""
    kept = _FOLDER / f"{seed[:12]}-drawn.jsonl"
    lines = kept.read_text(encoding="utf-8").splitlines() if kept.exists() else []
    if len(lines) < number:
        command = [python, str(ROOT / "tests" / "mutants" / "operators.py"), str(number), seed]
        modules = [path.relative_to(ROOT).as_posix() for path in _modules()]
        text = subprocess.run(
            [*command, *modules], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout
        kept.write_text(text, encoding="utf-8")
        lines = text.splitlines()
    tests = _Tests()
    return [_drawn(place, json.loads(line), tests) for place, line in enumerate(lines[:number], 1)]


def _modules() -> list[Path]:
    found = {path for name in PACKAGES for path in _SOURCE.glob(f"{name}*.py")}
    found |= {path for name in PACKAGES for path in _SOURCE.glob(f"{name}*/**/*.py")}
    return sorted(path for path in found if path.name != "__init__.py")


def _drawn(place: int, row: dict[str, str], tests: _Tests) -> Drawn:
    path = ROOT / row["module"]
    text, line = path.read_text(encoding="utf-8"), int(row["line"])
    module = path.relative_to(_SOURCE).as_posix()
    before, after = text.splitlines(), row["new"].splitlines()
    changed = next((i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), line - 1)
    near, others = tests.of(module)
    fault = Fault(f"random-{place}", module, text, row["new"], near)
    shown = [lines[changed].strip() if changed < len(lines) else "" for lines in (before, after)]
    return Drawn(fault, others, changed + 1, shown[0], shown[1], row["operator"])


class _Tests:
    """Which tests concern a module: the nearest first."""

    def __init__(self) -> None:
        self.named: dict[str, dict[str, None]] = {}
        for fault in read_faults():
            self.named.setdefault(fault.module, {}).update(dict.fromkeys(fault.tests))
        texts = {path: path.read_text(encoding="utf-8") for path in test_files()}
        # a file that loads few modules is about those that it loads
        loaded = {path: len(set(re.findall(r"isotone[\w.]*", text))) for path, text in texts.items()}
        self.files = {path: texts[path] for path in sorted(texts, key=lambda path: loaded[path])}

    def of(self, module: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The nearest tests of a fault in the module, and the others. A file stands once."""
        dotted = "isotone." + module.removesuffix(".py").replace("/", ".")
        package = module.partition("/")[0]
        parent, _, name = dotted.rpartition(".")
        imported = re.compile(rf"{re.escape(dotted)}\b|from {re.escape(parent)} import [^\n]*\b{name}\b")
        same_name = [path for path in self.files if path.stem == f"test_{name}"]
        near = [*same_name, *(path for path, text in self.files.items() if imported.search(text))]
        same = [path for path in self.files if package in path.parent.name or path.stem == f"test_{package}"]
        laws = [path for path in self.files if path.parent.name == "laws"]
        far = [*same, *(laws if package in ("noise", "privacy", "linear", "counts") else [])]
        nearest, every = (
            dict.fromkeys(path.relative_to(ROOT).as_posix() for path in paths)
            for paths in (near, [*near, *far])
        )
        return (*self.named.get(module, ()), *nearest), tuple(name for name in every if name not in nearest)


def test_files() -> list[Path]:
    """The files of tests that a fault drawn at random may be met by."""
    folders = ("unit", "attacks", "laws", "statistical", "neighbours")
    left_out = ("desk", "project", "audit", "svg")
    files = [path for folder in folders for path in sorted((ROOT / "tests" / folder).rglob("test_*.py"))]
    return [path for path in files if path.parent.name not in left_out]


class Kept:
    """What became of the faults of one seed, a line each in a file, as soon as it is known."""

    def __init__(self, seed: str) -> None:
        self.path = _FOLDER / f"{seed[:12]}.jsonl"
        lines = self.path.read_text(encoding="utf-8").splitlines() if self.path.exists() else []
        self.trials = {row.pop("name"): Trial(**row) for row in map(json.loads, lines)}

    def add(self, name: str, trial: Trial) -> None:
        """Keep one more. What is known of a fault last counts."""
        self.trials[name] = trial
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"name": name, **vars(trial)}) + "\n")


def verdict(trial: Trial) -> str:
    """``caught``, ``survives``, or ``broken`` if the module cannot even be loaded, which tells nothing."""
    if trial.outcome == "passed":
        return "survives"
    if trial.outcome == "failed" or "broken code" in trial.why or "did not end" in trial.why:
        return "caught"
    return "broken" if "exit code 2" in trial.why or "exit code 4" in trial.why else "caught"


def write_survivors(drawn: list[Drawn], trials: list[Trial], seed: str) -> Path:
    """The survivors in a file, each with a place for what they are. What was said of the same change before is kept."""
    folder = ROOT / "tests" / "mutants" / "random"
    folder.mkdir(exist_ok=True)
    path = folder / f"{seed[:12]}.toml"
    verdicts = [verdict(trial) for trial in trials]
    told, caught = len(verdicts) - verdicts.count("broken"), verdicts.count("caught")
    rows = [
        f"# {len(drawn)} faults drawn on {time.strftime('%Y-%m-%d')} with the seed {seed}: "
        f"{verdicts.count('broken')} cannot be loaded, {caught} of {told} others caught.",
        "# said: 'equivalent', 'missing test' or 'test added', with a reason.",
    ]
    for one, word in zip(drawn, verdicts, strict=True):
        if word == "survives":
            texts = [json.dumps(text, ensure_ascii=False) for text in (one.before, one.after)]
            rows += [
                "\n[[survivor]]",
                f'module = "{one.fault.module}"',
                f"line = {one.line}",
                f"before = {texts[0]}",
                f"after = {texts[1]}",
                f'operator = "{one.operator}"',
                'said = ""',
            ]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path
