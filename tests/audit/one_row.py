"""One row changes nothing for the others: 20,000 random units over all ways in, forms of sources and types of columns."""

from __future__ import annotations

import os
import secrets
from collections import Counter

from tests.neighbours.one_row import difference, number_of_units, random_cases

CASES = int(os.environ.get("ONE_ROW_CASES", "20000"))


SEED = int(os.environ.get("ONE_ROW_SEED") or secrets.randbits(32))
"""Another one each time, which nobody chose."""

TOGETHER = 8
"""Units that are drawn with the same data: each is read alone, and all are read together. One draw in ten has a single unit."""


def audit_one_row() -> str:
    seen: Counter[str] = Counter()
    for place, case in enumerate(random_cases(CASES, SEED)):
        units = TOGETHER if place % 10 else 1
        assert not (found := difference(case, units=units)), found
        seen[case.form] += number_of_units(case, units)
        if seen.total() >= CASES:
            break
    return (
        f"{seen.total():,} units by the seed {SEED} without a difference: "
        f"{', '.join(f'{form} {number:,}' for form, number in sorted(seen.items()))}"
    )
