"""Commands for readers of a release: share, quantile, survival, change and combine. No private data is needed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from isotone.cli.console import AsJson, Quiet, ReleaseFolder, out, printable, show
from isotone.errors import InputError

if TYPE_CHECKING:
    from isotone.release import Release

Confidence = Annotated[
    float | None, typer.Option(help="The confidence of the interval; that of the release if left out.")
]
Group = Annotated[
    list[str] | None,
    typer.Option(
        metavar="GROUP|NAME=VALUE",
        help="The group, where the release has groups; the cell of a breakdown by its values, one --group for each.",
    ),
]
Records = Annotated[int | None, typer.Option(min=0, help="The number of records, if it is public.")]
AfterRules = Annotated[
    bool, typer.Option("--after-rules", help="State that --records counts records after the rules.")
]

FollowsOrder = Annotated[
    bool, typer.Option("--follows-order", help="State that every record follows the order.")
]


def share(
    folder: ReleaseFolder,
    part: Annotated[
        str | None, typer.Argument(metavar="[PART]", help="The part, or all if left out.")
    ] = None,
    of: Annotated[str | None, typer.Option(help="The whole; all records if left out.")] = None,
    together: Annotated[
        bool, typer.Option("--together", help="All shares of an element in the one above it, all at once.")
    ] = False,
    population: Annotated[
        bool,
        typer.Option(
            "--population", help="Of the population that the records are a sample of, not of the records."
        ),
    ] = False,
    deff: Annotated[
        float, typer.Option(min=1, help="The design effect of the sample, with --population.")
    ] = 1.0,
    records: Records = None,
    after_rules: AfterRules = False,
    confidence: Confidence = None,
    group: Group = None,
    as_json: AsJson = False,
) -> None:
    """The share of one count in another, with an interval that holds.

    Without PART, the shares along all lines of the diagram.
    """
    from isotone.release import load_release

    release = load_release(folder)
    cell, words = release.group_named(group or ()), _words(release)
    if part is None:
        if of is not None or population or deff != 1 or records is not None or after_rules:
            raise InputError(
                "--of, --population, --deff, --records and --after-rules are about one share: name PART."
            )
        result = release.shares(together=together, confidence=confidence, group=cell)
        rows = [{"part": a, "of": b, **each.plain()} for (a, b), each in result.items()]
        names = [f"{words.get(a, a)} of {words.get(b, b)}" for a, b in result]
    else:
        if together:
            raise InputError("--together is for the shares along all lines of the diagram: leave PART out.")
        one = release.share(
            part,
            of,
            confidence=confidence,
            group=cell,
            records=records,
            after_rules=after_rules,
            population=population,
            deff=deff,
        )
        rows = [{"part": part, "of": of, **one.plain()}]
        base = "all records" if of is None else words.get(of, of)
        names = [f"{words.get(part, part)} of {base}"]
    _show(names, rows, as_json=as_json, single=part is not None)


def quantile(
    folder: ReleaseFolder,
    levels: Annotated[
        list[str] | None,
        typer.Argument(metavar="[LEVEL…]", help="Shares of the records, 0.5 for the median."),
    ] = None,
    at: Annotated[
        list[str] | None, typer.Option(help="Also the share of records at this value or below.")
    ] = None,
    gini: Annotated[bool, typer.Option("--gini", help="Also the Gini coefficient.")] = False,
    population: Annotated[
        bool, typer.Option("--population", help="Of the population that the records were drawn from.")
    ] = False,
    confidence: Confidence = None,
    group: Group = None,
    as_json: AsJson = False,
) -> None:
    """Quantiles of a distribution, by default five, with intervals that hold all at once. For the share between two values: share."""
    from isotone.release import load_release

    release = load_release(folder)
    options: dict[str, Any] = {
        "confidence": confidence,
        "group": release.group_named(group or ()),
        "band": "population" if population else None,
    }
    expected = levels or ([] if at or gini else ["0.05", "0.25", "0.5", "0.75", "0.95"])
    result = [
        (f"quantile {q}", each)
        for q, each in zip(expected, release.quantiles(expected, **options), strict=True)
    ]
    result += [(f"share up to {x}", release.cdf(x, **options)) for x in at or ()]
    result += [("Gini coefficient", release.gini(**options))] if gini else []
    rows = [{"asked": name, **each.plain()} for name, each in result]
    _show([name for name, _ in result], rows, as_json=as_json, single=False)


def survival(
    folder: ReleaseFolder,
    times: Annotated[
        list[str] | None, typer.Argument(metavar="[TIME…]", help="Public times, 12 for a year of months.")
    ] = None,
    confidence: Confidence = None,
    group: Group = None,
    as_json: AsJson = False,
) -> None:
    """Survival, numbers at risk, the median and the restricted mean, with intervals that hold all at once."""
    from isotone.release import load_release

    release = load_release(folder)
    options: dict[str, Any] = {"confidence": confidence, "group": release.group_named(group or ())}
    figures = [(f"survival at {time}", release.survival(time, **options)) for time in times or ()]
    figures += [(f"at risk after {time}", release.at_risk(time, **options)) for time in times or ()]
    figures += [
        ("median", release.quantile(0.5, **options)),
        ("restricted mean", release.restricted_mean(**options)),
    ]
    rows = [{"asked": name, **each.plain()} for name, each in figures]
    _show([name for name, _ in figures], rows, as_json=as_json, single=False)


def change(
    before: Annotated[Path, typer.Argument(metavar="DIR1", help="The folder of the earlier release.")],
    after: Annotated[Path, typer.Argument(metavar="DIR2", help="The folder of the later release.")],
    element: Annotated[str | None, typer.Option(help="One element; all if left out.")] = None,
    confidence: Confidence = None,
    group: Group = None,
    follows_order: FollowsOrder = False,
    as_json: AsJson = False,
) -> None:
    """What changed from one release to another, each change with an interval that holds."""
    from isotone.release import load_release

    first, second = load_release(before), load_release(after)
    cell = first.group_named(group or ())
    result = first.change(second, element, confidence=confidence, group=cell, follows_order=follows_order)
    each, words = {element: result} if element is not None else result, _words(first)
    rows = [{"element": name, **one.plain()} for name, one in each.items()]
    _show([words.get(name, name) for name in each], rows, as_json=as_json, single=element is not None)


def combine(
    folders: Annotated[
        list[Path], typer.Argument(metavar="DIR…", help="The folders of two or more releases.")
    ],
    into: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Write the combination as a release to this folder."),
    ] = None,
    follows_order: FollowsOrder = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """One best estimate from several releases of the same or overlapping counts."""
    from isotone.cli.release import release_table
    from isotone.release import combine as combined
    from isotone.release import load_release

    result = combined([load_release(folder) for folder in folders], follows_order=follows_order)
    if into is not None:
        result.save(into)
    value = {
        "columns": {name: list(column) for name, column in result.columns.items()},
        "costs": result.manifest["derived"]["costs"],
        "folder": None if into is None else str(into),
    }
    show(value, as_json=as_json, quiet=quiet, plain=release_table(result))
    if into is not None and not as_json and not quiet:
        out.print(f"The combination is in {into}", markup=False)


def _words(release: Release) -> dict[str, str]:
    """What people read in place of an element: its label where it has one."""
    from isotone.release.kinds.kind import kind_named

    return kind_named(release.kind).page(release).labels(release)


def _show(names: list[str], rows: list[dict[str, Any]], *, as_json: bool, single: bool) -> None:
    from isotone.inference import NOT_KNOWN

    table = Table()
    for name in ("", "value", "from", "to", "note"):
        table.add_column(name, justify="left" if name in ("", "note") else "right")
    for name, row in zip(names, rows, strict=True):
        numbers = [row["value"], row["low"], row["high"]]
        shown = ["" if number is None else f"{number:,.6g}" for number in numbers]
        about = "of the population" if row["about"] == "population" else ""
        unknown = NOT_KNOWN if row["value"] is None and not row["note"] else ""
        note = ", ".join(filter(None, (row["note"], unknown, about)))
        table.add_row(Text(printable(name)), *shown, Text(note))
    show(rows[0] if single else rows, as_json=as_json, quiet=False, plain=table)
