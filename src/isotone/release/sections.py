"""Exact numbers, texts and the base class of the sections of a spec."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from isotone.privacy.guarantee import exact, positive

__all__ = ["Amount", "Real", "Section", "Size", "Text"]


def _number(value: Any) -> str:
    """A number kept as the text it was written as, so that it stays exact and the hash stays the same."""
    exact(value, "this entry")
    return value.strip() if isinstance(value, str) else repr(value)


def _amount(value: Any) -> str:
    positive(value, "this entry")
    return _number(value)


Text = Annotated[str, Field(min_length=1)]
Real = Annotated[str, BeforeValidator(_number)]
Amount = Annotated[str, BeforeValidator(_amount)]
Size = Annotated[int, Field(ge=1)]


class Section(BaseModel):
    """One table of a spec. The text under an entry is its meaning in the documentation (docs/reference/spec.md)."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True)

    def content(self, resolve: Callable[[str], Path]) -> dict[str, Any]:
        """What the section says, with the contents of the public files that it names."""
        del resolve
        return self.model_dump(mode="json", exclude_none=True)
