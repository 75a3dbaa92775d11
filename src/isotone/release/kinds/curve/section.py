"""The section of a spec that asks for a curve."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from isotone.curves.losses import LOSSES, parse_loss
from isotone.curves.shapes import SHAPES
from isotone.release.sections import Listed, Pair, Real, Section, Size, Text

__all__ = ["CurveSection"]

_IN_TOML = str.maketrans("()'", '[]"')
_LOSSES, _SHAPES = (", ".join(kind.usage for kind in kinds).translate(_IN_TOML) for kinds in (LOSSES, SHAPES))
_POINTS = ", ".join(f"{kind.points} ({kind.name})" for kind in SHAPES)


class CurveSection(Section):
    """``[curve]``: y as a monotone function of x."""

    x: Text
    """The column of x."""
    y: Text
    """The column of y."""
    bounds: Pair
    """Public limits [low, high] of x; values outside are moved to the ends. Not chosen by the data."""
    y_range: Pair | None = None
    """Public limits [low, high] of y, in the same way. The noise grows with their distance. Required, but for `y_values`."""
    y_values: Pair | None = None
    """In place of `y_range`: the two values of y, such as [0, 1]. Rows with any other y are left out."""
    increasing: bool | Literal["auto"] = True
    """Whether y rises or falls with x; "auto" spends 5 % of ε on finding out."""
    loss: str | Annotated[tuple[str, Real], Listed] = Field(
        default="squared", description=f"What a fit minimises, one of {_LOSSES}."
    )
    method: Text = "auto"
    """The mechanism: "auto", or for comparison "additive", "threshold", "baseline" or "bins"."""
    output: Literal["population", "records"] = "population"
    """What a fit by means estimates: the curve that the records were drawn from, or the fit to these records."""
    shape: str | Annotated[tuple[str, Real], Listed] | Annotated[tuple[str, Real, Size], Listed] | None = (
        Field(default=None, description=f"Beyond rising, one of {_SHAPES}.")
    )
    public_n: Size | None = None
    """The number of records, if it is public. Otherwise a noisy one costs 2 % of ε."""
    x_grid: Size | Literal["integers"] | list[Real] | None = Field(
        default=None,
        description='The public grid of x: so many even points, "integers" for every whole number of bounds, or a list of points. '
        f"By default 4096 points, and fewer for a baseline and for shapes: {_POINTS}.",
    )
    band: Literal["population", "records", "credible", "none"] | None = None
    """The band beside the curve: for the mean in the population, for the fit to these records, what a model finds credible, or
    none. By default the guaranteed one that fits `output` and holds. Its confidence stands in `[output]`."""
    value_levels: Size | None = None
    """Steps between the lowest and the highest value of a baseline or a shape: a power of two up to 1024."""

    @model_validator(mode="before")
    @classmethod
    def _range(cls, given: Any) -> Any:
        if isinstance(given, dict) and given.get("y_range") is None and given.get("y_values") is None:
            raise ValueError("y_range is missing: give the public limits of y, or its two values as y_values")
        return given

    @property
    def y_ends(self) -> tuple[Real, Real]:
        """The lowest and the highest y."""
        ends = self.y_values or self.y_range
        assert ends is not None, "a section without both was refused"
        return ends

    def options(self) -> dict[str, Any]:
        """The options of the estimator."""
        return self.model_dump(exclude={"x", "y", "band"}, exclude_none=True)

    def described(self) -> str:
        """Method, shape and loss in words."""
        loss = self.loss if isinstance(self.loss, str) else f"{self.loss[0]}({self.loss[1]})"
        if self.shape is None:
            return f"{self.method} method, {loss} loss"
        shape = self.shape if isinstance(self.shape, str) else f"{self.shape[0]}({self.shape[1]})"
        way = "the published tree" if self.method == "threshold" else "one draw from all curves"
        if self.method == "auto" and parse_loss(self.loss).by_means:
            way = "a curve fitted to noisy sums,"
        return f"{way} of shape {shape}, {loss} loss"
