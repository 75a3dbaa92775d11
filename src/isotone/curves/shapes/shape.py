"""Shapes that a curve may be required to have, besides rising."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from isotone.errors import InputError
from isotone.privacy.guarantee import exact, positive

__all__ = ["Shape", "parse_shape"]

Kind = Literal["any", "constant", "linear", "lipschitz", "convex", "concave"]


@dataclass(frozen=True)
class Shape:
    """A shape; ``pieces`` of constant and linear curves, the largest ``slope`` of Lipschitz ones.

    Linear pieces end at ``knots``, spread evenly over the points: a curve that bends elsewhere is met up to a knot's distance.
    ``points`` and ``values`` are the sizes of the grids when the user gives none: few enough to draw in a second,
    with a discretisation error of half a step of the values (docs/theory/curves.md, section 7).
    """

    kind: Kind
    pieces: int = 0
    slope: Fraction = Fraction(0)
    knots: int = 17

    @property
    def points(self) -> int:
        """The usual number of points of ``x``."""
        return {"any": 256, "constant": 256, "linear": 257, "lipschitz": 65, "convex": 33, "concave": 33}[
            self.kind
        ]

    @property
    def values(self) -> int:
        """The usual number of steps between the lowest and the highest value."""
        return {"any": 64, "constant": 64, "linear": 32, "lipschitz": 256, "convex": 64, "concave": 64}[
            self.kind
        ]

    @property
    def interpolated(self) -> bool:
        """Whether curves of this shape are continuous."""
        return self.kind not in ("any", "constant")

    def __str__(self) -> str:
        detail = f" ({self.pieces} pieces)" if self.pieces else f" (slope {self.slope})" if self.slope else ""
        return self.kind + detail


def parse_shape(spec: Any) -> Shape | None:
    """The shape that a name or a tuple stands for; None for no shape.

    >>> shape = parse_shape(("linear", 4, 9))
    >>> str(shape), shape.knots
    ('linear (4 pieces)', 9)
    """
    if spec is None:
        return None
    if isinstance(spec, str) and spec in ("convex", "concave"):
        return Shape(spec)
    if isinstance(spec, (tuple, list)) and len(parts := list(spec)) in (2, 3):
        kind, size, *knots = parts
        if kind == "linear":
            bends = [_whole(number, "knots", 2, 1025) for number in knots]
            return Shape("linear", _whole(size, "linear pieces", 1, 64), Fraction(0), *bends)
        if kind == "constant" and not knots:
            return Shape("constant", _whole(size, "constant pieces", 1, 64))
        if kind == "lipschitz" and not knots:
            return Shape("lipschitz", slope=positive(size, "the largest slope of a Lipschitz curve"))
    raise InputError(
        f"There is no shape {spec!r}. Use None, ('constant', pieces), ('linear', pieces) or ('linear', pieces, knots), "
        "('lipschitz', slope), 'convex' or 'concave'."
    )


def _whole(value: Any, what: str, least: int, most: int) -> int:
    number = exact(value, f"the number of {what}")
    if number.denominator != 1 or not least <= number <= most:
        raise InputError(
            f"The number of {what} must be a whole number from {least} to {most}, not {value!r}."
        )
    return int(number)
