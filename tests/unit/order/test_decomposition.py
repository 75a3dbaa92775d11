from itertools import chain, combinations

import numpy as np
import pytest
from tests.support.posets import all_posets

from isotone.order import Leaf, Node, Parallel, Poset, Prime, Series


def related(leq, a, b):
    return int(leq[a, b]) - int(leq[b, a])


def is_module(leq, members):
    inside = sorted(members)
    return all(len({related(leq, x, y) for y in inside}) == 1 for x in range(len(leq)) if x not in members)


def modules(leq):
    everything = range(len(leq))
    subsets = chain.from_iterable(combinations(everything, k) for k in range(1, len(leq) + 1))
    return [set(s) for s in subsets if is_module(leq, set(s))]


def strong_modules(leq):
    found = modules(leq)
    return [m for m in found if all(m <= o or o <= m or not m & o for o in found)]


def rebuilt(node: Node, n: int):
    """The matrix of the order that a tree describes."""
    leq = np.eye(n, dtype=bool)
    for part in node.walk():
        for i, lower in enumerate(part.children):
            for j, upper in enumerate(part.children):
                below = {
                    Leaf: False,
                    Parallel: False,
                    Series: i < j,
                    Prime: i != j and isinstance(part, Prime) and part.quotient.leq(i, j),
                }[type(part)]
                if below:
                    leq[np.ix_(lower.indices, upper.indices)] = True
    return leq


SMALL = [P for n in range(1, 6) for P in all_posets(n)]


def random_posets(count, n, rng):
    for _ in range(count):
        density = rng.uniform(0.05, 0.6)
        names = rng.permutation(n).tolist()
        yield Poset(range(n), [(a, b) for a, b in combinations(names, 2) if rng.random() < density])


@pytest.mark.parametrize("P", SMALL + list(random_posets(60, 8, np.random.default_rng(1))), ids=repr)
def test_the_tree_is_the_tree_of_strong_modules(P):
    leq = P.leq_matrix()
    nodes = list(P.decomposition().walk())
    assert sorted(sorted(node.indices.tolist()) for node in nodes) == sorted(
        sorted(m) for m in strong_modules(leq)
    )
    assert np.array_equal(rebuilt(P.decomposition(), len(P)), leq)
    for node in nodes:
        assert node.size == len(node.indices)
        together = [x for child in node.children for x in child.indices]
        assert together == node.indices.tolist() or isinstance(node, Leaf)
        if isinstance(node, Prime):
            assert len(node.quotient) == len(node.children) >= 4
            assert all(len(m) in (1, len(node.quotient)) for m in modules(node.quotient.leq_matrix()))
            assert node.quotient.linear_extension() == node.quotient.elements
