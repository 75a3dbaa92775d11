"""From arrays to private records.

Shapes and lengths are public and checked with errors. Contents are private: a value that is missing or cannot
be read drops its record, a value outside its interval is moved to the nearest end, and nothing is ever raised
or printed about either (docs/theory/curves.md, section 1). What a value means is decided by
:mod:`isotone.reading.values`, as for releases.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from isotone.array_types import Bools, Ints
from isotone.curves.arrays import check_length, numbers_of, only_column
from isotone.curves.grids import FINE
from isotone.curves.problem import RegressionProblem
from isotone.errors import InputError
from isotone.reading.values import units

__all__ = ["Records", "check_columns", "read_records"]


@dataclass(frozen=True)
class Records:
    """Private records on public grids.

    The index of ``x``, the index of ``y``, an integer weight.
    """

    cells: Ints = field(repr=False)
    levels: Ints = field(repr=False)
    weights: Ints = field(repr=False)

    def sorted(self) -> Records:
        """Sorted by cell, and by falling level within a cell.

        The second order makes every isotonic fit of a prefix or suffix give equal ``x`` equal values: levels
        that fall are pooled (docs/theory/curves.md, section 5).
        """
        levels, weights = int(self.levels.max(initial=0)) + 1, int(self.weights.max(initial=0)) + 1
        if (int(self.cells.max(initial=0)) + 1) * levels * weights >= 1 << 62:
            order = np.lexsort((-self.levels, self.cells))
            return Records(self.cells[order], self.levels[order], self.weights[order])
        # one integer for each record sorts much faster than an index
        packed = np.sort((self.cells * levels + (levels - 1 - self.levels)) * weights + self.weights)
        rest, weight = np.divmod(packed, weights)
        cells, fallen = np.divmod(rest, levels)
        return Records(cells, levels - 1 - fallen, weight)

    def rows(self, table: Ints) -> Ints:
        """For every record the row of a loss table, whose rows are coarser than levels."""
        coarse = FINE // (table.shape[0] - 1)
        return (self.levels + coarse // 2) // coarse

    def bins(self, starts: Ints) -> Ints:
        """The bin of every record. Bins begin at ``starts``."""
        return np.searchsorted(starts, self.cells, side="right") - 1

    def mirrored(self, points: int) -> Records:
        """The same records with ``x`` running the other way."""
        return replace(self, cells=points - 1 - self.cells).sorted()

    def upside_down(self, levels: int) -> Records:
        """The same records with ``y`` running the other way."""
        return replace(self, levels=levels - self.levels).sorted()


def check_columns(rows: int, y: Any, weight: Any, groups: Any) -> None:
    """Refuse columns that have not one entry for each of ``rows`` rows. No value is looked at."""
    if y is None:
        raise InputError("A regression requires y to be passed, but the target y is None.")
    for name, column in (("y", y), ("sample_weight", weight), ("groups", groups)):
        if column is not None:
            check_length(column, name, rows)


def read_records(cells: Ints, y: Any, weight: Any, groups: Any, problem: RegressionProblem) -> Records:
    """The records that count, as integers on public grids.

    ``cells`` has the place of each ``x``, −1 where there is none. Where labels are declared any other ``y`` is missing. Of
    each unit the first ``contributions`` records with values count.
    """
    budget, y = problem.budget, numbers_of(only_column(y, "y"))
    kept = (cells >= 0) & ~np.isnan(y)
    if problem.labels:
        low, high = map(float, problem.y_range)
        kept &= (y == low) | (y == high)
    weights = np.full(cells.size, budget.whole.weight_steps, dtype=np.int64)
    if weight is not None:
        weight = numbers_of(only_column(weight, "sample_weight"))
        kept &= ~np.isnan(weight)
        share = np.clip(np.nan_to_num(weight), 0.0, budget.max_weight) / budget.max_weight
        weights = np.rint(share * budget.whole.weight_steps).astype(np.int64)
    if groups is not None:
        names = units(only_column(groups, "groups"))
        kept &= _among_first(names, kept, budget.whole.unit.contributions)
    return Records(cells[kept], problem.y_grid.snap(y[kept]), weights[kept]).sorted()


def _among_first(names: Sequence[str | None], kept: Bools, contributions: int) -> Bools:
    """Mark the first ``contributions`` records of each unit among those kept.

    None is marked without a unit.

    The rule sees one unit's rows at a time, so adding or removing another unit changes nothing.
    """
    seen: dict[str, int] = {}
    marks = np.zeros(len(names), dtype=np.bool_)
    for row in np.flatnonzero(kept).tolist():
        name = names[row]
        if name is not None and seen.get(name, 0) < contributions:
            seen[name] = seen.get(name, 0) + 1
            marks[row] = True
    return marks
