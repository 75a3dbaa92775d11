"""Partial orders, and all that can be computed about them. No files, no private data, no release."""

from isotone.order.decomposition import Leaf, Node, Parallel, Prime, Series
from isotone.order.poset import Poset
from isotone.order.projection import project
from isotone.order.projection_covariance import project_covariance

__all__ = ["Leaf", "Node", "Parallel", "Poset", "Prime", "Series", "project", "project_covariance"]
