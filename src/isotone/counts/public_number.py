"""Compare both kinds of neighbours for a steward whose number of records is public.

A release that is ε-DP when a unit is added or removed is 2ε-DP when one is replaced. So a guarantee of ε about
replacing asks no more about a unit's answers than ε/2 about adding or removing, and needs less noise; but it
hides the presence of a unit less well (docs/theory/difference.md, section 2). Likewise for 4ρ and ρ, and for (ε, δ).
"""

from __future__ import annotations

from collections.abc import Sequence

from isotone.counts.candidates import Setting
from isotone.counts.choosing import best_mechanism
from isotone.counts.hierarchies.tree_field import TreeFieldMechanism
from isotone.counts.mechanisms.additive import AdditiveMechanism
from isotone.counts.mechanisms.difference_body import DifferenceBodyMechanism
from isotone.counts.mechanisms.poset_mechanism import PosetMechanism
from isotone.errors import InputError
from isotone.privacy.adjacency import ADDING, REPLACING
from isotone.privacy.guarantee import Guarantee

__all__ = ["advice"]

_LARGEST = 60
"""For larger orders a second search could take long."""


def advice(guarantee: Guarantee, mechanisms: Sequence[AdditiveMechanism]) -> str:
    """What a plan of ``mechanisms``, best first, says about the other kind of neighbours, empty where it compares none."""
    if guarantee.neighbours not in (ADDING, REPLACING):
        return ""
    if guarantee.kind != "pure":
        return _of_best(guarantee, mechanisms)
    best, ordered = mechanisms[0], next((m for m in mechanisms if type(m) is PosetMechanism), None)
    if isinstance(best, TreeFieldMechanism) and not guarantee.adjacency.exchanges:
        return _for_hierarchy(best)
    if ordered is None:
        return ""
    if guarantee.adjacency.exchanges:
        return _under_replace(guarantee, best, ordered)
    return _under_add_remove(guarantee, best, ordered)


def _of_best(stated: Guarantee, mechanisms: Sequence[AdditiveMechanism]) -> str:
    """Under zCDP and (ε, δ) the best mechanism for the other guarantee is looked for, where that is quick."""
    mechanism = mechanisms[0]
    grouped = any(m.neighbours != stated.neighbours for m in mechanisms)
    relaxed = any(isinstance(m, PosetMechanism) and m.sampler.relaxation is not None for m in mechanisms)
    if grouped or relaxed or len(mechanism.P) > _LARGEST:
        return ""
    try:
        asked = stated.of_one_unit() if stated.adjacency.exchanges else stated.replacing()
    except InputError:  # δ would be above 1
        return ""
    size = next((m.max_size for m in mechanisms if m.max_size), None)
    setting = Setting(mechanism.P, mechanism.contributions, size, care=getattr(mechanism, "care", None))
    other = best_mechanism(setting, asked).error().rmse
    if stated.adjacency.exchanges:
        return (
            f"The number of records is taken as public, as the steward states it. add-remove at {_budget(asked)} "
            f"guarantees the same about answers, with rms error {other:.4g}, and hides presence at {_budget(asked)}."
        )
    if other >= 0.999 * mechanism.error().rmse:
        return ""
    return (
        f"If the number of records is public: replace at {_budget(asked)} guarantees the same about answers with rms "
        f"error {other:.4g}, and hides presence at {_budget(asked)} only."
    )


def _budget(guarantee: Guarantee) -> str:
    if guarantee.kind == "zcdp":
        return f"ρ = {guarantee.rho}"
    return f"ε = {guarantee.epsilon}, δ = {float(guarantee.delta):.3g}"


def _under_replace(guarantee: Guarantee, best: AdditiveMechanism, ordered: PosetMechanism) -> str:
    epsilon = guarantee.epsilon
    says = (
        f"The number of records is taken as public, as the steward states it. add-remove at ε = {epsilon / 2} "
        f"guarantees the same about answers, with rms error {ordered.error().rmse:.4g}, and hides presence at "
        f"ε = {epsilon / 2}."
    )
    if isinstance(best, DifferenceBodyMechanism):
        return f"{says} {type(best).__name__} hides presence at ε = {epsilon} only."
    return f"{says} A guarantee about replacing need not hide presence at all."


def _under_add_remove(guarantee: Guarantee, best: AdditiveMechanism, ordered: PosetMechanism) -> str:
    epsilon = 2 * guarantee.epsilon
    if ordered.sampler.drawn.name != "exact":  # a search for another relaxation could take minutes
        return ""
    other = DifferenceBodyMechanism(ordered.P, epsilon, contributions=ordered.contributions)
    if other.error().rmse >= best.error().rmse:
        return ""
    return (
        f"If the number of records is public: replace at ε = {epsilon} guarantees the same about answers with rms "
        f"error {other.error().rmse:.4g}, and hides presence at ε = {epsilon} only."
    )


def _for_hierarchy(best: TreeFieldMechanism) -> str:
    """The same shares at twice epsilon. Within the tree a replaced record moves all but the root twice."""
    epsilon, k = 2 * best.epsilon, best.contributions
    other = TreeFieldMechanism(best.P, epsilon, REPLACING, k, care=best.care, shares=best.shares)
    if other.error().rmse >= 0.999 * best.error().rmse:
        return ""
    presence = float(other.rate * best.contributions)
    return (
        f"If the number of records is public: replace at ε = {epsilon} guarantees the same about answers with rms "
        f"error {other.error().rmse:.4g}, and hides presence at ε = {presence:.4g} only."
    )
