"""Environments of their own for libraries whose pins clash, made on first use below ``.cache`` with pinned versions."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["CONSTRAINTS", "ROOT", "ask", "environment", "run_arrays"]

ROOT = Path(__file__).resolve().parent.parent.parent
CONSTRAINTS = Path(__file__).resolve().parent / "constraints.txt"
WANTED = {
    "pgm": ("mbi",),
    "contingency": ("opendp[mbi]",),
}
"""What is installed in each environment, with the versions below its heading in ``constraints.txt``. The other libraries are in that
of ``benchmarks/switching.py``."""


def environment(name: str) -> str | None:
    """The interpreter of an environment, or None where it cannot be made."""
    if name == "libraries":
        from benchmarks.switching import rivals

        return rivals()[0]
    folder = ROOT / ".cache" / f"rivals-{name}"
    python = folder / "bin" / "python"
    if (folder / "ready").exists():
        return str(python)
    try:
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "-qq"]
        with tempfile.TemporaryDirectory() as temporary:
            pinned = Path(temporary) / "constraints.txt"
            pinned.write_text(_pins(name), encoding="utf-8")
            subprocess.run([*pip, "-c", str(pinned), *WANTED[name]], check=True)
    except (subprocess.CalledProcessError, OSError):
        return None
    (folder / "ready").touch()
    return str(python)


def _pins(name: str) -> str:
    """The lines of ``constraints.txt`` below the heading of this environment."""
    parts = CONSTRAINTS.read_text(encoding="utf-8").split("# environment: ")
    return next(part.split("\n", 1)[1] for part in parts[1:] if part.split("\n", 1)[0] == name)


def ask(name: str, module: str, question: Any) -> Any:
    """What a module answers to a question in an environment, both as JSON; None where it cannot be run."""
    python = environment(name)
    if python is None:
        return None
    command = [python, "-m", module]
    done = subprocess.run(
        command, cwd=ROOT, input=json.dumps(question), capture_output=True, text=True, check=False
    )
    return None if done.returncode else json.loads(done.stdout)


def run_arrays(name: str, module: str, data: dict[str, Any]) -> dict[str, NDArray[Any]] | None:
    """The same with arrays, in files."""
    python = environment(name)
    if python is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "in.npz", Path(folder) / "out.npz"
        np.savez(source, **data)
        command = [python, "-m", module, str(source), str(target)]
        if subprocess.run(command, cwd=ROOT, check=False, capture_output=True).returncode:
            return None
        with np.load(target) as stored:
            return {key: stored[key] for key in stored.files}
