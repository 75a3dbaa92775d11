"""What every step of a table pays, in exact fractions, over ten thousand settings and any filled gaps."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from isotone.tables import TwoStageMechanism
from isotone.tables.thresholds import HEIGHTS
from tests.support.tables_exact import assert_steps_cost_epsilon


def audit_every_step_of_a_table_pays_epsilon() -> str:
    rng, settings = np.random.default_rng(0), 10_000
    shares: set[tuple[int, Fraction]] = set()
    for _ in range(settings):
        upper = int(rng.integers(1, 25)) if rng.random() < 0.9 else int(rng.integers(25, 400))
        epsilon = Fraction(int(rng.integers(1, 3000)), int(rng.choice([10, 100, 999, 1000])))
        emphasis = None if rng.random() < 0.1 else Fraction(int(rng.integers(0, 101)), 100)
        top = HEIGHTS[int(rng.integers(0, 8))] + 1 if rng.random() < 0.1 else None
        mechanism = TwoStageMechanism(
            upper if top is None else None,
            epsilon,
            emphasis,
            contributions=int(rng.integers(1, 6)),
            neighbours="replace" if rng.random() < 0.3 else "add-remove",
        )
        size = int(2 ** rng.uniform(0 if top is None else 6, 24))
        gaps = np.flatnonzero(rng.random(upper + 2) < rng.random()).tolist()
        assert_steps_cost_epsilon(mechanism, size, gaps, top)
        made = mechanism.measurement(size, top)
        shares.add((len(made.places), made.share))
    return f"{settings:,} settings, {len(shares)} different numbers of thresholds and shares"
