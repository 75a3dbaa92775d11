"""The least loss of an isotonic fit to every prefix of a sequence, with values restricted to an interval.

Two algorithms, both in integers (docs/theory/curves.md, section 5): a heap of breakpoints for losses that are
linear on both sides of ``y``, and a pass over a grid of values for any table.
Each function adds, for every run, the loss of the records up to the end of that run to ``out``; with ``step = −1``
it reads the records from the last to the first and the fit falls.
"""

from __future__ import annotations

from isotone.array_types import Ints
from isotone.kernels import kernel

__all__ = ["add_linear_losses", "add_table_losses"]


@kernel
def _push(values: Ints, weights: Ints, size: int, value: int, weight: int) -> None:
    """Add an entry to a heap whose largest value is at 0."""
    place = size
    while place > 0:
        above = (place - 1) >> 1
        if values[above] >= value:
            break
        values[place], weights[place] = values[above], weights[above]
        place = above
    values[place], weights[place] = value, weight


@kernel
def _pop(values: Ints, weights: Ints, size: int) -> None:
    """Remove the entry at 0 from a heap of ``size`` entries."""
    last = size - 1
    value, weight = values[last], weights[last]
    place = 0
    while True:
        below = 2 * place + 1
        if below >= last:
            break
        if below + 1 < last and values[below + 1] > values[below]:
            below += 1
        if values[below] <= value:
            break
        values[place], weights[place] = values[below], weights[below]
        place = below
    values[place], weights[place] = value, weight


@kernel
def add_linear_losses(
    levels: Ints,
    weights: Ints,
    start: Ints,
    first: int,
    last: int,
    step: int,
    low: int,
    high: int,
    above: int,
    below: int,
    heap: Ints,
    heights: Ints,
    out: Ints,
) -> None:
    """Losses with slope ``above`` beyond ``y`` and ``−below`` before it."""
    cost, size = 0, 0
    if step < 0:
        low, high, above, below = -high, -low, below, above
    run = first if step > 0 else last - 1
    for place in range(1, last - first + 1):
        for record in range(start[run], start[run + 1]):
            index = record if step > 0 else start[run] + start[run + 1] - 1 - record
            level, weight = step * levels[index], weights[index]
            kept = min(max(level, low), high)
            cost += weight * (above * (kept - level) if kept > level else below * (level - kept))
            _push(heap, heights, size, kept, weight * (above + below))
            size += 1
            rest = weight * above
            while rest > 0:
                part = min(rest, heights[0])
                cost += part * (heap[0] - kept)
                rest -= part
                heights[0] -= part
                if heights[0] == 0:
                    _pop(heap, heights, size)
                    size -= 1
        out[place if step > 0 else last - first - place] += cost
        run += step


@kernel
def add_table_losses(
    levels: Ints,
    weights: Ints,
    start: Ints,
    first: int,
    last: int,
    step: int,
    low: int,
    high: int,
    table: Ints,
    least: Ints,
    out: Ints,
) -> None:
    """Any convex loss, by its table. ``levels`` are rows, and columns ``low, …, high`` are the values allowed."""
    width = high - low + 1
    for value in range(width):
        least[value] = 0
    run = first if step > 0 else last - 1
    for place in range(1, last - first + 1):
        for record in range(start[run], start[run + 1]):
            index = record if step > 0 else start[run] + start[run + 1] - 1 - record
            row, weight = table[levels[index]], weights[index]
            running = least[0 if step > 0 else width - 1]
            for value in range(width):
                at = value if step > 0 else width - 1 - value
                running = min(running, least[at])
                least[at] = running + weight * row[low + at]
        best = least[0]
        for value in range(1, width):
            best = min(best, least[value])
        out[place if step > 0 else last - first - place] += best
        run += step
