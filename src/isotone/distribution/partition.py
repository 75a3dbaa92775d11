"""A private partition of a line of cells, finer where there are many records: PrivTree (Zhang, Xiao and Xie 2016).

A node is halved if its count, less by a step for each level above it, is above a threshold with Laplace noise. One share of the
budget pays for any depth (docs/theory/distribution.md, section 2).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np

from isotone.array_types import Ints
from isotone.errors import InputError
from isotone.noise.bits import log_two
from isotone.privacy.calibration import largest_pure
from isotone.privacy.draws import Draws
from isotone.privacy.guarantee import Guarantee, Unit

ROOTS = 8
"""So many even parts are there before anything is halved."""
LOSS = Fraction(2607, 1000)
"""One record more has a loss of at most so many over the scale of the noise. It is above 1 + Σ 1/(2^i − 1)."""
SPAN = LOSS + 1
"""All losses of one record lie in an interval of this length over the scale."""
_BITS = 64


@dataclass(frozen=True)
class Partition:
    """The decisions: Laplace noise of this ``scale``, a ``step`` for each level, and a public ``threshold``.

    Guarantee: for scales from :meth:`pure` ε-DP, and for those from :meth:`zcdp` ρ-zCDP, where neighbours are those of the unit
    and its records are counted in one line, or in ``several`` (docs/theory/distribution.md, Theorems 1 and 2). Any threshold
    keeps it. Only the bins may be published, never the noise of a decision.
    """

    scale: Fraction
    threshold: int = 0

    @classmethod
    def pure(cls, epsilon: Fraction, unit: Unit, *, several: bool = False) -> Partition:
        """Decisions that are ε-DP.

        A record that takes the place of another in the same line adds up to the span. Of several lines one may be halved
        and another may not, by public rules: each step then has its own part.
        """
        if unit.adjacency.exchanges and not several:
            return cls(SPAN * unit.changes / epsilon)
        return cls(LOSS * unit.steps / epsilon)

    @classmethod
    def zcdp(cls, rho: Fraction, unit: Unit) -> Partition:
        """Decisions that are ρ-zCDP, since all losses lie in an interval of length √(8ρ)."""
        width = largest_pure(Guarantee.zcdp(4 * rho))
        if not width:
            raise InputError(
                f"rho must be larger: a part of it, {float(rho):.3g}, is too small to compute with."
            )
        return cls(SPAN * unit.steps / width)

    @property
    def step(self) -> int:
        """The least whole number that is at least 1 and at least ``scale·ln 2``."""
        return max(1, -(-self.scale.numerator * log_two(_BITS)[1] // (self.scale.denominator << _BITS)))

    def edges(self, cells: Ints, draws: Draws, apart: int = 0) -> Ints:
        """The ends of the bins, from 0 to the number of cells, given how many records each cell has.

        Only nodes of one cell stop without a decision: empty ones do not, as that would tell that they are empty. So many cells at
        the end stand ``apart``, each a root of its own.
        """
        before = np.concatenate([[0], np.cumsum(cells, dtype=np.int64)])
        edges = [roots(cells.size, apart)]
        low, high = edges[0][:-1], edges[0][1:]
        depth = 0
        while low.size:
            wide = high - low > 1
            low, high = low[wide], high[wide]
            above = np.maximum(before[high] - before[low] - depth * self.step - self.threshold, -self.step)
            split = self._decided(above, draws)
            low, high = low[split], high[split]
            middle = (low + high) // 2
            edges.append(middle)
            low, high = np.stack([low, middle], 1).ravel(), np.stack([middle, high], 1).ravel()
            depth += 1
        return np.unique(np.concatenate(edges))

    def _decided(self, above: Ints, draws: Draws) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Whether each number plus Laplace noise is above 0: by a coin of ``exp(−|number|/scale)``, and a fair one."""
        far = draws.coins(1 / self.scale, np.abs(above)) & (draws.below(np.full(above.size, 2)) == 1)
        return np.where(above >= 0, ~far, far)

    def could_give(self, edges: Ints, apart: int = 0) -> bool:
        """Whether halving gives these ends of bins: each bin is a node, and so is what it was halved from."""
        known, given = set(edges.tolist()), roots(int(edges[-1]), apart).tolist()
        waiting = list(pairwise(given))
        result = set(given)
        while waiting:
            low, high = waiting.pop()
            middle = (low + high) // 2
            if high - low > 1 and middle in known:
                result.add(middle)
                waiting += [(low, middle), (middle, high)]
        return known == result


def roots(cells: int, apart: int) -> Ints:
    """The ends of the public parts: even ones, and after them each cell that stands apart."""
    halved = cells - apart
    return np.unique(np.concatenate([np.arange(ROOTS + 1) * halved // ROOTS, np.arange(halved, cells + 1)]))
