"""An attack on the estimator of a surface, by draws."""

from __future__ import annotations

from typing import Any

import numpy as np

from isotone.audit import audit
from isotone.audit.report import AuditReport
from isotone.mechanism import Progress
from isotone.privacy.guarantee import Guarantee
from isotone.release.kinds.surface.query import middles
from isotone.release.recipes import surface_estimator

__all__ = ["audit_surface"]

_FITS = 3_000  # an audit fits at most so often: a fit takes milliseconds


def audit_surface(
    recipe: dict[str, Any], guarantee: Guarantee, trials: int, progress: Progress
) -> AuditReport:
    """A fit to a dozen records, with and without one unit more (or with one replaced), seen at three corners."""
    estimator = surface_estimator(recipe, guarantee.unit)
    first, second = middles([[float(e) for e in pair] for pair in recipe["bounds"]], recipe["bins"])
    bottom, top = (float(end) for end in recipe["y_range"])
    corners = np.array([[first[0], second[0]], [first[-1], second[0]], [first[-1], second[-1]]])
    units, each = guarantee.adjacency.changes, int(recipe["contributions"])
    x, y = np.repeat(corners, 4, axis=0), np.repeat([bottom, bottom, top], 4)
    owners = np.append(np.arange(12), 12 + np.repeat(np.arange(units), each))

    def release(extra: float | None) -> Any:
        more = 0 if extra is None else units * each
        rows = np.concatenate([x, np.repeat(corners[-1:], more, axis=0)])
        values = np.append(y, [extra or 0.0] * more)
        return estimator.fit(rows, values, groups=owners[: 12 + more]).predict(corners)

    sides = (top, bottom) if guarantee.adjacency.exchanges else (None, bottom)
    found = audit(release, *sides, trials=min(trials, _FITS), claimed=guarantee, progress=progress)
    return AuditReport((found,))
