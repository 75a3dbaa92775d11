"""Cutting records to at most k yeses, by a rule that looks at nothing but the order.

Walk the canonical linear extension (by level, then name) from the top and keep the first k yeses of the record. What is kept of a filter
is a filter: everything above a kept element is a yes and was met before it, so it was kept too
(docs/theory/baselines.md, section 7). A yes whose partition has lost its option is taken back, with all below it. The rule depends on the order alone, so one record is cut the same way
whatever the others are.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isotone.errors import InputError
from isotone.order import Poset
from isotone.order.closure import partitions_upward
from isotone.privacy.checks import whole_number

__all__ = ["cut", "cut_all"]


def cut(P: Poset, record: Any, max_size: int) -> Any:
    """A record cut to at most ``max_size`` yeses.

    It keeps its own form, a mapping, a set of names or an array.

    The record is closed upward first; the first ``max_size`` of its yeses from the top are kept.

    >>> from isotone.order import Poset
    >>> P = Poset(["app", "toolkit", "libc"], [("app", "toolkit"), ("toolkit", "libc")])
    >>> sorted(cut(P, {"app"}, 2))
    ['libc', 'toolkit']
    """
    closed = P.close(record)
    if isinstance(closed, Mapping):
        answers = np.array([bool(closed[name]) for name in P.elements])
        kept = cut_all(P, answers[None, :], max_size)[0]
        return dict(zip(P.elements, kept.tolist(), strict=True))
    if isinstance(closed, Set):
        answers = np.array([name in closed for name in P.elements])
        kept = cut_all(P, answers[None, :], max_size)[0]
        return frozenset(name for name, keep in zip(P.elements, kept, strict=True) if keep)
    return cut_all(P, np.asarray(closed)[None, :], max_size)[0]


def cut_all(P: Poset, records: ArrayLike, max_size: int) -> NDArray[np.bool_]:
    """Each row of a 0/1 matrix of *filters* (records × elements) cut to at most ``max_size`` yeses.

    Rows must be closed upward already (``P.close_all``); this is not checked again.
    """
    largest = whole_number(max_size, "max_size")
    answers = np.asarray(records, dtype=np.bool_)
    if answers.ndim != 2 or answers.shape[1] != len(P):
        raise InputError(f"Records must be a matrix with one column for each of the {len(P)} elements.")
    from_the_top = P.canonical.positions[::-1]
    kept = np.zeros_like(answers)
    walked = answers[:, from_the_top]
    kept[:, from_the_top] = walked & (np.cumsum(walked, axis=1) <= largest)
    for top, options, others in partitions_upward(P):
        lost = kept[:, P.index(top)] & ~np.any(kept[:, [P.index(x) for x in options]], axis=1)
        kept[np.ix_(lost, [P.index(x) for x in (top, *others)])] = False
    return kept
