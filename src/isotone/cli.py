"""The command line: parse, call, print. Every command is a thin shell over a public function."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from isotone.errors import InputError, IsotoneError

__all__ = ["app", "main"]

app = typer.Typer(
    help="Differentially private statistics of ordered data.", no_args_is_help=True, add_completion=False
)
errors = Console(stderr=True, highlight=False)


@app.callback()
def about() -> None:
    """Differentially private statistics of ordered data."""


@contextmanager
def progress_bar(title: str) -> Generator[Callable[[float, str], None]]:
    """A progress bar on a terminal, nothing in a pipe."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[what]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=errors, disable=not errors.is_terminal) as bar:
        task = bar.add_task(title, total=1.0, what="")
        yield lambda fraction, what: bar.update(task, completed=fraction, what=what)


def experiments_folder() -> Path:
    """The ``experiments`` folder of the checkout that this package runs from."""
    folder = Path(__file__).resolve().parents[2] / "experiments"
    if not folder.is_dir():
        raise InputError(
            "The experiments are part of the source repository, not of the installed package. "
            "Clone the repository and run 'make run' there first; then this command finds them."
        )
    return folder


def experiments() -> dict[str, Path]:
    """Every experiment by its name on the command line."""
    return {
        path.stem.replace("_", "-"): path
        for path in sorted(experiments_folder().glob("*.py"))
        if path.stem != "common" and not path.stem.startswith("_")
    }


def load_experiment(path: Path) -> ModuleType:
    """Import an experiment by its file."""
    if str(path.parent) not in sys.path:  # experiments import each other and common.py by name
        sys.path.insert(0, str(path.parent))
    return importlib.import_module(path.stem)


@app.command()
def reproduce(
    name: Annotated[str | None, typer.Argument(help="The experiment; without it, the list of all.")] = None,
    out: Annotated[Path | None, typer.Option(help="Where data and pictures go [default: out/NAME].")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A small version that runs in seconds.")] = False,
) -> None:
    """Redo a figure or table of the papers isotone builds on, with the published values beside ours."""
    known = experiments()
    if name is None:
        for key, path in known.items():
            typer.echo(f"{key:28} {(load_experiment(path).__doc__ or '').splitlines()[0]}")
        return
    key = name.replace("_", "-")
    if key not in known:
        raise InputError(f"There is no experiment {name!r}. There are: {', '.join(known)}.")
    folder = out or Path("out") / key
    with progress_bar(key) as progress:
        load_experiment(known[key]).run(folder, quick, progress)
    typer.echo(f"Data and pictures are in {folder}.")


def main() -> None:
    """Run the command line; an isotone error is a sentence on stderr and exit code 1, never a traceback."""
    try:
        app()
    except IsotoneError as error:
        errors.print(f"isotone: {error}", markup=False)
        sys.exit(1)
