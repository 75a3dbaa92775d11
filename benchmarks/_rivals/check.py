"""Whether stored rows are what the code gives now, on small cases."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from benchmarks._rivals.page import compute
from benchmarks._rivals.rows import STORED, Row, read
from isotone.mechanism import no_progress

__all__ = ["differences"]

COMPUTED, SEARCHED = 1e-4, 0.02
"""How far a number may be off, relatively: one that is computed, and one that a search with limits finds."""
SEARCHES = ("matrix mechanism", "best budgets of levels", "HDMM")


def differences(section: str, folder: Path = STORED) -> list[str]:
    """A line for each row of the small cases that is stored otherwise. Draws have seeds, and their first ones are compared."""
    stored = {(row.key, row.rival): row for row in read(section, folder)}
    lines: list[str] = []
    for row in compute(section, True, no_progress):
        before = stored.get((row.key, row.rival))
        if before is None or not _same(row, before):
            was = "missing" if before is None else f"{before.public:g} ({before.hindsight:g})"
            lines.append(f"{row.key}, {row.rival}: stored {was}, now {row.public:g} ({row.hindsight:g})")
    return lines


def _same(row: Row, before: Row) -> bool:
    if row.draws:
        return np.allclose(row.draws, before.draws[: len(row.draws)], rtol=COMPUTED, atol=0)
    return _close(row, before, "public") and _close(row, before, "hindsight")


def _close(row: Row, before: Row, name: str) -> bool:
    now, then = getattr(row, name), getattr(before, name)
    if math.isnan(now) or math.isnan(then):
        return math.isnan(now) == math.isnan(then)
    return math.isclose(now, then, rel_tol=SEARCHED if row.rival.startswith(SEARCHES) else COMPUTED)
