"""Counts when the number of people is public: noise for differences of records against its rivals."""

from __future__ import annotations

from collections.abc import Callable

from experiments._posets import survey_sections

from isotone.counts import (
    DifferenceBodyMechanism,
    GroupedDifferenceMechanism,
    HierarchicalMechanism,
    LaplaceMechanism,
    LInfinityMechanism,
    PosetMechanism,
)
from isotone.counts.mechanism import AdditiveMechanism
from isotone.errors import InputError
from isotone.mechanism import Progress
from isotone.order import Poset

RIVALS: tuple[Callable[..., AdditiveMechanism], ...] = (
    LInfinityMechanism,
    HierarchicalMechanism,
    PosetMechanism,
    LaplaceMechanism,
)


def run(quick: bool, progress: Progress) -> str:
    """Exact errors of all mechanisms; nothing is drawn."""
    sections = survey_sections(3)
    parents = {"a2": "a1", "a3": "a2", "a4": "a1", "b2": "b1", "b3": "b1", "c2": "c1", "c3": "c1", "c4": "c1"}
    orders = {
        "survey of 11": Poset.from_mapping(parents),
        "survey of 15": sections,
        "chain of 20": Poset.chain(range(20)),
        "chain of 100": Poset.chain(range(100)),
        "star of 15": Poset(range(15), [(k, 0) for k in range(1, 15)]),
        "antichain of 10": Poset.antichain(range(10)),
    }
    rows = [
        "| mean variance, replace, ε = 2 | **difference body** | ℓ∞ | hierarchical | poset | Laplace |",
        "|---|---|---|---|---|---|",
    ]
    for number, (name, P) in enumerate(list(orders.items())[: 2 if quick else None]):
        progress(number / len(orders), name)
        others = " | ".join(_variance(kind, P) for kind in RIVALS)
        rows.append(f"| {name} | **{_variance(DifferenceBodyMechanism, P)}** | {others} |")
    groups = [
        "| mean variance, replace, ε = 2 | groups | **one draw for all groups** | a draw each at ε = 1 |",
        "|---|---|---|---|",
    ]
    for name, order in {"one count": Poset.antichain("a"), "survey of 15": sections}.items():
        each = PosetMechanism(order, 1).error().variance.mean()
        for g in (2, 5) if quick else (2, 5, 10, 20):
            together = GroupedDifferenceMechanism(order, 2, groups=g).error().variance.mean()
            groups.append(f"| {name} | {g} | **{together:.3g}** | {each:.3g} |")
    progress(1.0, "done")
    return "\n".join([*rows, "", *groups, "", _NOTES])


def _variance(kind: Callable[..., AdditiveMechanism], P: Poset) -> str:
    try:
        return f"{kind(P, 2, neighbours='replace').error().variance.mean():.4g}"
    except InputError:  # trees of sums are for chains
        return "–"


_NOTES = (
    "Variances are exact, by each mechanism's own `error()`; nothing is drawn. Under replace neighbours a unit may also change "
    "groups, so a draw for each group has half the ε."
)
