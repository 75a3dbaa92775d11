"""How the noise of an order is drawn, and what that costs."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Literal

__all__ = ["Method"]


@dataclass(frozen=True)
class Method:
    """Which of five exactly private methods is used.

    See docs/theory/counts.md, section 9.

    * ``exact``: noise shaped by the order, from its own tables.
    * ``two levels``: the same noise for an order of height 2 at most, by coupling from the past.
    * ``rejection``: the same noise, drawn from a relaxed order until a draw fits; ``acceptance`` is the
      estimated share of draws that do.
    * ``relaxed``: noise shaped by the relaxed order. Its expected squared error is ``cost`` times that of the
      order itself, estimated with standard error ``cost_error``.
    * ``partly relaxed``: noise shaped by an order between, drawn from the relaxed one until a draw fits.

    ``dropped`` are the relations (lower, upper) of the order that draws come without, or that the noise is
    without where it is relaxed. ``seconds`` is about the mean time of a draw, by a rule of thumb for one core.

    >>> print(Method("exact"))  # about draws: errors may be simulated
    drawn exactly
    """

    name: Literal["exact", "two levels", "rejection", "relaxed", "partly relaxed"]
    dropped: tuple[tuple[Hashable, Hashable], ...] = field(default=(), repr=False)
    acceptance: float = 1.0
    cost: float = 1.0
    cost_error: float = 0.0
    seconds: float = 0.0

    def __str__(self) -> str:
        without = f"without {len(self.dropped)} of the relations"
        larger = f"squared error {self.cost:.3f} ± {self.cost_error:.3f} times as large"
        tries = f"about 1 in {1 / self.acceptance:.0f} draws fits"
        time = f"about {self.seconds:.1g} s a draw"
        match self.name:
            case "rejection":
                return f"rejection: drawn {without}, {tries}, {time}"
            case "relaxed":
                return f"relaxed: {without}, {larger}"
            case "partly relaxed":
                return f"partly relaxed: {without}, {larger}, {tries}, {time}"
            case "two levels":
                return f"two levels: drawn exactly, by coupling from the past, {time}"
            case _:
                return "drawn exactly"
