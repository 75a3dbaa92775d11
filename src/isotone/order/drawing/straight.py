"""Positions with the least total sideways movement of the lines of a diagram.

A linear program (Gansner, Koutsofios, North and Vo 1993) whose corners make long lines upright. It is solved by
their network simplex: a spanning tree of constraints that hold with equality is changed, one edge at a time, until no
edge of the tree has a negative cut value. O(points + lines) for each change.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isotone.array_types import Floats, Ints

__all__ = ["least_movement"]

_NEARLY = 1e-9
_CHANGES = 20
"""Changes of the tree for each node, after which the positions are good enough: rounding may let it cycle."""


def least_movement(lines: Ints, weights: Floats, pairs: Ints, distances: Floats, points: int) -> Floats:
    """Positions that minimise the weighted sum of ``|x_a − x_b|`` over ``lines``.

    The second point of each of ``pairs`` is at least its distance to the right of the first, which needs to be
    possible. All points must be joined by lines or pairs.
    """
    corners = points + np.arange(len(lines))  # the left end of each line is a node of its own
    tails = np.concatenate((corners, corners, pairs[:, 0]))
    heads = np.concatenate((lines[:, 0], lines[:, 1], pairs[:, 1]))
    lengths = np.concatenate((np.zeros(2 * len(lines)), distances))
    cost = np.concatenate((weights, weights, np.zeros(len(pairs))))
    surplus = np.zeros(points + len(lines))
    np.add.at(surplus, tails, cost)
    np.subtract.at(surplus, heads, cost)
    network = _Network(tails, heads, lengths, surplus, _far_left(tails, heads, lengths, surplus.size))
    tree = network.tight_tree()
    if not tree:
        return np.zeros(points)
    for _ in range(_CHANGES * surplus.size):
        if not network.improve(tree):
            break
    return network.at[:points] - network.at[:points].min()


def _far_left(tails: Ints, heads: Ints, lengths: Floats, nodes: int) -> Floats:
    """Every node as far to the left as its constraints allow."""
    at = np.zeros(nodes)
    for _ in range(nodes):
        moved = at.copy()
        np.maximum.at(moved, heads, at[tails] + lengths)
        if np.array_equal(moved, at):
            break
        at = moved
    return at


@dataclass
class _Network:
    """Nodes with positions ``at``, such that each edge is at least as long as it must be."""

    tails: Ints
    heads: Ints
    lengths: Floats
    surplus: Floats
    at: Floats

    def slack(self) -> Floats:
        return self.at[self.heads] - self.at[self.tails] - self.lengths

    def tight_tree(self) -> list[int]:
        """Edges of a spanning tree without slack. Nodes are moved until there is one."""
        inside = np.zeros(self.at.size, np.bool_)
        inside[0] = True
        tree: list[int] = []
        while len(tree) < self.at.size - 1:
            leaving, entering = inside[self.tails], inside[self.heads]
            slack = np.where(leaving != entering, self.slack(), np.inf)
            edge = int(np.argmin(slack))
            self.at[inside] += slack[edge] if leaving[edge] else -slack[edge]
            inside[[self.tails[edge], self.heads[edge]]] = True
            tree.append(edge)
        return tree

    def improve(self, tree: list[int]) -> bool:
        """Replace an edge with a negative cut value by the one that then becomes tight; False if there is none."""
        order, parent, above = self._rooted(tree)
        sums = self.surplus.copy()
        for node in reversed(order[1:]):
            sums[parent[node]] += sums[node]
        nodes = np.array(order[1:], np.int64)
        edges = np.array(tree, np.int64)[np.array(above, np.int64)[nodes]]
        # moving the side of the head to the right by one costs the surplus of the other side
        values = np.where(self.tails[edges] == nodes, sums[nodes], -sums[nodes])
        worst = int(np.argmin(values))
        if values[worst] >= -_NEARLY:
            return False
        node = order[1 + worst]
        self._exchange(tree, above[node], self._below(node, order, parent))
        return True

    def _exchange(self, tree: list[int], place: int, side: NDArray[np.bool_]) -> None:
        if side[self.tails[tree[place]]]:
            side = ~side  # the side of the head, which moves to the right
        crossing = side[self.tails] & ~side[self.heads]
        slack = np.where(crossing, self.slack(), np.inf)
        edge = int(np.argmin(slack))
        self.at[side] += max(slack[edge], 0.0)
        tree[place] = edge

    def _rooted(self, tree: list[int]) -> tuple[list[int], list[int], list[int]]:
        """The nodes from the root down, with the parent and the place in the tree of the edge to it."""
        beside: list[list[tuple[int, int]]] = [[] for _ in range(self.at.size)]
        for place, edge in enumerate(tree):
            tail, head = int(self.tails[edge]), int(self.heads[edge])
            beside[tail].append((head, place))
            beside[head].append((tail, place))
        order, parent, above = [0], [-1] * self.at.size, [-1] * self.at.size
        for node in order:
            for other, place in beside[node]:
                if place != above[node]:
                    parent[other], above[other] = node, place
                    order.append(other)
        return order, parent, above

    def _below(self, top: int, order: list[int], parent: list[int]) -> NDArray[np.bool_]:
        below = np.zeros(self.at.size, np.bool_)
        below[top] = True
        for node in order:
            if parent[node] >= 0 and below[parent[node]]:
                below[node] = True
        return below
