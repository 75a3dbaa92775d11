"""Exact numbers, texts and the base class of the sections of a spec."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from isotone.privacy.guarantee import exact, positive
from isotone.reading.questions import Question

__all__ = ["Amount", "Asked", "Listed", "Pair", "Real", "Section", "Size", "Text"]


def _number(value: Any) -> str:
    """A number kept as the text it was written as, so that it stays exact and the hash stays the same."""
    exact(value, "this entry")
    return value.strip() if isinstance(value, str) else repr(value)


def _amount(value: Any) -> str:
    positive(value, "this entry")
    return _number(value)


_WRITTEN = r"^\s*[-+]?(\d[\d_]*(\.\d*)?|\.\d+)([eE][-+]?\d+)?(\s*/\s*\d+)?\s*$"
_A_NUMBER: dict[str, Any] = {"anyOf": [{"type": "number"}, {"type": "string", "pattern": _WRITTEN}]}
_A_POSITIVE: dict[str, Any] = {
    "anyOf": [
        {"type": "number", "exclusiveMinimum": 0},
        {"type": "string", "pattern": _WRITTEN.replace("[-+]?", "", 1)},
    ]
}

Text = Annotated[str, Field(min_length=1)]
Real = Annotated[str, BeforeValidator(_number), WithJsonSchema(_A_NUMBER)]
Amount = Annotated[str, BeforeValidator(_amount), WithJsonSchema(_A_POSITIVE)]
Size = Annotated[int, Field(ge=1)]
Listed = Field(strict=False)
"""For tuples, which TOML writes as lists."""
Pair = Annotated[tuple[Real, Real], Listed]


class Section(BaseModel):
    """One table of a spec. The text under an entry is its meaning in the documentation (docs/reference/spec.md)."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True)

    def complete(self, asked: bool) -> None:
        """Refuse what the rest of the spec does not allow; ``asked`` says whether there are questions."""
        if asked:
            raise ValueError("questions are for counts, which have [order]")

    def content(self, resolve: Callable[[str], Path]) -> dict[str, Any]:
        """What the section says, with the contents of the public files that it names."""
        del resolve
        return self.model_dump(mode="json", exclude_none=True)


class Asked(Section):
    """``[questions.NAME]``: the label of an element, its column, and what counts as a yes. NAME is its identifier."""

    label: str = ""
    """The question in words. Reports and diagrams show it, files the identifier."""
    column: Text | None = None
    """The column, by default called like the question. One column may serve several questions."""
    yes: list[str | int] | str | None = None
    """The codes that mean yes, such as ["1"]; or "answered"; or a comparison such as ">= 140". By default the words of [data]."""
    word: Text | None = None
    """In place of yes: a word that is among those of a multiple-choice field."""
    separator: Text | None = None
    """What stands between the words: one of , ; | / or a blank. By default blanks, commas, semicolons or bars."""
    any_of: list[str] = Field(default=[])
    """In place of yes: other questions. A yes to one of them is a yes."""
    no: list[str | int] = Field(default=[])
    """The codes that mean no; they matter with missing = "yes" only."""
    refused: list[str | int] = Field(default=[])
    """The codes of refusals, which are no answer and no number."""
    refusal: Literal["no", "yes"] = "no"
    """What a refusal counts as."""
    missing: Literal["no", "yes"] | None = None
    """What a missing answer or an unknown code counts as. By default as [data] says."""

    def question(self, name: str) -> Question:
        """The question called ``name``."""
        return Question(name, **self.model_dump(exclude_none=True))
