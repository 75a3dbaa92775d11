"""The published tree for each shape."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from isotone.curves.chain.case import ChainCase
from isotone.curves.losses.known_losses import ROWS
from isotone.curves.shapes.constant import ConstantPieces
from isotone.curves.shapes.convex import Concave, Convex
from isotone.curves.shapes.linear import LinearPieces
from isotone.curves.shapes.lipschitz import Lipschitz
from isotone.errors import InputError
from isotone.published.curves.constant_splits import ConstantSplitter
from isotone.published.curves.convex_splits import ConvexSplitter
from isotone.published.curves.linear_splits import LinearSplitter
from isotone.published.curves.lipschitz_splits import LipschitzSplitter
from isotone.published.curves.shape_tree import ShapeTree, Splitter

__all__ = ["shape_tree"]


def _convex(shape: Convex, case: ChainCase, values: int) -> Splitter:
    return ConvexSplitter(case.points, values + 1, values)


def _constant(shape: ConstantPieces, case: ChainCase, values: int) -> Splitter:
    return ConstantSplitter(case.points, values + 1, shape.pieces)


def _lipschitz(shape: Lipschitz, case: ChainCase, values: int) -> Splitter:
    return LipschitzSplitter(case.points, values + 1, shape.rise(case.grid, values, case.height))


def _linear(shape: LinearPieces, case: ChainCase, values: int) -> Splitter:
    return LinearSplitter(case.points, values + 1, shape.pieces, shape.places(case.points))


SPLITTERS: dict[type, Callable[[Any, ChainCase, int], Splitter]] = {
    ConstantPieces: _constant,
    LinearPieces: _linear,
    Lipschitz: _lipschitz,
    Convex: _convex,
    Concave: _convex,
}


def shape_tree(case: ChainCase) -> ShapeTree:
    """The published tree for the shape of a case."""
    shape = case.shape
    assert shape is not None
    splitter = SPLITTERS.get(type(shape))
    if splitter is None:
        raise InputError(f"There is no published tree for the shape {shape.name!r}. Use method='auto'.")
    values = shape.steps(case)
    columns = ROWS if isinstance(shape, LinearPieces) else values
    levels = case.levels or max(1, math.ceil(math.log2(max(2.0, case.strength))))
    return ShapeTree(
        case.setting,
        case.points,
        splitter(shape, case, values),
        min(levels, values.bit_length() - 1),
        values + 1,
        case.table(columns),
        shape.interpolated,
        case.unit(columns),
        case.steepest,
    )
