"""What curves and surfaces share, which are fits of an estimator: an attack by draws, and the guarantee."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from isotone.audit import audit
from isotone.audit.audit_report import AuditReport
from isotone.errors import InputError
from isotone.mechanism import Progress
from isotone.privacy.guarantee import Guarantee
from isotone.release.manifest import guarantee_from
from isotone.release.result import Release

__all__ = ["audit_fit", "fit_guarantee"]


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
