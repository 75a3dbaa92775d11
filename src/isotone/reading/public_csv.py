"""CSV files that are public: orders, questionnaires, lists of categories. Their contents may be quoted in errors.

Unlike data, which may hold a person's record in its first line, they are read as they are written: encoding and separator are
recognised, and names of columns are found in any capitals.
"""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from isotone.errors import InputError

_MOST_NAMES = 20
_SEPARATORS = ",;\t|"


def public_rows(
    path: str | Path, *, most_bytes: int | None = None, most_lines: int | None = None
) -> tuple[list[str], list[dict[str, str]]]:
    """The names in the first line, and the other lines as texts by name, without blanks around them."""
    path = Path(path)
    try:
        if most_bytes is not None and path.stat().st_size > most_bytes:
            raise InputError(f"{str(path)!r} is larger than {most_bytes:,} bytes: that is no questionnaire.")
        text = text_of(path.read_bytes())
        reader = csv.DictReader(
            io.StringIO(text, newline=""), delimiter=separator_of(text), restkey="", restval=""
        )
        names = [name.strip() for name in reader.fieldnames or []]
        lines = islice(reader, None if most_lines is None else most_lines + 1)
        rows = [{key.strip(): (value or "").strip() for key, value in row.items() if key} for row in lines]
    except FileNotFoundError:
        raise InputError(f"There is no file {str(path)!r}.") from None
    except (OSError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{str(path)!r} cannot be read: {reason}.") from None
    if most_lines is not None and len(rows) > most_lines:
        raise InputError(f"{str(path)!r} has more than {most_lines:,} lines.")
    if not any(names):
        raise InputError(f"{str(path)!r} is empty. Its first line must name its columns.")
    return names, rows


def column_of(name: str, names: Sequence[str], path: str | Path, repair: str = "") -> str:
    """The column that is meant, in any capitals, or an error that says which there are."""
    if name in names:
        return name
    alike = [other for other in names if other.lower() == name.strip().lower()]
    if len(alike) == 1:
        return alike[0]
    more = "" if len(names) <= _MOST_NAMES else f" and {len(names) - _MOST_NAMES} more"
    known = ", ".join(repr(other[:60]) for other in names[:_MOST_NAMES])
    raise InputError(
        f"{str(path)!r} has no column {name!r}. Its columns are {known}{more}. {repair}".rstrip()
    )


def text_of(raw: bytes) -> str:
    """The text of a public file: by its mark if it begins with one, else UTF-8, else what Windows writes."""
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return raw.decode("utf-16", errors="replace")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        return raw.decode("cp1252", errors="replace")


def separator_of(text: str) -> str:
    """The separator that cuts the first line into most fields; a comma where none does."""
    first = text.splitlines()[:1] or [""]
    return max(_SEPARATORS, key=lambda mark: len(next(csv.reader(first, delimiter=mark), [])))
