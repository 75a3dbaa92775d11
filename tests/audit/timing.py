"""Does the time of a release tell anything about the data? Randomised pairs at fixed noise, and a stated test.

For each pair one stream of random bits is fixed; a release is timed on either of two data sets with exactly these bits,
in random order. If time does not depend on the data, either one is the slower with probability one half: an exact sign test
on the pairs, two-sided, with a false-alarm rate of 1e-6. The same test must convict a mechanism that leaks.
"""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import numpy as np
from scipy.stats import binomtest, spearmanr

from isotone.counts import (
    DiscreteLaplaceMechanism,
    GaussianMechanism,
    LaplaceMechanism,
    LInfinityMechanism,
    OrderGaussianMechanism,
    PosetMechanism,
)
from isotone.order import Poset
from tests.support.chisquare import FALSE_ALARM

P = Poset(range(15), [(k, (k - 1) // 2) for k in range(1, 15)])
SMALL = np.zeros(15, dtype=np.int64)
LARGE = np.full(15, 10**15 + 12345, dtype=np.int64)
PAIRS = 3_000
MECHANISMS = {
    "poset": PosetMechanism(P, epsilon=1),
    "Laplace": LaplaceMechanism(P, epsilon=1),
    "discrete Laplace": DiscreteLaplaceMechanism(P, epsilon=1),
    "ℓ∞": LInfinityMechanism(P, epsilon=1),
    "Gaussian": GaussianMechanism(P, rho=1),
    "order-shaped Gaussian": OrderGaussianMechanism(P, rho=1),
}


@contextmanager
def _fixed_bits(seed: int) -> Generator[None]:
    """The operating system's bits, replaced by a stream that is the same for the same seed."""
    real, stream = os.urandom, np.random.default_rng(seed)
    os.urandom = stream.bytes
    try:
        yield
    finally:
        os.urandom = real


def _seconds(release: Callable[[Any], Any], counts: Any, seed: int) -> tuple[float, Any]:
    with _fixed_bits(seed):
        started = time.perf_counter_ns()
        released = release(counts)
        return (time.perf_counter_ns() - started) / 1e9, released


def _sign_test(release: Callable[[Any], Any]) -> tuple[float, float]:
    """The p-value, and the median difference of the times in microseconds."""
    order = np.random.default_rng(0).random(PAIRS) < 0.5
    differences = np.empty(PAIRS)
    gc.disable()
    try:
        for k in range(PAIRS):
            sides = (SMALL, LARGE) if order[k] else (LARGE, SMALL)
            times = [_seconds(release, counts, k)[0] for counts in sides]
            differences[k] = times[1] - times[0] if order[k] else times[0] - times[1]
    finally:
        gc.enable()
    slower, faster = int(np.sum(differences > 0)), int(np.sum(differences < 0))
    return float(binomtest(slower, slower + faster).pvalue), float(np.median(differences)) * 1e6


def audit_time_at_fixed_noise_does_not_depend_on_the_data() -> str:
    found = []
    for name, mechanism in MECHANISMS.items():
        one, other = (np.asarray(_seconds(mechanism.release, c, 7)[1]) - c for c in (SMALL, LARGE))
        assert np.array_equal(one, other), "the noise is not fixed"
        p, median = _sign_test(mechanism.release)
        assert p > FALSE_ALARM, f"{name}: the data shows in the time, p = {p:.2g}, median {median:.2f} µs"
        found.append(f"{name} p = {p:.2g} ({median:+.2f} µs)")
    return f"{PAIRS:,} pairs each: " + ", ".join(found)


def audit_the_test_of_times_convicts_a_mechanism_that_leaks() -> str:
    mechanism = MECHANISMS["poset"]

    def leaky(counts: Any) -> Any:
        for _ in range(int(counts[0]) // 10**12):  # a thousand steps for a large count, none for a small one
            pass
        return mechanism.release(counts)

    p, median = _sign_test(leaky)
    assert p < FALSE_ALARM, f"a loop of a thousand steps goes unnoticed: p = {p:.2g}"
    return f"a loop of a thousand steps is seen: p = {p:.1g}, median {median:+.2f} µs"


def audit_what_time_tells_about_the_noise_is_measured() -> str:
    found = []
    for name, mechanism in MECHANISMS.items():
        times, sizes = np.empty(PAIRS), np.empty(PAIRS)
        for k in range(PAIRS):
            times[k], released = _seconds(mechanism.release, SMALL, k)
            sizes[k] = np.abs(np.asarray(released)).sum()
        found.append(f"{name} {float(np.asarray(spearmanr(times, sizes))[0]):+.2f}")
    return "rank correlation of time with the size of the noise: " + ", ".join(found)
