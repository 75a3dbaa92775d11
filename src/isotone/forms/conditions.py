"""What a condition says about answers, as clauses that must all hold, each one of several atoms.

An atom is an answer to one question that an order can hold: a code among some, a word, a number compared, any answer.
A clause with a part that is no atom is left out and reported: what is left is implied all the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from isotone.errors import InputError
from isotone.forms.expressions import (
    Both,
    Call,
    Compare,
    Either,
    Expression,
    FieldReference,
    Literal_,
    Not,
    Unknown,
)
from isotone.forms.fields import Field
from isotone.privacy.checks import exact

__all__ = ["Atom", "Clauses", "clauses_of"]

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
            found = [part for one in parts for part in _conjuncts(one, fields)]
        case Either(parts, _):
            found: list[_Part] = [frozenset()]
            for one in parts:
                inside = _conjuncts(one, fields)
                found = [a | b for a in found for b in inside]
                if len(found) > MOST_CLAUSES:
                    raise InputError("too many")
        case Not(Not(part, _), _):
            found = _conjuncts(part, fields)
        case Not(Compare(sign, left, right, _), text) if sign in ("=", "!="):
            found = _conjuncts(Compare("!=" if sign == "=" else "=", left, right, text), fields)
        case Not(Call("selected", (field, Literal_() as code)), text):
            found = _conjuncts(Compare("!=", field, code, text), fields)
        case Call("true", ()):
            found = []
        case _:
            found = [frozenset([_atom(expression, fields)])]
    if len(found) > MOST_CLAUSES:
        raise InputError("too many")
    return found


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
    field, said = fields.get(ref.name), value.value.strip()
    if field is None:
        return Unknown(text)
    if ref.option is not None:  # a box of REDCap is 1 or 0
        known = any(option.code == ref.option for option in field.options)
        return Atom(field.name, box=ref.option) if (sign, said) == ("=", "1") and known else Unknown(text)
    if not said:
        return Atom(field.name) if sign == "!=" else Unknown(text)
    if sign == "=":
        return Atom(field.name, (said,))
    if sign == "!=":
        # true for those who did not answer, too: an answer follows only where everyone has to give one
        rest = tuple(option.code for option in field.options if option.code != said)
        sure = field.kind == "one" and field.listed and field.always and rest
        return Atom(field.name, rest) if sure else Unknown(text)
    return _number(sign, field, said, text)


def _number(sign: str, field: Field, said: str, text: str) -> Atom | Unknown:
    try:
        bound = exact(said)
        if field.kind != "one" or not field.listed:
            return Atom(field.name, comparison=f"{sign} {said}")
        codes = [(option.code, exact(option.code)) for option in field.options]
    except InputError:
        return Unknown(text)
    holds = {"<": lambda x: x < bound, "<=": lambda x: x <= bound, ">": lambda x: x > bound}  # type: ignore[misc]
    kept = tuple(code for code, x in codes if (holds.get(sign) or (lambda x: x >= bound))(x))
    return Atom(field.name, kept) if kept else Unknown(text)
