"""The fields of a questionnaire, whatever form they came from, and words that mean yes, no and a refusal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from isotone.forms.expressions import Both, Expression

__all__ = ["Field", "Form", "Option", "both"]

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
