"""Conditions of a questionnaire: parsed, over fields of any form, and as clauses that an order can hold."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from isotone.errors import InputError
from isotone.privacy.checks import exact

# A small parser for the conditions of questionnaires, XLSForm's ``relevant`` and REDCap's branching logic.
#
# Nothing is evaluated. What the parser does not know becomes :class:`Unknown`, with its text.

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
        result = [match for match in _TOKEN.finditer(text) if match.lastgroup != "blank"]
        if len(result) > MOST_TOKENS:
            raise InputError("too long")
        self.tokens = result

    def whole(self) -> Expression:
        result = self._either()
        if self.place < len(self.tokens):
            raise InputError("left over")
        return result

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


# The fields of a questionnaire, whatever form they came from, and words that mean yes, no and a refusal.

_YES = {"yes", "y", "true", "oui", "sí", "si", "sim", "ja"}
_NO = {"no", "n", "false", "non", "não", "nao", "nein", "nee"}
_REFUSALS = (
    *("refused", "refuse", "refusal", "refuse to answer", "refused to answer", "prefer not to say"),
    *("prefer not to answer", "declined", "declined to answer", "decline to answer", "don't know", "dont know", "do not know"),
    *("dk", "don't know / refused", "don't know/refused", "don't know / not sure", "don't know/not sure", "no answer"),
)  # fmt: skip


@dataclass(frozen=True)
class Option:
    """A code and its label, with a ``column`` where every option has one of its own."""

    code: str
    label: str = ""
    column: str | None = None

    @property
    def words(self) -> set[str]:
        """Code and label as they are compared with words."""
        return {self.code.strip().lower(), self.label.strip().lower().replace("’", "'")}

    @property
    def is_refusal(self) -> bool:
        """Whether the code or the label says that there is no answer."""
        return bool(self.words & set(_REFUSALS))


@dataclass(frozen=True)
class Field:
    """A question of a form as it was asked.

    ``kind`` is "one" or "many" of the options, a "number", or "other", which is neither yes nor no: a text, a date, a
    file, something computed. ``listed`` says whether all options are known.
    """

    name: str
    kind: Literal["one", "many", "number", "other"]
    label: str = ""
    column: str = ""
    options: tuple[Option, ...] = ()
    listed: bool = True
    condition: Expression | None = None
    always: bool = False
    """Whether everyone has to answer: it is required, and asked of all."""

    @property
    def refused(self) -> tuple[str, ...]:
        """The codes of refusals."""
        return tuple(option.code for option in self.options if option.is_refusal)

    @property
    def answers(self) -> tuple[Option, ...]:
        """The options that are answers."""
        return tuple(option for option in self.options if not option.is_refusal)

    @property
    def yes_and_no(self) -> tuple[str, str] | None:
        """The codes of yes and no, if these are all answers that there are."""
        if self.kind != "one" or len(self.answers) != 2:
            return None
        for yes, no in (self.answers, self.answers[::-1]):
            if yes.words & _YES and no.words & _NO:
                return yes.code, no.code
        return None


@dataclass(frozen=True)
class Form:
    """What was read from a file. Fields in their sequence, and what could not be read."""

    fields: tuple[Field, ...]
    problems: tuple[str, ...] = ()
    title: str = ""
    relations: tuple[tuple[str, str], ...] = ()


def both(conditions: Sequence[Expression]) -> Expression | None:
    """All conditions at once, None without any."""
    return None if not conditions else conditions[0] if len(conditions) == 1 else Both(tuple(conditions))


# What a condition says about answers, as clauses that must all hold, each one of several atoms.
#
# An atom is an answer to one question that an order can hold: a code among some, a word, a number compared, any answer.
# A clause with a part that is no atom is left out and reported: what is left is implied all the same.

MOST_CLAUSES = 64
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}


@dataclass(frozen=True)
class Atom:
    """An answer to the field, which is one of ``codes``, the option ``box``, a comparison such as ">= 18", or any at all."""

    field: str
    codes: tuple[str, ...] = ()
    box: str | None = None
    comparison: str = ""


@dataclass(frozen=True)
class Clauses:
    """Clauses of atoms, and the texts of what is no atom."""

    clauses: tuple[frozenset[Atom], ...] = ()
    unknown: tuple[str, ...] = ()


_Part = frozenset[Atom | Unknown]


def clauses_of(expression: Expression, fields: Mapping[str, Field]) -> Clauses:
    """The clauses of a condition."""
    try:
        parts = _conjuncts(expression, fields)
    except InputError:
        return Clauses((), ("it has too many parts",))
    kept: dict[frozenset[Atom], None] = {}
    unknown: dict[str, None] = {}
    for part in parts:
        odd = [x.text for x in part if isinstance(x, Unknown)]
        unknown |= dict.fromkeys(sorted(odd))
        if not odd:
            kept[frozenset(x for x in part if isinstance(x, Atom))] = None
    return Clauses(tuple(kept), tuple(unknown))


def _conjuncts(expression: Expression, fields: Mapping[str, Field]) -> list[_Part]:
    match expression:
        case Both(parts):
            result = [part for one in parts for part in _conjuncts(one, fields)]
        case Either(parts, _):
            result: list[_Part] = [frozenset()]
            for one in parts:
                inside = _conjuncts(one, fields)
                result = [a | b for a in result for b in inside]
                if len(result) > MOST_CLAUSES:
                    raise InputError("too many")
        case Not(Not(part, _), _):
            result = _conjuncts(part, fields)
        case Not(Compare(sign, left, right, _), text) if sign in ("=", "!="):
            result = _conjuncts(Compare("!=" if sign == "=" else "=", left, right, text), fields)
        case Not(Call("selected", (field, Literal_() as code)), text):
            result = _conjuncts(Compare("!=", field, code, text), fields)
        case Call("true", ()):
            result = []
        case _:
            result = [frozenset([_atom(expression, fields)])]
    if len(result) > MOST_CLAUSES:
        raise InputError("too many")
    return result


def _atom(expression: Expression, fields: Mapping[str, Field]) -> Atom | Unknown:
    match expression:
        case Compare(sign, Literal_() as value, FieldReference() as field, text):
            return _compared(_TURNED[sign], field, value, text, fields)
        case Compare(sign, FieldReference() as field, Literal_() as value, text):
            return _compared(sign, field, value, text, fields)
        case Compare(sign, Call(name, (FieldReference(field),)), Literal_(value), text) if name in (
            "count-selected",
            "string-length",
        ):
            some = (sign, value) in ((">", "0"), (">=", "1"), ("!=", "0"))
            return Atom(field) if some and field in fields else Unknown(text)
        case Call("selected", (FieldReference() as field, Literal_() as value), text):
            return _selected(field, value, text, fields)
        case Compare(text=text) | Call(text=text) | Not(text=text) | Unknown(text):
            return Unknown(text)
        case FieldReference(name):
            return Unknown(name)
        case _:
            return Unknown(str(getattr(expression, "value", "?")))


def _selected(ref: FieldReference, value: Literal_, text: str, fields: Mapping[str, Field]) -> Atom | Unknown:
    field = fields.get(ref.name)
    if field is None or not value.value.strip() or any(x in value.value for x in " ,;|\t\n"):
        return Unknown(text)
    return Atom(field.name, box=value.value) if field.kind == "many" else Atom(field.name, (value.value,))


def _compared(
    sign: str, ref: FieldReference, value: Literal_, text: str, fields: Mapping[str, Field]
) -> Atom | Unknown:
    field, content = fields.get(ref.name), value.value.strip()
    if field is None:
        return Unknown(text)
    if ref.option is not None:  # a box of REDCap is 1 or 0
        known = any(option.code == ref.option for option in field.options)
        return Atom(field.name, box=ref.option) if (sign, content) == ("=", "1") and known else Unknown(text)
    if not content:
        return Atom(field.name) if sign == "!=" else Unknown(text)
    if sign == "=":
        return Atom(field.name, (content,))
    if sign == "!=":
        # true for those who did not answer, too: an answer follows only where everyone has to give one
        rest = tuple(option.code for option in field.options if option.code != content)
        sure = field.kind == "one" and field.listed and field.always and rest
        return Atom(field.name, rest) if sure else Unknown(text)
    return _number(sign, field, content, text)


def _number(sign: str, field: Field, digits: str, text: str) -> Atom | Unknown:
    try:
        bound = exact(digits)
        if field.kind != "one" or not field.listed:
            return Atom(field.name, comparison=f"{sign} {digits}")
        codes = [(option.code, exact(option.code)) for option in field.options]
    except InputError:
        return Unknown(text)
    holds = {"<": lambda x: x < bound, "<=": lambda x: x <= bound, ">": lambda x: x > bound}  # type: ignore[misc]
    kept = tuple(code for code, x in codes if (holds.get(sign) or (lambda x: x >= bound))(x))
    return Atom(field.name, kept) if kept else Unknown(text)
