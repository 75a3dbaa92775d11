"""The shapes by their names."""

from __future__ import annotations

from typing import Any

from isotone.curves.shapes.constant import ConstantPieces
from isotone.curves.shapes.convex import Concave, Convex
from isotone.curves.shapes.linear import LinearPieces
from isotone.curves.shapes.lipschitz import Lipschitz
from isotone.curves.shapes.shape import CurveShape
from isotone.errors import InputError
from isotone.privacy.checks import shown

__all__ = ["SHAPES", "parse_shape"]

SHAPES: tuple[type[CurveShape], ...] = (ConstantPieces, LinearPieces, Lipschitz, Convex, Concave)


def parse_shape(spec: Any) -> CurveShape | None:
    """The shape that a name or a tuple stands for.

    None for no shape.

    >>> parse_shape(("linear", 4, 9))
    LinearPieces(pieces=4, knots=9)
    """
    if spec is None:
        return None
    parts: list[Any] = list(spec) if isinstance(spec, (tuple, list)) else [spec]
    for kind in SHAPES:
        if parts and isinstance(parts[0], str) and parts[0] == kind.name:
            found = kind.parse(parts[1:])
            if found is not None:
                return found
    usage = ", ".join(kind.usage for kind in SHAPES)
    raise InputError(f"There is no shape {shown(spec)}. Use None, {usage}.")
