"""The questions of published counts, read back from their manifest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from isotone.reading.questions import Question, book_of

if TYPE_CHECKING:
    from isotone.release.manifest import Manifest

__all__ = ["definitions", "entries_of", "labels_of", "questions_of"]


def definitions(book: Mapping[str, Question]) -> dict[str, Any]:
    """What counts as a yes, by element, without labels."""
    return {name: question.definition() for name, question in book.items() if question.has_own_rule}


def entries_of(book: Mapping[str, Question]) -> list[dict[str, Any]]:
    """The questions as a manifest holds them."""
    return [{"name": name, **question.plain()} for name, question in book.items()]


def questions_of(manifest: Manifest) -> dict[str, Question]:
    """The questions of a manifest by name."""
    return book_of([Question(**entry) for entry in manifest["description"]["answers"]["questions"]])


def labels_of(manifest: Manifest) -> dict[str, str]:
    """What people read in place of an element, its label, or else its name."""
    book, elements = questions_of(manifest), manifest["description"]["order"]["elements"]
    return {x: book[x].shown if x in book and book[x].label else str(x).replace("_", " ") for x in elements}
