"""The case for switching: isotone, OpenDP, diffprivlib and PipelineDP on the same data at the same ε."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks._switching_cases import Case, cases
from isotone.mechanism import Progress

ROOT = Path(__file__).resolve().parent.parent
RIVALS = ROOT / ".cache" / "rivals"
OURS = ("poset", "order_gaussian", "table", "curve")


@dataclass(frozen=True)
class Row:
    """What one way gave: errors by name, seconds a release, peak memory in MB."""

    name: str
    errors: dict[str, float]
    seconds: float
    prepared: float
    memory: float
    values: dict[str, NDArray[Any]]


def run(quick: bool, progress: Progress) -> str:
    python, note = rivals()
    todo, parts, measured = cases(quick), [_introduction(note)], []
    for done, case in enumerate(todo):
        progress(done / len(todo), case.title)
        rows = _measure(case, python)
        measured.append((case, rows))
        parts.append(_section(case, rows))
    if not quick:
        from benchmarks._switching_pictures import errors_picture, first_picture

        out = ROOT / "docs" / "benchmarks"
        errors_picture(measured, out / "switching.png")
        first_picture(measured, out / "switching-at-a-glance.png")
        parts.insert(1, "![root mean squared errors as multiples of isotone's](switching.png)")
    progress(1.0, "done")
    return "\n\n".join(parts)


def rivals() -> tuple[str, str]:
    """The interpreter of an environment with the other libraries, and what is in it.

    diffprivlib 0.6.6 cannot be imported beside scikit-learn 1.8 or newer, so they have an environment of their own: the
    dependency group ``bench`` of pyproject.toml.
    """
    python = RIVALS / "bin" / "python"
    try:
        if not (RIVALS / "ready").exists():
            subprocess.run([sys.executable, "-m", "venv", str(RIVALS)], check=True)
            pip = [
                sys.executable,
                "-m",
                "pip",
                "--python",
                str(python),
                "install",
                "-qq",
                "--group",
                "bench",
            ]
            subprocess.run(pip, check=True, cwd=ROOT)
            (RIVALS / "ready").touch()
        ask = "import importlib.metadata as m; print(*(f'{p} {m.version(p)}' for p in ('opendp', 'diffprivlib', 'pipeline-dp', 'interpret-core')), sep=', ')"
        return str(python), subprocess.check_output([str(python), "-c", ask], text=True).strip()
    except (subprocess.CalledProcessError, OSError):
        return sys.executable, "OpenDP of this environment; the others could not be installed"


def _measure(case: Case, python: str) -> list[Row]:
    rows: list[Row] = []
    for name, (way, data) in case.ways.items():
        with tempfile.TemporaryDirectory() as folder:
            source, target = Path(folder) / "in.npz", Path(folder) / "out.npz"
            np.savez(source, **data)
            module = "benchmarks._switching_ours" if way in OURS else "benchmarks._switching_rivals"
            draws = str(case.slow.get(way, case.draws))
            command = [
                sys.executable if way in OURS else python,
                "-m",
                module,
                way,
                draws,
                str(source),
                str(target),
            ]
            done = subprocess.run(command, cwd=ROOT, check=False, stderr=subprocess.PIPE, text=True)
            if done.returncode and way in OURS:
                raise RuntimeError(done.stderr)
            if done.returncode:
                continue  # not to be had here: the row is left out
            with np.load(target) as stored:
                values = {key: stored[key] for key in stored.files}
        seconds, prepared, memory = (float(values.pop(key)) for key in ("seconds", "prepared", "memory"))
        rows.append(Row(name, case.errors(values), seconds, prepared, memory, values))
    return rows


LABELS = {
    "rmse": "root mean squared error",
    "consistent": "after consistency",
    "distribution": "distance of the distributions",
}


def _section(case: Case, rows: list[Row]) -> str:
    base, kinds = rows[0], list(rows[0].errors)
    lines = [
        f"## {case.title}",
        "",
        "| | " + " | ".join(LABELS[kind] for kind in kinds) + " | ms a release | once, s | peak memory, MB |",
        "|---|" + "---|" * (len(kinds) + 3),
    ]
    for row in rows:
        cells = [
            f"{row.errors[kind]:.3g} (**{row.errors[kind] / base.errors[kind]:.2f} ×**)" for kind in kinds
        ]
        cells += [
            f"{_short(row.seconds * 1e3)} ({_short(row.seconds / base.seconds)} ×)",
            f"{row.prepared:.1f}",
            f"{row.memory:.0f} ({row.memory / base.memory:.2f} ×)",
        ]
        lines.append(f"| {row.name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _short(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.2g}"


def _introduction(note: str) -> str:
    return (
        f"Same data, same promise, one run; the other libraries are {note}. In brackets: multiples of isotone's first row.\n\n"
        "- Every row is a process of its own that draws real releases from answers (or counts, or points) in memory: 40 to "
        "200 of them, 2 to 20 where a row is slow (PipelineDP, which counts from rows by itself). Its peak memory includes its "
        "imports. *Once* is the time from the start of the process to its first release; numba's compiled code is cached.\n"
        "- *Consistency* makes counts follow the order, and curves rise: isotone's projection for everybody, weighted by each "
        "mechanism's variances.\n"
        "- Errors are against the counts of all records as they are, so cutting records (`max_size`) costs what it leaves out.\n"
        "- OpenDP and diffprivlib are given the joint ℓ1 or ℓ2 sensitivity of all counts, the best that their Laplace and "
        "Gaussian mechanisms can do.\n"
        "- The distance of distributions is Wasserstein-1, between the sorted counts of the tables. A curve's error is its distance "
        "from the isotonic fit without privacy, at the data."
    )
