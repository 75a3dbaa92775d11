"""Every small tree of questions with exclusive options, and its records, without the library's own algorithms."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import combinations_with_replacement, count, product
from typing import Any

from isotone.order import Poset

__all__ = ["all_forests", "records_of"]

# A tree is the tuple of the groups below its root. A group is a kind and its trees.
Tree = tuple[Any, ...]
Group = tuple[str, tuple[Tree, ...]]


@cache
def _trees(n: int) -> list[Tree]:
    """Every tree with n elements."""
    return _below(n - 1, ("any", "exclusive", "partition"))


@cache
def _below(n: int, kinds: tuple[str, ...]) -> list[tuple[Group, ...]]:
    """Every multiset of groups with n elements in all."""
    return [groups for sizes in _sums(n) for groups in _chosen(sizes, lambda m: _groups(m, kinds))]


@cache
def _groups(n: int, kinds: tuple[str, ...]) -> list[Group]:
    trees = [chosen for sizes in _sums(n) for chosen in _chosen(sizes, _trees)]
    counts = {"any": (1, 1), "exclusive": (2, n), "partition": (1, n)}
    return [
        (kind, chosen)
        for chosen in trees
        for kind in kinds
        if counts[kind][0] <= len(chosen) <= counts[kind][1]
    ]


def _sums(n: int, least: int = 1) -> Iterator[tuple[int, ...]]:
    """Every nondecreasing sequence of positive numbers with sum n."""
    if n == 0:
        yield ()
    for first in range(least, n + 1):
        for rest in _sums(n - first, first):
            yield (first, *rest)


def _chosen(sizes: tuple[int, ...], of: Any) -> Iterator[tuple[Any, ...]]:
    """Every multiset with one thing of each size."""
    different = sorted(set(sizes))
    rows = (list(combinations_with_replacement(of(size), sizes.count(size))) for size in different)
    for parts in product(*rows):
        yield tuple(thing for part in parts for thing in part)


def all_forests(n: int) -> list[Poset]:
    """Every and/xor forest with n elements, numbered from the top."""
    return [_poset(groups) for groups in _below(n, ("any", "exclusive"))]


def _poset(groups: tuple[Group, ...]) -> Poset:
    number = count()
    relations: list[tuple[int, int]] = []
    choices: list[tuple[str, list[int]]] = []

    def plant(groups: tuple[Group, ...], parent: int | None) -> None:
        for kind, trees in groups:
            options: list[int] = []
            for tree in trees:
                x = next(number)
                options.append(x)
                if parent is not None:
                    relations.append((x, parent))
                plant(tree, x)
            choices.append((kind, options))

    plant(groups, None)
    return Poset(range(next(number)), relations, choices)


def records_of(P: Poset) -> list[tuple[int, ...]]:
    """Every record of a small order, as 0/1 by element: filters with one option where a choice asks for it."""
    found: list[tuple[int, ...]] = []
    parent = dict(P.covers)
    for bits in product((0, 1), repeat=len(P)):
        has = dict(zip(P.elements, bits, strict=True))
        fits = all(has[low] <= has[high] for low, high in P.covers)
        for choice in P.choices:
            options = sum(has[option] for option in choice.options)
            fits &= options <= 1
            if choice.kind == "partition":
                fits &= options == has[parent[choice.options[0]]]
        if fits:
            found.append(bits)
    return found
