"""A question of a survey, with the column it is read from and what counts as a yes.

All of it is declared before data is read. Each value is read on its own: one that no rule knows is missing, and nothing
that a column contains raises an error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

import numpy as np

from isotone.errors import InputError
from isotone.privacy.checks import one_of, plain_text, require_list, shown
from isotone.reading.columns.answers import Answers, Codes, plain_words
from isotone.reading.columns.values import REAL

__all__ = ["ANSWERED", "SEPARATORS", "Question", "book_of"]

ANSWERED = "answered"
SEPARATORS = " ,;|/"
"""What may stand between the words of a multiple-choice field."""
_COMPARISON = re.compile(rf"^(>=|<=|>|<)\s*({REAL.strip('^$')})$")
_WORD = re.compile(r"[\s,;|]")
_LONGEST = 1_000
_MOST = 10_000


@dataclass(frozen=True)
class Question:
    """An element of an order, its label, and what counts as a yes to it.

    A yes is a list of codes, ``"answered"``, a comparison such as ``">= 140"``, a word in a multiple-choice field, or
    a yes to one of several other questions. Without any of them the rule for all questions holds
    (:class:`~isotone.Answers`).

    Parameters
    ----------
    name
        The identifier, which is the name of the element in the order and in files.
    yes
        The codes that mean yes, such as ``["1"]`` (compared as words and as numbers); or ``"answered"``; or one of
        ``>=``, ``>``, ``<=`` and ``<`` with a number.
    column
        The column, by default called like the question. A column may serve several questions.
    label
        The question in words, shown where a person reads.
    word
        In place of ``yes``: the answer is a list of words, and this one is among them.
    separator
        What stands between the words: one of , ; | / or a blank. By default blanks, commas, semicolons or bars.
    any_of
        In place of ``yes``: the names of other questions. A yes to one of them is a yes.
    no
        The codes that mean no. They matter where a missing answer counts as a yes.
    refused
        The codes of a refusal ("7 refused, 9 don't know"). They are no answer, and no number to compare.
    refusal
        What a refusal counts as, "no" (default) or "yes".
    missing
        What an answer counts as that is missing, unknown or cannot be read. By default the rule for all questions.
    """

    name: str
    yes: str | Sequence[str | int] | None = None
    column: str | None = None
    label: str = ""
    word: str | None = None
    separator: str | None = None
    any_of: Sequence[str] = ()
    no: Sequence[str | int] = ()
    refused: Sequence[str | int] = ()
    refusal: Literal["no", "yes"] = "no"
    missing: Literal["no", "yes"] | None = None

    def __post_init__(self) -> None:
        plain: dict[str, Any] = {
            "name": plain_text(self.name, "name"),
            "column": None if self.column is None else plain_text(self.column, "column"),
            "label": " ".join(plain_text(self.label, "label", empty=True).split()),
            "any_of": _names(self.any_of, "any_of"),
            "no": _codes(self.no, "no"),
            "refused": _codes(self.refused, "refused"),
            "refusal": one_of(self.refusal, "refusal", ("no", "yes")),
            "missing": None if self.missing is None else one_of(self.missing, "missing", ("no", "yes")),
        }
        if self.yes is not None:
            plain["yes"] = _comparison(self.yes) if isinstance(self.yes, str) else _codes(self.yes, "yes")
        if self.separator is not None:
            plain["separator"] = one_of(self.separator, "separator", tuple(SEPARATORS))
        if self.word is not None:
            plain["word"] = _word(self.word, plain.get("separator"))
        for key, value in plain.items():
            object.__setattr__(self, key, value)
        self._require_one_rule()
        if len(self.name) > _LONGEST or len(self.label) > _LONGEST:
            raise InputError(f"The name and the label of a question have at most {_LONGEST:,} characters.")

    def _require_one_rule(self) -> None:
        ways = [self.yes is not None, self.word is not None, bool(self.any_of)]
        if sum(ways) > 1:
            raise self._error("says in several ways what a yes is. Give one of yes, word and any_of")
        if isinstance(self.yes, tuple) and not self.yes:
            raise self._error('has no code for yes. Name one, such as yes = ["1"]')
        if self.separator is not None and self.word is None:
            raise self._error("has a separator, which belongs to a word")
        if self.any_of and (self.column or self.no or self.refused or self.missing):
            raise self._error("is a yes to one of other questions, and has no column or codes of its own")
        if isinstance(self.yes, tuple) and set(self.refused) & {*self.yes, *self.no}:
            raise self._error("has a code that is an answer and a refusal. Name it once")

    def _error(self, what: str) -> InputError:
        return InputError(f"The question {self.name!r} {what}.")

    @property
    def shown(self) -> str:
        """The label, or the identifier where there is none."""
        return self.label or self.name

    @property
    def has_own_rule(self) -> bool:
        """Whether more is said than a label."""
        return bool(self.definition())

    @property
    def comparison(self) -> tuple[str, float] | None:
        """The sign and the number of a comparison."""
        found = _COMPARISON.match(self.yes) if isinstance(self.yes, str) else None
        return (found[1], float(found[2])) if found else None

    def codes(self, answers: Answers) -> Answers:
        """The rule of codes, with what is not said here taken from the rule for all questions."""
        yes = _with_boolean(self.yes, "1", "true") if isinstance(self.yes, tuple) else answers.yes
        no = _with_boolean(self.no, "0", "false") if self.no else answers.no
        refused = tuple(map(str, self.refused))
        yes = tuple(code for code in yes if code not in refused)
        no = tuple(code for code in no if code not in (*yes, *refused))
        if self.refusal == "yes":
            yes = (*yes, *refused)
        else:
            no = (*no, *refused)
        return Codes(yes, no, self.missing or answers.missing)

    def definition(self) -> dict[str, Any]:
        """What is said beside name and label, as plain values."""
        said: dict[str, Any] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name not in ("name", "label") and value != field.default:
                said[field.name] = list(value) if isinstance(value, tuple) else value
        return said

    def plain(self) -> dict[str, Any]:
        """Everything but the name, as plain values."""
        return {**({"label": self.label} if self.label else {}), **self.definition()}

    def in_words(self, answers: Answers) -> str:
        """What counts as a yes, in a sentence that begins with the name of the column."""
        where = f"column {self.column or self.name}"
        if self.any_of:
            return f"a yes to one of {', '.join(self.any_of)}"
        if self.word is not None:
            told = f"{where}, {self.word} is among the words"
        elif isinstance(self.yes, str):
            told = f"{where}, {'any answer' if self.yes == ANSWERED else self.yes}"
        else:
            told = f"{where}, {' or '.join(self.codes(answers).yes)}"
        if self.refused:
            told += f"; {' or '.join(map(str, self.refused))} is a refusal and counts as {self.refusal}"
        return told + (f"; missing counts as {self.missing}" if self.missing else "")


def book_of(questions: Any) -> dict[str, Question]:
    """Questions by name, checked together. Distinct names, and ``any_of`` without an unknown name or a circle."""
    require_list(questions, "questions", "Question")
    book: dict[str, Question] = {}
    for question in questions.values() if isinstance(questions, Mapping) else questions:  # pyright: ignore[reportUnknownVariableType]
        if not isinstance(question, Question):
            raise InputError(f"questions must be a list of Question, not of {shown(question)}.")
        if question.name in book:
            raise InputError(f"There are two questions {question.name!r}. Rename one.")
        book[question.name] = question
    if len(book) > _MOST:
        raise InputError(f"There are {len(book):,} questions. At most {_MOST:,} are read.")
    for question in book.values():
        for part in question.any_of:
            if part not in book:
                raise InputError(f"The question {question.name!r} names {part!r}, which is no question.")
            if book[part].any_of:
                raise InputError(
                    f"The question {question.name!r} is any of several, and so is {part!r}. List the parts themselves."
                )
    return book


def _with_boolean(codes: Sequence[str | int], number: str, word: str) -> tuple[str, ...]:
    """Codes as words, with the boolean that is the number one or zero."""
    found = tuple(map(str, codes))
    return (*found, word) if number in found and word not in found else found


def _names(names: Any, name: str) -> tuple[str, ...]:
    require_list(names, name)
    return tuple(dict.fromkeys(plain_text(entry, f"each entry of {name}") for entry in names))  # pyright: ignore[reportUnknownVariableType]


def _codes(codes: Any, name: str) -> tuple[str, ...]:
    require_list(codes, name, "codes such as ['1', '2']")
    listed = list(codes)  # pyright: ignore[reportUnknownVariableType]
    for code in listed:
        if not isinstance(code, (str, int, np.integer, np.bool_)) or not str(code).strip():
            raise InputError(f"{name} has the code {shown(code)}: codes are texts or whole numbers.")
    return tuple(dict.fromkeys(plain_words([*map(str, listed)], name))) if listed else ()


def _comparison(said: str) -> str:
    text = said.strip()
    if text == ANSWERED or _COMPARISON.match(text):
        return text
    raise InputError(
        f"yes is a list of codes, 'answered', or a comparison such as '>= 140', not {shown(said)}. One code is a list too: "
        f"[{said!r}]."
    )


def _word(word: Any, separator: str | None) -> str:
    text = plain_text(word, "word").strip().lower()
    inside = separator in text if separator and separator != " " else bool(_WORD.search(text))
    if not text or inside:
        raise InputError(
            f"word must be one word of a list of words, not {shown(word)}. Words with blanks need a separator such as ','."
        )
    return text
