"""What the same promise would have given with plain Laplace noise: one sentence for the report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isotone.counts import LaplaceMechanism
from isotone.release.manifest import order_from
from isotone.release.recipes import rebuild_count_mechanism

if TYPE_CHECKING:
    from isotone.release.result import Release

__all__ = ["comparison"]


def comparison(release: Release) -> str | None:
    """A sentence, or None where there is nothing to compare."""
    if release.kind != "counts":
        return None
    P = order_from(release.manifest["order"])
    ours = rebuild_count_mechanism(P, release.manifest["mechanism"])
    promise = ours.guarantee
    if promise.kind != "pure":
        return None
    plain = LaplaceMechanism(
        P,
        promise.epsilon,
        neighbours=promise.neighbours,
        contributions=ours.contributions,
        max_size=ours.max_size,
    )
    if type(ours) is LaplaceMechanism:
        return "This is Laplace noise: for this order and size of records nothing in isotone was better."
    ratio = plain.error().rmse / ours.error().rmse
    return (
        f"With the same budget, Laplace noise would have had a typical error of ± {plain.error().rmse:.3g}; here it "
        f"is ± {ours.error().rmse:.3g}, {ratio:.3g} times smaller."
    )
