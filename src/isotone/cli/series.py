"""Commands about counts over time: open a series, close its periods, show it, erase a unit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from isotone.cli.console import AsJson, Quiet, SpecPath, out, progress_bar, show
from isotone.cli.release import release_table
from isotone.errors import InputError

series_app = typer.Typer(
    help="Counts over time on one budget: open a series, close its periods, show it.", no_args_is_help=True
)


@series_app.command("open")
def series_open(
    spec: SpecPath,
    again: Annotated[
        bool, typer.Option("--again", help="Charge anew although this series was opened before.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Charge once for all periods, and draw all noise. No data is read."""
    from isotone.release import load_spec

    series = load_spec(spec).over_time
    with progress_bar("opening", quiet=quiet) as progress:
        opened = series.open(again=again, progress=progress)
    if not quiet:
        periods = series.described.periods
        out.print(
            f"The series is open: {len(periods)} periods, {periods[0]} to {periods[-1]}, under charge {opened.number}. "
            f"{series.secrets} is as sensitive as the data: keep no copy of it.",
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
    from isotone.release import load_spec
    from isotone.release.kinds.series.description import period_of

    series = load_spec(spec).over_time
    with progress_bar("closing", quiet=quiet or as_json):
        done = series.close(period)
    result = done.release
    value = {
        "folder": str(series.spec.target),
        "new": done.fresh,
        "columns": {k: list(v) for k, v in result.columns.items()},
    }
    show(value, as_json=as_json, quiet=quiet, plain=release_table(period_of(result, period)))
    if not as_json and not quiet:
        sentence = "" if done.fresh else f"{period} was closed before; nothing was read. "
        out.print(f"{sentence}The series is in {series.spec.target}", markup=False)


@series_app.command("show")
def series_show(
    what: Annotated[Path, typer.Argument(metavar="SPEC|DIR", help="A spec, or the folder of a series.")],
    period: Annotated[str | None, typer.Option(help="A period, by default the last that is shown.")] = None,
    since: Annotated[
        str | None, typer.Option(help="Say what is new since this earlier period, with its interval.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show a period, with what is new, and how far the series is. No data is read."""
    from isotone.release import load_release, load_spec
    from isotone.release.kinds.series.description import SeriesManifest, period_of
    from isotone.release.kinds.series.reader import new_since
    from isotone.release.over_time import published

    ended = False
    if what.suffix == ".toml":
        state = load_spec(what).over_time.state()
        result, ended = published(state), state.ended
    else:
        result = load_release(what)
    manifest = result.manifest
    if not isinstance(manifest, SeriesManifest):
        raise InputError(f"{str(what)!r} is a release of {result.kind}, and no series.")
    names = manifest.shown_names
    if period is not None and period not in names:
        raise InputError(f"{period!r} is not shown. Shown are: {', '.join(names) or 'none'}.")
    sentence = manifest.standing + (" Its secrets are destroyed." if ended else "")
    columns = {k: list(v) for k, v in result.columns.items()}
    value: dict[str, Any] = {"planned": manifest.planned, "shown": names, "columns": columns}
    if not names:
        show(value, as_json=as_json, quiet=False, plain=sentence)
        return
    last = period or names[-1]
    rows = period_of(result, last) if since is None else new_since(result, last, since)
    value |= (
        {} if since is None else {"since": since, "columns": {k: list(v) for k, v in rows.columns.items()}}
    )
    show(value, as_json=as_json, quiet=False, plain=release_table(rows))
    if not as_json:
        out.print(sentence, markup=False)


@series_app.command("erase")
def series_erase(
    spec: SpecPath,
    unit: Annotated[str, typer.Option(help="The unit, as rows name it.")],
) -> None:
    """Freeze what a unit reached under a random name, as it asked to be forgotten. It stays counted."""
    from isotone.release import load_spec

    series = load_spec(spec).over_time
    series.described.erase(unit, ledger=series.ledger, secrets=series.secrets)
    out.print(
        "Done, if it was in the register. What it had reached stays counted. If it comes back in the data it counts once more, "
        "which costs its privacy as much again: remove its rows.",
        markup=False,
    )
