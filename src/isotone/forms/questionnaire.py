"""A questionnaire, and the order that its skip logic implies."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, time
from typing import Any

from isotone.errors import InputError, OrderError
from isotone.forms.expressions import Atom, Field, Form, clauses_of
from isotone.order import Poset
from isotone.reading.questions import ANSWERED, Answers, Question, book_of, implied, order_of

# A spec as TOML text.

_BARE = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)


def toml_text(entries: Mapping[str, Any]) -> str:
    """The entries as a TOML file, tables after the plain entries of their table.

    >>> print(toml_text({"data": {"path": "a.csv", "columns": {"x y": "b"}}}))
    [data]
    path = "a.csv"
    <BLANKLINE>
    [data.columns]
    "x y" = "b"
    <BLANKLINE>
    """
    return "\n".join(_table(entries, ())).lstrip("\n") + "\n"


def _table(entries: Mapping[str, Any], place: tuple[str, ...]) -> Iterator[str]:
    plain = {key: value for key, value in entries.items() if not isinstance(value, Mapping)}
    tables = {key: value for key, value in entries.items() if isinstance(value, Mapping)}
    if place and (plain or not tables):
        yield f"\n[{'.'.join(map(_key, place))}]"
    for key, value in plain.items():
        yield f"{_key(key)} = {toml_value(value)}"
    for key, value in tables.items():
        yield from _table(value, (*place, key))


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else toml_string(name)


def toml_value(value: Any) -> str:
    """A value on one line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return toml_string(value)
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, (date, datetime, time)):
        return value.isoformat()
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(key)} = {toml_value(inner)}" for key, inner in value.items()) + " }"
    return "[" + ", ".join(map(toml_value, value)) + "]"


def toml_string(text: str) -> str:
    """A TOML string, with escapes for whatever cannot stand in one."""
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    kept = "".join(
        x if x.isprintable() else f"\\U{ord(x):08x}" if ord(x) not in range(0xD800, 0xE000) else "?"
        for x in quoted
    )
    return f'"{kept}"'


# A questionnaire as questions and an order, with a list of what it says and an order cannot.


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


def _comments(title: str, remarks: tuple[str, ...]) -> list[str]:
    return ["", f"# {title}", *(f"# - {_line(text)}" for text in remarks)] if remarks else []


