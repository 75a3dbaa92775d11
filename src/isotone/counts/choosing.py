"""Choosing the mechanism of a release of counts, by its name or as the best of the plan. No data is needed."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import isotone.counts as counts
from isotone.counts.caring import Care
from isotone.counts.mechanisms.additive import AdditiveMechanism
from isotone.errors import InputError
from isotone.mechanism import HasGroups
from isotone.privacy.checks import did_you_mean, plain_text

if TYPE_CHECKING:
    from isotone.counts.sampling.relaxation import Relaxation
    from isotone.order import Poset
    from isotone.privacy.guarantee import Guarantee

__all__ = ["choose_mechanism", "count_mechanism", "count_mechanisms"]


def count_mechanisms() -> tuple[str, ...]:
    """The names of the mechanisms for counts, none of which is loaded for it."""
    # a mechanism for breakdowns is made from one for counts, and has no order of its own
    return tuple(name for name in counts.__all__ if name.endswith("Mechanism") and name != "MarginsMechanism")


def count_mechanism(name: str) -> type[Any]:
    """The class of a mechanism for counts, by its name."""
    known = count_mechanisms()
    name = plain_text(name, "mechanism")
    if name not in known:
        near = did_you_mean(name, known) or f"; there are: {', '.join(known)}"
        raise InputError(f"There is no mechanism {name!r} for counts{near}")
    return getattr(counts, name)


def choose_mechanism(
    P: Poset,
    guarantee: Guarantee,
    contributions: int,
    max_size: int | None,
    mechanism: str | AdditiveMechanism | None,
    *,
    groups: int | None,
    care: Care | None = None,
    relaxation: Relaxation | None = None,
    fixed: Mapping[str, Any] | None = None,
) -> Any:
    """The mechanism for the guarantee ``guarantee``, chosen without data.

    ``groups`` is the number of groups, or None. They are released in parallel, and adding or removing a unit changes one
    of them; for replacing, see :func:`isotone.counts.candidates.candidates`. ``relaxation`` is what an earlier search found for this order.
    """
    if isinstance(mechanism, AdditiveMechanism):
        _require_fitting(mechanism, P, guarantee, contributions, max_size, groups)
        if fixed is not None:
            raise InputError(
                "Give records and catch_all to the mechanism, or name it instead of passing one."
            )
        return mechanism
    setting: dict[str, Any] = {"contributions": contributions, "max_size": max_size}
    if mechanism is None or mechanism == "best":
        from isotone.counts.best import best_mechanism

        asked = _budget(guarantee) | setting
        return best_mechanism(P, **asked, care=care, relaxation=relaxation, groups=groups, fixed=fixed)
    kind = count_mechanism(mechanism)
    if ("catch_all" in inspect.signature(kind).parameters) != (fixed is not None):
        raise InputError(
            "records and catch_all go with FixedRootMechanism and no other. Leave the choice to the plan."
        )
    setting |= fixed or {}
    together = "groups" in inspect.signature(kind).parameters
    if together:
        if groups is None:
            raise InputError(f"{mechanism} is for counts of several groups: say by= and groups=.")
        setting["groups"] = groups
    # noise of its own for each group must be for adding or removing: a unit that is replaced may change groups
    apart = groups is not None and not together
    setting |= _budget(guarantee.of_one_unit() if apart else guarantee)
    if not kind.can_release:
        raise InputError(
            f"{mechanism} exists for comparison and has no exact sampler. Leave the choice to the plan."
        )
    if care is not None:
        if "care" not in inspect.signature(kind).parameters:
            raise InputError(
                f"{mechanism} has no use for care. Leave it out, or leave the choice to the plan."
            )
        setting["care"] = care
    if relaxation is not None:
        setting["relaxation"] = relaxation
    try:
        return kind(P, **setting)
    except TypeError:
        without = "" if relaxation is None else " or needs no relaxation"
        raise InputError(
            f"{mechanism} cannot guarantee {guarantee}{without}. Leave the choice to the plan."
        ) from None


def _budget(guarantee: Guarantee) -> dict[str, Any]:
    """A guarantee as arguments of a mechanism."""
    budget = {"rho": guarantee.rho} if guarantee.kind == "zcdp" else {"epsilon": guarantee.epsilon}
    return {
        **budget,
        **({"delta": guarantee.delta} if guarantee.delta else {}),
        "neighbours": guarantee.neighbours,
    }


def _require_fitting(
    mechanism: AdditiveMechanism,
    P: Poset,
    guarantee: Guarantee,
    contributions: int,
    max_size: int | None,
    groups: int | None,
) -> None:
    """Refuse a mechanism that is for another order, other records or a weaker guarantee."""
    if mechanism.P != P or mechanism.P.elements != P.elements:
        raise InputError("The mechanism given is for another order.")
    together = mechanism.groups if isinstance(mechanism, HasGroups) else None
    if together is not None and together != groups:
        raise InputError(f"The mechanism given is for {together} groups.")
    if together is None and groups is not None and guarantee.adjacency.units > 1:
        raise InputError(
            f"For groups and {guarantee.neighbours} neighbours name the mechanism instead of passing one."
        )
    if (mechanism.contributions, mechanism.max_size) != (contributions, max_size):
        raise InputError("The mechanism given is for other contributions or another max_size.")
    if not replace(mechanism.guarantee, unit=guarantee.unit).within(guarantee):
        raise InputError(
            f"The mechanism given guarantees {mechanism.guarantee}, which is less than asked for."
        )
