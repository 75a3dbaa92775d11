"""Partial orders, and all that can be computed about them. No files, no private data, no release."""

from isotone.order.decomposition import Leaf, Node, Parallel, Prime, Series
from isotone.order.poset import Poset
from isotone.order.projection import project

__all__ = ["Leaf", "Node", "Parallel", "Poset", "Prime", "Series", "project"]
