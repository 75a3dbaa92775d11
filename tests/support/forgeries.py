"""Forging releases: change what a folder says, and seal it again as a forger would."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from isotone.release.manifest import Manifest, digest
from isotone.release.result import Release, load_release

Entries = dict[str, Any]
Columns = dict[str, list[Any]]


def forged(folder: Path, change: Callable[[Entries, Columns], None]) -> Path:
    """Change manifest and columns, then write hashes and seal anew: only the contents are wrong."""
    entries: Entries = json.loads((folder / "manifest.json").read_text())
    columns: Columns = {name: list(column) for name, column in load_release(folder).columns.items()}
    change(entries, columns)
    plain = {key: value for key, value in entries.items() if key not in ("files", "content_hash")}
    fixed = {name: tuple(column) for name, column in columns.items()}
    with contextlib.suppress(Exception):  # a forger's manifest need not be a valid one
        release = Release(fixed, Manifest.from_plain(plain).sealed(fixed))
        release.save(folder, report=False)  # drawn again it would fit the forgery
        return folder
    (folder / "manifest.json").write_text(json.dumps({**entries, **plain}))
    return folder


def rewrite(folder: Path, change: Callable[[Entries], None]) -> Path:
    """Change the manifest's file and nothing else."""
    entries: Entries = json.loads((folder / "manifest.json").read_text())
    change(entries)
    (folder / "manifest.json").write_text(json.dumps(entries))
    return folder


def edited(folder: Path, name: str, old: str, new: str, *, hashed: bool = False) -> Path:
    """Replace text in a file; with ``hashed`` also the file's hash in the manifest."""
    text = (folder / name).read_text()
    assert old in text
    (folder / name).write_text(text.replace(old, new))
    if hashed:
        rewrite(folder, lambda m: m["files"].__setitem__(name, digest((folder / name).read_bytes())))
    return folder