def _line(text: str) -> str:
    """A text that stays on its line. No character of it can end a comment."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


# From fields with conditions to questions with an order.

_SIGNS = {">=": "ge", ">": "gt", "<=": "le", "<": "lt"}
_LONGEST = 60


def build(form: Form, most_options: int = 12) -> Questionnaire:
    """The questions of a form and the order that its conditions imply.

    A question of yes and no is one element. Any other one is an element for those who answered, and below it an
    element for each option, unless there are more than ``most_options``.
    """
    return _Builder(form, most_options).whole()


class _Builder:
    def __init__(self, form: Form, most_options: int) -> None:
        self.form, self.most = form, most_options
        self.fields = {field.name: field for field in form.fields}
        self.book: dict[str, Question] = {}
        self.known: dict[Atom, str] = {}
        self.of_field: dict[str, list[str]] = {}
        self.taken = {field.name for field in form.fields}
        self.problems = [*form.problems]
        self.noted: dict[str, list[str]] = {}
        self.relations: list[tuple[str, str]] = [*form.relations]

    def whole(self) -> Questionnaire:
        for field in self.form.fields:
            self._ask(field)
        uppers = {field.name: self._uppers(field) for field in self.form.fields if field.condition}
        for name, above in uppers.items():
            self._relate(name, above)
        left = [field for field in self.form.fields if field.name not in self.of_field]
        for field in left:
            self._note(field.name, "left out, as it is neither a choice nor a number")
        if not self.book:
            raise InputError("The form has no question that can be counted: no choice and no number.")
        P, children = self._with_choices(self._order())
        covers = tuple((str(a), str(b)) for a, b in P.covers)
        notes = tuple(f"{', '.join(names)}: {what}" for what, names in self.noted.items())
        return Questionnaire(
            tuple(self.book.values()),
            covers,
            children,
            tuple(self.problems),
            notes,
            self.form.title,
        )

    # ------------------------------------------------------------------ elements

    def _ask(self, field: Field) -> None:
        """The elements of a field that every form gets."""
        if field.kind == "other":
            return
        if field.yes_and_no is not None:
            yes, no = field.yes_and_no
            self._note(field.name, f"a yes is {_shown(field, yes)}, a no is {_shown(field, no)}")
            self._add(Atom(field.name, (yes,)), field.name, field.label, no=[no])
        elif field.kind == "one" and field.listed and field.answers:
            self._add(
                Atom(field.name, tuple(option.code for option in field.answers)), field.name, field.label
            )
        elif any(option.column for option in field.options):
            boxes = [self.element(Atom(field.name, box=option.code)) for option in field.answers]
            self._keep(Atom(field.name), Question(field.name, any_of=boxes, label=field.label))
        else:
            self._add(Atom(field.name), field.name, field.label)
        if field.refused:
            text = " and ".join(_shown(field, code) for code in field.refused)
            self._note(field.name, f"refusals, which count as a no: {text}")
        if field.yes_and_no is None and len(field.answers) <= self.most:
            for option in field.answers:
                single = field.kind == "one"
                self.element(
                    Atom(field.name, (option.code,)) if single else Atom(field.name, box=option.code)
                )
        elif field.yes_and_no is None and field.answers:
            few = f"more than {self.most} options: only those that a condition names are elements"
            self._note(field.name, few)

    def _note(self, field: str, what: str) -> None:
        """Remember how a field was read. What is the same for several is said once."""
        self.noted.setdefault(what, []).append(field)

    def element(self, atom: Atom) -> str:
        """The name of the element for an atom, made if there is none yet."""
        field = self.fields[atom.field]
        if field.kind == "one" and field.listed and atom == Atom(field.name):  # any answer is one of the list
            atom = Atom(field.name, tuple(option.code for option in field.options))
        codes = tuple(option.code for option in field.options if option.code in atom.codes) or atom.codes
        atom = replace(atom, codes=codes)
        if atom in self.known:
            return self.known[atom]
        labels = {option.code: option.label or option.code for option in field.options}
        if atom.comparison:
            sign, number = atom.comparison.split()
            name, what = f"{field.name}_{_SIGNS[sign]}_{number}", atom.comparison
        elif atom.codes or atom.box is not None:
            listed = list(atom.codes) if atom.codes else [str(atom.box)]
            name = f"{field.name}_{'_or_'.join(listed)}"
            what = " or ".join(labels.get(code, code) for code in listed)
        else:
            name, what = f"{field.name}_answered", "answered"
        return self._add(atom, name, f"{field.label or field.name}: {what}")

    def _add(self, atom: Atom, name: str, label: str, no: Iterable[str] = ()) -> str:
        field = self.fields[atom.field]
        column, refused = field.column or field.name, list(field.refused)
        own = name if name == field.name else self._free(name)
        if atom.comparison:
            question = Question(own, atom.comparison, column, label)
        elif atom.codes:
            refused = [code for code in refused if code not in atom.codes]
            question = Question(own, atom.codes, column, label, no=list(no), refused=refused)
        elif atom.box is not None:
            box = next((option.column for option in field.options if option.code == atom.box), None)
            question = (
                Question(own, ["1"], box, label) if box else Question(own, None, column, label, atom.box)
            )
        else:
            question = Question(own, ANSWERED, column, label, refused=refused)
        return self._keep(atom, question)

    def _keep(self, atom: Atom, question: Question) -> str:
        question = replace(question, label=_plain(question.label))
        self.book[question.name] = (
            question if question.column != question.name else replace(question, column=None)
        )
        self.known[atom] = question.name
        self.of_field.setdefault(atom.field, []).append(question.name)
        return question.name

    def _free(self, text: str) -> str:
        """A name that no other element has."""
        name = re.sub(r"[^\w.-]+", "_", text)[:_LONGEST].strip("_") or "element"
        number, result = 2, name
        while result in self.taken:
            result, number = f"{name}_{number}", number + 1
        self.taken.add(result)
        return result

    # ------------------------------------------------------------------ the order

    def _uppers(self, field: Field) -> list[str]:
        """The elements that an answer to the field implies."""
        assert field.condition is not None
        condition = clauses_of(field.condition, self.fields)
        if condition.unknown:
            part = "is used in part" if condition.clauses else "is not used"
            self.problems.append(
                f"{field.name}: its condition {part}; an order cannot say: {'; '.join(condition.unknown)}"
            )
        return [self._any(clause) for clause in condition.clauses]

    def _any(self, clause: frozenset[Atom]) -> str:
        """The element that is a yes where one of the atoms holds."""
        codes: dict[str, list[str]] = {}
        parts: list[Atom] = []
        for atom in sorted(clause, key=repr):
            if atom.codes:
                codes.setdefault(atom.field, []).extend(atom.codes)
            else:
                parts.append(atom)
        parts += [Atom(name, tuple(dict.fromkeys(listed))) for name, listed in codes.items()]
        names = sorted(self.element(atom) for atom in parts)
        if len(names) == 1:
            return names[0]
        expected = [question for question in self.book.values() if sorted(question.any_of) == names]
        if expected:
            return expected[0].name
        flat = list(dict.fromkeys(part for name in names for part in (self.book[name].any_of or [name])))
        name = self._free("_or_".join(names))
        label = " or ".join(self.book[part].shown for part in flat)
        self.book[name] = Question(name, any_of=flat, label=_plain(label))
        return name

    def _relate(self, field: str, uppers: list[str]) -> None:
        for lower in self.of_field.get(field, []):
            for upper in uppers:
                if upper == lower or lower in self._above(upper):
                    self.problems.append(
                        f"{lower}: its condition asks for {upper}, which comes after it. Left out."
                    )
                else:
                    self.relations.append((lower, upper))

    def _above(self, start: str) -> set[str]:
        """What an element implies in the order so far, itself included."""
        above: dict[str, list[str]] = {}
        for lower, upper in [*self.relations, *self._implied()]:
            above.setdefault(lower, []).append(upper)
        seen, left = {start}, [start]
        while left:
            for upper in above.get(left.pop(), []):
                if upper not in seen:
                    seen.add(upper)
                    left.append(upper)
        return seen

    def _implied(self) -> list[tuple[str, str]]:
        if getattr(self, "_found", (0, None))[0] != len(self.book):
            self._found = (len(self.book), implied(book_of(self.book.values()), Answers()))
        return self._found[1] or []

    def _order(self) -> Poset:
        """What all parts of an "any of" imply, it implies too."""
        for question in self.book.values():
            if question.any_of:
                common = set[str].intersection(*(self._above(part) for part in question.any_of))
                above = [x for x in sorted(common) if question.name not in self._above(x)]
                self.relations += [(question.name, x) for x in above]
        return Poset(list(self.book), [*self.relations, *self._implied()])

    def _with_choices(self, P: Poset) -> tuple[Poset, dict[str, list[list[object]]]]:
        """The order with the options of single-choice questions excluding each other, where it can say so."""
        above: dict[str, set[str]] = {name: set() for name in self.book}
        for lower, upper in P.covers:
            above[str(lower)].add(str(upper))
        kept: list[tuple[str, list[str]]] = []
        for field in self.form.fields:
            groups: dict[frozenset[str], list[str]] = {}
            for name in self.of_field.get(field.name, []):
                if field.kind == "one" and isinstance(self.book[name].yes, tuple):
                    groups.setdefault(frozenset(above[name]), []).append(name)
            for upper, options in groups.items():
                kind = self._kind(upper, options)
                if kind is None:
                    continue
                try:
                    Poset(P.elements, P.covers, [*kept, (kind, options)])
                    kept.append((kind, options))
                except OrderError:
                    self.problems.append(
                        f"{field.name}: that its options exclude each other is not said; other questions depend on one of "
                        "them and on something else."
                    )
        children: dict[str, list[list[object]]] = {}
        for kind, options in kept:
            children.setdefault(min(above[options[0]], default=""), []).append([kind, options])
        return Poset(P.elements, P.covers, kept), children

    def _kind(self, upper: frozenset[str], options: list[str]) -> str | None:
        """Whether the options exclude each other, and whether they make up the element above them."""
        codes = [code for name in options for code in self.book[name].yes or ()]
        if len(options) < 2 or len(set(codes)) < len(codes):
            return None
        whole = self.book[min(upper)].yes if len(upper) == 1 else None
        columns = {self.book[name].column or name for name in (*upper, options[0])}
        same = len(upper) == 1 and len(columns) == 1
        return "partition" if same and isinstance(whole, tuple) and set(whole) == set(codes) else "exclusive"


def _plain(label: str) -> str:
    """A label of a form without control characters, and not longer than one may be."""
    return textwrap.shorten("".join(x if x.isprintable() else " " for x in label), 900, placeholder=" …")


def _shown(field: Field, code: str) -> str:
    label = next((option.label for option in field.options if option.code == code), "")
    return f"{code} ({label})" if label and label != code else code
