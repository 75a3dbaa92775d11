"""How the noise of an order is drawn, and what that costs."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Literal

__all__ = ["Method"]


@dataclass(frozen=True)
class Method:
    """Which of four exactly private methods is used.

    See docs/theory/counts.md, section 9.

    * ``exact``: noise shaped by the order, from its own tables.
    * ``two levels``: the same noise for an order of height 2 at most, by coupling from the past.
    * ``rejection``: the same noise, drawn from a relaxed order until a draw fits; ``acceptance`` is the
      estimated share of draws that do.
    * ``relaxed``: noise shaped by the relaxed order. Its expected squared error is ``cost`` times that of the
      order itself, estimated with standard error ``cost_error``.

    ``dropped`` are the relations (lower, upper) of the order that the relaxed one lacks.

    >>> print(Method("exact"))
    exact
    """

    name: Literal["exact", "two levels", "rejection", "relaxed"]
    dropped: tuple[tuple[Hashable, Hashable], ...] = field(default=(), repr=False)
    acceptance: float = 1.0
    cost: float = 1.0
    cost_error: float = 0.0

    def __str__(self) -> str:
        without = f"without {len(self.dropped)} of the relations"
        if self.name == "rejection":
            return f"rejection: drawn {without}, about 1 in {1 / self.acceptance:.0f} draws fits"
        if self.name == "relaxed":
            return f"relaxed: {without}, squared error {self.cost:.2f} ± {self.cost_error:.2f} times as large"
        if self.name == "two levels":
            return "two levels: exact, by coupling from the past"
        return self.name
