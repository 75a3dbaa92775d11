"""Choosing the mechanism of a release of counts, by its name or as the best of the plan. No data is needed."""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from isotone.counts.caring import Care
from isotone.counts.mechanisms.additive import AdditiveMechanism
from isotone.errors import InputError
from isotone.privacy.checks import did_you_mean, plain_text

if TYPE_CHECKING:
    from isotone.counts.sampling.relaxation import Relaxation
    from isotone.order import Poset
    from isotone.privacy.guarantee import Guarantee

__all__ = ["choose_mechanism", "count_mechanism", "count_mechanisms"]


def count_mechanisms() -> dict[str, type[Any]]:
    """Every mechanism for counts, by the name of its class."""
    import isotone.counts as counts

    found = {name: getattr(counts, name) for name in counts.__all__ if name.endswith("Mechanism")}
    # a mechanism for breakdowns is made from one for counts, and has no order of its own
    own = {name: kind for name, kind in found.items() if "P" in inspect.signature(kind).parameters}
    return {name: kind for name, kind in own.items() if not inspect.isabstract(kind)}


def count_mechanism(name: str) -> type[Any]:
    """The class of a mechanism for counts, by its name."""
    known = count_mechanisms()
    name = plain_text(name, "mechanism")
    if name not in known:
        near = did_you_mean(name, known) or f"; there are: {', '.join(known)}"
        raise InputError(f"There is no mechanism {name!r} for counts{near}")
    return known[name]


def choose_mechanism(
    P: Poset,
    promise: Guarantee,
    contributions: int,
    max_size: int | None,
    mechanism: str | AdditiveMechanism | None,
    *,
    grouped: bool,
    care: Care | None = None,
    relaxation: Relaxation | None = None,
) -> Any:
    """The mechanism for the guarantee ``promise``, chosen without data.

    Groups are released in parallel. Adding or removing a unit changes one group. Replacing one may take it out of
    a group and put another into a second group, which no replace-calibrated noise on one group covers; so each
    group is then promised so much about adding or removing that what is asked for about replacing follows.
    ``relaxation`` is what an earlier search found for this order.
    """
    if isinstance(mechanism, AdditiveMechanism):
        _require_fitting(mechanism, P, promise, contributions, max_size, grouped)
        return mechanism
    part = promise.for_replacing() if grouped and promise.adjacency.exchanges else promise
    setting: dict[str, Any] = {
        "neighbours": part.neighbours,
        "contributions": contributions,
        "max_size": max_size,
    }
    budget: dict[str, Any] = {"rho": part.rho} if part.kind == "zcdp" else {"epsilon": part.epsilon}
    if part.delta:
        budget["delta"] = part.delta
    if mechanism is None or mechanism == "best":
        from isotone.counts.best import best_mechanism

        return best_mechanism(P, **budget, **setting, care=care, relaxation=relaxation)
    kind = count_mechanism(mechanism)
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
        return kind(P, **budget, **setting)
    except TypeError:
        without = "" if relaxation is None else " or needs no relaxation"
        raise InputError(
            f"{mechanism} cannot promise {promise}{without}. Leave the choice to the plan."
        ) from None


def _require_fitting(
    mechanism: AdditiveMechanism,
    P: Poset,
    promise: Guarantee,
    contributions: int,
    max_size: int | None,
    grouped: bool,
) -> None:
    """Refuse a mechanism that is for another order, other records or a weaker guarantee."""
    if mechanism.P != P or mechanism.P.elements != P.elements:
        raise InputError("The mechanism given is for another order.")
    if grouped and promise.adjacency.exchanges:
        raise InputError("For groups and replace neighbours name the mechanism instead of passing one.")
    if (mechanism.contributions, mechanism.max_size) != (contributions, max_size):
        raise InputError("The mechanism given is for other contributions or another max_size.")
    if not replace(mechanism.guarantee, unit=promise.unit).within(promise):
        raise InputError(f"The mechanism given promises {mechanism.guarantee}, which is less than asked for.")
