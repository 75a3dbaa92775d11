"""The tree of cuts of Ghazi, Kamath, Kumar and Manurangsi 2022 with the additive score, on its own terms."""

from __future__ import annotations

from isotone.curves.chain.case import ChainCase
from isotone.curves.chain.tree_mechanisms import TreeMechanism

__all__ = ["additive_tree"]


def additive_tree(case: ChainCase) -> TreeMechanism:
    """The tree whose values are the middles of its intervals, for every loss."""
    return TreeMechanism.of(case)
