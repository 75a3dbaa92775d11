"""A questionnaire as the text of a spec."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isotone.forms.toml import toml_string, toml_value

if TYPE_CHECKING:
    from isotone.forms.questionnaire import Questionnaire

__all__ = ["spec_text"]


def spec_text(
    form: Questionnaire,
    *,
    data: str = "answers.csv",
    unit: str = "",
    epsilon: str = "1",
    ledger: str = "survey.ledger",
    folder: str = "out",
) -> str:
    """A spec that asks for the counts of a questionnaire. What the form does not say is marked, to be changed."""
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
        *(f"  [{toml_string(lower)}, {toml_string(upper)}]," for lower, upper in form.relations),
        "]",
    ]
    if form.children:
        lines += ["", "[order.children]  # options of one question, of which a record has at most one"]
        lines += [f"{toml_string(parent)} = {toml_value(groups)}" for parent, groups in form.children.items()]
    for question in form.questions:
        lines += ["", f"[questions.{toml_string(question.name)}]"]
        lines += [f"{key} = {toml_value(value)}" for key, value in question.plain().items()]
    lines += ["", "[output]", f"folder = {toml_string(folder)}"]
    if form.title:
        lines.append(f"title = {toml_string(form.title)}")
    lines += _comments("What the form says and this order does not:", form.problems)
    lines += _comments("How the form was read:", form.notes)
    return "\n".join(lines) + "\n"


def _comments(title: str, said: tuple[str, ...]) -> list[str]:
    return ["", f"# {title}", *(f"# - {_line(text)}" for text in said)] if said else []


def _line(text: str) -> str:
    """A text that stays on its line: no character of it can end a comment."""
    return "".join(letter if letter.isprintable() else " " for letter in text)
