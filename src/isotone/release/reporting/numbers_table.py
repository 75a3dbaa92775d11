"""The table of the published numbers, nested as the order is, and sorted by the reader without any script."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from isotone.release.kinds import kind_named

if TYPE_CHECKING:
    from isotone.release.result import Release

__all__ = ["STYLE", "numbers_table"]

STYLE = """
.sort { color: var(--soft); font-size: .85rem; margin-right: .9rem; } input.sort { margin: 0 .3rem 0 0; }
table.numbers { display: grid; } .numbers thead, .numbers tbody, .numbers tr { display: contents; }
.numbers th { order: -1; white-space: normal; } .numbers td.rest { grid-column: 1 / -1; order: 999999 !important; } .numbers td small { color: var(--soft); display: block; }
#by-value:checked ~ .scroll td { order: var(--v); } #by-name:checked ~ .scroll td { order: var(--n); }
.numbers td.text { padding-left: calc(.6rem + var(--d, 0) * var(--step)); } .numbers { --step: 1.1rem; --name: 6rem; }
#by-value:checked ~ .scroll .numbers, #by-name:checked ~ .scroll .numbers { --step: 0rem; }
@media (max-width: 34rem) { .numbers { --step: .4rem; --name: 4.6rem; } .numbers th, .numbers td { padding: .3rem .22rem; font-size: .8rem; } .numbers th { white-space: normal; } }
details { margin: .8rem 0; } summary { cursor: pointer; color: var(--mark); padding: .3rem 0; }
@media print { .sort, details { display: none; } }
"""

_NAMES = {
    "element": "question or item",
    "value": "released value",
    "sd": "typical error",
    "low": "from",
    "high": "to",
    "low_all": "",  # the simultaneous intervals are in the CSV; two pairs side by side confuse more than they tell
    "high_all": "",
}
_MEASURED = ("value", "estimate", "noisy", "low", "high", "raw")
_FEWEST = 3  # rows that are worth sorting


def numbers_table(release: Release) -> str:
    """The table, with the choice of a sequence above it, and folded where a few rows in equal steps tell the same."""
    page = kind_named(release.kind).page(release)
    number = len(next(iter(release.columns.values()), ()))
    errors = release.columns.get("sd", ())
    # one error of all rows stands above the picture, and not in every row
    apart = len(errors) < _FEWEST or len(set(errors)) > 1
    release = page.head(release)
    whole = page.sequence(release)
    sequence, folded = whole[: page.most_rows], ""
    if page.few_rows and len(whole) > 2 * page.few_rows:
        steps = page.few_rows - 1
        sequence = [whole[place * (len(whole) - 1) // steps] for place in range(steps + 1)]
        folded = f'<details><summary>All {len(whole):,} rows</summary><div class="scroll">{_table(release, whole, 0, apart=apart)}</div></details>'
    left = 0 if folded else number - len(sequence)
    choice = _choice(page.sequence_name) if len(whole) >= _FEWEST else ""
    return (
        f'<div>{choice}<div class="scroll">{_table(release, sequence, left, apart=apart)}</div>{folded}</div>'
    )


def _table(release: Release, sequence: Sequence[tuple[int, int]], left: int, *, apart: bool) -> str:
    """The table of these rows, each with its error if they are told apart, and how many are left out."""
    page = kind_named(release.kind).page(release)
    shown = {
        name: column
        for name, column in page.shown(release).items()
        if _NAMES.get(name, name) and (apart or name != "sd")
    }
    labels, rows = page.labels(release), list(zip(*shown.values(), strict=True))
    words, errors = release.manifest.text_columns | {"where"}, _errors(release)
    by_value, by_name = _ranks(release, sequence, labels, words)
    head = "".join(
        f"<th{_class(name, words)} role=columnheader>{escape(_NAMES.get(name, name))}</th>" for name in shown
    )
    body = "".join(
        f'<tr role=row style="--v:{by_value[place]};--n:{by_name[place]}">'
        + "".join(
            _cell(name, value, depth, labels, words, errors[i])
            for name, value in zip(shown, rows[i], strict=True)
        )
        + "</tr>"
        for place, (i, depth) in enumerate(sequence)
    )
    if left:
        body += f'<tr role=row><td class="rest" role=cell>and {left:,} more in release.csv</td></tr>'
    other = "min-content" if words & {*shown} else "auto"
    widths = " ".join("minmax(var(--name), 1fr)" if name in words else other for name in shown)
    return (
        f'<table class="numbers" role=table style="grid-template-columns: {widths}"><thead role=rowgroup><tr role=row>{head}'
        f"</tr></thead><tbody role=rowgroup>{body}</tbody></table>"
    )


def _choice(first: str) -> str:
    """Buttons that choose the sequence. The page's style does the rest."""
    kinds = (("by-order", first), ("by-value", "value"), ("by-name", "name"))
    buttons = "".join(
        f'<input class="sort" type="radio" name="sort" id="{key}"{" checked" if key == "by-order" else ""}>'
        f'<label class="sort" for="{key}">{words}</label>'
        for key, words in kinds
    )
    return f'<span class="sort">Sort by</span>{buttons}'


