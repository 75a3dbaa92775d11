"""Pictures of a release. Only published numbers are drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isotone.lazy import new_axes
from isotone.release.kinds import kind_named

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from isotone.release.result import Release

__all__ = ["draw", "svg"]


def draw(release: Release, ax: Axes | None = None) -> Axes:
    """Draw a release on ``ax`` (a new axis unless given)."""
    if ax is None:
        ax = new_axes(figsize=kind_named(release.kind).page.size(release), layout="constrained")
    kind_named(release.kind).page.draw(release, ax)
    return ax


def svg(release: Release) -> str:
    """The picture as an SVG element, the same for the same release."""
    return kind_named(release.kind).page.svg(release)
