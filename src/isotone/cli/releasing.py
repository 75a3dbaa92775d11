"""The commands release, verify, report, check and audit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from isotone.cli.console import (
    AsJson,
    Quiet,
    ReleaseFolder,
    SpecPath,
    errors,
    out,
    printable,
    progress_bar,
    show,
)

__all__ = ["audit", "check", "release", "release_table", "report", "verify"]


def release(
    spec: SpecPath,
    again: Annotated[
        bool, typer.Option("--again", help="Draw and charge anew although it was released.")
    ] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Charge the ledger, read the data, add noise, and write the release with its report.

    Safe to repeat: a spec that was released is neither charged nor drawn again, unless --again is given.
    """
    from isotone.release.spec import deliver, load_spec

    try:
        with progress_bar("releasing", quiet=quiet or as_json) as progress:
            asked = load_spec(spec)
            done = deliver(asked, again=again, progress=progress)
    except KeyboardInterrupt:
        errors.print(
            "isotone: interrupted. A charge that was made stays spent. If nothing was drawn under it, the same command "
            "takes it over at no cost: see 'isotone ledger show'."
        )
        raise typer.Exit(130) from None
    made, folder, fresh = done.release, asked.target, done.fresh
    value = {"folder": str(folder), "new": fresh, "columns": {k: list(v) for k, v in made.columns.items()}}
    show(value, as_json=as_json, quiet=quiet, plain=release_table(made))
    said = "The release is" if fresh else "This spec was released before; nothing was charged. The release is"
    if not as_json and not quiet:
        out.print(f"{said} in {folder}", markup=False)
        if not fresh and asked.output.title not in (None, made.manifest.title):
            out.print("The new title is not used: a title is sealed with its release.", markup=False)
        if (folder / "report.html").exists():
            out.print(f"Report: {folder / 'report.html'}", markup=False)
        # in the same words whatever the data contains
        out.print(
            f"What is odd in the data a release never says. For your eyes only: isotone check {spec}",
            markup=False,
        )


def release_table(made: Any) -> Table:
    """The published numbers as a table."""
    from isotone.release.result import written

    shown = made.shown()
    table = Table(title=Text(printable(made.title)), title_justify="left")
    for name in shown:
        words = name in ("label", "element", "category", "group")
        table.add_column(name, justify="left" if words else "right")
    rows = list(zip(*shown.values(), strict=True))
    for row in rows[:40]:
        table.add_row(*(Text(printable(written(value))) for value in row))
    if len(rows) > 40:
        table.caption = f"the first 40 of {len(rows)} rows; all are in release.csv"
    return table


def verify(
    folder: ReleaseFolder,
    key: Annotated[
        Path | None,
        typer.Option(metavar="PUB", help="The publisher's public key, or a list of allowed signers."),
    ] = None,
    ledger: Annotated[
        str | None,
        typer.Option(metavar="LEDGER", help="The ledger that paid, or an extract of the charge (.json)."),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="Search again for slow draws that the manifest says where to find.")
    ] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Check files, seal, guarantee, errors and report of a release from its folder alone.

    With --key also who signed it, with --ledger also that it was paid for.
    """
    from isotone.release import verify as check

    verdict = check(folder, key=key, ledger=ledger, full=full)
    value = {"holds": verdict.holds, "checks": [vars(item) for item in verdict.checks]}
    show(value, as_json=as_json, quiet=quiet, plain=str(verdict))
    if not verdict.holds:
        raise typer.Exit(1)


def report(folder: ReleaseFolder) -> None:
    """Draw report.html of a release again, from its folder."""
    from isotone.release import load_release

    out.print(f"Report: {load_release(folder).save_report(folder)}", markup=False)


def check(spec: SpecPath) -> None:
    """Look at the contents of the data for oddities. NOT PRIVATE, never to be published."""
    from isotone.release import load_spec

    found = load_spec(spec).check()
    out.print(str(found), markup=False)
    if found.error is not None:
        raise typer.Exit(1)


def audit(
    what: Annotated[
        str, typer.Argument(metavar="SPEC|NAME", help="A spec, or the name of a mechanism's class.")
    ],
    trials: Annotated[int, typer.Option(help="How many draws of each side.")] = 30_000,
    as_json: AsJson = False,
) -> None:
    """Attack the mechanism of a spec, or a mechanism by its name. The data is never opened."""
    from isotone.release import audit_name, load_spec

    with progress_bar("auditing", quiet=as_json) as progress:
        if what.endswith(".toml"):
            found = load_spec(what).audit(trials, progress)
        else:
            found = audit_name(what, 1, trials, progress)
    show(found.plain(), as_json=as_json, quiet=False, plain=f"{what}\n{found}")
    if found.broken:
        raise typer.Exit(1)
