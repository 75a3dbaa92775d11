"""Expected squares of the noise at each element, without simulation.

They are computed from the tables of extended bipartitions.

In an extended bipartition let i(x) be the place of the last element of side A that is at most x, and j(x) the
same on side B. The noise at x, at rate 1, has the expected square ``E[i(i+1) + j(j+1) - 2ij]``
(docs/theory/counts.md, section 8). Seen from a part of the order, i and j are functions of the places r and s
*within the part*, and through every step but prime blocks they change by shifts and by random interleaving,
under which polynomials of the form

    ``c0 + c1·r + c2·s + c3·r(r+1) + c4·s(s+1) + c5·rs``

stay of that form. So one such polynomial for each entry of each table, passed down from the last step to the
elements, gives all expectations exactly (up to float rounding) in O(n²).
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from isotone.array_types import Floats, Ints
from isotone.kernels import kernel
from isotone.order.bipartitions.counting_steps import CHAIN, LOOSEN, POINTS, PRIME, SHUFFLE, STACK
from isotone.order.bipartitions.counting_tables import Tables
from isotone.order.bipartitions.upward import Int64, Numbers, exponent, mantissa

__all__ = ["SQUARES", "expected_products_with_total", "expected_squares", "passed_down"]

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
