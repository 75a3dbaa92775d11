"""Commands about a partial order."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from isotone.cli.console import AsJson, Command, Group, out, printable, show
from isotone.errors import InputError
from isotone.lazy import from_extra

order_app = typer.Typer(help="Look at a partial order before it is used.", no_args_is_help=True, cls=Group)

OrderPath = Annotated[
    Path, typer.Argument(metavar="FILE", help="A spec for counts, or an order file (.csv, .json, .toml).")
]

Lower = Annotated[str, typer.Option(help="For a CSV file: the column of the lower element.")]

Upper = Annotated[str, typer.Option(help="For a CSV file: the column of the upper element.")]

ChoiceColumn = Annotated[
    str | None, typer.Option("--choice", help="For a CSV file: the column of what excludes each other.")
]


@order_app.command("check", cls=Command)
def order_check(
    file: OrderPath,
    lower: Lower = "child",
    upper: Upper = "parent",
    choice: ChoiceColumn = None,
    as_json: AsJson = False,
) -> None:
    """Check an order and describe its shape."""
    from isotone.release import describe_order, load_order

    result = describe_order(load_order(file, lower, upper, choice))
    table = Table(show_header=False, box=None)
    for key, value in result.items():
        table.add_row(key, str(value))
    show(result, as_json=as_json, quiet=False, plain=table)


@order_app.command("import", cls=Command)
def order_import(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A questionnaire: XLSForm (.xlsx), REDCap data dictionary (.csv), or a CSV of relations.",
        ),
    ],
    spec: Annotated[Path, typer.Option("--out", help="The spec to write. It must not exist.")],
    data: Annotated[
        str, typer.Option(help="The data that the spec names. It is not opened.")
    ] = "answers.csv",
    unit: Annotated[str, typer.Option(help="The column that says whose row it is.")] = "",
    epsilon: Annotated[str, typer.Option(help="What the release spends, and the ledger's total.")] = "1",
    most_options: Annotated[
        int, typer.Option(min=0, help="Questions with more options give no element for each option.")
    ] = 12,
    separator: Annotated[
        str, typer.Option(help="XLSForm: what stands between group and question in the data's columns.")
    ] = "",
    lower: Lower = "child",
    upper: Upper = "parent",
    as_json: AsJson = False,
) -> None:
    """Write a spec from a questionnaire: questions, codes, labels, and the order that its conditions imply.

    Only the form is read. What it says and an order cannot is listed, here and at the end of the spec.
    """
    from isotone.forms import read_form

    result = read_form(file, most_options=most_options, separator=separator, lower=lower, upper=upper)
    try:
        with spec.open("x", encoding="utf-8") as out_file:
            out_file.write(result.spec(data=data, unit=unit, epsilon=epsilon))
    except FileExistsError:
        raise InputError(f"{str(spec)!r} exists. Name another file, or remove it first.") from None
    except OSError as error:
        raise InputError(f"The spec {str(spec)!r} could not be written: {error.strerror}.") from None
    lines = [f"{len(result.questions)} questions and {len(result.relations)} relations are in {spec}."]
    for title, notes in (
        ("An order cannot say, or was not read:", result.problems),
        ("How it was read:", result.notes),
    ):
        lines += [title, *(f"  {text}" for text in notes)] if notes else []
    show(
        {"spec": str(spec), **result.plain()},
        as_json=as_json,
        quiet=False,
        plain="\n".join(map(printable, lines)),
    )


@order_app.command("plot", cls=Command)
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
    from isotone.release.order_files import order_labels

    P = load_order(file, lower, upper, choice)
    from_extra("matplotlib", "plot").use("Agg")
    figure = P.plot(labels=order_labels(file)).get_figure(root=True)
    assert figure is not None
    try:
        figure.savefig(picture, bbox_inches="tight")
    except (OSError, ValueError) as error:
        raise InputError(f"The picture {str(picture)!r} could not be written: {error}.") from None
    out.print(f"The diagram of {len(P)} elements is in {picture}.", markup=False)
