"""Paths that the desk may touch, and the files that it may open as public. All are inside one folder, named when the desk is started.

One message stands for every reason why a path is refused, and none says what is or is not outside the folder. A file is opened as
public only if the steward named it as public at this desk, and if no spec or draft of the folder names it as data or may do so: by a
pattern, through a link, from a folder that is hidden or deep. Where the desk cannot see that, it does not open the file. Contents of
data are opened by a release alone. Its columns are public, and listed, where the format has a schema, or where the steward has stated
that the first line of a CSV holds names.
"""

from __future__ import annotations

import os
import re
import stat
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from glob import escape
from pathlib import Path
from typing import Any

from isotone.desk.words import FormError
from isotone.errors import InputError
from isotone.reading.text_files import header_names
from isotone.release.spec import DataEntries, Spec
from isotone.series.state import SECRET

CSV = (".csv", ".tsv", ".txt")
_PARQUET, _ARROW = (".parquet", ".pq"), (".arrow", ".feather", ".ipc")
DATA = (*CSV, *_PARQUET, *_ARROW, ".jsonl", ".ndjson")
"""The endings of files of data."""
FORMS = (".xlsx", ".csv")
"""The endings of questionnaires."""
DRAFT = ".draft.toml"
LEDGER = ".ledger"
"""The ending of a spec that is not finished."""

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
        self.looks = True
        """Whether columns of data are looked at."""
        self.public: set[Path] = set()
        """Files that the steward named as public at this desk."""
        self.unsaved: Callable[[], Iterable[tuple[Path, Mapping[str, Any]]]] = tuple
        """The folders and entries of drafts that may not be saved yet."""

    def inside(self, path: str, base: Path | None = None) -> Path:
        """The place of a path, seen from ``base``, whether something is there or not."""
        if not path.strip() or len(path) > _LONGEST or _ODD.search(path) or ".." in Path(path).parts:
            raise PathError(_OUTSIDE)
        try:
            result = ((base or self.folder) / path).resolve()
        except (OSError, RuntimeError, ValueError):
            raise PathError(_OUTSIDE) from None
        if not result.is_relative_to(self.folder):
            raise PathError(_OUTSIDE)
        return result

    def file(self, path: str, base: Path | None = None) -> Path:
        """The place of a regular file. It is looked at and not opened."""
        result = self.inside(path, base)
        try:
            regular = stat.S_ISREG(result.stat().st_mode)
        except OSError:
            regular = False
        if not regular or self._is_secret(result):
            raise PathError(_NO_FILE)
        return result

    def _is_secret(self, file: Path) -> bool:
        """Whether a file is in the folder of the secrets of a series, of which nothing is read, shown or listed."""
        return any(
            (folder / SECRET).exists() for folder in file.parents if folder.is_relative_to(self.folder)
        )

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

    def names(self, folder: Path, endings: Sequence[str]) -> list[str]:
        """The names of files with these endings below a folder, as a spec there says them. Nothing is opened."""
        result = [path for path in self.walk("*") if path.suffix.lower() in endings]
        result = [path for path in result if path.is_relative_to(folder)]
        releases = {path.parent for path in self.walk("manifest.json")}  # releases are no data
        return sorted(
            path.relative_to(folder).as_posix()
            for path in result
            if path.parent not in releases
            and not self._is_secret(path)
            and not _ODD.search(path.relative_to(folder).as_posix())
        )

    def beside(self, folder: str | Path, ending: str) -> list[str]:
        """The names of the files in one folder that end so. Nothing is opened."""
        place = self.folder / folder
        return [path.name for path in self.walk(f"*{ending}") if path.parent == place]

    def specs(self) -> list[Path]:
        """Every TOML file of the folder, however deep or hidden. Where some may stay unseen, an error."""
        result, waiting, seen = list[Path](), [self.folder], 0
        while waiting:
            try:
                entries = list(os.scandir(waiting.pop()))
                for entry in entries:
                    if entry.is_symlink():
                        self._require_known(Path(entry.path))
                    elif entry.is_dir(follow_symlinks=False):
                        waiting.append(Path(entry.path))
                    elif entry.name.lower().endswith(".toml"):
                        result.append(Path(entry.path))
            except OSError:
                raise PathError(_UNKNOWN) from None
            seen += len(entries)
            if seen > _MOST_ENTRIES:
                raise PathError(_UNKNOWN)
        return result

    def _require_known(self, link: Path) -> None:
        """Refuse a link behind which there may be specs that are not looked at."""
        target = link.resolve()
        hides = target.is_dir() or link.name.lower().endswith(".toml") or target.suffix.lower() == ".toml"
        if hides and not target.is_relative_to(self.folder):
            raise PathError(_UNKNOWN)


