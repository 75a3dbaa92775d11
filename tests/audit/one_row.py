"""One row changes nothing for the others: 20,000 random cases over all ways in, forms of sources and types of columns."""

from __future__ import annotations

import os
import secrets
from collections import Counter

from tests.neighbours.one_row import difference, random_cases

CASES = int(os.environ.get("ONE_ROW_CASES", "20000"))


SEED = int(os.environ.get("ONE_ROW_SEED") or secrets.randbits(32))
"""Another one each time, which nobody chose."""


def audit_one_row() -> str:
    seen: Counter[str] = Counter()
    for case in random_cases(CASES, SEED):
        assert not (found := difference(case)), found
        seen[case.form] += 1
    return f"{CASES:,} cases by the seed {SEED} without a difference: {', '.join(f'{form} {number:,}' for form, number in sorted(seen.items()))}"
