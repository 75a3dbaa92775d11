"""Docstrings as the site shows them: doctests become code blocks, cross-reference roles become plain code."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

_ROLE = re.compile(r":(?:func|class|meth|mod|attr|data):`~?([^`]+)`")
_STATEMENT = re.compile(r"^( *)(Guarantee|Error|Cost|Complexity|Definition|Reference): ", flags=re.MULTILINE)
_SECTIONS = re.compile(r"^ *Examples\n *-+$", flags=re.MULTILINE)


class Docstrings(Extension):
    """Prepares each docstring before it is parsed."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Change the text of one object's docstring."""
        if obj.docstring is not None:
            obj.docstring.value = prepared(obj.docstring.value)


def prepared(text: str) -> str:
    """The text with doctests fenced (an "Examples" section is left to the parser) and roles replaced."""
    text = _ROLE.sub(lambda match: f"`{match[1].lstrip('.').rsplit('.', 1)[-1]}`", text).replace("``", "`")
    text = _STATEMENT.sub(r"\n\1**\2:** ", text)  # each a paragraph of its own
    if _SECTIONS.search(text):
        return text
    lines: list[str] = []
    inside = False
    for line in text.split("\n"):
        if line.startswith(">>>") and not inside:
            lines.append("```pycon")
            inside = True
        elif not line.strip() and inside:
            lines.append("```")
            inside = False
        lines.append(line)
    return "\n".join([*lines, "```"] if inside else lines)
