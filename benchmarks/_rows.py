"""Rows of a long benchmark, kept as they come, so that an interruption loses none."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import isotone

__all__ = ["Rows", "sources", "unfinished"]

ROOT = Path(__file__).resolve().parent.parent
PLACE = ROOT / ".cache" / "benchmarks"


def sources() -> str:
    """A hash of isotone, of the benchmarks and of the experiments that they draw from."""
    code = hashlib.sha256()
    for folder in (Path(isotone.__file__).parent, ROOT / "benchmarks", ROOT / "experiments"):
        for path in sorted(folder.rglob("*.py")):
            code.update(path.read_bytes())
    return code.hexdigest()[:16]


def unfinished(name: str) -> Path:
    """Where a run keeps what it has so far. Another state of the code has another place."""
    return PLACE / sources() / name


class Rows:
    """Finished rows of a benchmark, by name. Those of other code are not taken."""

    def __init__(self, benchmark: str) -> None:
        """Read what an interrupted run has left."""
        self.path = unfinished(f"{benchmark}.json")
        self.known: dict[str, str] = json.loads(self.path.read_text()) if self.path.exists() else {}

    def get(self, name: str, make: Callable[[], str]) -> str:
        """The row of this name, made unless it is there."""
        if name not in self.known:
            self.known[name] = make()
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.write_text(json.dumps(self.known))
        return self.known[name]

    def done(self) -> None:
        """Forget the rows: the next run measures again."""
        self.path.unlink(missing_ok=True)
