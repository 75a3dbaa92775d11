"""The least loss of an isotonic fit to every prefix of a sequence, with values restricted to an interval.

Three algorithms, all in integers (docs/theory/curves.md, section 5): a heap of breakpoints for losses that are
linear on both sides of ``y``; pooled blocks for the squared loss; a pass over a grid of values for any table.
Each function adds, for every run, the loss of the records up to the end of that run to ``out``; with ``step = −1``
it reads the records from the last to the first and the fit falls.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from isotone.kernels import kernel

__all__ = ["add_linear_losses", "add_squared_losses", "add_table_losses"]

Ints = NDArray[np.int64]

FRACTION = 30
"""Binary digits that are kept of the fractional part of a block's squared loss."""


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
def _block_loss(weight: int, total: int, squares: int, low: int, high: int) -> tuple[int, int]:
    """The squared loss of a block at its mean, moved into [low, high]: ``(a, b)`` means ``a − b/2**30``, rounded up."""
    mean = total // weight
    rest = total - mean * weight
    if mean < low:
        mean, rest = low, 0
    elif mean >= high:
        mean, rest = high, 0
    whole = rest * rest // weight
    part = ((rest * rest - whole * weight) << FRACTION) // weight
    # sums below may wrap around; the result fits, so it is right
    return squares - 2 * mean * total + mean * mean * weight - whole, part


@kernel
def add_squared_losses(
    levels: Ints,
    weights: Ints,
    start: Ints,
    first: int,
    last: int,
    step: int,
    low: int,
    high: int,
    blocks: Ints,
    out: Ints,
    parts: Ints,
) -> None:
    """The squared loss, as whole numbers in ``out`` minus fractions of 2**−30 in ``parts``."""
    if step < 0:
        low, high = -high, -low
    top = 0  # columns of a block: weight, total, squares, loss and fraction of all blocks up to it
    run = first if step > 0 else last - 1
    for place in range(1, last - first + 1):
        for record in range(start[run], start[run + 1]):
            index = record if step > 0 else start[run] + start[run + 1] - 1 - record
            weight = weights[index]
            if weight == 0:
                continue
            total = weight * step * levels[index]
            squares = weight * levels[index] * levels[index]
            while top > 0 and _at_least(blocks[top - 1, 1], blocks[top - 1, 0], total, weight):
                top -= 1
                weight += blocks[top, 0]
                total += blocks[top, 1]
                squares += blocks[top, 2]
            loss, part = _block_loss(weight, total, squares, low, high)
            blocks[top, 0], blocks[top, 1], blocks[top, 2] = weight, total, squares
            blocks[top, 3] = loss + (blocks[top - 1, 3] if top > 0 else 0)
            blocks[top, 4] = part + (blocks[top - 1, 4] if top > 0 else 0)
            top += 1
        if top > 0:
            out[place if step > 0 else last - first - place] += blocks[top - 1, 3]
            parts[place if step > 0 else last - first - place] += blocks[top - 1, 4]
        run += step


@kernel
def _at_least(total: int, weight: int, other_total: int, other_weight: int) -> bool:
    """Whether ``total/weight >= other_total/other_weight``, exactly and without large products."""
    mean, other = total // weight, other_total // other_weight
    if mean != other:
        return mean > other
    return (total - mean * weight) * other_weight >= (other_total - other * other_weight) * weight


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
    """Any convex loss, by its table; ``levels`` are rows, and columns ``low, …, high`` are the values allowed."""
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