# Which entries of a spec name files, and what the desk may open of them.
#
# A file is opened as public only if the steward named it as public at this desk, and if no spec or draft of the folder names
# it as data or may do so: by a pattern, through a link, from a folder that is hidden or deep. Where the desk cannot
# see that, it does not open the file. Data is opened by a release alone.

PRIVATE = (("data", "path"),)
"""Entries of a spec that name data. Planning does not open it."""
PLACES = (("privacy", "ledger"), ("output", "folder"), ("series", "secrets"))
"""Entries that name what a release writes to."""
PUBLIC = (
    ("order", "file"),
    ("order", "relaxation"),
    ("table", "categories_file"),
)
"""Entries that name public files, which planning reads."""
_KNOWN = ("order", "table", "curve")
"""The kinds whose public files are all in the list above."""

_LARGEST_SPEC = 1 << 22


class UnnamedError(FormError):
    """A spec names public files that nobody has named as public at this desk. ``files`` are their names."""

    def __init__(self, files: Sequence[str]) -> None:
        names = ", ".join(files)
        super().__init__(f"This spec reads {names} as public. Say first that this is nobody's data.")
        self.files = tuple(files)


def require_inside(spec: Spec, root: Root) -> None:
    """Refuse a spec that names a path outside the folder of the desk, or data where something public belongs."""
    data, own = root.inside(spec.data.file_path, spec.folder), (spec.folder, spec.data.file_path)
    for section, entry in PLACES:
        path = getattr(getattr(spec, section, None), entry, None)
        place = None if path is None else root.inside(path, spec.folder)
        if place is not None and (place == data or place.is_file()):
            _require_not_among(place, [own])
            with suppress(PathError):  # a ledger is no public file: what is none shows nothing of itself
                _require_not_among(place, _named_as_data(root))
    files = public_files(spec, root)
    for file in files:
        _require_not_among(file, [own])
        require_no_data(file, root)
    unnamed = [root.shown(file) for file in files if file not in root.public]
    if unnamed:
        raise UnnamedError(unnamed)
    if spec.key not in _KNOWN:
        _require_public_of(spec, root, own)


def _require_public_of(spec: Spec, root: Root, own: tuple[Path, str]) -> None:
    """Refuse whatever else a kind of release opens as public, however its entries are called."""
    refused: list[InputError] = []

    def opened(path: str) -> Path:
        try:
            file = root.file(path, spec.folder)
            _require_not_among(file, [own])
            require_no_data(file, root)
            if file not in root.public:
                raise UnnamedError([root.shown(file)])
        except InputError as error:
            refused.append(error)
            raise
        return file

    with suppress(Exception):  # what else is wrong is told when it is asked for
        sections = {name: getattr(spec, name) for name in ("data", "privacy", "output", spec.key)}
        spec.kind.described.from_sections(sections, spec.book, opened)
    if refused:
        raise refused[0]


def name_public(files: Iterable[str], root: Root) -> None:
    """Keep that the steward named these files as public. Those that may be data are refused."""
    paths = [root.file(name) for name in files]
    for file in paths:
        require_no_data(file, root)
    root.public.update(paths)


_WIDEST, _LONGEST_NAME = 2_000, 200


def columns_of(path: str, folder: Path, data: Mapping[str, Any], root: Root) -> list[str] | None:
    """The names of the columns of a file of data, if they are public, and None if they are not or cannot be read.

    Parquet and Arrow have a schema. The first line of a CSV, of which 64 KB are read at most, holds names only if the steward has
    stated it (``header = true``): it may be somebody's record.
    """
    file = root.file(path, folder)
    ending = file.suffix.lower()
    try:
        if not root.looks:
            return None
        if ending in _PARQUET:
            from pyarrow.parquet import read_schema

            result = read_schema(file).names
        elif ending in _ARROW:
            from pyarrow import OSFile, ipc

            with OSFile(str(file)) as opened:
                result = ipc.open_file(opened).schema.names
        elif ending in CSV and data.get("header") is True:
            entries = {
                name: value for name, value in data.items() if name in ("separator", "encoding", "header")
            }
            result = header_names(str(file), DataEntries(path=path, **entries).file(str(file)))
        else:
            return None
    except (
        Exception
    ):  # whatever a file holds, its columns are then not listed, and a release tells why it cannot be read
        return None
    return [name[:_LONGEST_NAME] for name in result[:_WIDEST]] or None


