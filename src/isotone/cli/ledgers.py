"""Commands about a ledger."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from isotone.cli.console import AsJson, Command, Group, json_text, out, printable, show
from isotone.errors import InputError
from isotone.ledger.entries import Cost, Rule
from isotone.privacy.guarantee import Neighbours

if TYPE_CHECKING:
    from isotone.ledger import Ledger

ledger_app = typer.Typer(
    help="A data set's privacy budget: create it, look at it, export it.", no_args_is_help=True, cls=Group
)

LedgerPath = Annotated[str, typer.Argument(metavar="LEDGER", help="The ledger's path or postgresql:// URL.")]

Dataset = Annotated[str | None, typer.Option(help="The data set's name. Default: the file's stem.")]


Epsilon = Annotated[str | None, typer.Option(help="The total ε.")]
Delta = Annotated[str | None, typer.Option(help="The total δ, for an (ε, δ) budget or a filter.")]
Rho = Annotated[str | None, typer.Option(help="The total ρ, for a zCDP budget or a filter.")]
RuleOption = Annotated[
    Rule,
    typer.Option(help="How charges add up: by addition, or by a zCDP filter for charges of every kind."),
]
FinalDelta = Annotated[
    str | None, typer.Option(help="For a filter: the δ at which its total is stated as (ε, δ).")
]
UnitOption = Annotated[str | None, typer.Option(help="What is protected, in words: person, household, …")]
NeighboursOption = Annotated[Neighbours, typer.Option(help="What one change of the data is.")]


@ledger_app.command("create", cls=Command)
def ledger_create(
    path: LedgerPath,
    epsilon: Epsilon = None,
    delta: Delta = None,
    rho: Rho = None,
    composition: RuleOption = "addition",
    final_delta: FinalDelta = None,
    dataset: Dataset = None,
    unit: UnitOption = None,
    neighbours: NeighboursOption = "add-remove",
) -> None:
    """Create a ledger. Its total, rule, unit and neighbours are fixed by its first charge."""
    from isotone.release import Ledger

    if epsilon is None and rho is None:
        raise InputError("A new ledger needs its total: --epsilon (with --delta if you like) or --rho.")
    ledger = Ledger(
        path,
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        composition=composition,
        final_delta=final_delta,
        dataset=dataset,
        unit=unit,
        neighbours=neighbours,
    ).create()
    out.print(printable(_budget(ledger)), markup=False)


@ledger_app.command("change", cls=Command)
def ledger_change(
    path: LedgerPath,
    epsilon: Epsilon = None,
    delta: Delta = None,
    rho: Rho = None,
    composition: RuleOption = "addition",
    final_delta: FinalDelta = None,
    dataset: Dataset = None,
    unit: UnitOption = None,
    neighbours: NeighboursOption = "add-remove",
    remove: Annotated[bool, typer.Option("--remove", help="Remove the ledger.")] = False,
) -> None:
    """Change or remove a ledger that has no charge, as after a mistake. One with a charge stays as it is."""
    from isotone.release import Ledger

    total = (epsilon, delta, rho, final_delta)
    if remove == any(number is not None for number in total):
        raise InputError(
            "Give the new total, --epsilon (with --delta if you like) or --rho; or --remove alone."
        )
    ledger = Ledger(path, dataset=dataset)
    if remove:
        ledger.remove()
        sentence = f"{ledger.address}: the budget of {ledger.dataset!r} had no charge and is removed."
    else:
        before = ledger.total
        ledger.change(
            epsilon=epsilon,
            delta=delta,
            rho=rho,
            composition=composition,
            final_delta=final_delta,
            unit=unit,
            neighbours=neighbours,
        )
        sentence = f"{_budget(ledger)} It had no charge, and was {before} before."
    out.print(printable(sentence), markup=False)


def _budget(ledger: Ledger) -> str:
    return f"{ledger.address}: the budget of {ledger.dataset!r} is {ledger.remaining()}.{_stated(ledger)}"


def _stated(ledger: Ledger) -> str:
    """What the total of a filter means in the end."""
    if ledger.composition == "addition":
        return ""
    return f" When all of it is spent, all releases together are (ε, δ)-DP with {Cost.of(ledger.overall)}."


@ledger_app.command("show", cls=Command)
def ledger_show(path: LedgerPath, dataset: Dataset = None, as_json: AsJson = False) -> None:
    """Show what was spent, on what, and what is left."""
    from isotone.release import Ledger

    ledger = Ledger(path, dataset=dataset)
    title = f"{ledger.dataset}: {ledger.remaining()} left of {ledger.total}"
    table = Table(title=Text(printable(title)), title_justify="left")
    if ledger.composition != "addition":
        table.caption = f"The rule is a zCDP filter.{_stated(ledger)} For information: by addition {ledger.spent_otherwise()} is spent."
        table.caption_justify = "left"
    for name in ("charge", "time", "cost", "mechanism", "what", "state"):
        table.add_column(name)
    for charge in ledger.charges():
        number, cost = str(charge.number), str(charge.cost)
        row = (number, charge.time, cost, charge.mechanism, charge.description, charge.meaning)
        table.add_row(*(Text(printable(cell)) for cell in row))
    show(ledger.export(), as_json=as_json, quiet=False, plain=table)


@ledger_app.command("extract", cls=Command)
def ledger_extract(
    path: LedgerPath,
    number: Annotated[int, typer.Argument(metavar="NUMBER", help="The charge's number, as 'show' lists it.")],
    file: Annotated[
        Path | None, typer.Option("--out", help="The file to write. Default: standard output.")
    ] = None,
    dataset: Dataset = None,
) -> None:
    """Write one charge as canonical JSON, for those who verify its release without seeing the ledger."""
    from isotone.ledger import Ledger, extract_charge

    content = extract_charge(Ledger(path, dataset=dataset), number)
    if file is None:
        sys.stdout.buffer.write(content)
        return
    try:
        file.write_bytes(content)
    except OSError as error:
        raise InputError(f"The extract {str(file)!r} could not be written: {error.strerror}.") from None


@ledger_app.command("export", cls=Command)
def ledger_export(path: LedgerPath, dataset: Dataset = None) -> None:
    """Print the whole ledger as JSON, with exact numbers."""
    from isotone.release import Ledger

    typer.echo(json_text(Ledger(path, dataset=dataset).export()))
