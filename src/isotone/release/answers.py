"""Answers: how a column is read as yes or no, record by record, by a rule declared beforehand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import narwhals as nw

from isotone.errors import InputError

__all__ = ["Answers"]

_YES = ("1", "true", "t", "yes", "y")


@dataclass(frozen=True)
class Answers:
    """What counts as a yes, and what an answer that is missing or unparsable counts as.

    Parameters
    ----------
    yes
        The words and numbers that mean yes, compared as text without regard to case and outer blanks. By
        default 1, true, t, yes and y; booleans and the number 1 need no words.
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
        object.__setattr__(self, "yes", _normal(self.yes, "yes"))
        object.__setattr__(self, "no", _normal(self.no, "no"))
        both = set(self.yes) & set(self.no)
        if both:
            raise InputError(f"{sorted(both)[0]!r} cannot mean both yes and no.")

    def read(self, column: str, dtype: Any) -> nw.Expr:
        """The answer in ``column`` as a boolean, never null."""
        counted = self.no if self.missing == "yes" else self.yes
        value = nw.col(column)
        if dtype == nw.Boolean:
            matched = ~value if self.missing == "yes" else value
        elif dtype.is_numeric():
            matched = value.is_in(_numbers(counted))
        else:
            matched = value.cast(nw.String).str.strip_chars().str.to_lowercase().is_in(list(counted))
        known = matched.fill_null(False)
        return ~known if self.missing == "yes" else known


def _normal(words: tuple[str, ...] | list[str], name: str) -> tuple[str, ...]:
    if isinstance(words, str) or not words:
        raise InputError(f"The words for {name} are a list such as ['1', 'yes'], not {words!r}.")
    return tuple(str(word).strip().lower() for word in words)


def _numbers(words: tuple[str, ...]) -> list[int]:
    """The whole numbers among the words, for a column of numbers."""
    numbers = [int(word) for word in words if word.lstrip("-").isdigit()]
    if not numbers:
        raise InputError(
            f"The column holds numbers, and none of the words {list(words)} is one. Declare which count."
        )
    return numbers
