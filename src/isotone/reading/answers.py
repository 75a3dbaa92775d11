"""Answers: how a column is read as yes or no, record by record, by a rule declared beforehand."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

import narwhals as nw

from isotone.errors import InputError
from isotone.reading.numbers import as_written
from isotone.reading.texts import as_text
from isotone.reading.values import REAL

__all__ = ["Answers"]

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
        if self.missing not in ("no", "yes"):
            raise InputError(f"missing must be 'no' or 'yes', not {self.missing!r}.")
        yes, no = _normal(self.yes, "yes"), _normal(self.no, "no")
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
        counted = self.no if self.missing == "yes" else self.yes
        if dtype == nw.Boolean:
            matched = _boolean(nw.col(column), "true" in counted, "false" in counted)
        elif dtype.is_numeric():
            matched = _is_number(column, dtype, counted)
        else:
            word = as_text(column, dtype).str.to_lowercase().is_in(list(counted)).fill_null(False)
            matched = word | _is_number(column, dtype, counted)
        known = matched.fill_null(False)
        return ~known if self.missing == "yes" else known


def _normal(words: tuple[str, ...] | list[str], name: str) -> tuple[str, ...]:
    if isinstance(words, str) or not words:
        raise InputError(f"The words for {name} are a list such as ['1', 'yes'], not {words!r}.")
    return tuple(str(word).strip().lower() for word in words)


def _boolean(value: nw.Expr, true: bool, false: bool) -> nw.Expr:
    if true and false:
        return ~value.is_null()
    return value if true else ~value if false else nw.lit(False)


def _is_number(column: str, dtype: Any, words: tuple[str, ...]) -> nw.Expr:
    """Whether the value is one of the numbers among the words, however the column writes it."""
    numbers = [float(word) for word in words if re.fullmatch(REAL, word)]
    return as_written(column, dtype).is_in(numbers).fill_null(False) if numbers else nw.lit(False)
