"""The commands keygen and sign."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from isotone.cli.console import (
    out,
)

__all__ = ["keygen", "sign"]


def keygen(
    path: Annotated[
        Path, typer.Argument(metavar="KEY", help="The private key to write; KEY.pub is the public one.")
    ],
    owner: Annotated[str, typer.Option(help="Who the key belongs to, in one word.")] = "isotone",
) -> None:
    """Make a key to sign releases with. Keys made by ssh-keygen -t ed25519 serve as well."""
    from isotone.release.verifying.signing import make_key

    key = make_key(path, owner)
    out.print(f"{path} is the private key: keep it. {path}.pub is public: {key.fingerprint}", markup=False)


def sign(
    what: Annotated[
        Path, typer.Argument(metavar="DIR|FILE", help="The folder of a release, or an extract of a ledger.")
    ],
    key: Annotated[Path, typer.Option(metavar="KEY", help="The private key.")],
) -> None:
    """Sign the values and the manifest of a release, or an extract of a ledger."""
    from isotone.release.verifying.signing import sign_file, sign_release

    where = sign_release(what, key) if what.is_dir() else sign_file(what, key)
    out.print(f"Signature: {where}", markup=False)
