"""Signing a saved release, or an extract of a ledger."""

from __future__ import annotations

import os
from pathlib import Path

from isotone.errors import InputError
from isotone.release.folder import read_file
from isotone.release.manifest import digest
from isotone.release.result import load_release, write_file
from isotone.release.verifying.signing import SIGNATURE, sign

__all__ = ["sign_file", "sign_release"]


def sign_release(folder: str | os.PathLike[str], key: str | os.PathLike[str]) -> Path:
    """Sign the values and the manifest with the private key in a file, into ``release.sig``."""
    release = load_release(folder)
    message = release.sealed_bytes()
    if digest(message) != release.manifest["content_hash"]:
        raise InputError("The values or the manifest were changed after the release: not signed.")
    return _write(Path(folder) / SIGNATURE, sign(message, key))


def sign_file(path: str | os.PathLike[str], key: str | os.PathLike[str]) -> Path:
    """Sign a file, such as an extract of a ledger, into ``path.sig``."""
    path = Path(path)
    return _write(path.with_name(path.name + ".sig"), sign(read_file(path.parent, path.name), key))


def _write(path: Path, text: str) -> Path:
    try:
        write_file(path, text)
    except OSError as error:
        raise InputError(
            f"The signature {str(path)!r} cannot be written: {error.strerror or error}."
        ) from None
    return path
