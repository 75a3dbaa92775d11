"""Read a column as numbers, as texts or as units, in the language that all engines share.

Each record is read on its own, and what it says never depends on what others say. A frame takes the type of a column from its
contents: one missing value makes whole numbers floats, one word makes them objects. So a value is the same text and the same number in
a column of any type. Single values are read in :mod:`isotone.reading.values`, by the same rules.

Engines disagree on what a failed conversion does (raise, null, wrap around), so text is checked against a pattern first and only what
matches is converted: no content can make a query fail.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np

from isotone.errors import InputError
from isotone.reading.values import INFINITE, LARGEST, NO_UNIT, REAL, WHOLE, plain_texts

_INTEGER = r"^[-+]?[0-9]{1,17}(\.0*)?$"
_LARGEST = 10**17
_INFINITE_NUMBERS = {word: repr(number) for word, number in INFINITE.items()}
_HUGE = r"^[-+]?[1-9][0-9]{17,}(\.0*)?$"
_MORE = 1 + 2.0**-50  # more than a quotient of any engine is rounded down


def _to_its_end(pattern: str) -> str:
    """The pattern for a whole text. The end of a line is the end of the text to some engines, whichever of six letters follows it."""
    return pattern.removesuffix("$") + r"\z"


def as_real(column: str, dtype: Any) -> nw.Expr:
    """The column as a float.

    Missing, unparsable and NaN values are null. Infinite ones are the largest number.

    Booleans are 1 and 0, and so are the words true and false: what booleans become beside one value of another type.
    """
    if dtype == nw.Boolean:
        return nw.col(column).cast(nw.Int32).cast(nw.Float64)
    if dtype.is_numeric():
        return as_written(column, dtype)
    words = {"true": "1", "false": "0", **_INFINITE_NUMBERS}
    return _number(column, REAL, words).cast(nw.Float64).clip(-LARGEST, LARGEST)


def as_written(column: str, dtype: Any) -> nw.Expr:
    """Like ``as_real``, but booleans and the words true/false become null."""
    if dtype == nw.Boolean:
        return nw.lit(None).cast(nw.Float64)
    if not dtype.is_numeric():
        return _number(column, REAL, _INFINITE_NUMBERS).cast(nw.Float64).clip(-LARGEST, LARGEST)
    number = nw.col(column).cast(nw.Float64)
    clamped = number.clip(-LARGEST, LARGEST)
    return nw.when(~number.is_nan()).then(clamped) if dtype.is_float() else clamped


def as_float(column: str, dtype: Any) -> nw.Expr:
    """Like ``as_written``, but what is infinite or not a number may stay so, for comparisons with finite numbers."""
    if dtype == nw.Boolean:
        return nw.lit(None).cast(nw.Float64)
    value = nw.col(column) if dtype.is_numeric() else _number(column, REAL, {})
    return value.cast(nw.Float64)


def as_integer(column: str, dtype: Any) -> nw.Expr:
    """The column as a whole number.

    Missing, unparsable and fractional values are null. Numbers beyond ±10^17 become that bound: one more or one less never moves a
    value by more than one.
    """
    if dtype.is_integer():
        value = nw.col(column)
        small = nw.when((value >= -_LARGEST) & (value <= _LARGEST)).then(value).cast(nw.Int64)
        return _bounded(value > _LARGEST, value < -_LARGEST, small)
    if dtype.is_numeric():
        real = as_real(column, dtype)
        whole = (real >= -_LARGEST) & (real <= _LARGEST)
        rounded = nw.when(whole.fill_null(False)).then(real).cast(nw.Int64)
        small = nw.when((rounded.cast(nw.Float64) == real).fill_null(False)).then(rounded)
        return _bounded(real > _LARGEST, real < -_LARGEST, small)
    if dtype == nw.Boolean:
        return nw.col(column).cast(nw.Int8).cast(nw.Int64)
    bounds = {word: str(_LARGEST if number > 0 else -_LARGEST) for word, number in INFINITE.items()}
    words = {"true": "1", "false": "0", **bounds}
    small = _number(column, _INTEGER, words).str.replace_all(r"\.0*$", "").cast(nw.Int64)
    huge, real = _number(column, _HUGE, {}), as_real(column, dtype)  # a float as a text may have an exponent
    low = huge.str.starts_with("-")
    above, below = (~low).fill_null(False) | (real > _LARGEST), low.fill_null(False) | (real < -_LARGEST)
    return _bounded(above, below, small)


def whole_steps(value: nw.Expr, low: float, high: float, steps: int, ahead: float = 0.0) -> nw.Expr:
    """How many whole steps lead from ``low`` to a value, where ``steps`` of them lead to ``high``.

    A value outside is taken for the end next to it. ``ahead`` is a part of a step that is added: with a half, the result is the nearest step.

    Engines differ in how they divide: polars multiplies by the reciprocal, so a value at the edge of a step may fall below it. So a quotient is
    only a guess, which is the number or one more, and a product says which.
    """
    # A power of two changes no digit, and keeps the products in the range of floats.
    power = 2.0 ** int(steps).bit_length() if high - low > 1 else 1.0
    step = (high - low) / power
    way = (value.clip(low, high) - low) * (steps / power) + step * ahead
    guess = (way / step * _MORE).floor()
    return (guess - (guess * step > way).cast(nw.Int8)).cast(nw.Int64)


def _bounded(above: nw.Expr, below: nw.Expr, otherwise: nw.Expr) -> nw.Expr:
    """The largest number where it is passed, and its negative."""
    top, bottom = (nw.lit(bound).cast(nw.Int64) for bound in (_LARGEST, -_LARGEST))
    high = nw.when(below.fill_null(False)).then(bottom).otherwise(otherwise)
    return nw.when(above.fill_null(False)).then(top).otherwise(high)


def _number(column: str, pattern: str, words: Mapping[str, str]) -> nw.Expr:
    """The texts that match a pattern, and for words the number that they stand for. Null for all others."""
    text = nw.col(column).cast(nw.String).str.strip_chars()
    number = nw.when(text.str.contains(_to_its_end(pattern)).fill_null(False)).then(
        text
    )  # first: most texts are numbers
    for word, meaning in words.items():
        number = number.when(text.str.to_lowercase() == word).then(nw.lit(meaning))
    return number


_INFINITE = rf"(?i)^(?:{'|'.join(map(re.escape, INFINITE))})\z"
_LARGEST_TEXT = 2.0**62
_NOBODY = rf"(?i)^(?:{'|'.join(map(re.escape, NO_UNIT))})\z"  # engines write other small letters for İ


def as_text(column: str, dtype: Any) -> nw.Expr:
    """The column as text without outer blanks.

    Whole numbers have no decimal point. Null if the value has no text.
    """
    value = nw.col(column)
    if dtype == nw.Boolean:
        return nw.when(value).then(nw.lit("true")).when(~value).then(nw.lit("false"))
    if dtype.is_integer():
        return value.cast(nw.String)
    if dtype.is_decimal():
        exact = value.cast(nw.String)
        point = exact.str.contains(".", literal=True).fill_null(False)
        return (
            nw.when(point).then(exact.str.replace_all("0+$", "").str.replace_all(r"\.$", "")).otherwise(exact)
        )
    if dtype.is_numeric():
        number = nw.when((value > -LARGEST) & (value < LARGEST)).then(value.cast(nw.Float64))
        small = ((number >= -_LARGEST_TEXT) & (number <= _LARGEST_TEXT)).fill_null(False)
        rounded = nw.when(small).then(number).cast(nw.Int64)
        whole = nw.when((rounded.cast(nw.Float64) == number).fill_null(False)).then(rounded)
        return nw.coalesce(whole.cast(nw.String), number.cast(nw.String))
    text = value.cast(nw.String).str.strip_chars()
    # Letters are looked for first: the patterns cost far more, and few texts need them.
    point = text.str.contains(".", literal=True).fill_null(False)
    sign = ((text >= "+") & (text < ".")) | ((text >= "I") & (text < "J")) | ((text >= "i") & (text < "j"))
    infinite = nw.when(sign).then(text.str.contains(_INFINITE)).otherwise(nw.lit(False))
    return (
        nw.when(nw.when(point).then(text.str.contains(_to_its_end(WHOLE))).otherwise(nw.lit(False)))
        .then(text.str.replace_all(r"\.0*$", ""))
        .when((text != "") & ~infinite)
        .then(text)
    )


def as_unit(column: str, dtype: Any) -> nw.Expr:
    """The privacy unit of a row.

    Null where none is named, since those rows would be one unit for many people.

    Numbers are units as they are, unless NaN or infinite. Texts are units without outer blanks, and
    ``7.0`` is ``7``; blank texts and the words of :data:`isotone.reading.values.NO_UNIT` name no unit.
    """
    value = nw.col(column)
    if dtype.is_float():
        finite = (value > -LARGEST) & (value < LARGEST)
        return nw.when(finite.fill_null(False)).then(value)
    if dtype.is_numeric() or dtype == nw.Boolean:
        return value
    stripped = value.cast(nw.String).str.strip_chars()
    # A text that begins with a digit is none of the words: most units are told from them by two comparisons.
    digit = (stripped >= "0") & (stripped < ":")
    # One pattern: a comparison for each word takes engines longer to plan than a small table to read.
    nobody = stripped.str.contains(_NOBODY)
    text = as_text(column, dtype)
    return (
        nw.when(digit).then(text).when(~nobody).then(text)
    )  # in turn: the pattern is not run where there is a digit


def labels(names: Iterable[Any]) -> tuple[str, ...]:
    """Public names as texts.

    A boolean is written as a column of booleans is read.

    >>> labels([True, "Rhine", 7])
    ('true', 'Rhine', '7')
    """
    return tuple(str(name).lower() if isinstance(name, (bool, np.bool_)) else str(name) for name in names)


def public_texts(names: Sequence[Any], what: str) -> tuple[str, ...]:
    """The texts by which a column names public things.

    Two names that are equal once read are refused, and names that are read as nothing: a row would belong to both, or to none.

    >>> public_texts(["a", 7.0], "categories")
    ('a', '7')
    """
    texts = name_texts(names)
    first: dict[str, Any] = {}
    for name, text in zip(names, texts, strict=True):
        if not text or text.lower() in INFINITE:
            raise InputError(
                f"{what} has the name {str(name)!r}, which is read as a missing value. Rename it."
            )
        if text in first:
            same = (
                "is there twice"
                if str(first[text]) == str(name)
                else f"and {str(first[text])!r} are read as the same value"
            )
            raise InputError(f"{what} must be distinct; {str(name)!r} {same}.")
        first[text] = name
    return texts


def name_texts(names: Iterable[Any]) -> tuple[str, ...]:
    """Public names as ``as_text`` reads them in a column.

    >>> name_texts([2.0, " x", "7."])
    ('2', 'x', '7')
    """
    return plain_texts(labels(names))


# Rules that read one column each, translated for DuckDB once and not for every column of every release.
#
# A rule of the common dataframe language has a hundred parts, and to translate them takes longer than to read a small
# table. The words of the engine differ between two columns of one type only in the name of the column.

Frame = nw.LazyFrame[Any]

_MARK = "isotone mark "
_COLUMN, _BEFORE, _AFTER = f"{_MARK}0", f"{_MARK}1", f"{_MARK}2"  # with blanks: the engine quotes them
_EQUAL_OR_NO = re.compile(rf'COALESCE\(\((CAST\("{_COLUMN}" AS DOUBLE\)) = ([-+.0-9e]+::DOUBLE)\), FALSE\)')
"""Whether a number is one other, and no where it is missing. The engine has one operation for it, at a third of the cost."""
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
        answers = {name: _said(frame, rule, schema) for name, rule in rules.items()}
        if None not in answers.values():
            native: Any = frame.to_native()
            columns = ", ".join(f"{text} AS {quoted(name)}" for name, text in answers.items())
            return nw.from_native(native.project(columns))
    result = [
        (rule.of(rule.column, schema[rule.column]) if isinstance(rule, ColumnRule) else rule).alias(name)
        for name, rule in rules.items()
    ]
    # Not selected at once: of literals alone, where no column can be read, polars makes one row.
    return frame.with_columns(*result).select(*rules)


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
        _known[key] = _EQUAL_OR_NO.sub(r"(\1 IS NOT DISTINCT FROM \2)", text)
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


def quoted_names(names: Iterable[str]) -> list[str]:
    """The names of columns in the words of DuckDB."""
    return [quoted(name) for name in names]
