"""Releases that were made, in the folder of the desk."""

from __future__ import annotations

import io
import zipfile
from dataclasses import dataclass
from pathlib import Path

from isotone.desk.folder import PathError, Root
from isotone.errors import IsotoneError
from isotone.release.folder import has_file, read_file
from isotone.release.result import Release, load_release

__all__ = ["Made", "archive", "made_in", "release_at", "report_of"]

_FILES = ("manifest.json", "release.csv", "report.html", "release.sig")
_NONE = "There is no release of this name in the folder that the desk was started in."


@dataclass(frozen=True)
class Made:
    """A release and where it is."""

    folder: str
    release: Release


def made_in(root: Root) -> list[Made]:
    """The releases in the folder, the newest first."""
    found: list[Made] = []
    for manifest in root.walk("manifest.json"):
        try:
            found.append(Made(root.shown(manifest.parent), load_release(manifest.parent)))
        except IsotoneError:
            continue
    return sorted(found, key=lambda made: made.release.manifest.time, reverse=True)


def release_at(path: str, root: Root) -> tuple[Path, Release]:
    """The folder and the release at a path."""
    folder = root.inside(path)
    try:
        return folder, load_release(folder)
    except IsotoneError:
        raise PathError(_NONE) from None


def report_of(path: str, root: Root) -> bytes:
    """The page of a release as it is in its folder."""
    folder, _ = release_at(path, root)
    try:
        return read_file(folder, "report.html")
    except IsotoneError:
        raise PathError("This release has no report. Draw it again.") from None


def archive(path: str, root: Root) -> bytes:
    """The files of a release as a zip file. Links and other files in its folder are left out."""
    folder, _ = release_at(path, root)
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as file:
        for name in _FILES:
            if has_file(folder, name):
                entry = zipfile.ZipInfo(f"{folder.name}/{name}")  # without a time of its own
                entry.compress_type = zipfile.ZIP_DEFLATED
                file.writestr(entry, read_file(folder, name))
    return held.getvalue()
