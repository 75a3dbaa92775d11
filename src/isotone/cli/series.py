"""Commands about counts over time: open a series, close its periods, show it, erase a unit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from isotone.cli.console import AsJson, Quiet, SpecPath, out, progress_bar, show
from isotone.cli.release import release_table
from isotone.errors import InputError, SpecError

if TYPE_CHECKING:
    from isotone.release import Release, Series, Spec

__all__ = ["series_app"]

series_app = typer.Typer(
    help="Counts over time on one budget: open a series, close its periods, show it.", no_args_is_help=True
)


def _asked(path: Path) -> tuple[Spec, Series, Path]:
    """The spec of a series, its description, and the folder of its secrets."""
    from isotone.release import Series, load_spec

    spec = load_spec(path)
    described = spec.description
    if not isinstance(described, Series):
        raise SpecError(f"The spec {str(path)!r} has no [series].")
    secrets = getattr(spec.section, "secrets", None)
    if secrets is None:
        raise SpecError(
            "[series] secrets is missing: the folder for noise, key and register. It is as sensitive as the data, and no copy of it "
            "may be kept. A series of the past, with date, has none: isotone release shows it at once."
        )
    return spec, described, spec.resolve(secrets)


@series_app.command("open")
def series_open(
    spec: SpecPath,
    again: Annotated[
        bool, typer.Option("--again", help="Charge anew although this series was opened before.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Charge once for all periods, and draw all noise. No data is read."""
    from isotone.release.spec import open_ledger

    asked, series, secrets = _asked(spec)
    with progress_bar("opening", quiet=quiet) as progress:
        privacy = {name: getattr(asked.privacy, name) for name in ("epsilon", "delta", "rho")}
        opened = series.open(
            ledger=open_ledger(asked),
            secrets=secrets,
            **privacy,
            request=_identity(asked),
            again=again,
            title=asked.output.title,
            progress=progress,
        )
    if not quiet:
        out.print(
            f"The series is open: {len(series.periods)} periods, {series.periods[0]} to {series.periods[-1]}, under charge "
            f"{opened.number}. {secrets} is as sensitive as the data: keep no copy of it.",
            markup=False,
        )


@series_app.command("close")
def series_close(
    spec: SpecPath,
    period: Annotated[str, typer.Option(help="The name of the period. A later one may not be closed.")],
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Close a period from what the data shows now, and publish it. A period is closed once: again, it shows the same."""
    from isotone.release.over_time import closed
    from isotone.release.spec import open_ledger

    asked, series, secrets = _asked(spec)
    with progress_bar("closing", quiet=quiet or as_json):
        done = closed(
            series,
            asked.source,
            period,
            open_ledger(asked),
            secrets,
            asked.target,
            report=asked.output.report,
        )
    result = done.release
    value = {
        "folder": str(asked.target),
        "new": done.fresh,
        "columns": {k: list(v) for k, v in result.columns.items()},
    }
    show(value, as_json=as_json, quiet=quiet, plain=release_table(_of_period(result, period)))
    if not as_json and not quiet:
        sentence = "" if done.fresh else f"{period} was closed before; nothing was read. "
        out.print(f"{sentence}The series is in {asked.target}", markup=False)


@series_app.command("show")
def series_show(
    what: Annotated[Path, typer.Argument(metavar="SPEC|DIR", help="A spec, or the folder of a series.")],
    period: Annotated[str | None, typer.Option(help="A period, by default the last that is shown.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show a period, with what is new, and how far the series is. No data is read."""
    from isotone.release import load_release
    from isotone.release.kinds.series.description import SeriesManifest
    from isotone.release.over_time import published
    from isotone.release.spec import open_ledger

    ended = False
    if what.suffix == ".toml":
        from isotone.series.state import OpenSeries

        asked, _, secrets = _asked(what)
        ledger = open_ledger(asked)
        result, ended = published(ledger, secrets), OpenSeries(ledger, secrets).ended
    else:
        result = load_release(what)
    manifest = result.manifest
    if not isinstance(manifest, SeriesManifest):
        raise InputError(f"{str(what)!r} is a release of {result.kind}, and no series.")
    planned = manifest.description["periods"]
    names = [planned[t] for t in manifest.shown]
    if period is not None and period not in names:
        raise InputError(f"{period!r} is not shown. Shown are: {', '.join(names) or 'none'}.")
    sentence = f"{len(names)} of {len(planned)} planned periods are shown."
    sentence += (
        f" The next is {planned[manifest.shown[-1] + 1 if names else 0]!r}."
        if len(planned) not in (manifest.shown[-1] + 1 if names else 0,)
        else " It is at its end."
    )
    sentence += " Its secrets are destroyed." if ended else ""
    rows = {k: list(v) for k, v in result.columns.items()}
    value: dict[str, Any] = {"planned": planned, "shown": names, "columns": rows}
    if not names:
        show(value, as_json=as_json, quiet=False, plain=sentence)
        return
    table = release_table(_of_period(result, period or names[-1]))
    show(value, as_json=as_json, quiet=False, plain=table)
    if not as_json:
        out.print(sentence, markup=False)


@series_app.command("erase")
def series_erase(
    spec: SpecPath,
    unit: Annotated[str, typer.Option(help="The unit, as rows name it.")],
) -> None:
    """Freeze what a unit reached under a random name, as it asked to be forgotten. It stays counted."""
    from isotone.release.spec import open_ledger

    asked, series, secrets = _asked(spec)
    series.erase(unit, ledger=open_ledger(asked), secrets=secrets)
    out.print(
        "Done, if it was in the register. What it had reached stays counted. If it comes back in the data it counts once more, "
        "which costs its privacy as much again: remove its rows.",
        markup=False,
    )


def _identity(asked: Spec) -> str:
    from isotone.release.manifest import content_hash

    return content_hash(asked.identity)


def _of_period(made: Release, period: str) -> Release:
    """The rows of one period."""
    rows = [row for row, name in enumerate(made.columns["period"]) if name == period]
    columns = {
        name: tuple(column[row] for row in rows) for name, column in made.columns.items() if name != "period"
    }
    stated = replace(made.manifest.stated, title=f"{made.manifest.stated.title}, {period}")
    manifest = replace(made.manifest, stated=stated)
    return replace(made, columns=columns, manifest=cast("Any", manifest))
