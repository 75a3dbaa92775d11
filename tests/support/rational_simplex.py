"""A linear program in exact rationals: two phases, Bland's rule, no tolerance anywhere."""

from __future__ import annotations

from fractions import Fraction

Row = list[Fraction]


def minimum(rows: list[Row], sides: Row, cost: Row) -> Fraction:
    """The least ``cost·x`` over ``x >= 0`` with ``rows·x = sides`` (``sides >= 0``)."""
    size, count = len(cost), len(rows)
    table = [
        [*row, *(Fraction(int(i == k)) for k in range(count)), side]
        for i, (row, side) in enumerate(zip(rows, sides, strict=True))
    ]
    basis = [size + i for i in range(count)]
    slack = [Fraction(0)] * size + [Fraction(1)] * count + [Fraction(0)]
    for row in table:
        slack = [a - b for a, b in zip(slack, row, strict=True)]
    _pivot_until_done(table, basis, slack, size + count)
    assert slack[-1] == 0, "infeasible"
    for i in range(count - 1, -1, -1):
        if basis[i] >= size:
            column = next((j for j in range(size) if table[i][j]), None)
            if column is None:
                del table[i], basis[i]
            else:
                _pivot(table, basis, slack, i, column)
    objective = [*cost, *([Fraction(0)] * (count + 1))]
    for row, held in zip(table, basis, strict=True):
        factor = objective[held]
        if factor:
            objective = [a - factor * b for a, b in zip(objective, row, strict=True)]
    _pivot_until_done(table, basis, objective, size)
    return -objective[-1]


def _pivot_until_done(table: list[Row], basis: list[int], objective: Row, columns: int) -> None:
    while True:
        enter = next((j for j in range(columns) if objective[j] < 0), None)
        if enter is None:
            return
        limits = [(row[-1] / row[enter], basis[i], i) for i, row in enumerate(table) if row[enter] > 0]
        _pivot(table, basis, objective, min(limits)[2], enter)


def _pivot(table: list[Row], basis: list[int], objective: Row, leave: int, enter: int) -> None:
    pivot = table[leave][enter]
    table[leave] = [x / pivot for x in table[leave]]
    for i, row in enumerate(table):
        if i != leave and row[enter]:
            factor = row[enter]
            table[i] = [a - factor * b for a, b in zip(row, table[leave], strict=True)]
    factor = objective[enter]
    objective[:] = [a - factor * b for a, b in zip(objective, table[leave], strict=True)]
    basis[leave] = enter
