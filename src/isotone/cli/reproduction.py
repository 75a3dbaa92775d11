"""The command that redoes the experiments of the papers."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Annotated

import typer

from isotone.cli.console import out, progress_bar
from isotone.errors import InputError


def experiments_folder() -> Path:
    """The ``experiments`` folder of the checkout that this package runs from."""
    folder = Path(__file__).resolve().parents[3] / "experiments"
    if not folder.is_dir():
        raise InputError(
            "The experiments are part of the source repository, not of the installed package. Clone the repository "
            "and run 'make run' there; then this command finds them."
        )
    return folder


def experiments() -> dict[str, Path]:
    """Every experiment by its name on the command line."""
    return {
        path.stem.replace("_", "-"): path
        for path in sorted(experiments_folder().glob("*.py"))
        if path.stem != "common"
        and not path.stem.startswith("_")
        and "\ndef run(" in path.read_text(encoding="utf-8")
    }


def load_experiment(path: Path) -> ModuleType:
    """Import an experiment by its file."""
    if str(path.parent) not in sys.path:  # experiments import each other and common.py by name
        sys.path.insert(0, str(path.parent))
    return importlib.import_module(path.stem)


def reproduce(
    name: Annotated[str | None, typer.Argument(help="The experiment; without it, the list of all.")] = None,
    folder: Annotated[
        Path | None, typer.Option("--out", help="Where data and pictures go. Default: out/NAME.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A small version that runs in seconds.")] = False,
    check: Annotated[
        bool,
        typer.Option(
            "--check", help="Compare few of the stored results with what the code gives; write nothing."
        ),
    ] = False,
) -> None:
    """Redo a figure or table of the papers isotone builds on, with the published values beside ours.

    ``all`` stands for every experiment.
    """
    known = experiments()
    if name is None:
        for key, path in known.items():
            typer.echo(f"{key:28} {(load_experiment(path).__doc__ or '').splitlines()[0]}")
        return
    key = name.replace("_", "-")
    if key not in known and key != "all":
        raise InputError(f"There is no experiment {name!r}. There are: all, {', '.join(known)}.")
    chosen = known if key == "all" else {key: known[key]}
    if check:
        check_experiments(chosen)
        return
    for each, path in chosen.items():
        where = (folder / each if key == "all" else folder) if folder else Path("out") / each
        with progress_bar(each) as progress:
            load_experiment(path).run(where, quick, progress)
        out.print(f"Data and pictures are in {where}.", markup=False)


def check_experiments(chosen: dict[str, Path]) -> None:
    """Compare quick runs with what is stored, with exit code 1 if a number differs."""
    checks = load_experiment(experiments_folder() / "_check.py")
    off = 0
    for name, path in chosen.items():
        if name not in checks.RULES:
            reason = checks.UNCOMPARED.get(name, "no rule says how")
            out.print(f"{name:28} not compared: {reason}", markup=False)
            continue
        outcome = checks.compare(name, load_experiment(path))
        verdict = f"{len(outcome.off)} of them off" if outcome.off else "as stored"
        out.print(f"{name:28} {outcome.numbers} numbers, {verdict}", markup=False)
        for words in outcome.off:
            out.print(f"  {words}", markup=False)
        off += len(outcome.off)
    if off:
        raise typer.Exit(1)
