"""The list of planted faults, read from the tables beside this file.

A fault is a change of a line or two that a careless hand could make and that would matter: a rate, a factor, a
sensitivity, a sign, a lock, a check. Each names the tests that must fail because of it. The old text stands in its
module exactly once, so that a fault is never planted in the wrong place or, after the code moved, nowhere.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["ROOT", "Fault", "misplaced", "read_faults"]

ROOT = Path(__file__).parents[2]
"""The repository."""

_KEYS = {"module", "old", "new", "tests", "survives", "unrun"}


@dataclass(frozen=True)
class Fault:
    """One planted fault: ``old`` becomes ``new`` in ``module``, and one of ``tests`` must fail.

    ``survives`` is empty, or says why no test needs to notice. ``unrun`` marks a fault whose tests are named from
    reading alone: nobody has seen them fail yet.
    """

    name: str
    module: str
    old: str
    new: str
    tests: tuple[str, ...]
    survives: str = ""
    unrun: bool = False

    def planted(self, text: str) -> str:
        """The text of the module with the fault in it."""
        if text.count(self.old) != 1:
            raise ValueError(
                f"{self.name}: {self.module} has the old text {text.count(self.old)} times, not once."
            )
        return text.replace(self.old, self.new)


def read_faults(folder: Path = Path(__file__).parent) -> list[Fault]:
    """Every fault of every table, in the sequence of the files."""
    faults: list[Fault] = []
    for path in sorted(folder.glob("*.toml")):
        rows: list[dict[str, Any]] = tomllib.loads(path.read_text(encoding="utf-8"))["fault"]
        for number, row in enumerate(rows, 1):
            name = f"{path.stem}-{number}"
            if not set(row) <= _KEYS:
                raise ValueError(f"{name} has keys that mean nothing: {sorted(set(row) - _KEYS)}.")
            texts = (row["module"], row["old"], row["new"])
            faults.append(
                Fault(name, *texts, tuple(row["tests"]), row.get("survives", ""), row.get("unrun", False))
            )
    return faults


def misplaced(fault: Fault, root: Path = ROOT) -> str:
    """Why a fault cannot be planted, or nothing if it can."""
    path = root / "src" / "isotone" / fault.module
    if not path.is_file():
        return f"{fault.name}: there is no module {fault.module}."
    try:
        changed = fault.planted(path.read_text(encoding="utf-8"))
        compile(changed, str(path), "exec")
    except (ValueError, SyntaxError) as error:
        return f"{fault.name}: {error}"
    if fault.old == fault.new:
        return f"{fault.name}: old and new text are the same."
    for test in fault.tests:
        file, *names = test.partition("[")[0].split("::")
        text = (root / file).read_text(encoding="utf-8") if (root / file).is_file() else None
        if text is None or any(f"def {part}(" not in text and f"class {part}" not in text for part in names):
            return f"{fault.name}: there is no test {test}."
    return "" if fault.tests else f"{fault.name} names no test."
