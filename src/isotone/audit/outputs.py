"""The outputs of two sides as rows of numbers.

The mechanism may give vectors, numbers or words.

Numbers and vectors stay what they are. Whole numbers too large for a float are counted from the first output, so that
no digit is lost. Anything else (words, pairs, None) becomes a label, and labels are numbered.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from isotone.array_types import Floats
from isotone.errors import InputError

__all__ = ["Sides", "draw_both"]

_EXACT = 2**53  # floats hold every whole number up to here


@dataclass(frozen=True)
class Sides:
    """Draws from both sides, one output per row. ``labels`` says that numbers only name outputs."""

    first: Floats
    second: Floats
    labels: bool = False


def draw_both(
    release: Callable[..., Any],
    statistic: Any,
    neighbour: Any,
    trials: int,
    batch: bool,
    report: Callable[[float], None],
) -> Sides:
    """``trials`` outputs of each side. With ``batch``, ``release(statistic, size)`` gives many at once."""
    draw = _many if batch else _one_by_one
    first = draw(release, statistic, trials, lambda done: report(done / 2))
    second = draw(release, neighbour, trials, lambda done: report(0.5 + done / 2))
    one, other = _as_numbers(first), _as_numbers(second)
    if one is None or other is None:
        return _labelled(first, second)
    if one.shape[1] != other.shape[1]:
        raise InputError("The two sides have outputs of different lengths, which alone distinguishes them.")
    return Sides(*_as_floats(one, other))


def _one_by_one(
    release: Callable[..., Any], statistic: Any, trials: int, report: Callable[[float], None]
) -> list[Any]:
    outputs: list[Any] = []
    for i in range(trials):
        outputs.append(release(statistic))
        if i % 1024 == 0:
            report(i / trials)
    return outputs


def _many(
    release: Callable[..., Any], statistic: Any, trials: int, report: Callable[[float], None]
) -> Sequence[Any]:
    outputs = release(statistic, trials)
    if len(outputs) != trials:
        raise InputError(f"Asked for {trials} outputs at once, the mechanism gave {len(outputs)}.")
    report(1.0)
    return outputs


def _as_numbers(outputs: Sequence[Any]) -> NDArray[Any] | None:
    """One row of numbers per output. None if they are not numbers."""
    try:
        rows = np.asarray(outputs)
    except ValueError:
        if all(np.ndim(output) == 1 and np.asarray(output).dtype.kind in "iufb" for output in outputs[:50]):
            raise InputError(
                "The mechanism's outputs have different lengths; an audit needs vectors of one length."
            ) from None
        return None
    if rows.dtype.kind not in "iufb":
        return _big_integers(rows)
    return rows.reshape(len(rows), -1)


def _big_integers(rows: NDArray[Any]) -> NDArray[Any] | None:
    """Python integers beyond 64 bits, as objects. None if there is anything else among them."""
    flat = rows.reshape(len(rows), -1) if rows.dtype.kind == "O" else None
    if flat is None or not all(isinstance(x, (int, np.integer)) for x in flat.ravel().tolist()):
        return None
    return flat


def _as_floats(first: NDArray[Any], second: NDArray[Any]) -> tuple[Floats, Floats]:
    whole = first.dtype.kind in "iuO" and second.dtype.kind in "iuO"
    if whole and max(int(np.max(abs(side.astype(object)))) for side in (first[:100], second[:100])) > _EXACT:
        origin = first[:1].astype(object)
        first, second = first.astype(object) - origin, second.astype(object) - origin
    return first.astype(np.float64), second.astype(np.float64)


def _labelled(first: Sequence[Any], second: Sequence[Any]) -> Sides:
    names: dict[Hashable, int] = {}
    columns: list[Floats] = []
    for side in (first, second):
        try:
            codes = [names.setdefault(cast(Hashable, output), len(names)) for output in side]
        except TypeError:
            raise InputError(
                "Outputs must be numbers, vectors of numbers of one length, or labels that can be compared "
                f"(words, tuples), not {type(side[0]).__name__}."
            ) from None
        columns.append(np.array(codes, dtype=np.float64)[:, None])
    return Sides(columns[0], columns[1], labels=True)
