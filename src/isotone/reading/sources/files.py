"""Which files a path names, and which columns each one has.

Each file is listed once.

Names are expanded here and nowhere else, so no row is read twice. Of a file's own names only those that were
asked for are ever looked at or told: a CSV without a header line has a person's record in its place.
"""

from __future__ import annotations

import csv
import glob
import io
from collections.abc import Sequence
from pathlib import Path

from isotone.errors import InputError, IsotoneError
from isotone.privacy.checks import did_you_mean

__all__ = ["SourceError", "csv_places", "ending_of", "expand", "for_engine", "no_column"]

_LONGEST_HEADER = 1 << 22


class SourceError(IsotoneError):
    """A data source is missing or cannot be read."""


def expand(path: str) -> list[str]:
    """The real files that a path or pattern names, sorted, each once.

    ``**`` goes into folders.

    A path that is the name of a file is that file, whatever characters are in it. Links to one file are one file.
    """
    try:
        exists = Path(path).is_file()
    except (OSError, ValueError) as error:  # too long for a name, or with a null character
        reason = getattr(error, "strerror", None) or error
        raise SourceError(f"The path {path[:200]!r} cannot be used: {reason}.") from None
    if exists:
        named = [path]
    else:
        named = glob.glob(path, recursive=True) if glob.has_magic(path) else []  # noqa: PTH207 (absolute patterns)
        named = [name for name in named if not Path(name).is_dir()]
    if not named or not all(Path(name).is_file() for name in named):
        raise SourceError(f"There is no file {path!r}{_similar(path) or '.'}")
    real = {
        (found.stat().st_dev, found.stat().st_ino): found
        for found in sorted(Path(n).resolve() for n in named)
    }
    return sorted(map(str, real.values()))


def ending_of(path: str, files: Sequence[str]) -> str:
    """The ending that all files have, in small letters."""
    endings = sorted({Path(file).suffix.lower() for file in files})
    if len(endings) > 1:
        raise SourceError(f"{path!r} matches files of several kinds: {', '.join(endings)}.")
    return endings[0]


def for_engine(files: Sequence[str]) -> list[str]:
    """The names as patterns that match these files only. The engine expands them once more."""
    for file in files:
        if "\\" in file and glob.has_magic(file):
            raise SourceError(
                f"{file!r}: a name with a backslash and one of * ? [ cannot be opened. Rename it."
            )
    return [glob.escape(file) for file in files]


def csv_places(file: str, delimiter: str, columns: Sequence[str]) -> tuple[int, tuple[int, ...]]:
    """How many columns the header line has, and where the columns asked for are."""
    with Path(file).open("rb") as stream:
        start = stream.read(_LONGEST_HEADER).decode("utf-8-sig", errors="replace")
    try:
        header = next(csv.reader(io.StringIO(start, newline=""), delimiter=delimiter), [])
    except csv.Error:  # a first line that is no header: a column asked for is not in it
        header = [""]
    if not header:
        raise SourceError(f"{file!r} has no header line. The first line of a CSV must name its columns.")
    for name in columns:
        if header.count(name) > 1:
            raise SourceError(f"{file!r} names the column {name!r} twice. Rename one of them.")
        if name not in header:
            raise no_column(name, f"The file {Path(file).name!r}")
    return len(header), tuple(header.index(name) for name in columns)


def no_column(name: str, where: str = "The data") -> InputError:
    """The error for a missing column.

    It names the column asked for and none that was found.
    """
    return InputError(
        f"{where} has no column {name!r}. Names are compared letter by letter; the first line of a CSV must hold them."
    )


def _similar(path: str) -> str:
    folder = Path(path).parent
    if glob.has_magic(str(folder)):
        return "."
    if not folder.is_dir():
        return f", and no folder {str(folder)!r}."
    return did_you_mean(Path(path).name, [entry.name for entry in folder.iterdir()])
