"""The section of a spec that asks for a surface."""

from __future__ import annotations

from typing import Any

from pydantic import model_validator

from isotone.release.sections import Real, Section, Size, Text

__all__ = ["SurfaceSection"]


class SurfaceSection(Section):
    """``[surface]``: y as a function of two columns, monotone in each."""

    x: tuple[Text, Text]
    """The two columns."""
    y: Text
    """The column of y."""
    bounds: tuple[tuple[Real, Real], tuple[Real, Real]]
    """Public limits [low, high] of each of the two; values outside are moved to the ends. Not chosen by the data."""
    y_range: tuple[Real, Real]
    """Public limits [low, high] of y, in the same way. The noise grows with their distance."""
    bins: Size | tuple[Size, Size] = 16
    """Into how many equal bins each column is cut: one number for both, or two; at most 64 each."""
    increasing: bool | tuple[bool, bool] = True
    """Whether y rises with each column: one answer for both, or two."""
    loss: str | tuple[str, Real] = "squared"
    """What a fit minimises, as for a curve."""
    public_n: Size | None = None
    """The number of records, if it is public. Otherwise a noisy one costs 2 % of ε."""

    @model_validator(mode="before")
    @classmethod
    def _pairs(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        return {key: _pair(value) for key, value in given.items()}

    def options(self) -> dict[str, Any]:
        """The options of a release."""
        return self.model_dump(exclude={"x", "y"}, exclude_none=True)


def _pair(value: Any) -> Any:
    return tuple(_pair(part) for part in value) if isinstance(value, list) else value
