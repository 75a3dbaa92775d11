"""Choosing the noise and the shares of a breakdown. No data is needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isotone.counts.breakdowns.cells import MOST_NUMBERS, Breakdown
from isotone.counts.breakdowns.margins import MarginsMechanism
from isotone.counts.breakdowns.shares import importance_of
from isotone.counts.caring import Care
from isotone.counts.choosing import choose_mechanism
from isotone.counts.mechanisms.additive import AdditiveMechanism
from isotone.errors import InputError
from isotone.order.hierarchy import is_hierarchy
from isotone.privacy.guarantee import Guarantee

if TYPE_CHECKING:
    from isotone.counts.sampling.relaxation import Relaxation
    from isotone.order import Poset

__all__ = ["margins_mechanism"]


def margins_mechanism(
    P: Poset,
    breakdown: Breakdown,
    guarantee: Guarantee,
    *,
    contributions: int = 1,
    max_size: int | None = None,
    mechanism: str | AdditiveMechanism | None = None,
    care: Care | None = None,
    relaxation: Relaxation | None = None,
    importance: Any = None,
) -> MarginsMechanism:
    """The mechanism for a breakdown that keeps ``guarantee``, with the best noise for the cells and the best shares.

    For replace neighbours the noise is for adding or removing, at so much less that replacing follows.
    """
    numbers = breakdown.cells * len(P)
    if numbers > MOST_NUMBERS:
        raise InputError(
            f"{breakdown.cells:,} cells of {len(P)} counts are {numbers:,} numbers, and a breakdown has at most "
            f"{MOST_NUMBERS:,}. Take coarser lists, or fewer attributes."
        )

    def made(asked: Guarantee, kind: str | AdditiveMechanism | None) -> MarginsMechanism:
        # a unit that is replaced may change its cell: each is guaranteed so much about adding that replacing follows
        base = choose_mechanism(
            P,
            asked.of_one_unit(),
            contributions,
            max_size,
            kind,
            groups=None,
            care=care,
            relaxation=relaxation,
        )
        if guarantee.kind != "zcdp" or base.guarantee.kind != "pure":
            return MarginsMechanism(base, breakdown, importance)
        return MarginsMechanism(base, breakdown, importance, rho=guarantee.of_one_unit().rho)

    if guarantee.kind != "approximate" or mechanism not in (None, "best"):
        return made(guarantee, mechanism)
    # all parts of Gaussian noise together cost what one does, so it wins more often than for one table
    pure = Guarantee.pure(guarantee.epsilon, neighbours=guarantee.neighbours, unit=guarantee.unit)
    found = [made(pure, None)]
    gaussian = "TreeGaussianMechanism" if is_hierarchy(P) else "OrderGaussianMechanism"
    if is_hierarchy(P) or not any(choice.kind == "partition" for choice in P.choices):
        found.append(made(guarantee, gaussian))
    weights = importance_of(breakdown, importance)
    return min(found, key=lambda one: float(weights @ one.mean_variances()))
