"""Choosing the mechanism of a release of counts. It is given, named, or the best of all. No data is needed."""

from __future__ import annotations

import inspect
import math
from dataclasses import replace
from typing import Any

import isotone.counts as counts
from isotone.counts.candidates import Setting, candidates
from isotone.counts.caring import cared_error
from isotone.counts.mechanisms.additive import AdditiveMechanism
from isotone.counts.mechanisms.poset_mechanism import PosetMechanism
from isotone.errors import InputError
from isotone.mechanism import HasGroups, no_progress
from isotone.privacy.checks import did_you_mean, plain_text
from isotone.privacy.guarantee import Guarantee, budget_of

__all__ = ["best_mechanism", "choose_mechanism", "count_mechanism", "count_mechanisms"]

MARGIN = 0.9
"""Bounds are trusted to this factor: simulated errors and volumes are not exact."""


def choose_mechanism(
    setting: Setting, guarantee: Guarantee, mechanism: str | AdditiveMechanism | None
) -> AdditiveMechanism:
    """The mechanism for the guarantee ``guarantee``, chosen without data.

    Groups are released in parallel, and adding or removing a unit changes one of them; for replacing, see
    :func:`isotone.counts.candidates.candidates`.
    """
    if isinstance(mechanism, AdditiveMechanism):
        _require_fitting(mechanism, setting, guarantee)
        return mechanism
    if mechanism is None or mechanism == "best":
        return best_mechanism(setting, guarantee)
    return _named(mechanism, setting, guarantee)


def _require_fitting(mechanism: AdditiveMechanism, setting: Setting, guarantee: Guarantee) -> None:
    """Refuse a mechanism that is for another order, other records or a weaker guarantee."""
    P, groups = setting.P, setting.groups
    if mechanism.P != P or mechanism.P.elements != P.elements:
        raise InputError("The mechanism given is for another order.")
    together = mechanism.groups if isinstance(mechanism, HasGroups) else None
    if together is not None and together != groups:
        raise InputError(f"The mechanism given is for {together} groups.")
    if together is None and groups is not None and guarantee.adjacency.units > 1:
        raise InputError(
            f"For groups and {guarantee.neighbours} neighbours name the mechanism instead of passing one."
        )
    if (mechanism.contributions, mechanism.max_size) != (setting.contributions, setting.max_size):
        raise InputError("The mechanism given is for other contributions or another max_size.")
    if not replace(mechanism.guarantee, unit=guarantee.unit).within(guarantee):
        raise InputError(
            f"The mechanism given guarantees {mechanism.guarantee}, which is less than asked for."
        )
    if setting.fixed is not None:
        raise InputError("Give records and catch_all to the mechanism, or name it instead of passing one.")


def best_mechanism(setting: Setting, guarantee: Guarantee) -> AdditiveMechanism:
    """The mechanism that :func:`isotone.counts.plan` puts first, without the errors and widths of all others.

    Those with a closed form are compared first. One that must be built or simulated is looked at only if a lower
    bound of its error does not say that it loses.
    """
    size, order = len(setting.P), cared_error(setting.P, setting.cared)
    total_counts = setting.cared in ("nodes", "worst")  # the bounds are about the total
    listed = candidates(setting, guarantee)
    bounds = [-math.inf if c.least is None else c.least(guarantee) for c in listed]  # closed forms come first
    best: tuple[float, int, AdditiveMechanism] | None = None
    for place in sorted(range(len(listed)), key=lambda place: bounds[place]):
        if total_counts and best and _cannot_beat(bounds[place], best[0], size):
            continue
        found = listed[place].build_or_none(guarantee, no_progress)
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


def _named(name: str, setting: Setting, guarantee: Guarantee) -> AdditiveMechanism:
    """The mechanism of this name, or an error that says why it is none for this setting."""
    kind = count_mechanism(name)
    takes, fixed, groups = inspect.signature(kind).parameters, setting.fixed, setting.groups
    if ("catch_all" in takes) != (fixed is not None):
        raise InputError(
            "records and catch_all go with FixedRootMechanism and no other. Leave the choice to the plan."
        )
    if "groups" in takes and groups is None:
        raise InputError(f"{name} is for counts of several groups: say by= and groups=.")
    if not kind.can_release:
        raise InputError(
            f"{name} exists for comparison and has no exact sampler. Leave the choice to the plan."
        )
    if setting.care is not None and "care" not in takes:
        raise InputError(f"{name} has no use for care. Leave it out, or leave the choice to the plan.")
    # noise of its own for each group must be for adding or removing: a unit that is replaced may change groups
    apart = groups is not None and "groups" not in takes
    asked = guarantee.of_one_unit() if apart else guarantee
    more = {"care": setting.care, "relaxation": setting.relaxation, **(fixed or {})}
    more |= {"groups": groups} if "groups" in takes else {}
    given = {key: value for key, value in more.items() if value is not None}
    try:
        return kind(setting.P, **budget_of(asked), **setting.common(asked), **given)
    except TypeError:
        without = "" if setting.relaxation is None else " or needs no relaxation"
        raise InputError(
            f"{name} cannot guarantee {guarantee}{without}. Leave the choice to the plan."
        ) from None


def count_mechanism(name: str) -> type[Any]:
    """The class of a mechanism for counts, by its name."""
    known = count_mechanisms()
    name = plain_text(name, "mechanism")
    if name not in known:
        near = did_you_mean(name, known) or f"; there are: {', '.join(known)}"
        raise InputError(f"There is no mechanism {name!r} for counts{near}")
    return getattr(counts, name)


def count_mechanisms() -> tuple[str, ...]:
    """The names of the mechanisms for counts, none of which is loaded for it."""
    # a mechanism for breakdowns is made from one for counts, and has no order of its own
    return tuple(name for name in counts.__all__ if name.endswith("Mechanism") and name != "MarginsMechanism")
