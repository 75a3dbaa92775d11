"""What the same promise would have given with plain Laplace noise: one sentence for the report.

Only what is known without the data: the errors of two mechanisms whose noise does not depend on it. How far a table
or a curve is from the truth depends on the data, so nothing is said about them.
"""

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
    if type(ours) is LaplaceMechanism:
        return "This is Laplace noise."
    setting = {"contributions": ours.contributions, "max_size": ours.max_size}
    plain = LaplaceMechanism(P, promise.epsilon, neighbours=promise.neighbours, **setting)
    ratio = plain.error().rmse / ours.error().rmse
    if ratio < 1.005:
        return None
    how = ", by simulation" if ours.error().method == "simulated" else ""
    return f"With the same budget, the typical error of Laplace noise would have been {ratio:.3g} times as large{how}."
