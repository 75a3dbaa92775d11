"""Read a column as yes or no.

Each record is read on its own, by a rule declared beforehand.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from operator import or_
from typing import Any, Literal

import narwhals as nw
import numpy as np

from isotone.errors import InputError
from isotone.privacy.checks import one_of, require_list, shown
from isotone.reading.columns.numbers import as_float, is_readable
from isotone.reading.columns.values import LARGEST, REAL, plain_text, text_of

__all__ = ["Answers", "Codes", "counts_as", "is_one_of", "plain_words", "read_answer"]

_YES = ("1", "true", "t", "yes", "y")


@dataclass(frozen=True)
class Answers:
    """What counts as a yes, and what an answer that is missing or unparsable counts as.

    Parameters
    ----------
    yes
        The words and numbers that mean yes: words without regard to case and outer blanks, numbers as numbers
        (1.0 is 1). By default 1, true, t, yes and y. A boolean true is always a yes, unless "true" means no.
    no
        The words that mean no, when they are to be told from the unparsable (needed only with
        ``missing="yes"``; by default 0, false, f, no and n).
    missing
        "no" (default) or "yes": what a missing or unparsable answer counts as. It is a rule for one answer
        of one record, so it costs no privacy.
    """

    yes: tuple[str, ...] = _YES
    no: tuple[str, ...] = ("0", "false", "f", "no", "n")
    missing: Literal["no", "yes"] = "no"

    def __post_init__(self) -> None:
        object.__setattr__(self, "missing", one_of(self.missing, "missing", ("no", "yes")))
        yes, no = plain_words(self.yes, "yes"), plain_words(self.no, "no")
        # Booleans need no words: true is a yes and false a no, unless the words say otherwise.
        object.__setattr__(self, "yes", yes if {"true"} & {*yes, *no} else (*yes, "true"))
        object.__setattr__(self, "no", no if {"false"} & {*yes, *no} else (*no, "false"))
        both = set(self.yes) & set(self.no)
        if both:
            raise InputError(f"{sorted(both)[0]!r} cannot mean both yes and no.")

    def read(self, column: str, dtype: Any) -> nw.Expr:
        """The answer in ``column`` as a boolean, never null.

        The same value is the same answer whatever type its column has: that may depend on what others answered.
        """
        matched = is_one_of(column, dtype, self._counted, (*self.yes, *self.no))
        known = matched.fill_null(False)
        return ~known if self.missing == "yes" else known

    def says(self, value: Any) -> bool:
        """The same answer for one value, in plain Python."""
        text = text_of(value)
        known = text is not None and counts_as(text, self._counted)
        return known != (self.missing == "yes")

    @property
    def _counted(self) -> tuple[str, ...]:
        return self.no if self.missing == "yes" else self.yes


@dataclass(frozen=True)
class Codes(Answers):
    """Answers by a list of codes, where a boolean is a yes or a no only if it is in the list."""

    def __post_init__(self) -> None:
        """The words are as :class:`~isotone.reading.columns.question.Question` keeps them."""


def read_answer(column: str, dtype: Any, answers: Answers) -> nw.Expr:
    """The same as ``answers.read``, as a function of the column first."""
    return answers.read(column, dtype)


def is_one_of(column: str, dtype: Any, words: tuple[str, ...], usual: tuple[str, ...] = ()) -> nw.Expr:
    """Whether a value is one of the words, null or no where it is missing.

    ``usual`` are the texts that nearly every cell has.
    """
    if dtype == nw.Boolean:
        return _boolean(nw.col(column), "true" in words, "false" in words)
    if dtype.is_numeric():
        return _is_number(column, dtype, words)
    if dtype == nw.String:
        return _is_text(column, dtype, words, usual or words)
    return _is_any(column, dtype, words)


def plain_words(words: Any, name: str) -> tuple[str, ...]:
    """Words as they are compared, in small letters and without outer blanks."""
    require_list(words, f"The words for {name}", "words such as ['1', 'yes']")
    listed = list(words)
    for word in listed:
        if not isinstance(word, (str, int, float, Decimal, np.number, np.bool_)):
            raise InputError(f"The words for {name} are texts and numbers, not {shown(word)}.")
    if not listed:
        raise InputError(f"The words for {name} are a list such as ['1', 'yes'], and this one is empty.")
    return tuple(str(word).strip().lower() for word in listed)


def _boolean(value: nw.Expr, true: bool, false: bool) -> nw.Expr:
    if true and false:
        return ~value.is_null()
    return value if true else ~value if false else nw.lit(False)


def _is_text(column: str, dtype: Any, counted: tuple[str, ...], often: tuple[str, ...]) -> nw.Expr:
    """Whether a text is one of the words counted.

    The usual texts are compared directly, all others go through the rule.

    Nearly every cell of a survey is one of a few texts, and the rule costs twenty times as much as comparing them.
    """
    value = nw.col(column).cast(nw.String)  # DuckDB calls JSON a text and compares it as JSON
    usual = [*often, ""]
    rare = [shape for word in usual for shape in (word.upper(), word.title())]
    rare = [word for word in dict.fromkeys([*rare, *"23456789"]) if word not in usual]
    answer = nw.when(value.is_null()).then(nw.lit(False))
    for words in (usual, rare):
        for meaning in (True, False):
            texts = [word for word in words if counts_as(word, counted) is meaning]
            if texts:
                answer = answer.when(_equals_one(value, texts)).then(nw.lit(meaning))
    return answer.otherwise(_is_any(column, dtype, counted))


def counts_as(text: str, counted: tuple[str, ...]) -> bool:
    """Whether one text is one of the words, by the rule of :func:`is_one_of`."""
    text = plain_text(text)
    number = float(text) if re.fullmatch(REAL, text) else None
    return text.lower() in counted or number in _numbers(counted)


def _is_any(column: str, dtype: Any, counted: tuple[str, ...]) -> nw.Expr:
    if not is_readable(dtype):
        return nw.lit(False)
    word = nw.col(column).cast(nw.String).str.strip_chars().str.to_lowercase()
    return _equals_one(word, counted).fill_null(False) | _is_number(column, dtype, counted)


def _is_number(column: str, dtype: Any, words: tuple[str, ...]) -> nw.Expr:
    """Whether the value is one of the numbers among the words, however the column writes it."""
    numbers = _numbers(words)
    return _equals_one(as_float(column, dtype), numbers).fill_null(False) if numbers else nw.lit(False)


def _numbers(words: tuple[str, ...]) -> list[float]:
    numbers = [float(word) for word in words if re.fullmatch(REAL, word)]
    return [number for number in numbers if abs(number) < LARGEST]


def _equals_one(value: nw.Expr, items: Sequence[str] | Sequence[float]) -> nw.Expr:
    # Comparisons, not a list: DuckDB makes a join of every list, which it runs for all rows.
    return reduce(or_, [value == item for item in items])