def _ranks(
    release: Release, sequence: Sequence[tuple[int, int]], labels: dict[str, str], texts: Collection[str]
) -> tuple[list[int], list[int]]:
    """The place of each row of the sequence if it is sorted by value, largest first, and by name."""
    values = release.columns.get("value") or next(iter(release.columns.values()), ())
    words = [[release.columns[name][i] for name in release.columns if name in texts] for i, _ in sequence]
    names = [[labels.get(str(word), str(word)).casefold() for word in row] for row in words]
    first = sorted(range(len(sequence)), key=lambda k: -float(values[sequence[k][0]]))
    second = sorted(range(len(sequence)), key=lambda k: names[k])
    ranks: list[list[int]] = []
    for found in (first, second):
        places = [0] * len(sequence)
        for place, k in enumerate(found):
            places[k] = place
        ranks.append(places)
    return ranks[0], ranks[1]


def _class(name: str, words: Collection[str]) -> str:
    return ' class="text"' if name in words else ""


def _errors(release: Release) -> list[float]:
    """About how far each row may be off, which says how many of its digits mean something, or 0 if that is not known."""
    columns, rows = release.columns, len(next(iter(release.columns.values()), ()))
    if "sd" in columns:
        return [float(error) for error in columns["sd"]]
    if "low" in columns and "high" in columns:
        return [float(high - low) / 4 for low, high in zip(columns["low"], columns["high"], strict=True)]
    return [0.0] * rows


def _cell(
    name: str, value: Any, depth: int, labels: dict[str, str], words: Collection[str], error: float
) -> str:
    nested = f' style="--d:{min(depth, 8)}"' if depth and name == "element" else ""
    return f"<td{_class(name, words)} role=cell{nested}>{_written(name, value, labels, error)}</td>"


def _written(name: str, value: Any, labels: dict[str, str], error: float) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        if name == "sd":
            return _two_digits(value)
        return _as_known(value, error) if name in _MEASURED else f"{value:,.4g}"
    label = labels.get(str(value)) if name == "element" else None
    return escape(str(value)) if label is None else f"{escape(label)}<small>{escape(str(value))}</small>"


def _as_known(value: float, error: float) -> str:
    """A number with the digits that its error leaves, whole where the error is one or more.

    >>> _as_known(678.21, 5.7), _as_known(0.1575, 0.08), _as_known(0.42381, 0.0)
    ('678', '0.158', '0.424')
    """
    if not error or not math.isfinite(error):
        return f"{value:,.3g}"
    return f"{value + 0.0:,.{0 if error >= 1 else 1 - math.floor(math.log10(error))}f}"


def _two_digits(error: float) -> str:
    """An error with the two digits that matter.

    >>> _two_digits(7.2897), _two_digits(1234.5), _two_digits(0.01791), _two_digits(0.0)
    ('7.3', '1,200', '0.018', '0')
    """
    if not error or not math.isfinite(error):
        return f"{error:g}"
    digits = 1 - math.floor(math.log10(abs(error)))
    return f"{round(error, digits):,.{max(digits, 0)}f}"
