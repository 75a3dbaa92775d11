"""Curves whose log odds are a straight line from the first to the last point, as logistic regression would fit them.

Two numbers tell such a curve, so little data tells much about it, where it is right. The log odds of both ends are on a public
grid, and any two that do not fall are as likely as any other two. In each bin the value is rounded up or down to one of the
hidden chain's values, at random, with the right mean.
"""

from __future__ import annotations

import numpy as np

from isotone.array_types import Floats
from isotone.curves.posterior.hidden_chain import value_grid

__all__ = ["posterior_of_straight_odds", "straight_odds"]

ENDS = tuple(0.5 * step for step in range(-10, 11))
"""Log odds that an end may have."""


def straight_odds(places: Floats) -> Floats:
    """All curves, by curve and place. The places are shares of the way from the first point to the last."""
    first, last = (np.array(ENDS)[end, None] for end in np.triu_indices(len(ENDS)))
    return 1 / (1 + np.exp(-(first + (last - first) * places)))


def posterior_of_straight_odds(likelihood: Floats, places: Floats) -> tuple[float, Floats]:
    """The log evidence of these curves together, and the posterior of each bin's value.

    ``likelihood`` is by bin and value, above 0, up to a factor for each bin.
    """
    curves, values = straight_odds(places), value_grid(likelihood.shape[1])
    low = np.clip(np.searchsorted(values, curves, side="right") - 1, 0, values.size - 2)
    up = (curves - values[low]) / (values[low + 1] - values[low])
    bins = np.arange(places.size)
    below, above = (1 - up) * likelihood[bins, low], up * likelihood[bins, low + 1]
    log_p = np.log(below + above).sum(axis=1)
    weight = np.exp(log_p - log_p.max())
    share = (weight / weight.sum())[:, None] / (below + above)
    chances = np.zeros(likelihood.shape)
    np.add.at(chances, (bins, low), share * below)
    np.add.at(chances, (bins, low + 1), share * above)
    return float(log_p.max() + np.log(weight.mean())), chances
