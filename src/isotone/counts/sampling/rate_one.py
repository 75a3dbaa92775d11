"""Half-widths of K-norm noise at rate 1.

With another budget the noise is the same on another scale, and division keeps the ranks of floats. So what was drawn for
one budget is kept for the next, and a plan that only changes the budget draws nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

import numpy as np

from isotone.array_types import Floats
from isotone.counts.sampling.recent import Recent
from isotone.linear.law import upper_draw

__all__ = ["RateOne"]

LARGEST = 4_000_000
"""Laws of more numbers than this are not kept."""

_laws: Recent[Floats] = Recent(2)
_widths: Recent[Floats] = Recent(32)


@dataclass(frozen=True)
class RateOne:
    """A law at rate 1, of which ``draw`` draws all rows from a public stream. Laws with the same ``key`` are the same."""

    key: Hashable
    numbers: int
    """How many numbers all rows together have."""
    draw: Callable[[], Floats] = field(compare=False)

    @property
    def rows(self) -> Floats:
        """The draws, one a row. They are shared, so whoever changes them copies them first."""
        return self.draw() if self.numbers > LARGEST else _laws.get(self.key, self.draw)

    def alone(self, confidence: float) -> Floats:
        """How far each column stays from 0."""
        return _widths.get((self.key, float(confidence)), lambda: upper_draw(np.abs(self.rows), confidence))

    def together(self, confidence: float) -> float:
        """How far all columns stay from 0 at once."""
        key = (self.key, float(confidence), "together")
        return float(_widths.get(key, lambda: upper_draw(np.max(np.abs(self.rows), axis=1), confidence)))
