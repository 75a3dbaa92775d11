"""Extended bipartitions of small orders by brute force, and tables rounded as badly as can be."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import permutations

import numpy as np

from isotone.order import Poset
from isotone.order.bipartitions import counting as fine
from isotone.order.bipartitions.steps import (
    BESIDE,
    LOOSEN,
    PRIME,
    SHUFFLE,
    STACK,
    _weights,
    binomials,
    exponent,
    mantissa,
    pack,
    share,
    value,
)

__all__ = [
    "Bipartition",
    "bipartitions_by_sides",
    "coarse_tables",
    "count_by_subsets",
    "expected_squares",
    "extended_bipartitions",
]

Bipartition = tuple[tuple[int, ...], tuple[int, ...]]


def extended_bipartitions(P: Poset) -> Iterator[Bipartition]:
    """Every one, as two ascending tuples of positions."""
    less = P.leq_matrix()

    def extensions(side: list[int]) -> list[tuple[int, ...]]:
        rows = permutations(side)
        return [r for r in rows if not any(less[r[j], r[i]] for j in range(len(r)) for i in range(j))]

    for mask in range(2 ** len(P)):
        sides = [[x for x in range(len(P)) if mask >> x & 1 == on] for on in (1, 0)]
        others = extensions(sides[1])
        yield from ((one, other) for one in extensions(sides[0]) for other in others)


def bipartitions_by_sides(P: Poset) -> Iterator[Bipartition]:
    """The same, faster: the sides are put together from the extensions of all subsets, by their last element."""
    less = P.leq_matrix()
    above = [sum(1 << y for y in range(len(P)) if y != x and less[x, y]) for x in range(len(P))]
    everything = (1 << len(P)) - 1
    extensions: list[list[tuple[int, ...]]] = [[()]]
    for mask in range(1, everything + 1):
        last = [x for x in range(len(P)) if mask >> x & 1 and not above[x] & mask]
        extensions.append([(*one, x) for x in last for one in extensions[mask ^ 1 << x]])
    for mask, ups in enumerate(extensions):
        yield from ((one, other) for one in ups for other in extensions[everything ^ mask])


def count_by_subsets(P: Poset) -> int:
    """Their number, from the numbers of linear extensions of all subsets of the elements."""
    n, less = len(P), P.leq_matrix()
    above = [sum(1 << int(y) for y in np.flatnonzero(less[x]) if y != x) for x in range(n)]
    extensions = [1] + [0] * (2**n - 1)
    for subset in range(1, 2**n):
        last = (x for x in range(n) if subset >> x & 1 and not above[x] & subset)
        extensions[subset] = sum(extensions[subset & ~(1 << x)] for x in last)
    return sum(extensions[s] * extensions[2**n - 1 - s] for s in range(2**n))


def expected_squares(P: Poset) -> np.ndarray:
    """``E[(i - j)² + i + j]`` for each element, by enumeration."""
    less, total, count = P.leq_matrix(), np.zeros(len(P)), 0
    for sides in extended_bipartitions(P):
        i, j = (
            np.array(
                [max((k + 1 for k, y in enumerate(side) if less[y, x]), default=0) for x in range(len(P))]
            )
            for side in sides
        )
        total += (i - j) ** 2 + i + j
        count += 1
    return total / count


def coarse_tables(P: Poset) -> fine.Tables:
    """Valid tables whose sums are made in units as large as the largest term: much of a draw is excess.

    The walk must be uniform with them too; with the real ones the excess is too rare to be seen.
    """
    made = fine.tables(P)
    numbers, weight = made.numbers.copy(), made.words.weight.copy()
    tree = made.steps.tree
    for kind, size, left, right, start in tree.tolist():
        for a in range(size + 1):
            if kind in (BESIDE, STACK):
                ks = range(max(0, a - int(tree[right, 1])), min(a, int(tree[left, 1])) + 1)
                pairs = [(numbers[tree[left, 4] + k], numbers[tree[right, 4] + a - k]) for k in ks]
                terms = [(mantissa(x) * mantissa(y), exponent(x) + exponent(y)) for x, y in pairs]
                numbers[start + a] = _coarse_sum(terms)[0]
            elif kind in (SHUFFLE, LOOSEN):
                source = value(numbers[tree[left, 4] + a])
                factor = math.factorial(a) * math.factorial(size - a)
                numbers[start + a] = _rounded_up(source * factor if kind == SHUFFLE else source / factor)
            elif kind == PRIME:
                low, high = made.words.first[a : a + 2]  # one block, the whole order
                states = made.words.state[low:high]
                products = _weights(made.steps.modules[:, 1].copy(), tree[made.steps.modules[:, 0], 4], numbers,
                                    made.words.words)[0][states]  # fmt: skip
                terms = [(mantissa(w), exponent(w)) for w in products]
                numbers[start + a], shares = _coarse_sum(terms)
                weight[low:high] = np.cumsum(shares)
            else:
                numbers[start + a] = binomials(size)[a]
    last = [(mantissa(x), exponent(x)) for x in numbers[tree[-1, 4] :]]
    total, shares = _coarse_sum(last)
    words = replace(made.words, weight=weight)
    return fine.Tables(made.steps, numbers, words, np.cumsum(shares), int(exponent(total)))


def _coarse_sum(terms: list[tuple[int, int]]) -> tuple[int, list[int]]:
    """The sum in units of about the largest term, and the share of each term in it."""
    unit = max(int(m).bit_length() + e for m, e in terms) - 1
    shares = [int(share(m, unit - e)) for m, e in terms]
    return int(pack(sum(shares), unit, 0)), shares


def _rounded_up(number: Fraction) -> int:
    """31 bits and an exponent, at least the number."""
    e = number.numerator.bit_length() - number.denominator.bit_length() - 31
    m = math.ceil(number / Fraction(2) ** e)
    while m >= 2**31:
        e += 1
        m = math.ceil(number / Fraction(2) ** e)
    while m < 2**30:
        e -= 1
        m = math.ceil(number / Fraction(2) ** e)
    return int(pack(m, e, 0))
