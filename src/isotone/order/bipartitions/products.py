"""Expected products of the noise at two elements, without simulation.

At rate 1 the product has the expectation ``E[(ii' + min(i, i')) + (jj' + min(j, j')) - ij' - ji']`` over the places of the
two elements (docs/theory/inference.md, section 3). It is the square of :mod:`.moments` with one factor for each element:
``r(r + 1)`` becomes ``rr' + min(r, r')``, and sums and random interleaving change both alike. So the polynomials of the
squares are passed down to the step where the two elements part. There the rest is a product: given how many elements of each
part are on side A, the parts are independent of each other. Where they are stacked, the smaller place is that of the lower
part. Where they are interleaved, ``rr' + min(r, r')`` has the mean ``(A + 1)(A + 2)·r/(a + 1)·r'/(a' + 1)``. So the means of
the places in each part are all that is needed, and all pairs together take O(n³) steps of plain matrix products.
"""

from __future__ import annotations

import numpy as np

from isotone.array_types import Floats, Ints
from isotone.order.bipartitions.counting_steps import CHAIN, LOOSEN, POINTS, PRIME, SHUFFLE, STACK
from isotone.order.bipartitions.counting_tables import Tables
from isotone.order.bipartitions.moments import SQUARES, expected_squares, passed_down
from isotone.order.bipartitions.upward import Numbers, logarithms

__all__ = ["expected_products"]

_LARGEST = 1_000


class _StepMeans:
    """The elements of a step and the means of their places, a row for each size of side A."""

    def __init__(self, elements: Ints, r: Floats, s: Floats) -> None:
        self.elements, self.r, self.s = elements, r, s


def expected_products(tables: Tables) -> Floats | None:
    """The expected products of the noise at all pairs of elements, at rate 1.

    None if the order has prime blocks, or more than 1,000 elements.
    """
    tree = tables.steps.tree
    squares = expected_squares(tables) if tables.steps.total <= _LARGEST else None
    if squares is None or np.any(tree[:, 0] == PRIME):
        return None
    polynomials, parts = dict(passed_down(tables, SQUARES)), dict[int, _StepMeans]()
    result = np.empty((squares.size, squares.size))
    for v, (kind, size, left, right, _) in enumerate(tree.tolist()):
        c = polynomials.pop(v)
        if kind in (POINTS, CHAIN):
            own = tables.steps.elements[left : left + size]
            parts[v], block = (_points if kind == POINTS else _chain)(own, c)
            result[np.ix_(own, own)] = block
        elif kind in (LOOSEN, SHUFFLE):
            parts[v] = _scaled(parts.pop(left), 1.0 if kind == SHUFFLE else -1.0)
        else:
            first, second = parts.pop(left), parts.pop(right)
            chance = _chances(tables.numbers, tree[left], tree[right])
            block = _across(first, second, chance, c, stacked=kind == STACK)
            result[np.ix_(first.elements, second.elements)] = block
            result[np.ix_(second.elements, first.elements)] = block.T
            parts[v] = _joined(first, second, chance, stacked=kind == STACK)
    np.fill_diagonal(result, squares)
    return result


def _points(elements: Ints, c: Floats) -> tuple[_StepMeans, Floats]:
    """Unrelated elements: each alone among its own, at place 1 of 1, which is 1/2 once interleaving is taken out."""
    k = elements.size
    a = np.arange(k + 1.0)
    b, pairs = k - a, max(k * (k - 1), 1)
    both = a * (a - 1) @ (c[:, 1] / 2 + c[:, 3] / 4) + b * (b - 1) @ (c[:, 2] / 2 + c[:, 4] / 4)
    apart = 2 * a * b @ ((c[:, 1] + c[:, 2]) / 4 + c[:, 5] / 8)
    means = [np.repeat(side[:, None] / (2 * k), k, axis=1) for side in (a, b)]
    return _StepMeans(elements, *means), np.full((k, k), c[:, 0].sum() + (both + apart) / pairs)


