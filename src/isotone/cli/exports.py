"""The commands export and schema."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from isotone.cli.console import AsJson, Quiet, ReleaseFolder, json_text, out

__all__ = ["export", "schema"]

_Text = str | None


def export(
    folder: ReleaseFolder,
    to: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Another folder to write to, made if need be.")
    ] = None,
    publisher: Annotated[_Text, typer.Option(metavar="TEXT", help="Who publishes the release.")] = None,
    license: Annotated[_Text, typer.Option(metavar="TEXT", help="Its licence, a name or an address.")] = None,
    url: Annotated[_Text, typer.Option(metavar="TEXT", help="Where it is published.")] = None,
    unit: Annotated[_Text, typer.Option(metavar="TEXT", help="What is protected, in words.")] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Describe a release for catalogues (DCAT), data loaders (Croissant) and registries of deployments.

    Writes dcat.jsonld, croissant.json and deployment.json beside the release. They say nothing of the data and the
    ledger. With --json they are printed, and nothing is written.
    """
    from isotone.release import load_release
    from isotone.release.exporting.export import described
    from isotone.release.exporting.export import export as write
    from isotone.release.exporting.facts import PublisherWords

    if as_json:
        typer.echo(json_text(described(load_release(folder), PublisherWords(publisher, license, url, unit))))
        return
    for path in write(folder, to, publisher=publisher, license=license, url=url, unit=unit):
        if not quiet:
            out.print(f"Written: {path}", markup=False)


def schema() -> None:
    """Print the JSON Schema of a spec, for editors that check a file while it is written."""
    from isotone.release import spec_schema

    typer.echo(json_text(spec_schema()))
