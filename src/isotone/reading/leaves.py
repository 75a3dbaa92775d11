"""Count the records of a hierarchy from long data, one number for each unit.

A unit's codes are joined with the public list of all codes, its record ends where the declared rule says, and the units
of each end are counted: one grouped query, however many codes there are. The result is that of
:mod:`isotone.reading.exclusive`, which works for any order.
"""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from isotone.order import Poset
from isotone.order.building import Ends
from isotone.reading.columns.public_lists import listed
from isotone.reading.columns.texts import name_text
from isotone.reading.exclusive import Conflict
from isotone.reading.sources.opening import collect

__all__ = ["count_ends"]

Frame = nw.LazyFrame[Any]

_END, _RANK, _FIRST, _UNITS = "isotone_end", "isotone_rank", "isotone_first", "isotone_units"


def count_ends(
    rows: Frame, unit: str | None, item: str, P: Poset, rule: Conflict, group: str | None, groups: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Counts (a row per group, a column per element) and the number of units of each group.

    ``rows`` has the unit (None: each row is one), the text of a code in the column ``item``, and the number of the group.
    """
    ends = Ends.of(P)
    numbers: dict[str, list[int | None]] = {
        _END: [*ends.end],
        _RANK: [*ends.rank],
        _FIRST: [*ends.first],
    }
    coded = listed(rows, item, [name_text(x) for x in P.elements], numbers)
    units = coded
    if unit is not None:
        by = [nw.col(group).min()] if group else []
        ends_of = (nw.col(_END).min(), nw.col(_RANK).min(), nw.col(_FIRST).max())
        units = coded.group_by(unit).agg(*ends_of, *by)
    if rule == "drop":
        # all codes lie on the way to the end, or there is none at all
        fits = (nw.col(_END) == nw.col(_RANK)) & (nw.col(_FIRST) <= nw.col(_RANK))
        units = units.filter((fits | nw.col(_RANK).is_null()).fill_null(False))
    keys = [_END, *([group] if group else [])]
    found = collect(units.group_by(*keys).agg(nw.len().alias(_UNITS)))
    records = np.zeros(groups, np.int64)
    at_rank: list[dict[int, int]] = [{} for _ in range(groups)]
    for i, (end, number) in enumerate(zip(found[_END], found[_UNITS], strict=True)):
        g = int(found[group][i]) if group else 0
        records[g] += int(number)
        if end is not None and end == end:
            at_rank[g][int(end)] = int(number)
    return np.array([ends.sums(P, row) for row in at_rank], np.int64), records
