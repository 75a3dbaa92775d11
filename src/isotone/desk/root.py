"""Paths that the desk may touch. All are inside one folder, which is named when the desk is started.

One message stands for every reason, and none says what is or is not outside the folder.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from isotone.errors import InputError

__all__ = ["PathError", "Root"]

_OUTSIDE = (
    "This path cannot be used. Name something inside the folder that the desk was started in: without '..', patterns, "
    "addresses, or links that leave the folder."
)
_NO_FILE = "There is no regular file of this name in the folder that the desk was started in."
_ODD = re.compile(r"[*?\[\]{}\\\x00-\x1f\x7f]|://|^~")
_LONGEST = 1000
_DEEPEST, _MOST = 3, 1000
_MOST_ENTRIES = 50_000
_UNKNOWN = (
    "The desk cannot see all specs of its folder: it has too many files, a folder that may not be read, or a link that leaves "
    "it. So it cannot know that this file is nobody's data, and does not open it. Start the desk in a smaller folder."
)


class PathError(InputError):
    """A path that the desk does not touch."""


class Root:
    """The folder that the desk was started in."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        try:
            self.folder = Path(folder).resolve(strict=True)
        except (OSError, RuntimeError):
            raise InputError(f"There is no folder {os.fspath(folder)!r}.") from None
        if not self.folder.is_dir():
            raise InputError(f"{os.fspath(folder)!r} is not a folder.")
        self.public: set[Path] = set()
        """Files that the steward named as public at this desk."""
        self.unsaved: Callable[[], Iterable[tuple[Path, Mapping[str, Any]]]] = tuple
        """The folders and entries of drafts that may not be saved yet."""

    def inside(self, path: str, base: Path | None = None) -> Path:
        """The place of a path, seen from ``base``, whether something is there or not."""
        if not path.strip() or len(path) > _LONGEST or _ODD.search(path) or ".." in Path(path).parts:
            raise PathError(_OUTSIDE)
        try:
            found = ((base or self.folder) / path).resolve()
        except (OSError, RuntimeError, ValueError):
            raise PathError(_OUTSIDE) from None
        if not found.is_relative_to(self.folder):
            raise PathError(_OUTSIDE)
        return found

    def file(self, path: str, base: Path | None = None) -> Path:
        """The place of a regular file. It is looked at and not opened."""
        found = self.inside(path, base)
        try:
            regular = stat.S_ISREG(found.stat().st_mode)
        except OSError:
            regular = False
        if not regular:
            raise PathError(_NO_FILE)
        return found

    def shown(self, path: Path) -> str:
        """A path inside the folder as people type it."""
        return path.relative_to(self.folder).as_posix()

    def walk(self, name: str) -> Iterator[Path]:
        """Regular files of this name (``*.toml``: of this ending) in the folder and a few levels below.

        Links and hidden folders are not followed.
        """
        waiting, seen = [(self.folder, 0)], 0
        while waiting and seen < _MOST:
            folder, depth = waiting.pop(0)
            try:
                entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
            except OSError:
                continue
            for entry in entries:
                seen += 1
                if entry.name.startswith("."):
                    continue
                if entry.is_dir(follow_symlinks=False) and depth < _DEEPEST:
                    waiting.append((Path(entry.path), depth + 1))
                elif entry.is_file(follow_symlinks=False) and fnmatchcase(entry.name, name):
                    yield Path(entry.path)

    def specs(self) -> list[Path]:
        """Every TOML file of the folder, however deep or hidden. Where some may stay unseen, an error."""
        found, waiting, seen = list[Path](), [self.folder], 0
        while waiting:
            try:
                entries = list(os.scandir(waiting.pop()))
                for entry in entries:
                    if entry.is_symlink():
                        self._require_known(Path(entry.path))
                    elif entry.is_dir(follow_symlinks=False):
                        waiting.append(Path(entry.path))
                    elif entry.name.lower().endswith(".toml"):
                        found.append(Path(entry.path))
            except OSError:
                raise PathError(_UNKNOWN) from None
            seen += len(entries)
            if seen > _MOST_ENTRIES:
                raise PathError(_UNKNOWN)
        return found

    def _require_known(self, link: Path) -> None:
        """Refuse a link behind which there may be specs that are not looked at."""
        target = link.resolve()
        hides = target.is_dir() or link.name.lower().endswith(".toml") or target.suffix.lower() == ".toml"
        if hides and not target.is_relative_to(self.folder):
            raise PathError(_UNKNOWN)
