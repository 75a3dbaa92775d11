"""Choosing the noise and the shares of a breakdown. No data is needed."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotone.counts.breakdowns.cells import MOST_NUMBERS, Breakdown
from isotone.counts.breakdowns.margin_shares import importance_of
from isotone.counts.breakdowns.margins import MarginsMechanism
from isotone.counts.candidates import Setting
from isotone.counts.caring import Care
from isotone.counts.choosing import choose_mechanism
from isotone.counts.hierarchies.measured_tree import TreeGaussianMechanism
from isotone.counts.mechanisms.additive import AdditiveMechanism
from isotone.counts.mechanisms.order_gaussian import OrderGaussianMechanism
from isotone.counts.mechanisms.poset_mechanism import PosetMechanism
from isotone.errors import InputError
from isotone.order.building import is_hierarchy
from isotone.privacy.guarantee import Guarantee

__all__ = ["margins_mechanism"]

_SMALL, _NEAR = 200, 1.2
"""For larger orders a second search could take long; and how much more error is taken for shorter intervals."""


def margins_mechanism(
    setting: Setting,
    breakdown: Breakdown,
    guarantee: Guarantee,
    mechanism: str | AdditiveMechanism | None = None,
    importance: Any = None,
) -> MarginsMechanism:
    """The mechanism for a breakdown that keeps ``guarantee``, with the best noise for the cells and the best shares.

    For replace neighbours the noise is for adding or removing, at so much less that replacing follows.
    """
    P, care = setting.P, setting.care
    numbers = breakdown.cells * len(P)
    if numbers > MOST_NUMBERS:
        raise InputError(
            f"{breakdown.cells:,} cells of {len(P)} counts are {numbers:,} numbers, and a breakdown has at most "
            f"{MOST_NUMBERS:,}. Take coarser lists, or fewer attributes."
        )

    weights = importance_of(breakdown, importance)

    def chosen(
        asked: Guarantee, kind: str | AdditiveMechanism | None, cared: Care | None
    ) -> AdditiveMechanism:
        # a unit that is replaced may change its cell: each is guaranteed so much about adding that replacing follows
        return choose_mechanism(replace(setting, care=cared), asked.of_one_unit(), kind)

    def shared(base: AdditiveMechanism) -> MarginsMechanism:
        if guarantee.kind != "zcdp" or base.guarantee.kind != "pure":
            return MarginsMechanism(base, breakdown, importance)
        return MarginsMechanism(base, breakdown, importance, rho=guarantee.of_one_unit().rho)

    def best(asked: Guarantee) -> MarginsMechanism:
        """The noise that is best for the shares of the cells, which need not be that for the whole budget."""
        first = shared(chosen(asked, None, care))
        if asked.kind != "pure" or len(P) > _SMALL or is_hierarchy(P):
            return first
        found = {type(first.base): first}
        for share in {min(filter(None, first.shares)), max(first.shares)} - {1}:
            base = chosen(replace(asked, epsilon=asked.epsilon * share), None, care)
            found.setdefault(type(base), shared(base.part(1 / share)))
        if setting.max_size is None and PosetMechanism not in found:  # its intervals are the shortest
            found[PosetMechanism] = shared(chosen(asked, PosetMechanism.__name__, None))
        return _shortest(list(found.values()), weights)

    if mechanism not in (None, "best"):
        return shared(chosen(guarantee, mechanism, care))
    if guarantee.kind != "approximate":
        return best(guarantee)
    # all parts of Gaussian noise together cost what one does, so it wins more often than for one table
    found = [best(Guarantee.pure(guarantee.epsilon, neighbours=guarantee.neighbours, unit=guarantee.unit))]
    gaussian = TreeGaussianMechanism if is_hierarchy(P) else OrderGaussianMechanism
    if is_hierarchy(P) or not any(choice.kind == "partition" for choice in P.choices):
        found.append(shared(chosen(guarantee, gaussian.__name__, care)))
    return min(found, key=lambda one: float(weights @ one.mean_variances()))


def _shortest(found: list[MarginsMechanism], weights: NDArray[np.float64]) -> MarginsMechanism:
    """Of those with nearly the least error the one with the shortest intervals.

    Those of noise on whole numbers are proved for any law of the kind, and wide.
    """
    errors = [math.sqrt(float(weights @ one.mean_variances())) for one in found]
    near = [one for one, error in zip(found, errors, strict=True) if error <= _NEAR * min(errors)]
    return min(near, key=lambda one: float(weights @ [float(half.mean()) for half in one.half_widths()]))
