"""Partial orders, and all that can be computed about them. No files, no private data, no release."""

from isotone.order.decomposition import Leaf, Node, Parallel, Prime, Series
from isotone.order.poset import Poset
from isotone.order.projection.covariance import project_covariance
from isotone.order.projection.least_squares import project

__all__ = ["Leaf", "Node", "Parallel", "Poset", "Prime", "Series", "project", "project_covariance"]
