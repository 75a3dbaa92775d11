"""Read a folder that a stranger made, within limits on files, sizes and depth.

A release is checked by people who do not trust its publisher. So a link, a pipe, a device, a file that fills the
memory or text that is nested without end is an error with a sentence, and never a wait or a crash.
"""

from __future__ import annotations

import csv
import errno
import io
import json
import math
import os
import re
import stat
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice, repeat
from pathlib import Path
from typing import Any, NoReturn

from pydantic_core import from_json

from isotone.errors import InputError

__all__ = ["LARGEST", "has_file", "plain_json", "read_columns", "read_file", "read_json", "read_text"]

_MIB = 1 << 20

LARGEST = {
    "manifest.json": 64 * _MIB,
    "opening.json": 64 * _MIB,
    "release.csv": 128 * _MIB,
    "report.html": 128 * _MIB,
}
"""The largest size of each file; any other has a mebibyte."""

DEEPEST = 32
"""How deep values in a manifest may be nested; ours are nested four deep."""

LONGEST_TEXT = 100_000
"""The longest text in a manifest or in a cell, in characters."""

MOST_COLUMNS = 50
"""The most columns of a release; ours have at most ten."""

_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?", re.ASCII)
_DIGITS, _SHORT = b"0123456789.-,", 300  # a float of so many characters without exponent is finite
_UNEVEN = "it has lines of different lengths: it was changed or cut off"
_TOGETHER = 1000
_LONGEST_NUMBER = 400  # digits; a 64-bit integer has 19, a float at most some 330


def read_file(folder: str | os.PathLike[str], name: str) -> bytes:
    """The bytes of a regular file in ``folder``. Anything else is refused without waiting for it."""
    if name in ("", ".", "..") or len(os.fsencode(name)) > 200 or re.search(r"[/\\\0]", name):
        raise InputError(f"{_short(name)} is no plain file name. A release names files in its own folder.")
    # a link is not followed, and a pipe or device is not waited for
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        handle = os.open(Path(folder) / name, flags)
    except FileNotFoundError:
        raise InputError(f"{_short(str(folder))} holds no release: {name} is missing.") from None
    except (OSError, ValueError) as error:
        _refuse(folder, name, _reason(error))
    try:
        return _content(handle, LARGEST.get(name, _MIB))
    except (OSError, ValueError) as error:
        _refuse(folder, name, _reason(error))
    finally:
        os.close(handle)


def _content(handle: int, largest: int) -> bytes:
    result = os.fstat(handle)
    if not stat.S_ISREG(result.st_mode):
        raise ValueError("it is not a regular file")
    too_large = f"it is larger than {largest / _MIB:g} MiB"
    if result.st_size > largest:
        raise ValueError(too_large)
    with os.fdopen(handle, "rb", closefd=False) as file:
        data = file.read(largest + 1)
    if len(data) > largest:  # it grew while it was read
        raise ValueError(too_large)
    return data


def has_file(folder: str | os.PathLike[str], name: str) -> bool:
    """Whether anything of this name is in the folder, be it a file or not."""
    return os.path.lexists(Path(folder) / name)


def read_text(folder: str | os.PathLike[str], name: str) -> str:
    """The text of a file in ``folder``."""
    try:
        return read_file(folder, name).decode("utf-8")
    except UnicodeDecodeError:
        _refuse(folder, name, "it is not UTF-8 text")


def read_json(folder: str | os.PathLike[str], name: str) -> dict[str, Any]:
    """The JSON object in a file of ``folder``."""
    text = read_text(folder, name)
    try:
        value = plain_json(text)
    except ValueError as error:
        _refuse(folder, name, str(error))
    if not isinstance(value, dict):
        _refuse(folder, name, "it holds no JSON object")
    return value


def plain_json(text: str) -> Any:
    """A JSON value of bounded depth with finite numbers and no key twice. ValueError says what is wrong."""
    try:
        value = json.loads(
            text,
            object_pairs_hook=_object,
            parse_int=_integer,
            parse_float=_float,
            parse_constant=_constant,
        )
    except RecursionError:
        raise ValueError("its values are nested too deeply") from None
    waiting = [(value, 0)]
    while waiting:
        part, depth = waiting.pop()
        if depth > DEEPEST:
            raise ValueError("its values are nested too deeply")
        if isinstance(part, str) and len(part) > LONGEST_TEXT:
            raise ValueError(f"a text in it has more than {LONGEST_TEXT:,} characters")
        if isinstance(part, dict):
            waiting.extend((key, depth) for key in part)
            part = list(part.values())
        if isinstance(part, list) and part:
            # numbers are as good as one of them, and there may be millions
            waiting.extend((inner, depth + 1) for inner in part if not isinstance(inner, (int, float)))
            waiting.append((0, depth + 1))
    return value


