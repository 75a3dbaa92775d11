"""Partial orders, and all that can be computed about them. No files, no private data, no release."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isotone.lazy import lazy_names

if TYPE_CHECKING:
    from isotone.order.decomposition import Leaf, Node, Parallel, Prime, Series
    from isotone.order.poset import Poset
    from isotone.order.projection.covariance import project_covariance
    from isotone.order.projection.least_squares import project

__all__ = ["Leaf", "Node", "Parallel", "Poset", "Prime", "Series", "project", "project_covariance"]

_HOMES = {
    "Leaf": "isotone.order.decomposition",
    "Node": "isotone.order.decomposition",
    "Parallel": "isotone.order.decomposition",
    "Poset": "isotone.order.poset",
    "Prime": "isotone.order.decomposition",
    "Series": "isotone.order.decomposition",
    "project": "isotone.order.projection.least_squares",
    "project_covariance": "isotone.order.projection.covariance",
}

__getattr__ = lazy_names(__name__, _HOMES)
