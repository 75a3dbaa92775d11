"""Which entries of a spec name files, and what the desk may open of them.

Data is known by the specs of the folder: a file that any of them names as its data is opened by a release alone, and
never as a public file, a questionnaire or a ledger.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path

from isotone.desk.root import PathError, Root
from isotone.desk.words import FormError
from isotone.release.spec import Spec

__all__ = ["PLACES", "PRIVATE", "PUBLIC", "require_inside", "require_no_data", "small_text"]

PRIVATE = (("data", "path"),)
"""Entries of a spec that name data. Planning does not open it."""
PLACES = (("privacy", "ledger"), ("output", "folder"))
"""Entries that name what a release writes to."""
PUBLIC = (
    ("order", "file"),
    ("order", "relaxation"),
    ("breakdown", "file"),
    ("breakdown", "relaxation"),
    ("table", "categories_file"),
)
"""Entries that name public files, which planning reads."""

_LARGEST_SPEC = 1 << 22


def require_inside(spec: Spec, root: Root) -> None:
    """Refuse a spec that names a path outside the folder of the desk, or data where something else belongs."""
    data = root.inside(spec.data.file_path, spec.folder)
    for section, entry in (*PLACES, *PUBLIC):
        said = getattr(getattr(spec, section, None), entry, None)
        if said is None:
            continue
        public = (section, entry) in PUBLIC
        file = root.file(said, spec.folder) if public else root.inside(said, spec.folder)
        if file == data or _same(file, data):
            raise FormError("The data cannot serve as another file of the spec.")
        if public or file.is_file():
            require_no_data(file, root)


def require_no_data(file: Path, root: Root) -> None:
    """Refuse a file that a spec in the folder names as its data."""
    for spec in root.walk("*.toml"):
        said = _data_of(spec)
        try:
            data = root.inside(said, spec.parent) if said else None
        except PathError:
            continue
        if data is not None and (data == file or _same(data, file)):
            raise FormError("A spec of this folder names this file as its data. Only a release opens it.")


def _data_of(spec: Path) -> str:
    """The data that a spec names, even if the rest of it cannot be used."""
    try:
        section = tomllib.loads(small_text(spec) or "").get("data", {})
    except (tomllib.TOMLDecodeError, RecursionError):
        return ""
    said = section.get("path", "") if isinstance(section, Mapping) else ""
    return said if isinstance(said, str) else ""


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False


def small_text(file: Path) -> str | None:
    """The text of a file, or None if it cannot be read or is too large for a spec."""
    try:
        if file.stat().st_size > _LARGEST_SPEC:
            return None
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
