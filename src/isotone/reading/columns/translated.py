"""Rules that read one column each, translated for DuckDB once and not for every column of every release.

A rule of the common dataframe language has a hundred parts, and to translate them takes longer than to read a small
table. The words of the engine differ between two columns of one type only in the name of the column.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import narwhals as nw

from isotone.reading.columns.numbers import as_real

__all__ = ["ColumnRule", "quoted", "read_columns", "read_numbers"]

Frame = nw.LazyFrame[Any]

_MARK = "isotone mark "
_COLUMN, _BEFORE, _AFTER = f"{_MARK}0", f"{_MARK}1", f"{_MARK}2"  # with blanks: the engine quotes them
_MOST = 256
_known: dict[Hashable, str] = {}


@dataclass(frozen=True)
class ColumnRule:
    """What becomes of one column. ``function(column, dtype, *settings)`` says it in the common language."""

    function: Callable[..., nw.Expr]
    column: str
    settings: tuple[Hashable, ...] = ()

    def of(self, column: str, dtype: Any) -> nw.Expr:
        """The rule, of a column that has this name."""
        return self.function(column, dtype, *self.settings)


def read_columns(frame: Frame, rules: Mapping[str, ColumnRule | nw.Expr]) -> Frame:
    """The columns that the rules make, by name, and no others."""
    schema = frame.collect_schema()
    if frame.implementation.is_duckdb():
        said = {name: _said(frame, rule, schema) for name, rule in rules.items()}
        if None not in said.values():
            native: Any = frame.to_native()
            columns = ", ".join(f"{text} AS {quoted(name)}" for name, text in said.items())
            return nw.from_native(native.project(columns))
    made = [
        (rule.of(rule.column, schema[rule.column]) if isinstance(rule, ColumnRule) else rule).alias(name)
        for name, rule in rules.items()
    ]
    # Not selected at once: of literals alone, where no column can be read, polars makes one row.
    return frame.with_columns(*made).select(*rules)


def read_numbers(
    frame: Frame, rules: Mapping[str, ColumnRule], others: Mapping[str, ColumnRule | nw.Expr]
) -> Frame:
    """Like ``read_columns``, with rules for numbers. Each is given its column as floats, with null for what is none.

    The numbers are read before. A rule names its number several times, and would be as long as all these readings.
    """
    numbers = {name: ColumnRule(as_real, rule.column) for name, rule in rules.items()}
    rows = read_columns(frame, {**numbers, **others})
    read = {name: ColumnRule(rule.function, name, rule.settings) for name, rule in rules.items()}
    return read_columns(rows, {**read, **{name: nw.col(name) for name in others}})


def _said(frame: Frame, rule: ColumnRule | nw.Expr, schema: Mapping[str, Any]) -> str | None:
    """The rule in the words of DuckDB, or None where they cannot be had."""
    if not isinstance(rule, ColumnRule):
        return _translation(frame, rule)
    if _MARK in repr(rule.settings):  # a public word that would be taken for a mark
        return None
    dtype = schema[rule.column]
    key = (rule.function, rule.settings, dtype)
    if key not in _known:
        if len(_known) >= _MOST:
            _known.clear()
        alone = frame.select(nw.col(rule.column).alias(_COLUMN))
        text = _translation(alone, rule.of(_COLUMN, dtype))
        if text is None:  # not remembered: other data may not hold the marks
            return None
        _known[key] = text
    text = _known.get(key)
    return None if text is None else text.replace(quoted(_COLUMN), quoted(rule.column))


def _translation(frame: Frame, expression: nw.Expr) -> str | None:
    """What DuckDB is asked for an expression, the text between two marks in a query that is not run.

    None where the data holds a mark too, as the name of a column or in a query of its owner.
    """
    asked = frame.select(nw.lit(0).alias(_BEFORE), expression.alias(_AFTER))
    native: Any = asked.to_native()
    query: str = native.sql_query()
    if query.count(quoted(_BEFORE)) != 1 or query.count(quoted(_AFTER)) != 1:
        return None
    _, begun, rest = query.partition(f" AS {quoted(_BEFORE)}, ")
    text, ended, _ = rest.partition(f" AS {quoted(_AFTER)}")
    return text if begun and ended else None


def quoted(name: str) -> str:
    """The name of a column in the words of DuckDB."""
    return '"' + name.replace('"', '""') + '"'
