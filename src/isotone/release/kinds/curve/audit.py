"""An attack on the estimator of a curve, by draws."""

from __future__ import annotations

from typing import Any

import numpy as np

import isotone.curves as curves
from isotone.audit import audit
from isotone.audit.report import AuditReport
from isotone.mechanism import Progress
from isotone.privacy.guarantee import Guarantee
from isotone.release.kinds.curve.release import budget

__all__ = ["audit_curve"]

_FITS = 6_000  # an audit fits at most so often: a fit takes milliseconds


def audit_curve(
    options: dict[str, Any], contributions: int, guarantee: Guarantee, trials: int, progress: Progress
) -> AuditReport:
    """A fit to a dozen records, with and without one unit more (or with one replaced), seen at three points."""
    estimator = curves.PrivateIsotonicRegression(
        **budget(guarantee), neighbours=guarantee.neighbours, contributions=contributions, **options
    )
    setup = estimator.check()
    low, high = float(setup.grid.low), float(setup.grid.high)
    bottom, top = map(float, setup.y_range)
    x = np.linspace(low, high, 12)
    y = np.where(x < (low + high) / 2, bottom, top)
    seen = np.linspace(low, high, 5)[1:4]
    units = guarantee.adjacency.changes
    owners = np.append(np.arange(12), 12 + np.repeat(np.arange(units), contributions))

    def release(extra: float | None) -> Any:
        count = 0 if extra is None else units * contributions
        more_x, more_y = np.append(x, [high] * count), np.append(y, [extra or 0.0] * count)
        return estimator.fit(more_x, more_y, groups=owners[: 12 + count]).predict(seen)

    sides = (top, bottom) if guarantee.adjacency.exchanges else (None, bottom)
    found = audit(release, *sides, trials=min(trials, _FITS), claimed=guarantee, progress=progress)
    return AuditReport((found,))
