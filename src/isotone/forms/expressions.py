"""A small parser for the conditions of questionnaires, XLSForm's ``relevant`` and REDCap's branching logic.

Nothing is evaluated. What the parser does not know becomes :class:`Unknown`, with its text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from isotone.errors import InputError

__all__ = [
    "Both",
    "Call",
    "Compare",
    "Either",
    "Expression",
    "FieldReference",
    "Literal_",
    "Not",
    "Unknown",
    "parse",
]

LONGEST, DEEPEST, MOST_TOKENS = 20_000, 60, 4_000

_TOKEN = re.compile(
    r"""(?P<text>'[^']*'|"[^"]*"|[\u2018\u2019][^\u2018\u2019]*[\u2018\u2019]|[\u201c\u201d][^\u201c\u201d]*[\u201c\u201d])
    |(?P<number>\d+(?:\.\d*)?|\.\d+)
    |\$\{\s*(?P<odk>[^{}]*?)\s*\}
    |\[(?P<redcap>[^\[\]]*)\]
    |(?P<sign><=|>=|!=|<>|=|<|>)
    |(?P<mark>[(),])
    |(?P<minus>-)
    |(?P<name>[A-Za-z_][\w.-]*(?::[A-Za-z_][\w.-]*)?)
    |(?P<blank>[\s\u00a0]+)
    |(?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True)
class FieldReference:
    """The answer to another question. REDCap's boxes have the code of the option."""

    name: str
    option: str | None = None


@dataclass(frozen=True)
class Literal_:  # noqa: N801 - a literal of the condition
    """A text or a number."""

    value: str


@dataclass(frozen=True)
class Call:
    """A function of some arguments."""

    name: str
    arguments: tuple[Expression, ...]
    text: str


@dataclass(frozen=True)
class Compare:
    """Two sides with a sign, one of =, !=, <, <=, > and >=."""

    sign: str
    left: Expression
    right: Expression
    text: str


@dataclass(frozen=True)
class Both:
    """All parts hold."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True)
class Either:
    """One of the parts holds."""

    parts: tuple[Expression, ...]
    text: str


@dataclass(frozen=True)
class Not:
    """The part does not hold."""

    part: Expression
    text: str


@dataclass(frozen=True)
class Unknown:
    """What cannot be read, as it was written."""

    text: str


Expression = FieldReference | Literal_ | Call | Compare | Both | Either | Not | Unknown


def parse(text: str, dialect: Literal["odk", "redcap"]) -> Expression:
    """The expression of a condition, or :class:`Unknown` with all of it where it cannot be read."""
    if len(text) > LONGEST:
        return Unknown(f"{text[:60]} …")
    try:
        return _Parser(text, dialect).whole()
    except InputError:
        return Unknown(" ".join(text.split()))


class _Parser:
    def __init__(self, text: str, dialect: str) -> None:
        self.text, self.dialect, self.place, self.depth = text, dialect, 0, 0
        found = [match for match in _TOKEN.finditer(text) if match.lastgroup != "blank"]
        if len(found) > MOST_TOKENS:
            raise InputError("too long")
        self.tokens = found

    def whole(self) -> Expression:
        found = self._either()
        if self.place < len(self.tokens):
            raise InputError("left over")
        return found

    def _kind(self) -> str:
        return str(self.tokens[self.place].lastgroup) if self.place < len(self.tokens) else ""

    def _word(self) -> str:
        return self.tokens[self.place][0].lower() if self.place < len(self.tokens) else ""

    def _next(self) -> str:
        if self.place >= len(self.tokens):
            raise InputError("ends early")
        self.place += 1
        return self.tokens[self.place - 1][0]

    def _since(self, start: int) -> str:
        begin, end = self.tokens[start].start(), self.tokens[self.place - 1].end()
        return " ".join(self.text[begin:end].split())

    def _either(self) -> Expression:
        self.depth += 1
        if self.depth > DEEPEST:
            raise InputError("too deep")
        start, parts = self.place, [self._both()]
        while self._word() == "or" and self._kind() == "name":
            self.place += 1
            parts.append(self._both())
        self.depth -= 1
        return Either(tuple(parts), self._since(start)) if len(parts) > 1 else parts[0]

    def _both(self) -> Expression:
        parts = [self._compared()]
        while self._word() == "and" and self._kind() == "name":
            self.place += 1
            parts.append(self._compared())
        return Both(tuple(parts)) if len(parts) > 1 else parts[0]

    def _compared(self) -> Expression:
        start, left = self.place, self._operand()
        if self._kind() == "sign":
            sign = self._next().replace("<>", "!=")
            right = self._operand()
            if self._kind() in ("sign", "minus", "other"):
                return self._skipped(start)
            return Compare(sign, left, right, self._since(start))
        if self._kind() in ("minus", "other") or (self._kind() == "name" and self._word() in ("div", "mod")):
            return self._skipped(start)
        return left

    def _skipped(self, start: int) -> Expression:
        """What is arithmetic or unknown, up to where this part of the condition ends."""
        open_ = 0
        while self.place < len(self.tokens):
            word = self._word()
            if not open_ and (word in (")", ",") or (self._kind() == "name" and word in ("and", "or"))):
                break
            open_ += (word == "(") - (word == ")")
            self.place += 1
        return Unknown(self._since(start))

    def _operand(self) -> Expression:
        start, kind, token = self.place, self._kind(), self._next()
        if kind == "text":
            return Literal_(token[1:-1])
        if kind == "number":
            return Literal_(token)
        if kind == "minus" and self._kind() == "number":
            return Literal_("-" + self._next())
        if token == "(":
            inside = self._either()
            self._closed()
            return inside
        if kind == self.dialect:
            return self._reference(self.tokens[start][kind])
        if kind == "name" and self._word() == "(":
            return self._call(token, start)
        return self._skipped(start)

    def _reference(self, name: str) -> Expression:
        if self.dialect == "odk":
            return FieldReference(name)
        box = re.fullmatch(r"\s*([A-Za-z]\w*)\s*(?:\(\s*([^()]*?)\s*\))?\s*", name)
        if box is None or self._kind() == "redcap":  # [event][field]: an answer of another visit
            while self._kind() == "redcap":
                self.place += 1
            return Unknown(f"[{name}]")
        return FieldReference(box[1].lower(), box[2])

    def _call(self, name: str, start: int) -> Expression:
        self._next()
        arguments: list[Expression] = []
        while self._word() != ")":
            arguments.append(self._either())
            if self._word() != ",":
                break
            self.place += 1
        self._closed()
        text = self._since(start)
        if name.lower() == "not" and len(arguments) == 1:
            return Not(arguments[0], text)
        return Call(name.lower(), tuple(arguments), text)

    def _closed(self) -> None:
        if self._next() != ")":
            raise InputError("not closed")
