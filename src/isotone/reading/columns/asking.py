"""Read questions as expressions for any engine, as plain Python for one value, and what follows from what."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise, permutations
from typing import Any

import narwhals as nw

from isotone.order import Poset
from isotone.order.exclusive import read_children
from isotone.reading.columns.answers import Answers, counts_as, is_one_of
from isotone.reading.columns.native import any_of
from isotone.reading.columns.numbers import as_written
from isotone.reading.columns.question import ANSWERED, Question, book_of
from isotone.reading.columns.texts import as_text
from isotone.reading.columns.values import REAL, text_of

__all__ = ["NO_ANSWER", "asked_columns", "implied", "order_of", "read_question", "says"]

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
    text = text_of(value)
    if text is not None and question.refused and counts_as(text, tuple(map(str, question.refused))):
        return question.refusal == "yes"
    said = None if text is None else _said(question, text)
    return (question.missing or answers.missing) == "yes" if said is None else said


def _said(question: Question, text: str) -> bool | None:
    """Whether a text is a yes, or None if the rule cannot read it."""
    if question.comparison is not None:
        sign, bound = question.comparison
        if not re.fullmatch(REAL, text) or abs(float(text)) >= 1e300:
            return None
        number = float(text)
        return {">=": number >= bound, ">": number > bound, "<=": number <= bound, "<": number < bound}[sign]
    text = text.lower()
    if text in NO_ANSWER:
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
    found: dict[tuple[str, str], None] = {}
    for together in by_column.values():
        if len(together) > 1:
            yeses = _yeses(together, book, answers)
            for one, other in permutations(together, 2):
                if _follows(one, other, yeses, book):
                    found[one.name, other.name] = None
    return [pair for pair in found if pair[::-1] not in found]


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
