"""Questions of a survey: the column, what counts as a yes, and what follows from what.

Read a column as yes or no.

Each record is read on its own, by a rule declared beforehand.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from decimal import Decimal
from functools import reduce
from itertools import pairwise, permutations
from operator import or_
from typing import Any, Literal

import narwhals as nw
import numpy as np

from isotone.errors import InputError
from isotone.order import Poset
from isotone.order.closure import read_children
from isotone.privacy.checks import one_of, require_list, shown
from isotone.privacy.checks import plain_text as public_text
from isotone.reading.columns import as_float, as_text, as_written
from isotone.reading.operations import any_of
from isotone.reading.values import INFINITE, LARGEST, REAL, cell_text, plain_text, real_of, text_of

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
        _require_apart(self.yes, self.no)

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
        """The words are as :class:`~isotone.reading.questions.Question` keeps them."""

    @classmethod
    def listed(cls, yes: Sequence[str], no: Sequence[str] | None = None) -> Codes:
        """The words of two values, and none besides. True is the word true or the number 1, where that is listed."""
        codes = cls(
            _with_boolean(yes, "1", "true"), _with_boolean(Answers.no if no is None else no, "0", "false")
        )
        _require_apart(codes.yes, codes.no)
        return codes


def _require_apart(yes: Sequence[str], no: Sequence[str]) -> None:
    both = set(yes) & set(no)
    if both:
        raise InputError(f"{sorted(both)[0]!r} cannot mean both yes and no.")


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
    result = tuple(str(word).strip().lower() for word in listed)
    if "" in result:
        raise InputError(
            f"The words for {name} hold an empty one, and an empty field is missing: leave it out."
        )
    return result


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
    word = nw.col(column).cast(nw.String).str.strip_chars().str.to_lowercase()
    return _equals_one(word, counted).fill_null(False) | _is_number(column, dtype, counted)


def _is_number(column: str, dtype: Any, words: tuple[str, ...]) -> nw.Expr:
    """Whether the value is one of the numbers among the words, however the column writes it, or null."""
    numbers = _numbers(words)
    return _equals_one(as_float(column, dtype), numbers) if numbers else nw.lit(False)


def _numbers(words: tuple[str, ...]) -> list[float]:
    numbers = [float(word) for word in words if re.fullmatch(REAL, word)]
    return [number for number in numbers if abs(number) < LARGEST]


def _equals_one(value: nw.Expr, items: Sequence[str] | Sequence[float]) -> nw.Expr:
    # Comparisons, not a list: DuckDB makes a join of every list, which it runs for all rows.
    return reduce(or_, [value == item for item in items])


# A question of a survey, with the column it is read from and what counts as a yes.
#
# All of it is declared before data is read. Each value is read on its own: one that no rule knows is missing, and nothing
# that a column contains raises an error.

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
            "name": public_text(self.name, "name"),
            "column": None if self.column is None else public_text(self.column, "column"),
            "label": " ".join(public_text(self.label, "label", empty=True).split()),
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
        """The label, or the identifier where there is none. Where any answer is a yes, it says so."""
        answered = " (answered)" if self.yes == ANSWERED and self.label else ""
        return f"{self.label or self.name}{answered}"

    @property
    def has_own_rule(self) -> bool:
        """Whether more is said than a label."""
        return bool(self.definition())

    @property
    def comparison(self) -> tuple[str, float] | None:
        """The sign and the number of a comparison."""
        match = _COMPARISON.match(self.yes) if isinstance(self.yes, str) else None
        return (match[1], float(match[2])) if match else None

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
        entries: dict[str, Any] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name not in ("name", "label") and value != field.default:
                entries[field.name] = list(value) if isinstance(value, tuple) else value
        return entries

    def plain(self) -> dict[str, Any]:
        """Everything but the name, as plain values."""
        return {**({"label": self.label} if self.label else {}), **self.definition()}

    def in_words(self, answers: Answers) -> str:
        """What counts as a yes, in a sentence that begins with the name of the column."""
        where = f"column {self.column or self.name}"
        if self.any_of:
            return f"a yes to one of {', '.join(self.any_of)}"
        if self.word is not None:
            sentence = f"{where}, {self.word} is among the words"
        elif isinstance(self.yes, str):
            sentence = f"{where}, {'any answer' if self.yes == ANSWERED else self.yes}"
        else:
            sentence = f"{where}, {' or '.join(self.codes(answers).yes)}"
        if self.refused:
            sentence += f"; {' or '.join(map(str, self.refused))} is a refusal and counts as {self.refusal}"
        return sentence + (f"; missing counts as {self.missing}" if self.missing else "")


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
    result = tuple(map(str, codes))
    return (*result, word) if number in result and word not in result else result


def _names(names: Any, name: str) -> tuple[str, ...]:
    require_list(names, name)
    return tuple(dict.fromkeys(public_text(entry, f"each entry of {name}") for entry in names))  # pyright: ignore[reportUnknownVariableType]


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
    text = public_text(word, "word").strip().lower()
    inside = separator in text if separator and separator != " " else bool(_WORD.search(text))
    if not text or inside:
        raise InputError(
            f"word must be one word of a list of words, not {shown(word)}. Words with blanks need a separator such as ','."
        )
    return text


# Read questions as expressions for any engine, as plain Python for one value, and what follows from what.

NO_ANSWER = ("", "na", "n/a", "<na>", "nan", "nat", "null")
"""Texts that are no answer, in any case: what other tools write where a value is missing."""
_BETWEEN = "[ \t\n\r,;|]+"


def asked_columns(question: Question, book: Mapping[str, Question]) -> list[str]:
    """The columns that a question is read from."""
    parts = [book[name] for name in question.any_of] or [question]
    return list(dict.fromkeys(part.column or part.name for part in parts))


def read_question(
    question: Question, book: Mapping[str, Question], answers: Answers, schema: Mapping[str, Any]
) -> nw.Expr:
    """The answer to a question as a boolean, never null."""
    if question.any_of:
        return any_of([read_question(book[name], book, answers, schema) for name in question.any_of])
    column = question.column or question.name
    dtype = schema[column]
    if question.word is None and not isinstance(question.yes, str):
        return question.codes(answers).read(column, dtype)
    known, yes = _rule(question, column, dtype)
    no = known & ~yes
    if question.refused:
        refused = is_one_of(column, dtype, tuple(map(str, question.refused))).fill_null(False)
        yes, no = yes & ~refused, no & ~refused
        yes, no = (yes | refused, no) if question.refusal == "yes" else (yes, no | refused)
    return ~no if (question.missing or answers.missing) == "yes" else yes


def _rule(question: Question, column: str, dtype: Any) -> tuple[nw.Expr, nw.Expr]:
    """Whether there is an answer that the rule can read, and whether it is a yes. Neither is null."""
    if question.comparison is not None:
        sign, bound = question.comparison
        number = as_written(column, dtype)
        number = nw.when((number > -LARGEST) & (number < LARGEST)).then(
            number
        )  # there is no range to clamp to
        compared = {">=": number >= bound, ">": number > bound, "<=": number <= bound, "<": number < bound}
        return ~number.is_null(), compared[sign].fill_null(False)
    text = as_text(column, dtype).str.to_lowercase()
    there = ~any_of([(text == word).fill_null(True) for word in NO_ANSWER])
    if question.yes == ANSWERED:
        return there, there
    mark = question.separator or " "
    between = _BETWEEN if question.separator is None else f"[ \t\n\r]*[{mark}][ \t\n\r]*"
    words = nw.concat_str(nw.lit(mark), text.str.replace_all(between, mark), nw.lit(mark))
    return there, words.str.contains(f"{mark}{question.word}{mark}", literal=True).fill_null(False) & there


def says(question: Question, value: Any, book: Mapping[str, Question], answers: Answers) -> bool:
    """The same answer for one value that all columns of the question have, in plain Python."""
    if question.any_of:
        return any(says(book[name], value, book, answers) for name in question.any_of)
    if question.word is None and not isinstance(question.yes, str):
        return question.codes(answers).says(value)
    text = cell_text(value)
    if text is not None and question.refused and counts_as(text, tuple(map(str, question.refused))):
        return question.refusal == "yes"
    answer = None if text is None else _answer(question, text)
    return (question.missing or answers.missing) == "yes" if answer is None else answer


def _answer(question: Question, text: str) -> bool | None:
    """Whether a text is a yes, or None if the rule cannot read it."""
    if question.comparison is not None:
        sign, bound = question.comparison
        number = real_of(text)
        if not abs(number) < LARGEST or text.lower() in ("true", "false"):
            return None
        return {">=": number >= bound, ">": number > bound, "<=": number <= bound, "<": number < bound}[sign]
    text = text.lower()
    if text in NO_ANSWER or text in INFINITE:
        return None
    mark = question.separator or " "
    between = _BETWEEN if question.separator is None else f"[ \t\n\r]*[{mark}][ \t\n\r]*"
    return (
        question.yes == ANSWERED
        or f"{mark}{question.word}{mark}" in mark + re.sub(between, mark, text) + mark
    )


def order_of(
    questions: Iterable[Question],
    relations: Iterable[tuple[str, str]] = (),
    children: Any = "any",
    *,
    answers: Answers | None = None,
) -> Poset:
    """The order of questions, with the relations given and those that their definitions imply.

    A systolic pressure of at least 160 is one of at least 140, an answer among two codes is an answer, and a yes to one of
    several questions is a yes to "any of" them.

    >>> from isotone import Question
    >>> order_of([Question("high", ">= 140", "bp"), Question("very_high", ">= 160", "bp")]).covers
    (('very_high', 'high'),)
    """
    book = book_of(questions)
    given = [(lower, upper) for lower, upper in relations]
    names = [*book, *(name for pair in given for name in pair if name not in book)]
    both = list(dict.fromkeys([*given, *implied(book, answers or Answers())]))
    elements = list(dict.fromkeys(names))
    return Poset(elements, both, read_children(children, elements, both))


def implied(book: Mapping[str, Question], answers: Answers) -> list[tuple[str, str]]:
    """Pairs (lower, upper) of questions where every value that is a yes to lower is one to upper, but not the reverse."""
    by_column: dict[str, list[Question]] = {}
    for question in book.values():
        for column in asked_columns(question, book):
            by_column.setdefault(column, []).append(question)
    result: dict[tuple[str, str], None] = {}
    for together in by_column.values():
        if len(together) > 1:
            yeses = _yeses(together, book, answers)
            for one, other in permutations(together, 2):
                if _follows(one, other, yeses, book):
                    result[one.name, other.name] = None
    return [pair for pair in result if pair[::-1] not in result]


def _follows(one: Question, other: Question, yeses: Mapping[str, int], book: Mapping[str, Question]) -> bool:
    """Whether a yes to one is always a yes to the other."""
    here, there = asked_columns(one, book), asked_columns(other, book)
    if len({*here, *there}) == 1:
        return not yeses[one.name] & ~yeses[other.name]
    if one.any_of:
        return all(part in other.any_of for part in one.any_of)
    same = [part for part in other.any_of if asked_columns(book[part], book) == here]
    return any(part == one.name or not yeses[one.name] & ~yeses[part] for part in same)


def _yeses(questions: Sequence[Question], book: Mapping[str, Question], answers: Answers) -> dict[str, int]:
    """For each question the yeses among values of every sort that the rules can tell apart, a bit for each."""
    values = _sorts([book[name] for q in questions for name in (q.any_of or [q.name])], answers)
    return {q.name: sum(says(q, x, book, answers) << i for i, x in enumerate(values)) for q in questions}


def _sorts(questions: Sequence[Question], answers: Answers) -> list[str | None]:
    """A value of every sort, each code and word, numbers at, between and beyond those named, unknown and missing."""
    words: dict[str, None] = {}
    marks = {" ", *(q.separator for q in questions if q.separator)}
    for q in questions:
        rule = q.codes(answers)
        words |= dict.fromkeys([*rule.yes, *rule.no, *map(str, q.refused), *([q.word] if q.word else [])])
        if q.comparison is not None:
            words[repr(q.comparison[1])] = None
    points = sorted({float(word) for word in words if re.fullmatch(REAL, word)})
    between = [(a + b) / 2 for a, b in pairwise(points)]
    beyond = [points[0] - 1 - abs(points[0]), points[-1] + 1 + abs(points[-1])] if points else []
    chosen = [q.word for q in questions if q.word]
    several = [f"{a}{mark}{b}" for mark in marks for a in chosen for b in [*chosen, "\ufffd"]]
    return [None, "", "\ufffd", *words, *several, *(repr(x) for x in [*between, *beyond])]
