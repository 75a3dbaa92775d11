"""Bins that contradict a rising curve so strongly that no path through all of them keeps a weight above 0.

The likeliest rising path has one value along bins that contradict each other. Where these clash, all of them say the same: the
mean of their log likelihoods, which together is what they said of paths with one value there. Other paths hardly count.
"""

from __future__ import annotations

import numpy as np

from isotone.array_types import Bools, Floats, Ints

__all__ = ["without_clashes"]

MOST = 200.0
"""So much less likely a rising path may be than the best up to some bin and the best after it: messages keep its weight."""


def without_clashes(log_likelihood: Floats) -> Floats:
    """The log likelihood by bin and value, evened out along bins that clash."""
    path, clashing = _likeliest_path(log_likelihood)
    runs = np.split(np.arange(path.size), np.flatnonzero(np.diff(path)) + 1)
    found = log_likelihood.copy()
    for run in runs:
        if clashing[run[1:]].any():
            found[run] = log_likelihood[run].mean(axis=0)
    return found


def _likeliest_path(log_likelihood: Floats) -> tuple[Ints, Bools]:
    """The place of the likeliest rising path in every bin, and the bins that clash with those before them."""
    upto, onward = log_likelihood.copy(), log_likelihood.copy()
    for b in range(1, len(upto)):
        upto[b] += np.maximum.accumulate(upto[b - 1])
        onward[-1 - b] += np.maximum.accumulate(onward[-b][::-1])[::-1]
    path = np.zeros(len(upto), dtype=np.int64)
    for b in range(len(upto)):
        least = path[b - 1] if b else 0
        path[b] = least + onward[b, least:].argmax()
    apart = upto[:-1].max(axis=1) + onward[1:].max(axis=1) - onward[0].max()
    return path, np.r_[False, apart > MOST]
