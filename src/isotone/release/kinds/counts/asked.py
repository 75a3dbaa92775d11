"""The questions of a release of counts, checked before the charge, written in the manifest, read back from it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from typing_extensions import TypedDict

from isotone.errors import InputError
from isotone.order import Poset
from isotone.privacy.checks import did_you_mean
from isotone.reading.questions import Question, book_of
from isotone.release.kinds.parameters import column_name, require_writable

if TYPE_CHECKING:
    from isotone.release.manifest import Manifest

__all__ = [
    "QuestionEntry",
    "definitions",
    "entries_of",
    "labels_of",
    "question_faults",
    "questions_for",
    "questions_of",
]


class QuestionEntry(TypedDict, total=False):
    """A question: its label, its column, and what counts as a yes. What is not there is as for all questions."""

    label: str
    column: str
    yes: str | list[str]
    word: str
    separator: str
    any_of: list[str]
    no: list[str]
    refused: list[str]
    refusal: Literal["no", "yes"]
    missing: Literal["no", "yes"]


def questions_for(
    P: Poset, questions: Iterable[Question] | None, columns: Mapping[Hashable, str], element: str | None
) -> dict[str, Question]:
    """Questions by name, each of an element of ``P``, with the columns that are given beside them."""
    names = {str(x): x for x in P.elements}
    book = book_of(() if questions is None else questions)
    for name, question in book.items():
        if name not in names:
            near = did_you_mean(name, names) or "."
            raise InputError(f"The question {name!r} is no element of the order{near}")
        if element is not None and question.has_own_rule:
            raise InputError(
                f"In long data a row is one yes, so that the question {name!r} can have a label and nothing else."
            )
        given = columns.get(names[name])
        if given is not None and not question.any_of:
            if question.column not in (None, given):
                raise InputError(
                    f"The column of {name!r} is given twice, as {given!r} and {question.column!r}."
                )
            book[name] = replace(question, column=given)
        for text in _texts(book[name]):
            require_writable(text, f"the question {name!r}")
    return book


def _texts(question: Question) -> list[str]:
    said = [*question.plain().values(), column_name(question.column or question.name, "column")]
    return [str(x) for part in said for x in (part if isinstance(part, list) else [part])]


def definitions(book: Mapping[str, Question]) -> dict[str, Any]:
    """What counts as a yes, by element, without labels, which is part of what identifies a request."""
    return {name: question.definition() for name, question in book.items() if question.has_own_rule}


def entries_of(book: Mapping[str, Question]) -> dict[str, Any] | None:
    """The questions as a manifest holds them."""
    return {name: question.plain() for name, question in book.items()} or None


def questions_of(manifest: Manifest) -> dict[str, Question]:
    """The questions of a manifest by name."""
    written: Mapping[str, Any] = manifest.get("questions") or {}
    return book_of([Question(name, **entry) for name, entry in written.items()])


def labels_of(manifest: Manifest) -> dict[str, str]:
    """What people read in place of an element, its label, or else its name."""
    book, elements = questions_of(manifest), manifest["order"]["elements"]
    return {x: book[x].shown if x in book and book[x].label else str(x).replace("_", " ") for x in elements}


def question_faults(manifest: Manifest) -> list[str]:
    """What is wrong with the questions of a manifest, a phrase each."""
    try:
        book = questions_of(manifest)
        for name, question in book.items():
            for text in (name, *_texts(question)):
                require_writable(text, "a question")
    except InputError as error:
        return [f"the questions cannot be read ({error})"]
    strange = set(book) - set(manifest["order"]["elements"])
    if strange:
        return [f"the question {sorted(strange)[0][:60]!r} is no element of the order"]
    if (manifest.get("questions") or None) != entries_of(book):
        return ["the questions are not written as a release writes them"]
    return []
