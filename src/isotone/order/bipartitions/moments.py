"""Moments of extended bipartitions."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from isotone.array_types import Floats, Ints
from isotone.kernels import kernel
from isotone.order.bipartitions.counting import Tables
from isotone.order.bipartitions.steps import (
    CHAIN,
    LOOSEN,
    POINTS,
    PRIME,
    SHUFFLE,
    STACK,
    Int64,
    Numbers,
    exponent,
    logarithms,
    mantissa,
)

# Expected squares of the noise at each element, without simulation.
#
# They are computed from the tables of extended bipartitions.
#
# In an extended bipartition let i(x) be the place of the last element of side A that is at most x, and j(x) the
# same on side B. The noise at x, at rate 1, has the expected square ``E[i(i+1) + j(j+1) - 2ij]``
# (docs/theory/counts.md, section 8). Seen from a part of the order, i and j are functions of the places r and s
# *within the part*, and through every step but prime blocks they change by shifts and by random interleaving,
# under which polynomials of the form
#
#     ``c0 + c1·r + c2·s + c3·r(r+1) + c4·s(s+1) + c5·rs``
#
# stay of that form. So one such polynomial for each entry of each table, passed down from the last step to the
# elements, gives all expectations exactly (up to float rounding) in O(n²).

SQUARES = np.array([[0, 0, 0, 1, 1, -2.0]])
"""The polynomial of the expected square of the noise."""


def expected_squares(tables: Tables) -> Floats | None:
    """``E[(i - j)² + i + j]`` for each element over uniform extended bipartitions.

    None if the order has prime blocks.
    """
    return _expected(tables, SQUARES)


def expected_products_with_total(tables: Tables) -> Floats | None:
    """``E[(i - j)(a - b) + i + j]`` for each element, where a and b are the sizes of the sides.

    None if the order has prime blocks.
    """
    lean = 2.0 * np.arange(tables.steps.total + 1, dtype=np.float64) - tables.steps.total
    zero = np.zeros_like(lean)
    return _expected(tables, np.stack([zero, 1 + lean, 1 - lean, zero, zero, zero], axis=1))


def _expected(tables: Tables, polynomials: Floats) -> Floats | None:
    """The expectation of a polynomial at each element; it may depend on the size of side A."""
    tree = tables.steps.tree
    if np.any(tree[:, 0] == PRIME):
        return None
    result = np.empty(tables.steps.total)
    for v, own in passed_down(tables, polynomials):
        kind, size, left, _, _ = tree[v].tolist()
        if kind in (POINTS, CHAIN):
            elements = tables.steps.elements[left : left + size]
            result[elements] = _at_points(own) if kind == POINTS else _at_chain(own)
    return result


def passed_down(tables: Tables, polynomials: Floats) -> Iterator[tuple[int, Floats]]:
    """The polynomials of each step, the last step first; a row for each size of its side A, times its probability."""
    tree = tables.steps.tree
    passed: dict[int, Floats] = {len(tree) - 1: tables.sizes[:, None] * polynomials}
    for v in range(len(tree) - 1, -1, -1):
        kind, size, left, right, _ = tree[v].tolist()
        own = passed.pop(v)  # so that only a front of the tree is in memory
        yield v, own
        if kind in (SHUFFLE, LOOSEN):
            factor = _interleaving(size)
            passed[left] = own * factor if kind == SHUFFLE else own / factor
        elif kind not in (POINTS, CHAIN):
            passed[left], passed[right] = np.zeros((tree[left, 1] + 1, 6)), np.zeros((tree[right, 1] + 1, 6))
            shift = kind == STACK
            _pass_on(tables.numbers, tree[left], tree[right], own, passed[left], passed[right], shift)


def _interleaving(size: int) -> Floats:
    """How the terms grow when all ``a`` places of side A, and b of side B, are those of a larger part.

    The r-th smallest of a random set of a places among A has mean r(A+1)/(a+1), and its product with itself
    plus one has mean r(r+1)(A+1)(A+2)/((a+1)(a+2)): each is a quotient of one function of A and a.
    """
    a = np.arange(size + 1.0)
    b = size - a
    factors = [np.ones(size + 1), a + 1, b + 1, (a + 1) * (a + 2), (b + 1) * (b + 2), (a + 1) * (b + 1)]
    return np.stack(factors, axis=1)


def _at_points(polynomials: Floats) -> Floats:
    """The step for k unrelated elements with a on side A.

    Each element is one of them, at place 1, with probability a/k.
    """
    size = len(polynomials) - 1
    on_a = np.arange(size + 1) / size
    c0, c1, c2, c3, c4, _ = polynomials.T
    one = np.sum(c0 + on_a * (c1 / 2 + c3 / 3) + (1 - on_a) * (c2 / 2 + c4 / 3))
    return np.full(size, one)


def _at_chain(polynomials: Floats) -> Floats:
    """The step for the j-th element of a chain of k with a on side A.

    r is hypergeometric, and s = j - r.
    """
    size = len(polynomials) - 1
    a = np.arange(size + 1.0)
    b = size - a
    c0, c1, c2, c3, c4, c5 = polynomials.T
    once = np.sum((c1 + 2 * c3) * a + (c2 + 2 * c4) * b) / size
    twice = np.sum(c3 * a * (a - 1) + c4 * b * (b - 1) + c5 * a * b) / max(size * (size - 1), 1)
    j = np.arange(1.0, size + 1)
    return np.sum(c0) + once * j + twice * j * (j - 1)


@kernel(steps=lambda numbers, left, right, *_: int(left[1] + 1) * int(right[1] + 1))
def _pass_on(
    numbers: Numbers, left: Ints, right: Ints, given: Floats, to_left: Floats, to_right: Floats, shift: Int64
) -> None:
    """Split the polynomials of a step between its two parts.

    If the parts are stacked, those of the right are shifted.
    """
    i, ni, j, nj = left[4], left[1], right[4], right[1]
    weight = np.empty(ni + 1)
    for a in range(ni + nj + 1):
        low, high = max(0, a - nj), min(a, ni)
        highest = np.int64(-(2**40))
        for k in range(low, high + 1):
            highest = max(highest, exponent(numbers[i + k]) + exponent(numbers[j + a - k]))
        total = 0.0
        for k in range(low, high + 1):
            one, other = numbers[i + k], numbers[j + a - k]
            scale = exponent(one) + exponent(other) - highest
            weight[k] = math.ldexp(float(mantissa(one) * mantissa(other)), int(scale))
            total += weight[k]
        c0, c1, c2, c3, c4, c5 = given[a]
        for k in range(low, high + 1):
            p = weight[k] / total
            to_left[k] += p * given[a]
            r, s = (k, ni - k) if shift else (0, 0)
            rest = to_right[a - k]
            rest[0] += p * (c0 + c1 * r + c2 * s + c3 * r * (r + 1) + c4 * s * (s + 1) + c5 * r * s)
            rest[1] += p * (c1 + 2 * c3 * r + c5 * s)
            rest[2] += p * (c2 + 2 * c4 * s + c5 * r)
            rest[3] += p * c3
            rest[4] += p * c4
            rest[5] += p * c5


# Expected products of the noise at two elements, without simulation.
#
# At rate 1 the product has the expectation ``E[(ii' + min(i, i')) + (jj' + min(j, j')) - ij' - ji']`` over the places of the
# two elements (docs/theory/inference.md, section 3). It is the square of :mod:`.moments` with one factor for each element:
# ``r(r + 1)`` becomes ``rr' + min(r, r')``, and sums and random interleaving change both alike. So the polynomials of the
# squares are passed down to the step where the two elements part. There the rest is a product: given how many elements of each
# part are on side A, the parts are independent of each other. Where they are stacked, the smaller place is that of the lower
# part. Where they are interleaved, ``rr' + min(r, r')`` has the mean ``(A + 1)(A + 2)·r/(a + 1)·r'/(a' + 1)``. So the means of
# the places in each part are all that is needed, and all pairs together take O(n³) steps of plain matrix products.

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
    result = [np.zeros((size, split + len(second.elements))) for _ in "rs"]
    n = len(first.r) - 1
    few = (
        chance if len(second.r) <= len(first.r) else chance.T
    )  # along the smaller part, one diagonal at a time
    for step in range(few.shape[1]):
        rows = slice(step, step + few.shape[0])
        own = few[:, step, None]
        for sums, one, other, side in zip(
            result, (first.r, first.s), (second.r, second.s), "rs", strict=True
        ):
            left, right = (one, other[step]) if few is chance else (one[step], other)
            if stacked:
                k = np.arange(n + 1) if few is chance else np.array([step])
                right = right + (k if side == "r" else n - k)[:, None]
            sums[rows, :split] += own * left
            sums[rows, split:] += own * right
    return _StepMeans(np.concatenate((first.elements, second.elements)), result[0], result[1])
