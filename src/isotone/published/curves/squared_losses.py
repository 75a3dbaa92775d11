"""The least squared loss of an isotonic fit to every prefix of a sequence, by pooled blocks in integers.

As in :mod:`isotone.curves.losses.prefix_losses`, for the squared loss (docs/theory/curves.md, section 5).
"""

from __future__ import annotations

from isotone.array_types import Ints
from isotone.kernels import kernel

__all__ = ["FRACTION", "add_squared_losses"]

FRACTION = 30
"""Binary digits that are kept of the fractional part of a block's squared loss."""


@kernel
def _block_loss(weight: int, total: int, squares: int, low: int, high: int) -> tuple[int, int]:
    """The squared loss of a block at its mean, clipped to [low, high].

    ``(a, b)`` means ``a − b/2**30``, rounded up.
    """
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
