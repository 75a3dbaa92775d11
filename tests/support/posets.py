"""Every poset with few elements, by construction and not by the library's own algorithms."""

from functools import cache
from itertools import permutations

from isotone.order import Poset

UNLABELLED = {1: 1, 2: 2, 3: 5, 4: 16, 5: 63, 6: 318}
LABELLED = {1: 1, 2: 3, 3: 19, 4: 219, 5: 4231}

Strict = frozenset[tuple[int, int]]  # the pairs (i, j) with i < j in the order


def all_posets(n: int) -> list[Poset]:
    """One poset on ``0..n-1`` for each isomorphism class, ascending numbers along the order."""
    return [Poset(range(n), sorted(order)) for order in all_orders(n)]


def all_labelled_posets(n: int) -> list[Poset]:
    """Every partial order on ``0..n-1``."""
    return [Poset(range(n), sorted(order)) for order in all_labelled_orders(n)]


@cache
def all_orders(n: int) -> tuple[Strict, ...]:
    """As :func:`all_posets`, as sets of strict relations (transitively closed)."""
    if n == 0:
        return (frozenset(),)
    found: dict[Strict, Strict] = {}
    for smaller in all_orders(n - 1):  # an order loses a maximal element to a smaller one
        for below in _down_sets(smaller, n - 1):
            larger = smaller | {(i, n - 1) for i in below}
            found.setdefault(_canonical(larger, n), larger)
    return tuple(found.values())


@cache
def all_labelled_orders(n: int) -> tuple[Strict, ...]:
    """As :func:`all_labelled_posets`, as sets of strict relations (transitively closed)."""
    return tuple(
        sorted(
            {
                frozenset((relabel[i], relabel[j]) for i, j in order)
                for order in all_orders(n)
                for relabel in permutations(range(n))
            },
            key=sorted,
        )
    )


def _down_sets(order: Strict, n: int) -> list[frozenset[int]]:
    subsets = [frozenset(i for i in range(n) if mask >> i & 1) for mask in range(2**n)]
    return [s for s in subsets if all(i in s for i, j in order if j in s)]


def _canonical(order: Strict, n: int) -> Strict:
    """The same for isomorphic orders: the least of all relabellings."""
    relabelled = (frozenset((p[i], p[j]) for i, j in order) for p in permutations(range(n)))
    return min(relabelled, key=sorted)
