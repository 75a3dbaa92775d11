"""The derivative of a loss as an integer, on the fine grid of ``y``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isotone.array_types import Ints

__all__ = ["Slopes"]


@dataclass(frozen=True)
class Slopes:
    """The derivative of a loss at value ``v`` for a record of level ``u``, as an integer.

    ``clip(offset + scale·v − step·u, −cap, cap)``, times ``above`` where positive and ``below`` where negative.
    """

    offset: int
    scale: int
    step: int
    cap: int
    above: int = 1
    below: int = 1

    def at(self, value: int | Ints, levels: Ints) -> Ints:
        """The derivatives at one value, or one for each record, for records of the given levels."""
        raw = np.clip(self.offset + self.scale * value - self.step * levels, -self.cap, self.cap)
        return np.where(raw > 0, raw * self.above, raw * self.below)

    def bound(self, value: int, top: int) -> int:
        """The largest absolute derivative at ``value`` over all records of levels ``0, …, top``."""
        return int(np.abs(self.at(value, np.array([0, top], dtype=np.int64))).max())
