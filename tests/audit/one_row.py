"""One row changes nothing for the others: 20,000 random cases over all ways in, forms of sources and types of columns."""

from __future__ import annotations

import os
from collections import Counter

from tests.neighbours.one_row import difference, random_cases

CASES = int(os.environ.get("ONE_ROW_CASES", "20000"))


def audit_one_row() -> str:
    seen: Counter[str] = Counter()
    for case in random_cases(CASES, int(os.environ.get("ONE_ROW_SEED", "1"))):
        assert not (found := difference(case)), found
        seen[case.form] += 1
    return f"{CASES:,} cases without a difference: {', '.join(f'{form} {number:,}' for form, number in sorted(seen.items()))}"
