"""The derivative of a loss as an integer, on the fine grid of ``y``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotone.kernels import kernel

__all__ = ["Slopes", "derivative"]

Ints = NDArray[np.int64]


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

    def at(self, value: int, levels: Ints) -> Ints:
        """The derivatives at one value for records of the given levels."""
        raw = np.clip(self.offset + self.scale * value - self.step * levels, -self.cap, self.cap)
        return np.where(raw > 0, raw * self.above, raw * self.below)

    def bound(self, value: int, top: int) -> int:
        """The largest absolute derivative at ``value`` over all records of levels ``0, …, top``."""
        return int(np.abs(self.at(value, np.array([0, top], dtype=np.int64))).max())

    def places(self, values: Ints) -> Ints:
        """``offset + scale·v`` for values ``v``, as compiled code takes them."""
        return self.offset + self.scale * values

    @property
    def rule(self) -> Ints:
        """The other numbers, as compiled code takes them."""
        return np.array([self.step, self.cap, self.above, self.below])


@kernel
def derivative(place: Any, level: Any, rule: Ints) -> Any:
    """The derivative at a place for a record of a level."""
    slope = min(max(place - rule[0] * level, -rule[1]), rule[1])
    return slope * (rule[2] if slope > 0 else rule[3])
