"""Columns of a release as text, for its CSV file and for its seal.

A breakdown has millions of numbers. So floats are written in bulk, in the same characters as by ``repr``, and a word
that stands in many rows is quoted once.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic_core import to_json

__all__ = ["ROUNDING", "Columns", "Floats", "csv_text", "json_parts", "thinned"]

Columns = Mapping[str, Sequence[Any]]
Floats = NDArray[np.float64]

ROUNDING = 1e-4
"""Published errors are rounded to four decimal places; the last may differ."""

_QUOTED = re.compile('[",\r\n]')  # what some version of csv.writer puts between quotes
_TOGETHER = 50_000  # rows: the cells of all of them as texts take much more room than the file
_LEAST, _MOST = 1e-4, 1e15
"""Between these all writers of shortest decimals agree; beyond them some write an exponent."""


def csv_text(columns: Columns) -> str:
    """The columns as ``csv.writer`` writes them."""
    parts = [",".join(map(_cell, columns)) + "\n"]
    rows = {len(column) for column in columns.values()}
    if len(rows) > 1:
        raise ValueError("The columns of a release have different lengths.")
    for start in range(0, max(rows, default=0), _TOGETHER):
        cells = [_cells(column[start : start + _TOGETHER]) for column in columns.values()]
        parts += ["\n".join(map(",".join, zip(*cells, strict=True))), "\n"]
    return "".join(parts)


def json_parts(columns: Columns) -> Iterator[bytes]:
    """The columns as ``json.dumps`` writes them with sorted keys, part by part."""
    comma = "{"
    for name in sorted(columns):
        yield f"{comma}{json.dumps(name, ensure_ascii=False)}: ".encode()
        yield _array(columns[name])
        comma = ", "
    yield b"}" if columns else b"{}"


def _array(column: Sequence[Any]) -> bytes:
    if _are_plain_floats(column):
        return to_json(column).replace(b",", b", ")
    return json.dumps(column, ensure_ascii=False, allow_nan=False).encode()


def _cells(column: Sequence[Any]) -> list[str]:
    """Each value as it stands in a CSV file."""
    if not column:
        return []
    if _are_plain_floats(column):
        return to_json(column)[1:-1].decode().split(",")
    kinds = set(map(type, column))
    if kinds == {str}:
        if not _QUOTED.search("".join(column)):
            return list(column)
        quoted = {word: _cell(word) for word in set(column)}
        return [quoted[word] for word in column]
    return list(map(str, column)) if kinds == {int} else [_cell(value) for value in column]


def _cell(value: Any) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow([value, ""])  # one empty cell alone would be quoted
    return out.getvalue()[:-2]


def _are_plain_floats(column: Sequence[Any]) -> bool:
    """Whether all are floats that every writer writes in the same way."""
    if not column or set(map(type, column)) != {float}:
        return False
    sizes = np.abs(np.array(column))
    return bool(np.all((sizes == 0) | ((sizes >= _LEAST) & (sizes < _MOST))))


def thinned(columns: Columns, step: int) -> dict[str, tuple[Any, ...]]:
    """Every ``step``-th row, and one row at least with each word."""
    kept = {*range(0, max(map(len, columns.values()), default=0), step)}
    for column in columns.values():
        if column and isinstance(column[0], str):
            kept.update(dict(zip(column, range(len(column)), strict=True)).values())
    rows = sorted(kept)
    return {name: tuple(column[row] for row in rows) for name, column in columns.items()}
