"""Shapes that a curve may be required to have, besides rising."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from isotone.errors import InputError
from isotone.guarantee import exact, positive

__all__ = ["Shape", "parse_shape"]

Kind = Literal["any", "constant", "linear", "lipschitz", "convex", "concave"]


@dataclass(frozen=True)
class Shape:
    """A shape; ``pieces`` of constant and linear curves, the largest ``slope`` of Lipschitz ones.

    ``points`` and ``values`` are the sizes of the grids when the user gives none: few enough to draw in a second,
    with a discretisation error of half a step of the values (docs/theory/curves.md, section 7).
    """

    kind: Kind
    pieces: int = 0
    slope: Fraction = Fraction(0)

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
    """The shape that a name or a pair stands for; None for no shape.

    >>> parse_shape(("constant", 4))
    Shape(kind='constant', pieces=4, slope=Fraction(0, 1))
    """
    if spec is None:
        return None
    if isinstance(spec, str) and spec in ("convex", "concave"):
        return Shape(spec)
    if isinstance(spec, (tuple, list)) and len(parts := list(spec)) == 2:
        kind, size = parts
        if kind in ("constant", "linear"):
            pieces = exact(size, f"the number of {kind} pieces")
            if pieces.denominator != 1 or not 1 <= pieces <= 64:
                raise InputError(
                    f"The number of {kind} pieces must be a whole number from 1 to 64, not {size!r}."
                )
            return Shape(kind, pieces=int(pieces))
        if kind == "lipschitz":
            return Shape("lipschitz", slope=positive(size, "the largest slope of a Lipschitz curve"))
    raise InputError(
        f"There is no shape {spec!r}. Use None, ('constant', pieces), ('linear', pieces), ('lipschitz', slope), "
        "'convex' or 'concave'."
    )
