"""An attack on the mechanism of a table, by draws."""

from __future__ import annotations

from typing import Any

import numpy as np

from isotone.audit import audit
from isotone.audit.report import AuditReport
from isotone.mechanism import Progress
from isotone.tables.choosing import TableMechanism
from isotone.tables.thresholds import SMALL

__all__ = ["audit_table"]


def audit_table(mechanism: TableMechanism, trials: int, progress: Progress) -> AuditReport:
    """One unit more in the first of some categories, or (replace) moved from the first to the second.

    Looked at are the published value of that category and the noisy numbers that it was made of.
    """
    units, replaced = mechanism.unit.changes, mechanism.guarantee.adjacency.exchanges
    low = min(2, max(mechanism.upper - units, 0))
    other = min(3, mechanism.upper)
    rest = np.full(max(SMALL - 2, 1), other)  # enough categories for thresholds to be measured
    first = np.append([min(low + units, mechanism.upper), 0], rest)
    second = np.append([low, units if replaced else 0], rest)
    place = {at: k for k, at in enumerate(mechanism.measurement(len(first)).places)}.get(low)

    def release(table: Any) -> Any:
        made = mechanism.release_in_full(table)
        crossed = 0 if place is None else made.noisy_cumulative[place]
        return made.values[0], made.noisy_counts[0], crossed

    found = audit(release, first, second, trials, claimed=mechanism.guarantee, progress=progress)
    return AuditReport((found,))
