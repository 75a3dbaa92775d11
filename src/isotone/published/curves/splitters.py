"""The published tree for each shape."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from isotone.curves.chain.problem import ChainProblem
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


def _convex(shape: Convex, problem: ChainProblem, values: int) -> Splitter:
    return ConvexSplitter(problem.points, values + 1, values)


def _constant(shape: ConstantPieces, problem: ChainProblem, values: int) -> Splitter:
    return ConstantSplitter(problem.points, values + 1, shape.pieces)


def _lipschitz(shape: Lipschitz, problem: ChainProblem, values: int) -> Splitter:
    return LipschitzSplitter(problem.points, values + 1, shape.rise(problem.grid, values, problem.height))


def _linear(shape: LinearPieces, problem: ChainProblem, values: int) -> Splitter:
    return LinearSplitter(problem.points, values + 1, shape.pieces, shape.places(problem.points))


SPLITTERS: dict[type, Callable[[Any, ChainProblem, int], Splitter]] = {
    ConstantPieces: _constant,
    LinearPieces: _linear,
    Lipschitz: _lipschitz,
    Convex: _convex,
    Concave: _convex,
}


def shape_tree(problem: ChainProblem) -> ShapeTree:
    """The published tree for the shape of a problem."""
    shape = problem.shape
    assert shape is not None
    splitter = SPLITTERS.get(type(shape))
    if splitter is None:
        raise InputError(f"There is no published tree for the shape {shape.name!r}. Use method='auto'.")
    values = shape.steps(problem)
    columns = ROWS if isinstance(shape, LinearPieces) else values
    levels = problem.levels or max(1, math.ceil(math.log2(max(2.0, problem.strength))))
    return ShapeTree(
        problem.setting,
        problem.points,
        splitter(shape, problem, values),
        min(levels, values.bit_length() - 1),
        values + 1,
        problem.table(columns),
        shape.interpolated,
        problem.unit(columns),
        problem.steepest,
    )
