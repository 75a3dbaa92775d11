"""Run benchmarks: ``python -m benchmarks [--quick] [--out DIR] [NAME ...]``; all of them by default.

Each writes its report to ``docs/benchmarks/NAME.md``, and adds its ratios to ``docs/benchmarks/history.csv``; ratios that
became worse by more than a fifth since the last run are listed. ``--quick`` only prints, as its numbers are not for the record.
"""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import sys
from pathlib import Path

from benchmarks._history import ratios, record, slower
from isotone.mechanism import Progress

HERE = Path(__file__).resolve().parent


def names() -> list[str]:
    """Every benchmark in this folder."""
    return sorted(path.stem for path in HERE.glob("*.py") if not path.stem.startswith("_"))


def machine() -> str:
    """The machine in one line, for the head of each report."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        models = [
            line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if "model name" in line
        ]
        cpu = models[0] if models else cpu
    return f"{cpu}, {os.cpu_count()} cores; Python {platform.python_version()} on {platform.system()}"


def terminal_progress(name: str) -> Progress:
    """A one-line progress display on a terminal; silent in a pipe."""

    def show(fraction: float, what: str) -> None:
        if sys.stderr.isatty():
            end = "\n" if fraction >= 1 else ""
            print(f"\r\x1b[K{name}: {fraction:4.0%} {what}", end=end, file=sys.stderr, flush=True)

    return show


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("name", nargs="*", help=f"one or more of: {', '.join(names())}")
    parser.add_argument("--quick", action="store_true", help="small sizes; prints and writes nothing")
    parser.add_argument("--out", type=Path, default=HERE.parent / "docs" / "benchmarks")
    arguments = parser.parse_args()
    unknown = sorted(set(arguments.name) - set(names()))
    if unknown:
        parser.error(f"no benchmark named {', '.join(unknown)}; there are: {', '.join(names())}")
    for name in arguments.name or names():
        module = importlib.import_module(f"benchmarks.{name}")
        title = (module.__doc__ or name).splitlines()[0]
        body = module.run(arguments.quick, terminal_progress(name)).strip()
        report = f"# {title}\n\nMachine: {machine()}.\n\n{body}\n"
        print(report, flush=True)
        if not arguments.quick:
            arguments.out.mkdir(parents=True, exist_ok=True)
            (arguments.out / f"{name}.md").write_text(report, encoding="utf-8")
            found = ratios(report)
            for line in slower(arguments.out / "history.csv", name, found):
                print(line, file=sys.stderr)
            record(arguments.out / "history.csv", name, machine(), found)


if __name__ == "__main__":
    main()
