"""The command line. Every command is a thin shell over a public function.

On a terminal there are tables and progress bars; in a pipe, plain text. ``--json`` prints one JSON value.
Exit codes: 0 done, 1 refused or failed with a sentence on stderr, 2 a mistake in the call itself.
"""

from __future__ import annotations

import gc
import sys
from typing import Annotated

import typer

from isotone import __version__
from isotone.cli.console import Command, Group, errors
from isotone.cli.demo import demo
from isotone.cli.inference import change, combine, quantile, share, survival
from isotone.cli.ledgers import ledger_app
from isotone.cli.orders import order_app
from isotone.cli.release import (
    audit,
    check,
    export,
    keygen,
    plan,
    release,
    report,
    schema,
    serve,
    sign,
    verify,
)
from isotone.cli.reproduction import reproduce
from isotone.cli.series import series_app
from isotone.errors import IsotoneError

__all__ = ["app", "main"]

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    cls=Group,
)


def _version(stated: bool) -> None:
    if stated:
        typer.echo(f"isotone {__version__}")
        raise typer.Exit()


@app.callback()
def _all(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Differentially private statistics of ordered data: plan, release, verify, audit."""


for command in (
    demo,
    plan,
    release,
    verify,
    report,
    export,
    share,
    quantile,
    survival,
    change,
    combine,
    keygen,
    sign,
    check,
    schema,
    audit,
    serve,
    reproduce,
):
    app.command(cls=Command)(command)
app.add_typer(ledger_app, name="ledger")
app.add_typer(order_app, name="order")
app.add_typer(series_app, name="series")


def main() -> None:
    """Run the command line. An isotone error is a sentence on stderr and exit code 1, never a traceback."""
    gc.set_threshold(
        100_000
    )  # what a command imports lives to its end: to look for cycles in it only costs time
    try:
        app()
    except IsotoneError as error:
        notes = getattr(error, "__notes__", ())  # what became of the charge
        errors.print(" ".join([f"isotone: {error}", *notes]), markup=False)
        sys.exit(1)
