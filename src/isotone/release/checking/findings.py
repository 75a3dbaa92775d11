"""Findings about the contents of columns, in words for the steward's desk. Nothing here is private."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import narwhals as nw

from isotone.reading.columns import as_integer, as_real, as_text, name_text
from isotone.reading.operations import listed
from isotone.reading.sources import Frame, collect, open_source

__all__ = ["SHOWN", "commonest", "numbers", "one", "outside", "unlisted"]

SHOWN = 5


def unlisted(source: Any, column: str, known: Sequence[Any], what: str, fate: str = "ignored") -> list[str]:
    """Rows whose text is none of the public list, with the commonest of them."""
    frame = open_source(source, {"category": [column]})
    text = frame.select(as_text(column, frame.collect_schema()[column]).alias("value"))
    names = list(dict.fromkeys(map(name_text, known)))
    placed = listed(text, "value", names, {"place": range(len(names))})
    odd, shown = commonest(placed.filter(nw.col("place").is_null()).select("value"))
    return [f"{column}: {odd:,} rows have {what} that is not in the list ({fate}){shown}"]


def numbers(source: Any, column: str, low: float, high: float, *, whole: bool) -> list[str]:
    """The range of a column of numbers, values outside their public range, and values that are none."""
    frame = open_source(source, {"number": [column]})
    dtype = frame.collect_schema()[column]
    number = (as_integer if whole else as_real)(column, dtype).alias("number")
    value = nw.col("number")
    read = frame.select(number, as_text(column, dtype).alias("value"))
    found = one(
        read.select(
            nw.len().alias("rows"),
            (~value.is_null()).cast(nw.Int64).sum().alias("numbers"),
            value.min().alias("least"),
            value.max().alias("most"),
            (value < low).fill_null(False).cast(nw.Int64).sum().alias("below"),
            (value > high).fill_null(False).cast(nw.Int64).sum().alias("above"),
        )
    )
    if not found["numbers"]:
        lines = [
            f"{column}: none of {found['rows']:,} values is a number: the release would be made from nothing"
        ]
    else:
        lines = [f"{column}: numbers from {found['least']:g} to {found['most']:g}"]
    outside = found["below"] + found["above"]
    if outside:
        lines.append(
            f"{column}: {outside:,} values are outside {low:g} to {high:g} and are moved to its ends ({found['below']:,} below, "
            f"{found['above']:,} above). Is the unit of measurement the declared one (percent, share)?"
        )
    texts = (nw.col("value").str.len_chars() > 0).fill_null(False)
    odd, shown = commonest(read.filter(value.is_null() & texts).select("value"))
    missing = found["rows"] - found["numbers"] - odd
    if odd or missing:
        effect = "count as 0" if whole else "their rows are dropped"
        lines.append(
            f"{column}: {odd:,} values are not numbers and {missing:,} are missing ({effect}){shown}"
        )
    return lines


def outside(source: Any, columns: Sequence[tuple[str, tuple[Any, Any]]]) -> list[str]:
    """What :func:`numbers` finds in columns with public limits, which are exact text."""
    found: list[str] = []
    for column, limits in columns:
        low, high = (float(Fraction(end)) for end in limits)
        found += numbers(source, column, low, high, whole=False)
    return found


def commonest(values: Frame) -> tuple[int, str]:
    """How many rows there are, and the commonest values in words."""
    sizes = values.group_by("value").agg(nw.len().alias("rows"))
    total = one(sizes.select(nw.col("rows").sum().alias("n")))["n"]
    top = collect(
        sizes.filter(~nw.col("value").is_null()).sort("rows", "value", descending=[True, False]).head(SHOWN)
    )
    shown = ", ".join(f"{value!r} ({rows:,})" for value, rows in zip(top["value"], top["rows"], strict=True))
    return total, f": {shown}" if shown else ""


def one(frame: Frame) -> dict[str, Any]:
    """The single row of a query. Sums of nothing are 0."""
    return {name: values[0] or 0 for name, values in collect(frame).items()}
