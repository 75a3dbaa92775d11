"""The terminal, progress, and values as text or JSON, shared by all commands."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from typer.core import TyperCommand, TyperGroup

from isotone.errors import InputError
from isotone.mechanism import no_progress
from isotone.privacy.checks import exact


class _Flags:
    """Flags are shown as flags, without the type of a value that they do not take."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, as they are shown."""
        parameters = super().get_params(ctx)  # pyright: ignore[reportAttributeAccessIssue]
        for parameter in parameters:
            if getattr(parameter, "is_flag", False):
                parameter.metavar = ""
        return parameters


class Command(_Flags, TyperCommand):
    """A command of isotone."""


class Group(_Flags, TyperGroup):
    """A group of commands."""


out = Console(highlight=False, soft_wrap=True)

errors = Console(stderr=True, highlight=False, soft_wrap=True)

SpecPath = Annotated[Path, typer.Argument(metavar="SPEC", help="The specification, a TOML file.")]

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]

ReleaseFolder = Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a release.")]

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON value instead of text.")]


def decimal(text: str) -> float:
    """A number that is typed after an option."""
    try:
        return float(exact(text))
    except InputError:
        comma = " A decimal number has a point, not a comma." if "," in text else ""
        raise typer.BadParameter(f"{text!r} is no number.{comma}") from None


@contextmanager
def progress_bar(title: str, *, quiet: bool = False) -> Generator[Callable[[float, str], None]]:
    """A progress bar on a terminal, nothing in a pipe."""
    if quiet or not errors.is_terminal:
        yield no_progress
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[what]}"),
        TimeElapsedColumn(),
    )
    # on a descriptor of its own: that of standard error is closed while data is read (process.py)
    with (
        os.fdopen(os.dup(sys.stderr.fileno()), "w", encoding=sys.stderr.encoding) as screen,
        Progress(*columns, console=Console(file=screen, highlight=False), transient=True) as bar,
    ):
        task = bar.add_task(title, total=1.0, what="")
        yield lambda fraction, what: bar.update(task, completed=fraction, what=what)


def json_text(value: Any) -> str:
    """One JSON value, with escapes where the terminal cannot show a letter."""
    unicode = (sys.stdout.encoding or "utf-8").lower().startswith("utf")
    return json.dumps(value, indent=2, ensure_ascii=not unicode)


def show(value: Any, *, as_json: bool, quiet: bool, plain: Any) -> None:
    """Print ``plain`` for people, or ``value`` for programs."""
    if as_json:
        typer.echo(json_text(value))
    elif quiet:
        return
    elif out.is_terminal and not isinstance(plain, str):
        out.print(plain)
    elif isinstance(plain, Table):
        if plain.title:  # a title of its own is not wrapped to the width of the table
            typer.echo(str(plain.title))
        plain.title, plain.box = None, None
        Console(width=240, highlight=False).print(plain)  # as wide as the text: nothing is cut in a pipe
    else:
        typer.echo(str(plain))


def printable(text: str) -> str:
    """``text`` as this terminal can show it, with Greek letters by name on an ASCII one and no control codes."""
    text = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
    encoding = sys.stdout.encoding or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        for letter, name in (("ε", "epsilon"), ("δ", "delta"), ("ρ", "rho")):
            text = text.replace(letter, name)
        text = text.encode(encoding, "backslashreplace").decode(encoding)
    return text
