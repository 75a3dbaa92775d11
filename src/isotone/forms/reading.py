"""Read a questionnaire from an XLSForm, a REDCap data dictionary, or a CSV of relations."""

from __future__ import annotations

import csv
import os
from pathlib import Path

from isotone.errors import InputError
from isotone.forms.field_order import build
from isotone.forms.questionnaire import Questionnaire
from isotone.forms.redcap import is_redcap, redcap_form
from isotone.order import Poset
from isotone.privacy.checks import whole_number
from isotone.reading.questions import Question

__all__ = ["read_form"]

LARGEST_CSV, MOST_LINES, MOST_FIELDS = 20_000_000, 50_000, 3_000


def read_form(
    path: str | os.PathLike[str],
    *,
    most_options: int = 12,
    separator: str = "",
    lower: str = "child",
    upper: str = "parent",
) -> Questionnaire:
    """The questions of a form and the order that its conditions imply. No data is read, and nothing is evaluated.

    Parameters
    ----------
    path
        An XLSForm (.xlsx), a REDCap data dictionary (.csv), or a CSV of relations with the columns ``lower`` and
        ``upper`` (and ``label``, ``column`` and ``yes``, where there are any).
    most_options
        Questions with more options than this give no element for each option.
    separator
        XLSForm: what stands between the names of groups and of a question in the columns of the data, if anything.
    """
    file, most = Path(path), whole_number(most_options, "most_options", least=0)
    if file.suffix.lower() == ".xlsx":
        from isotone.forms.xlsform import read_xlsform

        form = read_xlsform(file, separator)
    elif file.suffix.lower() == ".csv":
        heads, rows = _csv(file)
        if {lower, upper} <= set(heads):
            return _related(rows, lower, upper)
        if not is_redcap(heads):
            raise InputError(
                f"{str(file)!r} is neither a REDCap data dictionary nor a list of relations: it has no columns {lower!r} and "
                f"{upper!r}."
            )
        form = redcap_form(rows)
    else:
        raise InputError(
            f"A questionnaire is an .xlsx or a .csv file, not {file.name!r}. Save an old .xls as .xlsx."
        )
    if len(form.fields) > MOST_FIELDS:
        raise InputError(f"The form has {len(form.fields):,} questions; at most {MOST_FIELDS:,} are read.")
    if not form.fields:
        raise InputError("The form has no questions.")
    return build(form, most)


def _csv(path: Path) -> tuple[list[str], list[dict[str, str]]]:
    try:
        if path.stat().st_size > LARGEST_CSV:
            raise InputError(f"{str(path)!r} is larger than {LARGEST_CSV:,} bytes: that is no questionnaire.")
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file, restkey="", restval="")
            heads = [head.strip() for head in reader.fieldnames or []]
            rows: list[dict[str, str]] = []
            for row in reader:
                if len(rows) >= MOST_LINES:
                    raise InputError(f"{str(path)!r} has more than {MOST_LINES:,} lines.")
                rows.append({key.strip(): value or "" for key, value in row.items() if key})
            return heads, rows
    except InputError:
        raise
    except FileNotFoundError:
        raise InputError(f"There is no file {str(path)!r}.") from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{str(path)!r} cannot be read: {error}.") from None


def _related(rows: list[dict[str, str]], lower: str, upper: str) -> Questionnaire:
    """The questions of a CSV of relations. Codes for yes are separated by bars."""
    said: dict[str, dict[str, str]] = {}
    relations: list[tuple[str, str]] = []
    for row in rows:
        low, high = row.get(lower, "").strip(), row.get(upper, "").strip()
        for name in (low, high):
            if name:
                said.setdefault(name, {})
        if low:
            for key in ("label", "column", "yes"):
                if row.get(key, "").strip():
                    said[low].setdefault(key, row[key].strip())
        if low and high:
            relations.append((low, high))
    if not said:
        raise InputError("The file names no element.")
    questions = tuple(
        Question(name, _yes(entry.get("yes")), entry.get("column"), entry.get("label", ""))
        for name, entry in said.items()
    )
    P = Poset([*said], relations)
    return Questionnaire(questions, tuple((str(a), str(b)) for a, b in P.covers), {})


def _yes(text: str | None) -> str | list[str] | None:
    if not text or text == "answered" or text[0] in "<>":
        return text or None
    return [code.strip() for code in text.split("|") if code.strip()]
