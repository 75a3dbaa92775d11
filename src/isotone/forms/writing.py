"""A questionnaire as the text of a spec."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
        f"path = {_text(data)}  # CHANGE",
        f"unit = {_text(unit)}"
        if unit
        else '# unit = "person"  # CHANGE: the column that says whose row it is',
        "",
        "[privacy]",
        f"epsilon = {_text(epsilon)}  # CHANGE: isotone plan --error says what an error costs",
        f"ledger = {_text(ledger)}",
        f"budget = {{ epsilon = {_text(epsilon)} }}  # CHANGE: the total, fixed when the ledger is made",
        "",
        "[order]",
        "relations = [  # [lower, upper]: a yes to lower implies a yes to upper",
        *(f"  [{_text(lower)}, {_text(upper)}]," for lower, upper in form.relations),
        "]",
    ]
    if form.children:
        lines += ["", "[order.children]  # options of one question, of which a record has at most one"]
        lines += [f"{_text(parent)} = {_value(groups)}" for parent, groups in form.children.items()]
    for question in form.questions:
        lines += ["", f"[questions.{_text(question.name)}]"]
        lines += [f"{key} = {_value(value)}" for key, value in question.plain().items()]
    lines += ["", "[output]", f"folder = {_text(folder)}"]
    if form.title:
        lines.append(f"title = {_text(form.title)}")
    lines += _comments("What the form says and this order does not:", form.problems)
    lines += _comments("How the form was read:", form.notes)
    return "\n".join(lines) + "\n"


def _comments(title: str, said: tuple[str, ...]) -> list[str]:
    return ["", f"# {title}", *(f"# - {_line(text)}" for text in said)] if said else []


def _line(text: str) -> str:
    """A text that stays on its line: no character of it can end a comment."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


def _text(text: str) -> str:
    """A TOML string, with escapes for whatever cannot stand in one."""
    said = text.replace("\\", "\\\\").replace('"', '\\"')
    kept = "".join(
        x if x.isprintable() else f"\\U{ord(x):08x}" if ord(x) not in range(0xD800, 0xE000) else "?"
        for x in said
    )
    return f'"{kept}"'


def _value(value: Any) -> str:
    return f"[{', '.join(map(_value, value))}]" if isinstance(value, (list, tuple)) else _text(str(value))
