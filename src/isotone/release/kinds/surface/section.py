"""The section of a spec that asks for a surface."""

from __future__ import annotations

from typing import Annotated, Any

from isotone.release.sections import Listed, Pair, Real, Section, Size, Text

__all__ = ["SurfaceSection"]


class SurfaceSection(Section):
    """``[surface]``: y as a function of two columns, monotone in each."""

    x: Annotated[tuple[Text, Text], Listed]
    """The two columns."""
    y: Text
    """The column of y."""
    bounds: Annotated[tuple[Pair, Pair], Listed]
    """Public limits [low, high] of each of the two; values outside are moved to the ends. Not chosen by the data."""
    y_range: Pair
    """Public limits [low, high] of y, in the same way. The noise grows with their distance."""
    bins: Size | Annotated[tuple[Size, Size], Listed] = 16
    """Into how many equal bins each column is cut: one number for both, or two; at most 64 each."""
    increasing: bool | Annotated[tuple[bool, bool], Listed] = True
    """Whether y rises with each column: one answer for both, or two."""
    loss: str | Annotated[tuple[str, Real], Listed] = "squared"
    """What a fit minimises, as for a curve."""
    public_n: Size | None = None
    """The number of records, if it is public. Otherwise a noisy one costs 2 % of ε."""

    def options(self) -> dict[str, Any]:
        """The options of a release."""
        return self.model_dump(exclude={"x", "y"}, exclude_none=True)
