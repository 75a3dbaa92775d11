"""What a shape of curves says about itself. Each shape is one file with its parser, grid sizes and graph.

Increasing curves without further demands are a shape like any other (:class:`~isotone.curves.shapes.monotone.Monotone`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Self

from isotone.curves.grids import Grid
from isotone.curves.shapes.graphs import CurveGraph
from isotone.errors import InputError
from isotone.privacy.checks import exact

if TYPE_CHECKING:
    from isotone.curves.chain.problem import ChainProblem
    from isotone.curves.shapes.curve_draws import CurveDraw, PieceDraw

__all__ = ["CurveShape", "whole"]


@dataclass(frozen=True)
class CurveShape:
    """A shape that a curve may be required to have, besides rising.

    ``points`` and ``values`` are the sizes of the grids when the user gives none: few enough to draw in a second,
    with a discretisation error of half a step of the values (docs/theory/curves.md, section 7).
    """

    name: ClassVar[str]
    usage: ClassVar[str]
    """How users write the shape."""
    points: ClassVar[int]
    values: ClassVar[int]
    interpolated: ClassVar[bool] = True
    """Whether curves of this shape are continuous."""
    upside_down: ClassVar[bool] = False
    """Whether this is another shape with both axes turned: its graph is that of the other one."""

    @classmethod
    def parse(cls, arguments: Sequence[Any]) -> Self | None:
        """The shape with these arguments.

        None if their number is wrong. Wrong arguments raise an error.
        """
        raise NotImplementedError

    def graph(self, grid: Grid, values: int, height: Fraction) -> CurveGraph:
        """All curves of the shape with ``values + 1`` values, of which the highest is ``height`` above the lowest."""
        raise NotImplementedError

    def steps(self, problem: ChainProblem) -> int:
        """Steps of the grid of values."""
        return problem.value_levels or self.values

    def drawn(self, problem: ChainProblem) -> CurveDraw | PieceDraw:
        """The mechanism that draws one of all curves of the shape, by default from their graph."""
        from isotone.curves.shapes.curve_draws import CurveDraw

        return CurveDraw.of(problem)


def whole(value: Any, what: str, least: int, most: int) -> int:
    """A whole number between two limits, for the arguments of shapes."""
    number = exact(value, f"the number of {what}")
    if number.denominator != 1 or not least <= number <= most:
        raise InputError(
            f"The number of {what} must be a whole number from {least} to {most}, not {value!r}."
        )
    return int(number)
