"""Give every record at most one option of each choice.

A rule that is declared beforehand and looks at one record at a time, after the rows of its unit are combined and
the record is closed upward; earlier, two rows of a unit could still bring two options together.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Literal

import narwhals as nw

from isotone.order import Poset
from isotone.order.closure import Options, innermost_first, partitions_upward
from isotone.reading.columns.native import Pick, any_of, cleared, picked

__all__ = ["Conflict", "broken", "with_one_option", "with_options"]

Frame = nw.LazyFrame[Any]

Conflict = Literal["first", "drop"]
"""What happens to a record that breaks a choice: it keeps the first option, or it is left out."""


def with_one_option(records: Frame, P: Poset, names: Sequence[str], rule: Conflict) -> Frame:
    """Every record with at most one option of each choice, and with one of a partition if it has the parent.

    ``records`` has a column of booleans for each element, called ``names``, and is closed upward. With
    ``"first"`` a yes whose partition has no option is taken back; then a record keeps the option that comes first in
    the sequence of the order's elements, and what is below it. With ``"drop"`` such records are left out.
    """
    if not P.choices:
        return records
    column = dict(zip(P.elements, names, strict=True))
    if rule == "drop":
        many, none = broken(P, names)
        return records.filter(~any_of([*many, *none]))
    # what is missing first, so that an option is not given up for one that cannot stay
    return picked(with_options(records, P, names), _conflicts(P, column))


def with_options(records: Frame, P: Poset, names: Sequence[str]) -> Frame:
    """Every record without the yeses whose partition has no option."""
    return cleared(records, _missing(P, dict(zip(P.elements, names, strict=True))))


def broken(P: Poset, names: Sequence[str]) -> tuple[list[nw.Expr], list[nw.Expr]]:
    """For each choice whether a record has several options, and for each partition whether it has none."""
    column, parent = dict(zip(P.elements, names, strict=True)), dict(P.covers)
    many: list[nw.Expr] = []
    none: list[nw.Expr] = []
    for choice in P.choices:
        options = [column[option] for option in choice.options]
        if len(options) > 1:
            many.append(nw.sum_horizontal(*(nw.col(name).cast(nw.Int32) for name in options)) > 1)
        if choice.kind == "partition":
            none.append(_without(column[parent[choice.options[0]]], options))
    return many, none


def _without(parent: str, options: Sequence[str]) -> nw.Expr:
    return nw.col(parent) & ~any_of([nw.col(name) for name in options])


def _conflicts(P: Poset, column: Mapping[Hashable, str]) -> list[list[Pick]]:
    """Which options to keep, outermost choices first, since an option that goes takes those below it along."""
    options = Options.of(P)
    inside: dict[Hashable, list[Hashable]] = {}
    for x in P.elements:
        above = options.nearest[x]
        while above is not None:
            inside.setdefault(above, []).append(x)
            above = options.enclosing[above]
    depth: dict[Hashable | None, int] = {None: 0}
    stages: list[list[Pick]] = []
    for choice in reversed(innermost_first(P)):
        level = depth[options.enclosing[choice.options[0]]]
        depth.update(dict.fromkeys(choice.options, level + 1))
        if len(choice.options) == 1:
            continue
        members = {column[x]: i for i, option in enumerate(choice.options) for x in inside[option] if i > 0}
        stages += [[] for _ in range(level + 1 - len(stages))]
        stages[level].append(Pick([column[option] for option in choice.options], members))
    return [stage for stage in stages if stage]


def _missing(P: Poset, column: Mapping[Hashable, str]) -> list[dict[str, list[tuple[str, list[str]]]]]:
    """Which yeses to take back for want of an option, lowest parents first.

    What is below an option that is missing is a no already. The rest below the parent goes with it.
    """
    levels = dict(zip(P.elements, P.levels.tolist(), strict=True))
    stages: dict[int, dict[str, list[tuple[str, list[str]]]]] = {}
    for top, options, others in partitions_upward(P):
        gone = column[top], [column[option] for option in options]
        for x in (top, *others):
            stages.setdefault(levels[top], {}).setdefault(column[x], []).append(gone)
    return [stages[level] for level in sorted(stages)]
