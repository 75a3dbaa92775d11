"""Compare both kinds of neighbours for a steward whose number of records is public.

A release that is ε-DP when a unit is added or removed is 2ε-DP when one is replaced. So a guarantee of ε about
replacing asks no more about a unit's answers than ε/2 about adding or removing, and needs less noise; but it
hides the presence of a unit less well (docs/theory/difference.md, section 2). Likewise for 4ρ and ρ, and for (ε, δ).
"""

from __future__ import annotations

from isotone.counts.candidates import Setting
from isotone.counts.choosing import best_mechanism
from isotone.counts.count_plan import CountPlan
from isotone.counts.hierarchies.tree_field import TreeFieldMechanism
from isotone.counts.mechanisms.difference_body import DifferenceBodyMechanism
from isotone.counts.mechanisms.poset_mechanism import PosetMechanism
from isotone.errors import InputError
from isotone.privacy.adjacency import ADDING, REPLACING
from isotone.privacy.guarantee import Guarantee

__all__ = ["advice"]

_LARGEST = 60
"""For larger orders a second search could take long."""


def advice(plan: CountPlan) -> str:
    """What a plan says about the other kind of neighbours, empty where it compares no such mechanism."""
    if plan.guarantee.neighbours not in (ADDING, REPLACING):
        return ""
    if plan.guarantee.kind != "pure":
        return _of_best(plan)
    ordered = next((row.mechanism for row in plan.rows if type(row.mechanism) is PosetMechanism), None)
    if isinstance(plan.best, TreeFieldMechanism) and not plan.guarantee.adjacency.exchanges:
        return _for_hierarchy(plan.best)
    if ordered is None:
        return ""
    if plan.guarantee.adjacency.exchanges:
        return _under_replace(plan, ordered)
    return _under_add_remove(plan, ordered)


def _of_best(plan: CountPlan) -> str:
    """Under zCDP and (ε, δ) the best mechanism for the other guarantee is looked for, where that is quick."""
    stated, mechanism = plan.guarantee, plan.best
    grouped = any(row.mechanism.neighbours != stated.neighbours for row in plan.rows)
    if grouped or len(plan.P) > _LARGEST or plan.relaxation is not None:
        return ""
    try:
        asked = stated.of_one_unit() if stated.adjacency.exchanges else stated.replacing()
    except InputError:  # δ would be above 1
        return ""
    size = next((row.mechanism.max_size for row in plan.rows if row.mechanism.max_size), None)
    setting = Setting(plan.P, mechanism.contributions, size, care=getattr(mechanism, "care", None))
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


def _under_replace(plan: CountPlan, ordered: PosetMechanism) -> str:
    epsilon, best = plan.guarantee.epsilon, plan.best
    says = (
        f"The number of records is taken as public, as the steward states it. add-remove at ε = {epsilon / 2} "
        f"guarantees the same about answers, with rms error {ordered.error().rmse:.4g}, and hides presence at "
        f"ε = {epsilon / 2}."
    )
    if isinstance(best, DifferenceBodyMechanism):
        return f"{says} {type(best).__name__} hides presence at ε = {epsilon} only."
    return f"{says} A guarantee about replacing need not hide presence at all."


def _under_add_remove(plan: CountPlan, ordered: PosetMechanism) -> str:
    epsilon = 2 * plan.guarantee.epsilon
    if ordered.sampler.drawn.name != "exact":  # a search for another relaxation could take minutes
        return ""
    other = DifferenceBodyMechanism(plan.P, epsilon, contributions=ordered.contributions)
    if other.error().rmse >= plan.best.error().rmse:
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
