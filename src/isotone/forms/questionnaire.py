"""A questionnaire as questions and an order, with a list of what it says and an order cannot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from isotone.forms.toml import toml_string, toml_value
from isotone.order import Poset
from isotone.reading.questions import Question, order_of

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

    def spec(
        self,
        *,
        data: str = "answers.csv",
        unit: str = "",
        epsilon: str = "1",
        ledger: str = "survey.ledger",
        folder: str = "out",
    ) -> str:
        """A spec as text. What the form does not say is a start, and marked to be changed."""
        lines = [
            "# Written from a questionnaire. Lines with CHANGE are a start: the form does not say them.",
            "",
            "[data]",
            f"path = {toml_string(data)}  # CHANGE",
            f"unit = {toml_string(unit)}"
            if unit
            else '# unit = "person"  # CHANGE: the column that says whose row it is',
            "",
            "[privacy]",
            f"epsilon = {toml_string(epsilon)}  # CHANGE: isotone plan --error says what an error costs",
            f"ledger = {toml_string(ledger)}",
            f"budget = {{ epsilon = {toml_string(epsilon)} }}  # CHANGE: the total, fixed when the ledger is made",
            "",
            "[order]",
            "relations = [  # [lower, upper]: a yes to lower implies a yes to upper",
            *(f"  [{toml_string(lower)}, {toml_string(upper)}]," for lower, upper in self.relations),
            "]",
        ]
        if self.children:
            lines += ["", "[order.children]  # options of one question, of which a record has at most one"]
            lines += [
                f"{toml_string(parent)} = {toml_value(groups)}" for parent, groups in self.children.items()
            ]
        for question in self.questions:
            lines += ["", f"[questions.{toml_string(question.name)}]"]
            lines += [f"{key} = {toml_value(value)}" for key, value in question.plain().items()]
        lines += ["", "[output]", f"folder = {toml_string(folder)}"]
        if self.title:
            lines.append(f"title = {toml_string(self.title)}")
        lines += _comments("What the form says and this order does not:", self.problems)
        lines += _comments("How the form was read:", self.notes)
        return "\n".join(lines) + "\n"

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


def _comments(title: str, said: tuple[str, ...]) -> list[str]:
    return ["", f"# {title}", *(f"# - {_line(text)}" for text in said)] if said else []


def _line(text: str) -> str:
    """A text that stays on its line. No character of it can end a comment."""
    return "".join(letter if letter.isprintable() else " " for letter in text)
