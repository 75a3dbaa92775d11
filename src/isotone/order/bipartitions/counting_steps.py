"""The decomposition of an order, written out as steps that count extended bipartitions.

An *extended bipartition* of P is a split of its elements in two sides, A and B, with a linear extension of
each side. Through the decomposition tree they are counted by the number a of elements on side A, in one of two
ways (docs/theory/counts.md, section 5):

* a *counted* table ``f(a)``: their number;
* a *loose* table ``h(a) = f(a) / (a! (n - a)!)``: what is left when the interleaving is taken out.

Loose tables of independent parts multiply like polynomials, and so do counted tables of stacked parts. Each
step makes one table of one or more earlier ones:

========  =======  =====================================================================
POINTS    loose    k unrelated elements: ``C(k, a)``
CHAIN     counted  k elements in a chain: ``C(k, a)``
BESIDE    loose    two loose tables, convolved
STACK     counted  two counted tables, convolved (the left part below the right one)
LOOSEN    loose    a counted table over ``a! (n - a)!``
SHUFFLE   counted  a loose table times ``a! (n - a)!``
PRIME     counted  a block without series or parallel split, through its table of words
========  =======  =====================================================================

Wide nodes are cut in halves, so that all convolutions together cost O(n²).
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

from isotone.array_types import Ints
from isotone.order.decomposition import Leaf, Node, Parallel, Prime, Series

if TYPE_CHECKING:
    from isotone.order.poset import Poset

__all__ = ["BESIDE", "CHAIN", "LOOSEN", "POINTS", "PRIME", "SHUFFLE", "STACK", "Steps", "steps"]

POINTS, CHAIN, BESIDE, STACK, LOOSEN, SHUFFLE, PRIME = range(7)

_MANY = 2**62


@dataclass(frozen=True, eq=False)
class Steps:
    """The steps that build the tables, earlier ones first.

    The last makes the counted table of the whole order.

    ``tree`` has a row (kind, size, left, right, start) for each step: the entries of its table take the
    places ``start … start + size`` of one array; ``left`` and ``right`` are earlier steps. For POINTS and
    CHAIN ``left`` is where its elements start in ``elements`` (a chain's bottom up), for PRIME it is a row of
    ``blocks``.

    ``blocks`` has a row (first, states, words, classes) for each prime block, and one more: its modules are
    the rows of ``modules`` from ``first`` up to the next block's; its tables of words start at ``words``, and
    its classes by size of side A at ``classes``, in arrays for all blocks. ``modules`` has a row (step, size,
    above, stride) for each module: ``above`` has a bit for each module of the block above it. How many
    elements of each module are on a side is one number, the sum of the counts times ``stride``.
    """

    tree: Ints
    elements: Ints
    blocks: Ints
    modules: Ints

    def __len__(self) -> int:
        return len(self.tree)

    @property
    def total(self) -> int:
        """The number of elements of the order."""
        return int(self.tree[-1, 1])

    @property
    def states(self) -> list[int]:
        """The number of states of each prime block (2^62 if there are more)."""
        return self.blocks[:-1, 1].tolist()

    def within(self, reach: int) -> bool:
        """Whether no prime block has more than ``reach`` states."""
        return max(self.states, default=0) <= reach and bool(np.all(np.diff(self.blocks[:, 0]) < 63))


def steps(P: Poset) -> Steps:
    """The steps that count the extended bipartitions of ``P``, from its decomposition tree."""
    draft = _StepWriter()
    made: dict[Node, int] = {}  # nodes compare by identity
    tree = P.decomposition()
    for node in tree.walk():
        if isinstance(node, Series):
            made[node] = draft.series(node, made)
        elif isinstance(node, Parallel):
            made[node] = draft.parallel(node, made)
        elif isinstance(node, Prime):
            made[node] = draft.prime(node, [draft.counted(child, made) for child in node.children])
    if isinstance(tree, Leaf):
        draft.chain([tree.index])
    return draft.finish()


@dataclass
class _StepWriter:
    """Steps being written."""

    rows: list[tuple[int, int, int, int]] = field(default_factory=lambda: [])
    elements: list[int] = field(default_factory=lambda: [])
    blocks: list[tuple[int, int, int]] = field(default_factory=lambda: [])
    modules: list[tuple[int, int, int, int]] = field(default_factory=lambda: [])

    def add(self, kind: int, size: int, left: int, right: int = -1) -> int:
        self.rows.append((kind, size, left, right))
        return len(self.rows) - 1

    def size(self, step: int) -> int:
        return self.rows[step][1]

    def points(self, indices: list[int]) -> int:
        self.elements.extend(indices)
        return self.add(POINTS, len(indices), len(self.elements) - len(indices))

    def chain(self, indices: list[int]) -> int:
        self.elements.extend(indices)
        return self.add(CHAIN, len(indices), len(self.elements) - len(indices))

    def counted(self, node: Node, made: dict[Node, int]) -> int:
        return self.chain([node.index]) if isinstance(node, Leaf) else made[node]

    def join(self, kind: int, left: int, right: int) -> int:
        return self.add(kind, self.size(left) + self.size(right), left, right)

    def series(self, node: Series, made: dict[Node, int]) -> int:
        """Stack the parts by halves. Neighbouring single elements first become one chain."""
        parts: list[int] = []
        run: list[int] = []
        for child in node.children:
            if isinstance(child, Leaf):
                run.append(child.index)
                continue
            if run:
                parts.append(self.chain(run))
                run = []
            parts.append(made[child])
        if run:
            parts.append(self.chain(run))
        return self._stack(parts)

    def _stack(self, parts: list[int]) -> int:
        if len(parts) == 1:
            return parts[0]
        half = len(parts) // 2
        return self.join(STACK, self._stack(parts[:half]), self._stack(parts[half:]))

    def parallel(self, node: Parallel, made: dict[Node, int]) -> int:
        """Join the two smallest parts repeatedly.

        Single elements first become one set of points.
        """
        loose = [child.index for child in node.children if isinstance(child, Leaf)]
        parts = [self.points(loose)] if loose else []
        inner = [child for child in node.children if not isinstance(child, Leaf)]
        parts.extend(self.add(LOOSEN, child.size, made[child]) for child in inner)
        heap = [(self.size(part), part) for part in parts]
        heapq.heapify(heap)
        while len(heap) > 1:
            (_, a), (_, b) = heapq.heappop(heap), heapq.heappop(heap)
            joined = self.join(BESIDE, a, b)
            heapq.heappush(heap, (self.size(joined), joined))
        return self.add(SHUFFLE, node.size, heap[0][1])

    def prime(self, node: Prime, parts: list[int]) -> int:
        above = node.quotient.leq_matrix() & ~np.eye(len(parts), dtype=np.bool_)
        first, states = len(self.modules), 1
        for i, part in enumerate(parts):
            letters = sum(1 << int(j) for j in np.flatnonzero(above[i])) if len(parts) < 63 else 0
            self.modules.append((part, self.size(part), letters, min(states, _MANY)))
            states *= self.size(part) + 1
        self.blocks.append((first, min(states, _MANY), node.size + 2))
        return self.add(PRIME, node.size, len(self.blocks) - 1)

    def finish(self) -> Steps:
        rows = np.array(self.rows, np.int64).reshape(-1, 4)
        start = np.cumsum(rows[:, 1] + 1) - rows[:, 1] - 1
        shapes = [*self.blocks, (len(self.modules), 0, 0)]
        words = accumulate([states for _, states, _ in shapes], initial=0)
        classes = accumulate([width for _, _, width in shapes], initial=0)
        blocks = [
            (first, states, min(at, _MANY), c)
            for (first, states, _), at, c in zip(shapes, words, classes, strict=False)
        ]
        return Steps(
            np.column_stack((rows, start)),
            np.array(self.elements, np.int64),
            np.array(blocks, np.int64),
            np.array(self.modules, np.int64).reshape(-1, 4),
        )