def public_files(spec: Spec, root: Root) -> list[Path]:
    """The public files that a spec names. They are looked at and not opened."""
    paths = [getattr(getattr(spec, section, None), entry, None) for section, entry in PUBLIC]
    return [root.file(path, spec.folder) for path in paths if path is not None]


def require_no_data(file: Path, root: Root) -> None:
    """Refuse a file that a spec or draft in the folder names as its data, or may name."""
    _require_not_among(file, _named_as_data(root))
    _require_one_name(file)


def questionnaires(root: Root) -> list[str]:
    """The names of files that may be questionnaires: no spec or draft of the folder names them as data. None of them is opened."""
    try:
        data = _named_as_data(root)
    except PathError:  # which the import of any of them says
        data = []
    return [
        name
        for name in root.names(root.folder, FORMS)
        if not any(_may_be(root.folder / name, folder, said) for folder, said in data)
    ]


def _require_one_name(file: Path) -> None:
    """Refuse a file that has other names, under which it may be data."""
    if file.stat().st_nlink > 1:
        raise FormError("This file has several names (hard links), and may be data under another. Copy it.")


def _require_not_among(file: Path, data: Iterable[tuple[Path, str]]) -> None:
    for folder, path in data:
        if _may_be(file, folder, path):
            raise FormError(
                "A spec of this folder names this file as its data, or may name it by a pattern. Only a release opens it. Name another one here."
            )


def _named_as_data(root: Root) -> list[tuple[Path, str]]:
    """What the specs and drafts of the folder name as data, and the folders that they see it from."""
    result = list[tuple[Path, str]]()
    for spec in root.specs():
        text = small_text(spec)
        try:
            entries = tomllib.loads(text) if text is not None else None
        except (tomllib.TOMLDecodeError, RecursionError):
            entries = None
        if entries is None:
            raise PathError(
                f"{root.shown(spec)} cannot be read. It may be a spec, so that the desk cannot know what is data. Mend "
                "or remove it."
            )
        result += [(spec.parent, path) for path in _data_of(entries)]
    for folder, entries in root.unsaved():
        result += [(folder, path) for path in _data_of(entries)]
    return result


def _data_of(entries: Mapping[str, Any]) -> list[str]:
    """The paths that a spec names as data, even if the rest of it cannot be used: also of a database in a file."""
    section, desk = (entries.get(name, {}) for name in ("data", "desk"))
    section = section if isinstance(section, Mapping) else {}
    said, address = section.get("path"), section.get("connection")
    paths = [*(said if isinstance(said, list) else [said]), *_typed(desk)]
    if isinstance(address, str):
        file = address.partition("://")[2].partition("?")[0].lstrip("/")
        paths = [*paths, address, file, f"/{file}"]
    return [path for path in paths if isinstance(path, str) and path.strip("/")]


def _typed(desk: Any) -> list[str]:
    """The paths of data that stand in a form of a draft and were not taken over yet."""
    for name in ("typed", "data"):
        desk = desk.get(name, {}) if isinstance(desk, Mapping) else {}
    return [str(path) for name, path in desk.items() if "path" in name] if isinstance(desk, Mapping) else []


def _may_be(file: Path, folder: Path, path: str) -> bool:
    """Whether a path of a spec in ``folder`` is this file, holds it, or is a pattern that may match it."""
    if "://" in path and not path.startswith("file:"):
        return False
    path = os.path.expanduser(path.removeprefix("file:"))  # noqa: PTH111 - text
    start = _WILD.search(path)
    if start is None:
        data = Path(os.path.realpath(folder / path))
        return file == data or file.is_relative_to(data) or _same(file, data)
    head = path[: path.rfind(os.sep, 0, start.start()) + 1]
    rest = path[len(head) :]
    if ".." in Path(rest).parts:
        return True  # where that leads depends on what the pattern matches
    # a star stands for anything here, folders too: for more than any engine lets it, and never for less
    pattern = f"{escape(os.path.realpath(folder / head))}{os.sep}{_WILD.sub('*', rest)}".casefold()
    return any(fnmatchcase(str(name).casefold(), pattern) for name in (file, *file.parents))


_WILD = re.compile(r"\*\*+/?|\*|\?|\[[^\]]*\]?|\{[^}]*\}?")
"""What engines take for a pattern."""


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
        return file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return None
