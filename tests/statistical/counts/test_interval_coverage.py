"""Stated half-widths hold for the integers that are released; each test has a false-alarm rate of 1e-8.

At a small scale rounding is most of the error: a half-width of 0.98 about unrounded noise is 0 about integers.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom
from tests.support.chisquare import FALSE_ALARM

from isotone.counts import (
    BoundedPosetMechanism,
    DifferenceBodyMechanism,
    DiscreteGaussianMechanism,
    DiscreteLaplaceMechanism,
    GaussianMechanism,
    HierarchicalMechanism,
    LaplaceMechanism,
    LInfinityMechanism,
    OrderGaussianMechanism,
    PosetMechanism,
)
from isotone.order import Poset

N_ORDER = Poset("abcd", [("a", "c"), ("b", "c"), ("b", "d")])
CHAIN = Poset.chain(range(7))
RUNS = 500

Build = Callable[[str], Any]

PURE: dict[str, Build] = {
    "poset": lambda e: PosetMechanism(N_ORDER, e),
    "bounded": lambda e: BoundedPosetMechanism(N_ORDER, e, max_size=2),
    "difference body": lambda e: DifferenceBodyMechanism(N_ORDER, e),
    "laplace": lambda e: LaplaceMechanism(N_ORDER, e),
    "discrete laplace": lambda e: DiscreteLaplaceMechanism(N_ORDER, e),
    "cube": lambda e: LInfinityMechanism(N_ORDER, e),
    "hierarchical": lambda e: HierarchicalMechanism(CHAIN, e, branching=2),
}
CONCENTRATED: dict[str, Build] = {
    "gaussian": lambda r: GaussianMechanism(N_ORDER, rho=r),
    "discrete gaussian": lambda r: DiscreteGaussianMechanism(N_ORDER, rho=r),
    "order gaussian": lambda r: OrderGaussianMechanism(N_ORDER, rho=r),
    "order gaussian with delta": lambda e: OrderGaussianMechanism(N_ORDER, e, "1e-5"),
    "order gaussian on a chain": lambda r: OrderGaussianMechanism(CHAIN, rho=r),
}
CASES = [
    *((name, build, budget) for name, build in PURE.items() for budget in ("8", "2", "1/100")),
    *((name, build, budget) for name, build in CONCENTRATED.items() for budget in ("8", "2", "1/5000")),
]


@pytest.mark.parametrize(("name", "build", "budget"), CASES, ids=[f"{c[0]} {c[2]}" for c in CASES])
def test_released_integers_stay_within_the_stated_half_widths(name: str, build: Build, budget: str) -> None:
    mechanism = build(budget)
    size = len(mechanism.P)
    noise = np.abs([mechanism.release([0] * size) for _ in range(RUNS)])
    statements = len(CASES) * (size + 1) * 2
    for level in (0.8, 0.95):
        alone, together = mechanism.half_widths(level), mechanism.simultaneous_half_width(level)
        assert np.all(alone == np.floor(alone))
        assert together == np.floor(together)
        held = [*np.sum(noise <= alone, axis=0), np.sum(np.max(noise, axis=1) <= together)]
        assert binom.cdf(np.min(held), RUNS, level) > FALSE_ALARM / statements
        # one less is not enough: the half-widths are not merely large
        narrow = np.sum(np.max(noise, axis=1) <= together - 1)
        assert binom.sf(narrow, RUNS, level + 0.02) > FALSE_ALARM / statements


def test_half_widths_of_unrounded_noise_would_not_do() -> None:
    mechanism = OrderGaussianMechanism(N_ORDER, rho=8)
    noise = np.abs([mechanism.release([0] * 4) for _ in range(RUNS)])
    together = mechanism.unrounded_simultaneous_half_width(0.95)
    assert binom.cdf(np.sum(np.max(noise, axis=1) <= together), RUNS, 0.95) < FALSE_ALARM
