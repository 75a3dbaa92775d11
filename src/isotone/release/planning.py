"""The plan of a spec: what would be released, by which mechanism, with what error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["SpecPlan"]


@dataclass(frozen=True)
class SpecPlan:
    """A plan for people (``view``: anything rich can print) and for programs (``plain``)."""

    view: Any
    values: dict[str, Any]

    def plain(self) -> dict[str, Any]:
        """The plan as plain values."""
        return self.values

    def __rich__(self) -> Any:
        return self.view

    def __str__(self) -> str:
        return str(self.view)
