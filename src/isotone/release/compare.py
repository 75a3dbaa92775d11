"""What the same promise would have given with plain Laplace noise: one sentence for the report."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from isotone.counts import LaplaceMechanism
from isotone.release.manifest import order_from
from isotone.release.recipes import rebuild_count_mechanism, rebuild_table_mechanism
from isotone.tables import truncated_geometric

if TYPE_CHECKING:
    from isotone.release.result import Release

__all__ = ["comparison"]


def comparison(release: Release) -> str | None:
    """A sentence, or None where there is nothing to compare."""
    return {"counts": _counts, "table": _table, "curve": lambda _: None}[release.kind](release)


def _counts(release: Release) -> str | None:
    P = order_from(release.manifest["order"])
    ours = rebuild_count_mechanism(P, release.manifest["mechanism"])
    promise = ours.guarantee
    if promise.kind != "pure":
        return None
    setting = {"contributions": ours.contributions, "max_size": ours.max_size}
    plain = LaplaceMechanism(P, promise.epsilon, neighbours=promise.neighbours, **setting)
    if type(ours) is LaplaceMechanism:
        return "This is Laplace noise: for this order and size of records nothing in isotone was better."
    ratio = plain.error().rmse / ours.error().rmse
    return (
        f"With the same budget, Laplace noise would have had a typical error of ± {plain.error().rmse:.3g}; here it "
        f"is ± {ours.error().rmse:.3g}, {ratio:.3g} times smaller."
    )


def _table(release: Release) -> str:
    mechanism = rebuild_table_mechanism(release.manifest["mechanism"])
    upper = int(release.manifest["upper"])
    z = np.array(release.manifest["distribution"])
    z = z / z.sum()
    plain = truncated_geometric(upper + 1, mechanism.unit.per_step(mechanism.epsilon))
    moved = float(np.abs(np.cumsum(z @ plain.matrix() - z)).sum())
    made = np.bincount(np.array(release.columns["value"]), minlength=upper + 1) / len(
        release.columns["value"]
    )
    ours = float(np.abs(np.cumsum(made - z)).sum())
    return (
        f"With the same budget, plain noise on every count would have bent the distribution of counts by {moved:.3g} on "
        f"average (in units of counts, and judged by the private distribution); the released table is {ours:.3g} away from it."
    )
