"""The best mechanism for counts, found without the errors of all others. Nothing is read and nothing is spent."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal, get_args

from isotone.counts.candidates import Candidate, Setting, candidates
from isotone.counts.caring import Care, care_of, cared_error
from isotone.counts.mechanisms.additive import AdditiveMechanism
from isotone.counts.mechanisms.bounded_poset import TooFewDrawsError
from isotone.counts.mechanisms.poset_mechanism import PosetMechanism
from isotone.counts.sampling.relaxation import Relaxation
from isotone.errors import InputError
from isotone.mechanism import Progress, no_progress
from isotone.order import Poset
from isotone.privacy.adjacency import Neighbours
from isotone.privacy.checks import Number, exact, one_of, whole_number
from isotone.privacy.guarantee import Guarantee
from isotone.privacy.unit import Unit

__all__ = ["Criterion", "best_mechanism", "build_or_none", "cared_for", "guarantee_of", "setting_of"]

Criterion = Literal["total", "worst"]

MARGIN = 0.9
"""Bounds are trusted to this factor: simulated errors and volumes are not exact."""


def best_mechanism(
    P: Poset,
    epsilon: Number | None = None,
    delta: Number = 0,
    max_size: int | None = None,
    rho: Number | None = None,
    neighbours: Neighbours = "add-remove",
    contributions: int = 1,
    by: Criterion = "total",
    care: Care | None = None,
    relaxation: Relaxation | None = None,
    groups: int | None = None,
    fixed: Mapping[str, Any] | None = None,
) -> AdditiveMechanism:
    """The mechanism that :func:`plan` puts first, without the errors and widths of all others.

    Those with a closed form are compared first. One that must be built or simulated is looked at only if a lower
    bound of its error does not say that it loses.
    """
    cared = cared_for(P, by, care)
    order = cared_error(P, cared)
    guarantee = guarantee_of(epsilon, delta, rho, neighbours)
    setting = setting_of(P, neighbours, contributions, max_size, relaxation, cared, groups, fixed)
    size, listed = len(P), candidates(setting, guarantee)
    bounds = [-math.inf if c.least is None else c.least(guarantee) for c in listed]  # closed forms come first
    best: tuple[float, int, AdditiveMechanism] | None = None
    for place in sorted(range(len(listed)), key=lambda place: bounds[place]):
        total_counts = cared in ("nodes", "worst")  # the bounds are about the total
        if total_counts and best and _cannot_beat(bounds[place], best[0], size):
            continue
        found = build_or_none(listed[place], guarantee, no_progress)
        if found is None:
            continue
        shaped = found.least_total() if total_counts and isinstance(found, PosetMechanism) else 0.0
        if best and _cannot_beat(shaped, best[0], size):
            continue
        error = order(found.error())
        if best is None or (error, place) < best[:2]:
            best = error, place, found
    assert best is not None  # closed forms always apply
    return best[2]


def _cannot_beat(least_total: float, error: float, size: int) -> bool:
    """Whether a mechanism with this bound is not the best. The root mean squared error is at most the worst one."""
    return math.sqrt(MARGIN * max(least_total, 0.0) / size) > error


def cared_for(P: Poset, by: Criterion, care: Care | None) -> str | dict[str, str]:
    """What is to be small, in the words of ``care``."""
    words = {"total": "nodes", "worst": "worst"}[one_of(by, "by", get_args(Criterion))]
    return words if care is None else care_of(P, care)


def setting_of(
    P: Poset,
    neighbours: Neighbours,
    contributions: int,
    max_size: int | None,
    relaxation: Relaxation | None,
    care: str | dict[str, str] = "nodes",
    groups: int | None = None,
    fixed: Mapping[str, Any] | None = None,
) -> Setting:
    """What mechanisms must cover, from checked public parameters."""
    largest = None if max_size is None else whole_number(max_size, "max_size")
    several = None if groups is None else whole_number(groups, "groups")
    if fixed is not None and several is not None:
        raise InputError(
            "A root is fixed for one table: a unit that is replaced may change groups. Leave out groups."
        )
    return Setting(
        P, Unit(contributions, neighbours).contributions, largest, relaxation, care, several, fixed
    )


def guarantee_of(
    epsilon: Number | None, delta: Number, rho: Number | None, neighbours: Neighbours
) -> Guarantee:
    """The guarantee that a plan or a release is asked for."""
    # the default delta of 0 goes with rho too
    slack = None if rho is not None and exact(delta, "delta") == 0 else delta
    return Unit(neighbours=neighbours).guarantee(epsilon, slack, rho)


def build_or_none(candidate: Candidate, guarantee: Guarantee, progress: Progress) -> AdditiveMechanism | None:
    """The mechanism, or None where it would reject nearly all of its draws."""
    try:
        return candidate.build(guarantee, progress)
    except TooFewDrawsError:  # a fact about the order and the guarantee, which are public
        return None
