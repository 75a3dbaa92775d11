"""Commands for what is published with a release: export, schema, keygen and sign."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from isotone.cli.console import AsJson, Quiet, ReleaseFolder, json_text, out

__all__ = ["export", "keygen", "schema", "sign"]

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
    intended_use: Annotated[_Text, typer.Option(metavar="TEXT", help="What the release is for.")] = None,
    region: Annotated[_Text, typer.Option(metavar="TEXT", help="The region that the data describes.")] = None,
    author: Annotated[
        _Text, typer.Option(metavar="TEXT", help="Who answers for the entry in a registry.")
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Describe a release for catalogues (DCAT), data loaders (Croissant, CSVW, Frictionless) and registries of deployments.

    The files stand beside the release and say nothing of the data and the ledger. The entry of the public registry of
    deployments needs words that only you know: publisher, intended_use and region, here or in [output] of the spec. With
    --json all are printed, and nothing is written.
    """
    from isotone.release import load_release
    from isotone.release.export import REGISTRY, PublisherWords, described, facts_of
    from isotone.release.export import export as write

    words = PublisherWords(publisher, license, url, unit, intended_use, region, author)
    release = load_release(folder)
    if as_json:
        typer.echo(json_text(described(release, words)))
        return
    written = write(folder, to, **words.given())
    if quiet:
        return
    for path in written:
        out.print(f"Written: {path}", markup=False)
    missing = facts_of(release, words).words.missing
    if missing:
        out.print(
            f"Not written: {REGISTRY}, for the public registry of deployments. It asks for {', '.join(missing)}: state "
            "them in [output] of the spec, or here.",
            markup=False,
        )


def schema() -> None:
    """Print the JSON Schema of a spec, for editors that check a file while it is written."""
    from isotone.release import spec_schema

    typer.echo(json_text(spec_schema()))


def keygen(
    path: Annotated[
        Path, typer.Argument(metavar="KEY", help="The private key to write; KEY.pub is the public one.")
    ],
    owner: Annotated[str, typer.Option(help="Who the key belongs to, in one word.")] = "isotone",
) -> None:
    """Make a key to sign releases with. Keys made by ssh-keygen -t ed25519 serve as well."""
    from isotone.release.signing import make_key

    key = make_key(path, owner)
    out.print(f"{path} is the private key: keep it. {path}.pub is public: {key.fingerprint}", markup=False)


def sign(
    what: Annotated[
        Path, typer.Argument(metavar="DIR|FILE", help="The folder of a release, or an extract of a ledger.")
    ],
    key: Annotated[Path, typer.Option(metavar="KEY", help="The private key.")],
) -> None:
    """Sign the values and the manifest of a release, or an extract of a ledger."""
    from isotone.release.signing import sign_file, sign_release

    where = sign_release(what, key) if what.is_dir() else sign_file(what, key)
    out.print(f"Signature: {where}", markup=False)
