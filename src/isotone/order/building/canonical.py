"""An order in one fixed sequence, whatever the sequence in which it was described.

What is computed from an order in floating point, or from seeded draws, depends on the sequence of its elements: sums
are rounded differently, draws go to other elements. So such things are computed for the canonical sequence and mapped
back, and two descriptions of one order have identical results. The sequence is a linear extension: by level, then by
name as text, so that an order read back from a file, where all names are text, has the same one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from isotone.array_types import Ints

if TYPE_CHECKING:
    from isotone.order.poset import Poset

__all__ = ["Canonical", "canonical_positions"]

T = TypeVar("T", bound=np.generic)


def canonical_positions(poset: Poset) -> Ints:
    """The positions of the elements in the canonical sequence, in O(n log n + covers)."""
    names, levels = poset.elements, poset.levels.tolist()

    def key(x: int) -> tuple[int, str, str]:
        return levels[x], str(names[x]), type(names[x]).__qualname__  # 1 and "1" may stand side by side

    return np.array(sorted(range(len(names)), key=key), np.int64)


@dataclass(frozen=True, eq=False)
class Canonical:
    """An order with its elements in canonical sequence.

    ``positions[k]`` is where the element at place k of the canonical sequence stands in the sequence given.
    """

    order: Poset
    positions: Ints

    def forth(self, values: NDArray[T]) -> NDArray[T]:
        """Values in the sequence given (last axis), in canonical sequence."""
        return values[..., self.positions]

    def back(self, values: NDArray[T]) -> NDArray[T]:
        """Values in canonical sequence (last axis), in the sequence given."""
        result: NDArray[Any] = np.empty_like(values)
        result[..., self.positions] = values
        return result
