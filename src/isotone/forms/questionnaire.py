"""A questionnaire as questions and an order, with a list of what it says and an order cannot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from isotone.order import Poset
from isotone.reading.columns.asking import order_of
from isotone.reading.columns.question import Question

__all__ = ["Questionnaire"]


@dataclass(frozen=True)
class Questionnaire:
    """Questions with codes and labels, and the order that the conditions of a form imply.

    ``problems`` lists what the form says and an order cannot, or what was not read; ``notes`` what was taken for a yes, a
    refusal, an option. Nothing is guessed in silence, and no data was read.
    """

    questions: tuple[Question, ...]
    relations: tuple[tuple[str, str], ...]
    children: dict[str, Any]
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    title: str = ""

    def order(self) -> Poset:
        """The partial order of the questions."""
        children = {key or None: groups for key, groups in self.children.items()}
        return order_of(self.questions, self.relations, children or "any")

    def spec(self, **entries: str) -> str:
        """A spec as text, with what the form does not say as a start: data, unit, epsilon, ledger, folder."""
        from isotone.forms.writing import spec_text

        return spec_text(self, **entries)

    def plain(self) -> dict[str, Any]:
        """Everything as plain values."""
        return {
            "title": self.title,
            "questions": {question.name: question.plain() for question in self.questions},
            "relations": [list(pair) for pair in self.relations],
            "children": self.children,
            "problems": list(self.problems),
            "notes": list(self.notes),
        }
