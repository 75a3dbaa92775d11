"""Products of chains, without listing their relations.

This is the order of several binned columns.

A cell is below another if it is at most as high in every column. An order of 1,000 × 1,000 cells has 10¹² pairs to
compare; as a product it is described by two numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from isotone.array_types import Ints
from isotone.curves.arrays import columns_of, numbers_of, shape_of
from isotone.curves.grids import parse_interval
from isotone.errors import InputError
from isotone.privacy.checks import shown, truth, whole_number

__all__ = ["FeatureOrder", "ProductOrder"]

MOST_CELLS = 1 << 24
WHY_BOUNDS = "Columns are cut into bins between public limits, and values outside are moved to the ends."


@dataclass(frozen=True)
class ProductOrder:
    """The product of chains of the given lengths.

    Its elements are tuples of numbers, each from 0.

    >>> grid = ProductOrder((1000, 1000))
    >>> len(grid), (3, 999) in grid, grid.index((0, 7))
    (1000000, True, 7)
    """

    shape: tuple[int, ...]

    def __post_init__(self) -> None:
        given: Any = self.shape
        scalar = isinstance(given, (str, bytes)) or (isinstance(given, np.ndarray) and given.ndim == 0)
        if scalar or not isinstance(given, Iterable) or not (entries := list(given)):
            raise InputError(
                f"A product of chains needs the length of each chain, such as (20, 20), not {shown(given)}. "
                "For columns with bounds, use PrivatePosetRegression.from_features."
            )
        sizes = tuple(
            whole_number(k, "the length of each chain (use from_features for columns with bounds)")
            for k in entries
        )
        object.__setattr__(self, "shape", sizes)
        if math.prod(sizes) > MOST_CELLS:
            raise InputError(
                f"A product of {' × '.join(map(str, sizes))} cells is too large: {MOST_CELLS:,} is the limit. Take fewer bins."
            )

    def rows(self, table: Any) -> int:
        """The number of rows of a table with a column for each chain.

        Other shapes raise an error.
        """
        shape = shape_of(table, "X")
        if len(shape) > 2 or (len(shape) == 2 and shape[1] != len(self.shape)):
            raise InputError(f"X must have two dimensions and {len(self.shape)} columns, not shape {shape}.")
        return len(table)

    def locate(self, table: Any) -> Ints:
        """The number of each row's element, −1 where it has none."""
        numbers, known = np.zeros(len(table), np.int64), True
        for column, size in zip(columns_of(table, "X", len(self.shape)), self.shape, strict=True):
            values = numbers_of(column)
            inside = (values >= 0) & (values < size) & (values == np.floor(values))
            known &= inside
            numbers = numbers * size + np.where(inside, values, 0).astype(np.int64)
        return np.where(known, numbers, -1)

    def __len__(self) -> int:
        return math.prod(self.shape)

    def __contains__(self, element: object) -> bool:
        return (
            isinstance(element, tuple)
            and len(element) == len(self.shape)
            and all(
                isinstance(k, (int, np.integer)) and 0 <= k < top
                for k, top in zip(element, self.shape, strict=True)
            )
        )

    def index(self, element: Any) -> int:
        """The number of an element, last column fastest."""
        if element not in self:
            raise KeyError(element)
        return int(np.ravel_multi_index(element, self.shape))

    def cover_pairs(self) -> Ints:
        """All covers ``(lower, upper)``, as numbers of elements."""
        cells = np.arange(len(self)).reshape(self.shape)
        pairs = [np.zeros((0, 2), np.int64)]
        for axis in range(len(self.shape)):
            lower = np.delete(cells, -1, axis=axis).ravel()
            upper = np.delete(cells, 0, axis=axis).ravel()
            pairs.append(np.stack([lower, upper], axis=1))
        return np.concatenate(pairs)

    def fewest_ideals(self) -> Fraction:
        """A lower bound on the number of ideals, exact with at most three axes (MacMahon's box formula)."""
        a, b, c = [*sorted(self.shape, reverse=True), 1, 1][:3]
        count = Fraction(1)
        for i in range(1, b + 1):
            for j in range(1, c + 1):
                count *= Fraction(i + j + a - 1, i + j - 1)
                if count > MOST_CELLS:
                    return count
        return count

    def planes(self) -> list[Ints]:
        """The cells of every plane along the two longest axes.

        One plane if no other axis has two places.
        """
        longest = sorted(range(len(self.shape)), key=lambda axis: -self.shape[axis])[:2]
        kept = [self.shape[axis] for axis in longest]
        cells = np.arange(len(self)).reshape(self.shape)
        cells = np.moveaxis(cells, longest, range(-len(longest), 0))
        rows, columns = kept if len(kept) == 2 else (1, *kept)
        return [np.ascontiguousarray(plane) for plane in cells.reshape(-1, rows, columns)]


@dataclass(frozen=True)
class FeatureOrder(ProductOrder):
    """The order of several columns cut into equal bins.

    Higher in every column is higher.

    ``falling`` columns are taken the other way round: the prediction falls as they rise.
    """

    bounds: tuple[tuple[Fraction, Fraction], ...] = ()
    falling: tuple[bool, ...] = ()

    @classmethod
    def of(
        cls, bounds: Iterable[Any], bins: int | Sequence[int], directions: bool | Sequence[bool]
    ) -> FeatureOrder:
        """Check public limits and numbers of bins, one for each column."""
        if not isinstance(bounds, Iterable) or isinstance(bounds, (str, bytes, Mapping)):  # pyright: ignore[reportUnnecessaryIsInstance] - what users pass
            raise InputError(
                f"from_features needs bounds=[(low, high), …], one pair for each column, not {bounds!r}. {WHY_BOUNDS} "
                "They must not be the data's own minimum and maximum, because those belong to single records."
            )
        limits = tuple(
            parse_interval(pair, f"bounds of column {place}", WHY_BOUNDS) for place, pair in enumerate(bounds)
        )
        if not limits:
            raise InputError("from_features needs bounds=[(low, high), …], one pair for each column.")
        sizes = _one_each(bins, len(limits), "bins")
        rising = _one_each(directions, len(limits), "directions")
        return cls(sizes, limits, tuple(not truth(up, "each of directions") for up in rising))

    def locate(self, table: Any) -> Ints:
        """The number of each row's cell, −1 where a value is missing. Values outside are moved to the ends."""
        numbers, missing = np.zeros(len(table), np.int64), False
        columns = columns_of(table, "X", len(self.shape))
        for column, (low, high), bins, falls in zip(
            columns, self.bounds, self.shape, self.falling, strict=True
        ):
            values = numbers_of(column)
            missing |= np.isnan(values)
            # first into the interval, then divided: no value is too large then
            inside = np.clip(np.nan_to_num(values), float(low), float(high)) - float(low)
            cell = np.minimum(np.floor(inside / float(high - low) * bins).astype(np.int64), bins - 1)
            numbers = numbers * bins + (bins - 1 - cell if falls else cell)
        return np.where(missing, -1, numbers)


def _one_each(value: Any, count: int, name: str) -> tuple[Any, ...]:
    """One entry for each column, from one for all or from a list.

    Arrays are turned into plain values.
    """
    if hasattr(value, "tolist"):
        value = value.tolist()
    entries = tuple(value) if isinstance(value, (list, tuple)) else (value,) * count
    if len(entries) != count:
        raise InputError(f"{name} must be one value, or one for each of the {count} columns, not {value!r}.")
    return entries