def read_columns(
    folder: str | os.PathLike[str], name: str, words: Collection[str]
) -> dict[str, tuple[Any, ...]]:
    """The columns of a CSV file in ``folder``, those called ``words`` as text and the others as numbers."""
    text = read_text(folder, name)
    if "\0" in text:
        _refuse(folder, name, "it holds a null character")
    blocks = _blocks(text)
    try:
        header = next(blocks, None)
        if header is None:
            _refuse(folder, name, "it is empty")
        titles = [cells[0] for cells in header]
        if len(set(titles)) < len(titles) or "value" not in titles or len(titles) > MOST_COLUMNS:
            _refuse(folder, name, "its first line does not name the columns of a release")
        columns: list[list[Any]] = [[] for _ in titles]
        known: dict[str, str] = {}  # a word that stands in many rows is kept once
        for block in blocks:
            for column, title, cells in zip(columns, titles, block, strict=True):
                column += _words(cells, known) if title in words else _numbers(folder, name, cells)
    except csv.Error as error:
        _refuse(folder, name, str(error))
    return {title: tuple(column) for title, column in zip(titles, columns, strict=True)}


def _blocks(text: str) -> Iterator[Sequence[Sequence[str]]]:
    """The first line of a CSV file, then some lines at a time, each time by column.

    A list of all lines may take a hundred times the room of the file.
    """
    lines = io.StringIO(text, newline="")
    first = text[: text.find("\n")]
    if '"' in text or "\r" in text or "," not in first:
        rows = csv.reader(lines, strict=True)
        titles = next(rows, None)
        if titles is not None:
            yield [[title] for title in titles]
            while some := list(islice(_even(rows, len(titles)), _TOGETHER)):
                _require_short(max(len(cell) for row in some for cell in row))
                yield list(zip(*some, strict=True))
        return
    # without quotes all commas and ends of lines are those of cells
    yield [[title] for title in next(lines).removesuffix("\n").split(",")]
    commas = first.count(",")
    while some := list(islice(lines, _TOGETHER)):
        if set(map(str.count, some, repeat(","))) != {commas}:
            raise csv.Error(_UNEVEN)
        cells = "".join(some).removesuffix("\n").replace("\n", ",").split(",")
        if max(map(len, some)) > LONGEST_TEXT:
            _require_short(max(map(len, cells)))
        yield [cells[place :: commas + 1] for place in range(commas + 1)]


def _require_short(longest: int) -> None:
    if longest > LONGEST_TEXT:
        raise csv.Error(f"a cell has more than {LONGEST_TEXT:,} characters")


def _words(cells: Sequence[str], known: dict[str, str]) -> Iterable[str]:
    """The words of a column, each kept once however often it stands there."""
    first = known.setdefault(cells[0], cells[0])
    if cells.count(first) == len(cells):  # often so, as margins and groups come one after the other
        return [first] * len(cells)
    return map(known.setdefault, cells, cells)


def _even(lines: Iterable[list[str]], length: int) -> Iterator[list[str]]:
    """Lines of the same length. Each is looked at before the next is read, as one may fill the memory."""
    for row in lines:
        if len(row) != length:
            raise csv.Error(_UNEVEN)
        yield row


def _numbers(folder: str | os.PathLike[str], name: str, cells: Sequence[str]) -> Sequence[int | float]:
    """The numbers of a column, whole where no point and no exponent is written."""
    together = ",".join(cells)
    if max(map(len, cells)) <= _SHORT and not together.encode().translate(None, _DIGITS):
        with suppress(ValueError):  # nearly never, and the cell at fault is found below
            result = from_json(f"[{together}]")
            if len(result) == len(cells):
                return result
    return [_number(folder, name, cell) for cell in cells]


def _number(folder: str | os.PathLike[str], name: str, cell: str) -> int | float:
    shape = _NUMBER.fullmatch(cell) if len(cell) <= _LONGEST_NUMBER else None
    if shape is not None and shape[1] is shape[2] is None:
        return int(cell)
    value = math.nan if shape is None else float(cell)
    if not math.isfinite(value):
        _refuse(folder, name, f"it holds {_short(cell)} where a number belongs: it was changed")
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        raise ValueError("an object in it has the same key twice")
    return result


def _integer(text: str) -> int:
    if len(text) > _LONGEST_NUMBER:
        raise ValueError("a number in it is too long")
    return int(text)


def _float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("a number in it is too large")
    return value


def _constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number of a release")


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.errno == errno.ELOOP:
        return "it is a link, and only files inside the folder are read"
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "…")


def _refuse(folder: str | os.PathLike[str], name: str, reason: str) -> NoReturn:
    raise InputError(f"{name} of the release in {_short(str(Path(folder)))} cannot be read: {reason}.")
