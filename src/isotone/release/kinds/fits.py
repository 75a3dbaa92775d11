"""What curves and surfaces share, which are fits of an estimator. The guarantee, and an attack by draws."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from isotone.audit import audit
from isotone.audit.exact import AuditReport
from isotone.errors import InputError
from isotone.mechanism import Progress
from isotone.privacy.calibration import largest_rho
from isotone.privacy.guarantee import Guarantee
from isotone.release.manifest import guarantee_from
from isotone.release.result import Release

__all__ = ["audit_fit", "compared", "fit_guarantee", "kept"]


def kept(guarantee: Guarantee) -> Guarantee:
    """What a fit keeps of a guarantee. Of (ε, δ) it keeps ε alone."""
    if guarantee.kind != "approximate":
        return guarantee
    return replace(guarantee, kind="pure", delta=Fraction(0))


def compared(guarantee: Guarantee) -> str:
    """What another kind of guarantee would mean for a fit, in words. Choices have bounded range (docs/theory/composition.md)."""
    if guarantee.kind == "approximate":
        choices = (8 * float(largest_rho(guarantee.epsilon, guarantee.delta))) ** 0.5
        return (
            " δ is not used, nor charged: the fit is made with ε alone. As the zCDP that implies (ε, δ) one choice would have "
            f"ε = {choices:.3g} in place of {float(guarantee.epsilon):.3g}."
        )
    if guarantee.kind == "zcdp":
        pure = (2 * float(guarantee.rho)) ** 0.5
        return (
            f" The pure guarantee that implies this one has ε = {pure:.3g}; with zCDP choices have twice that, {2 * pure:.3g}, "
            "and sums have Gaussian noise."
        )
    return ""


def audit_fit(
    query: Any,
    records: tuple[ArrayLike, ArrayLike],
    last: ArrayLike,
    seen: ArrayLike,
    trials: int,
    progress: Progress,
) -> AuditReport:
    """A fit to some records, with and without the units that neighbours differ in, seen at a few points.

    These have all their contributions at the point ``last``, with the lowest y or the highest.
    """
    x, y = map(np.asarray, records)
    bottom, top = map(float, query.source.y_range)
    estimator, guarantee = query.estimator(), query.guarantee
    units = guarantee.adjacency.changes
    owners = np.append(np.arange(len(y)), len(y) + np.repeat(np.arange(units), estimator.contributions))

    def release(extra: float | None) -> Any:
        more = 0 if extra is None else units * estimator.contributions
        rows = np.concatenate([x, np.repeat(np.asarray(last)[None], more, axis=0)])
        values = np.append(y, [extra or 0.0] * more)
        return estimator.fit(rows, values, groups=owners[: len(values)]).predict(seen)

    sides = (top, bottom) if guarantee.adjacency.exchanges else (None, bottom)
    return AuditReport((audit(release, *sides, trials=trials, claimed=guarantee, progress=progress),))


def fit_guarantee(release: Release, found: Guarantee) -> Guarantee:
    """What an estimator guarantees for the rows that the rules of a release let through."""
    manifest = release.manifest
    if manifest.mechanism.get("contributions", 1) < manifest["rules"]["contributions"]:
        raise InputError("the noise is for fewer rows a unit than the rules let through")
    return replace(found, unit=guarantee_from(manifest.guarantee).unit)
