"""The command that starts the desk in the browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from isotone.errors import InputError
from isotone.lazy import install

__all__ = ["serve"]


def serve(
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port of this machine; 0 for any.")] = 8765,
    root: Annotated[
        Path, typer.Option(metavar="DIR", help="The folder with specs, data, ledgers and releases.")
    ] = Path(),
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Print the address alone.")] = False,
    allow_check: Annotated[
        bool, typer.Option("--allow-check", help="Switch on the page that looks at data. NOT PRIVATE.")
    ] = False,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="For auditors: no data is opened and nothing is written.")
    ] = False,
) -> None:
    """Plan, release and look after budgets in the browser. Only this machine can reach it.

    Prints the address to open, which works once.
    """
    try:
        from isotone.desk.server import serve as run
    except ImportError as error:
        raise InputError(
            f"The desk needs more libraries ({error.name} is missing): {install('desk')}"
        ) from None
    run(port, root, browser=not no_browser, allow_check=allow_check, read_only=read_only)
