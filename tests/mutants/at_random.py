"""Faults that are drawn at random over the packages that matter, and what becomes of them.

They are drawn by ``operators.py`` with a seed that is the hash of the commit. Each is met by the tests that concern its module: those
that the list names for it, those that import it, then all of its package and the laws. What survives is written to a file, where
somebody who wrote neither the code nor the tests says of each whether it is ``equivalent`` or a ``missing test``.
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

__all__ = ["PACKAGES", "Drawn", "commit", "draw", "verdict", "write_survivors"]

PACKAGES = (
    "noise",
    "privacy",
    "ledger",
    "reading",
    "linear",
    "counts",
    "tables",
    "curves",
    "release/verify",
    "forms",
)
"""Where faults are drawn."""

_SOURCE = ROOT / "src" / "isotone"


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
    return subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()


def draw(number: int, seed: str, python: str) -> list[Drawn]:
    """``number`` faults, by cosmic-ray in its own environment."""
    modules = [str(path) for path in _modules()]
    command = [python, str(ROOT / "tests" / "mutants" / "operators.py"), str(number), seed, *modules]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    tests = _Tests()
    return [_drawn(place, json.loads(line), tests) for place, line in enumerate(lines, 1)]


def _modules() -> list[Path]:
    found = [path for name in PACKAGES for path in (_SOURCE / name).rglob("*.py")]
    found += [path for name in PACKAGES if (path := _SOURCE / f"{name}.py").is_file()]
    return sorted({path for path in found if path.name != "__init__.py"})


def _drawn(place: int, row: dict[str, str], tests: _Tests) -> Drawn:
    path = Path(row["module"])
    text, line = path.read_text(encoding="utf-8"), int(row["line"])
    module = path.relative_to(_SOURCE).as_posix()
    before, after = text.splitlines(), row["new"].splitlines()
    changed = next((i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), line - 1)
    fault = Fault(f"random-{place}", module, text, row["new"], tests.of(module))
    shown = [lines[changed].strip() if changed < len(lines) else "" for lines in (before, after)]
    return Drawn(fault, changed + 1, shown[0], shown[1], row["operator"])


class _Tests:
    """Which tests concern a module: the nearest first."""

    def __init__(self) -> None:
        self.named: dict[str, dict[str, None]] = {}
        for fault in read_faults():
            self.named.setdefault(fault.module, {}).update(dict.fromkeys(fault.tests))
        folders = ("unit", "attacks", "statistical", "laws")
        files = [path for folder in folders for path in sorted((ROOT / "tests" / folder).rglob("test_*.py"))]
        self.files = {path: path.read_text(encoding="utf-8") for path in files}

    def of(self, module: str) -> tuple[str, ...]:
        """Tests of a fault in the module, each once. A file stands once, and tests of it that are named before it."""
        dotted = "isotone." + module.removesuffix(".py").replace("/", ".")
        package = module.partition("/")[0]
        parent, _, name = dotted.rpartition(".")
        imported = re.compile(rf"{re.escape(dotted)}\b|from {re.escape(parent)} import [^\n]*\b{name}\b")
        importing = [path for path, text in self.files.items() if imported.search(text)]
        same = [path for path in self.files if package in path.parent.name or path.stem == f"test_{package}"]
        laws = [path for path in self.files if path.parent.name == "laws"]
        near = laws if package in ("noise", "privacy", "linear", "counts") else []
        paths = dict.fromkeys([*importing, *same, *near])
        return (*self.named.get(module, ()), *(path.relative_to(ROOT).as_posix() for path in paths))


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
