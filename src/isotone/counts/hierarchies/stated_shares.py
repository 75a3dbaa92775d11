"""Shares by element, as they stand in a manifest, and as shares of the nodes of a tree."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from isotone.errors import InputError
from isotone.linear.least_squares import Hierarchy
from isotone.order import Poset
from isotone.privacy.checks import exact

__all__ = ["check_paths", "replacing_cost", "shares_by_element", "shares_by_node"]


def shares_by_node(P: Poset, tree: Hierarchy, shares: Mapping[Any, Any]) -> list[Fraction]:
    """The shares of the nodes, given those of elements (0 where none is given).

    A remainder has what is left of 1.
    """
    place = {str(x): int(tree.node[i]) for i, x in enumerate(P.elements)}
    result = [Fraction(0)] * len(tree)
    for name, given in shares.items():
        if str(name) not in place:
            raise InputError(f"shares= names {name!r}, which is not an element of this order.")
        share = exact(given, f"the share of {name!r}")
        if share < 0:
            raise InputError(f"The share of {name!r} must not be negative.")
        result[place[str(name)]] += share
    published = set(place.values())
    used = list(result)
    for x, above in enumerate(tree.parent.tolist()):
        if x not in published:
            result[x] = 1 - used[above]
        elif above >= 0:
            used[x] += used[above]
    check_paths(tree, result)
    return result


def check_paths(tree: Hierarchy, shares: list[Fraction]) -> None:
    """Refuse shares that add up to more than 1 on some way, or leave a leaf without noise."""
    used = list(shares)
    for x, above in enumerate(tree.parent.tolist()):
        if above >= 0:
            used[x] += used[above]
        if tree.leaf[x] and shares[x] <= 0:
            raise InputError("Every leaf, and every remainder, needs a share above 0.")
        if tree.leaf[x] and used[x] > 1:
            raise InputError(f"The shares on the way to a leaf add up to {used[x]}, which is more than 1.")


def shares_by_element(P: Poset, tree: Hierarchy, shares: list[Fraction]) -> dict[str, str]:
    """The shares that are not 0, as exact text. A node of several elements is named by the highest."""
    names: dict[int, str] = {}
    for x in P.linear_order[::-1].tolist():
        names.setdefault(int(tree.node[x]), str(P.elements[x]))
    return {name: str(shares[node]) for node, name in sorted(names.items()) if shares[node]}


def replacing_cost(tree: Hierarchy, shares: list[Fraction]) -> Fraction:
    """How far replacing one record moves the counts, in the norm of the shares.

    It may leave one leaf for another, which moves all but the root twice, or be dropped, which moves one whole way.
    """
    return max(Fraction(1), 2 - 2 * shares[0]) if tree.roots == 1 else Fraction(2)
