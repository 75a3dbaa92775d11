"""Exact numbers of extended bipartitions, by counting modulo primes.

Modulo a prime above n all the steps of :mod:`.counting_steps` are integer arithmetic in 64 bits, the
divisions by factorials too. Enough primes determine the number.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from isotone.array_types import Ints
from isotone.kernels import kernel
from isotone.order.bipartitions.counting_steps import BESIDE, CHAIN, POINTS, PRIME, SHUFFLE, STACK, Steps
from isotone.order.bipartitions.module_words import last_letters
from isotone.order.bipartitions.upward import Int64

__all__ = ["COUNTING_REACH", "exact_total"]

COUNTING_REACH = 1 << 25
"""The largest prime block that is counted: its table takes 256 MB."""


def exact_total(program: Steps, bound: int) -> int:
    """The number of extended bipartitions, known to be at most ``bound``."""
    number, modulus = 0, 1
    for p in _primes():
        residue = int(_total(program.tree, program.elements.size, program.blocks, program.modules, p))
        # the number in the class of both: move by multiples of the old modulus
        number += modulus * ((residue - number) * pow(modulus, -1, p) % p)
        modulus *= p
        if modulus > bound:
            return number
    raise AssertionError("there are enough primes below 2^31 for every order that fits in memory")


def _primes() -> Iterator[int]:
    """The primes below 2^31, from the largest down."""
    yield from (k for k in range(2**31 - 1, 2**30, -2) if _is_prime(k))


def _is_prime(k: int) -> bool:
    """Miller and Rabin's test, which has no exceptions below 3.2e9 for these bases."""
    odd, twos = k - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    for base in (2, 3, 5, 7):
        power = pow(base, odd, k)
        if power not in (1, k - 1) and all(pow(power, 2**s, k) != k - 1 for s in range(1, twos)):
            return False
    return True


@kernel
def _total(tree: Ints, n: Int64, blocks: Ints, modules: Ints, p: Int64) -> Int64:
    """The sum of the last table, modulo p."""
    factorial, inverse = np.ones(n + 1, np.int64), np.ones(n + 1, np.int64)
    for k in range(1, n + 1):
        factorial[k] = factorial[k - 1] * k % p
    inverse[n] = _power(factorial[n], p - 2, p)
    for k in range(n, 0, -1):
        inverse[k - 1] = inverse[k] * k % p
    table = np.zeros(tree[-1, 4] + n + 1, np.int64)
    for v in range(tree.shape[0]):
        kind, size, left, right, start = tree[v, 0], tree[v, 1], tree[v, 2], tree[v, 3], tree[v, 4]
        if kind in (POINTS, CHAIN):
            for a in range(size + 1):
                table[start + a] = factorial[size] * inverse[a] % p * inverse[size - a] % p
        elif kind in (BESIDE, STACK):
            _convolve(table, tree[left, 4], tree[left, 1], tree[right, 4], tree[right, 1], start, p)
        elif kind == PRIME:
            first, stop = blocks[left, 0], blocks[left + 1, 0]
            _weigh(table, tree, modules[first:stop], blocks[left, 1], start, p)
        else:
            factor = factorial if kind == SHUFFLE else inverse
            for a in range(size + 1):
                table[start + a] = table[tree[left, 4] + a] * factor[a] % p * factor[size - a] % p
    return table[tree[-1, 4] :].sum() % p


@kernel
def _power(base: Int64, exponent: Int64, p: Int64) -> Int64:
    result = np.int64(1)
    while exponent > 0:
        if exponent & 1:
            result = result * base % p
        base = base * base % p
        exponent >>= 1
    return result


@kernel
def _convolve(table: Ints, i: Int64, ni: Int64, j: Int64, nj: Int64, out: Int64, p: Int64) -> None:
    for a in range(ni + nj + 1):
        total = np.int64(0)
        for k in range(max(0, a - nj), min(a, ni) + 1):
            total += table[i + k] * table[j + a - k]
            if total >= p * p:  # cheaper than a remainder each time; p * p is below 2^62
                total -= p * p
        table[out + a] = total % p


@kernel
def _weigh(table: Ints, tree: Ints, modules: Ints, states: Int64, out: Int64, p: Int64) -> None:
    """The table of a prime block.

    Words by their last letter, then splits. See :mod:`.module_words`.
    """
    k = modules.shape[0]
    words, count = np.zeros(states, np.int64), np.zeros(k, np.int64)
    words[0], used = 1, np.int64(0)
    for state in range(1, states):
        i = 0
        while count[i] == modules[i, 1]:
            count[i] = 0
            used &= ~(np.int64(1) << i)
            i += 1
        count[i] += 1
        used |= np.int64(1) << i
        letters, i = last_letters(used, modules, 0), 0
        total = np.int64(0)
        while letters > 0:
            if letters & 1:
                total += words[state - modules[i, 3]]
            letters >>= 1
            i += 1
        words[state] = total % p
    product = np.ones(k + 1, np.int64)
    count[:] = 0
    changed, a = k - 1, 0
    for state in range(states):
        if state > 0:
            changed = 0
            while count[changed] == modules[changed, 1]:
                a -= count[changed]
                count[changed] = 0
                changed += 1
            count[changed] += 1
            a += 1
        for i in range(changed, -1, -1):
            product[i] = product[i + 1] * table[tree[modules[i, 0], 4] + count[i]] % p
        weight = product[0] * words[state] % p * words[states - 1 - state]
        table[out + a] = (table[out + a] + weight) % p
