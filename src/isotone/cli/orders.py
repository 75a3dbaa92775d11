"""Commands about a partial order."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from isotone.cli.console import (
    AsJson,
    out,
    show,
)
from isotone.errors import InputError

__all__ = ["order_app"]

order_app = typer.Typer(help="Look at a partial order before it is used.", no_args_is_help=True)

OrderPath = Annotated[
    Path, typer.Argument(metavar="FILE", help="A spec for counts, or an order file (.csv, .json, .toml).")
]

Lower = Annotated[str, typer.Option(help="For a CSV file: the column of the lower element.")]

Upper = Annotated[str, typer.Option(help="For a CSV file: the column of the upper element.")]

ChoiceColumn = Annotated[
    str | None, typer.Option("--choice", help="For a CSV file: the column of what excludes each other.")
]


@order_app.command("check")
def order_check(
    file: OrderPath,
    lower: Lower = "child",
    upper: Upper = "parent",
    choice: ChoiceColumn = None,
    as_json: AsJson = False,
) -> None:
    """Check an order and describe its shape."""
    from isotone.release import describe_order, load_order

    found = describe_order(load_order(file, lower, upper, choice))
    table = Table(show_header=False, box=None)
    for key, value in found.items():
        table.add_row(key, str(value))
    show(found, as_json=as_json, quiet=False, plain=table)


@order_app.command("plot")
def order_plot(
    file: OrderPath,
    picture: Annotated[Path, typer.Option("--out", help="The picture to write (.png, .svg or .pdf).")] = Path(
        "order.png"
    ),
    lower: Lower = "child",
    upper: Upper = "parent",
    choice: ChoiceColumn = None,
) -> None:
    """Draw an order as a Hasse diagram."""
    from isotone.release import load_order

    P = load_order(file, lower, upper, choice)
    import matplotlib as mpl

    mpl.use("Agg")
    figure = P.plot().get_figure(root=True)
    assert figure is not None
    try:
        figure.savefig(picture, bbox_inches="tight")
    except (OSError, ValueError) as error:
        raise InputError(f"The picture {str(picture)!r} could not be written: {error}.") from None
    out.print(f"The diagram of {len(P)} elements is in {picture}.", markup=False)
