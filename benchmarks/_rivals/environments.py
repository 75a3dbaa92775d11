"""Environments of their own for libraries whose pins clash, made on first use below ``.cache`` with pinned versions."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["CONSTRAINTS", "OWN", "ROOT", "ask", "environment", "run_arrays"]

ROOT = Path(__file__).resolve().parent.parent.parent
CONSTRAINTS = Path(__file__).resolve().parent / "constraints.txt"
OWN = "own"
"""The environment that isotone itself runs in."""
WANTED = {
    "libraries": tuple(
        tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["dependency-groups"]["bench"]
    ),
    "pgm": ("mbi",),
    "contingency": ("opendp[mbi]",),
}
"""What is installed in each environment, with the versions below its heading in ``constraints.txt`` or, for the other libraries,
in ``pyproject.toml``. diffprivlib 0.6.6 cannot be imported beside scikit-learn 1.8."""


def environment(name: str) -> str | None:
    """The interpreter of an environment, or None where it cannot be made."""
    if name == OWN:
        return sys.executable
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
            subprocess.run([*pip, "-c", str(pinned), *WANTED[name]], cwd=ROOT, check=True)
    except (subprocess.CalledProcessError, OSError):
        return None
    (folder / "ready").touch()
    return str(python)


def _pins(name: str) -> str:
    """The lines of ``constraints.txt`` below the heading of this environment."""
    parts = CONSTRAINTS.read_text(encoding="utf-8").split("# environment: ")
    return next((part.split("\n", 1)[1] for part in parts[1:] if part.split("\n", 1)[0] == name), "")


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


def run_arrays(
    name: str, module: str, data: Mapping[str, Any], *words: str
) -> dict[str, NDArray[Any]] | None:
    """The same with arrays, in files whose names come after the given words."""
    python = environment(name)
    if python is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "in.npz", Path(folder) / "out.npz"
        np.savez(source, **data)
        command = [python, "-m", module, *words, str(source), str(target)]
        if subprocess.run(command, cwd=ROOT, check=False, capture_output=True).returncode:
            return None
        with np.load(target) as stored:
            return {key: stored[key] for key in stored.files}