def _chain(elements: Ints, c: Floats) -> tuple[_StepMeans, Floats]:
    """The j-th element of a chain, bottom up: r is hypergeometric, and s = j - r."""
    k = elements.size
    a, j = np.arange(k + 1.0), np.arange(1.0, k + 1)
    b = k - a
    once = (c[:, 1] @ a + c[:, 2] @ b) / k
    least = 2 * (c[:, 3] @ a + c[:, 4] @ b) / k
    twice = (c[:, 3] @ (a * (a - 1)) + c[:, 4] @ (b * (b - 1)) + c[:, 5] @ (a * b)) / max(k * (k - 1), 1)
    low, high = np.minimum.outer(j, j), np.maximum.outer(j, j)
    block = c[:, 0].sum() + once * (low + high) / 2 + least * low + twice * low * (high - 1)
    return _StepMeans(elements, np.outer(a, j) / k, np.outer(b, j) / k), block


def _scaled(part: _StepMeans, power: float) -> _StepMeans:
    """Interleaving taken out of the places, or put in."""
    a = np.arange(len(part.r))[:, None]
    return _StepMeans(part.elements, part.r * (a + 1) ** power, part.s * (len(part.r) - a) ** power)


def _chances(numbers: Numbers, left: Ints, right: Ints) -> Floats:
    """How likely each number of the left part and of the right is on side A, given their sum."""
    logs = [logarithms(numbers[part[4] : part[4] + part[1] + 1]) for part in (left, right)]
    weight = np.add.outer(*logs)
    total = np.add.outer(np.arange(len(logs[0])), np.arange(len(logs[1])))
    highest = np.full(total[-1, -1] + 1, -np.inf)
    np.maximum.at(highest, total, weight)
    weight = np.exp2(weight - highest[total])
    return weight / np.bincount(total.ravel(), weight.ravel())[total]


def _across(first: _StepMeans, second: _StepMeans, chance: Floats, c: Floats, *, stacked: bool) -> Floats:
    """The expectation for an element of each part."""
    k, rest = (np.arange(n) for n in chance.shape)
    c0, c1, c2, c3, c4, c5 = (chance * c[np.add.outer(k, rest), i] for i in range(6))
    constant, one, two = c0.sum(), c1 / 2, c2 / 2
    lower_r, lower_s = one.sum(axis=1), two.sum(axis=1)
    if stacked:  # all of the lower part on a side come before the upper part
        up, down = k, k[::-1]
        constant += one.sum(axis=1) @ up + two.sum(axis=1) @ down
        lower_r = lower_r + c3.sum(axis=1) * (up + 1) + c5.sum(axis=1) * down / 2
        lower_s = lower_s + c4.sum(axis=1) * (down + 1) + c5.sum(axis=1) * up / 2
    of_first = first.r.T @ lower_r + first.s.T @ lower_s
    of_second = second.r.T @ one.sum(axis=0) + second.s.T @ two.sum(axis=0)
    with_r = first.r.T @ c3 + first.s.T @ c5 / 2
    with_s = first.s.T @ c4 + first.r.T @ c5 / 2
    alone: Floats = constant + np.add.outer(of_first, of_second)
    return alone + with_r @ second.r + with_s @ second.s


def _joined(first: _StepMeans, second: _StepMeans, chance: Floats, *, stacked: bool) -> _StepMeans:
    """The means of the places in both parts together."""
    size, split = sum(chance.shape) - 1, len(first.elements)
    found = [np.zeros((size, split + len(second.elements))) for _ in "rs"]
    n = len(first.r) - 1
    few = (
        chance if len(second.r) <= len(first.r) else chance.T
    )  # along the smaller part, one diagonal at a time
    for step in range(few.shape[1]):
        rows = slice(step, step + few.shape[0])
        own = few[:, step, None]
        for sums, one, other, side in zip(found, (first.r, first.s), (second.r, second.s), "rs", strict=True):
            left, right = (one, other[step]) if few is chance else (one[step], other)
            if stacked:
                k = np.arange(n + 1) if few is chance else np.array([step])
                right = right + (k if side == "r" else n - k)[:, None]
            sums[rows, :split] += own * left
            sums[rows, split:] += own * right
    return _StepMeans(np.concatenate((first.elements, second.elements)), found[0], found[1])
