"""Tens of millions of draws from every bulk sampler: a scale that is off by half a percent must show."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
from numpy.typing import NDArray

from isotone import noise
from isotone.noise import bits as wide
from isotone.noise.laplace import BASE, WORD_BITS, geometric_digits
from tests.support import laws
from tests.support.chisquare import FALSE_ALARM, chi_square_p

DRAWS, BLOCK = 20_000_000, 2_000_000


def _check(
    draw: Callable[[int], NDArray[np.int64]], law: Callable[[float], laws.Cdf], parameter: float
) -> str:
    draws = np.concatenate([draw(BLOCK) for _ in range(DRAWS // BLOCK)])
    right, low, high = (laws.fits(draws, law(parameter * factor), cells=200) for factor in (1, 0.995, 1.005))
    assert right > FALSE_ALARM, f"the law at {parameter} does not fit: p = {right:.2g}"
    assert max(low, high) < FALSE_ALARM, (
        f"half a percent goes unnoticed at {parameter}: p = {max(low, high):.2g}"
    )
    return f"{parameter:g}: p = {right:.2f}"


def audit_two_sided_geometrics_in_tens_of_millions() -> str:
    return "; ".join(
        _check(lambda n, e=e: noise.two_sided_geometrics(e, n), laws.two_sided_geometric_cdf, float(e))
        for e in (Fraction(1), Fraction(1, 50), Fraction(1, 10**5))
    )


def audit_discrete_gaussians_in_tens_of_millions() -> str:
    return "; ".join(
        _check(lambda n, v=v: noise.discrete_gaussians(v, n), laws.discrete_gaussian_cdf, float(v))
        for v in (Fraction(1), Fraction(100), Fraction(10**10))
    )


def audit_rounded_gaussians_in_tens_of_millions() -> str:
    return "; ".join(
        _check(lambda n, v=v: noise.rounded_gaussians(v, n), laws.rounded_gaussian_cdf, float(v))
        for v in (Fraction(1), Fraction(100), Fraction(10**10))
    )


def audit_a_million_choices() -> str:
    scores, counts = np.arange(8), np.array([1, 7, 2, 50, 0, 400, 3, 9000])
    size = 1_000_000
    picks = noise.choose_exponential_segments(
        np.tile(scores, size), np.arange(size + 1) * 8, Fraction(4, 3), np.tile(counts, size)
    )
    seen = np.bincount(picks, minlength=8)

    def weights(rate: float) -> Any:
        w = counts * np.exp(-rate * scores)
        return w / w.sum()

    p = [chi_square_p(seen, weights(4 / 3 * factor)) for factor in (1, 0.99, 1.01)]
    assert p[0] > FALSE_ALARM
    assert max(p[1:]) < FALSE_ALARM
    return f"p = {p[0]:.2f}; a rate off by one percent: p < {max(p[1:]):.0e}"


def audit_the_error_of_compiled_powers_of_two() -> str:
    rng = np.random.default_rng(0)
    worst = 0.0
    with mpmath.workprec(160):
        for fraction in rng.integers(0, 2**64, 200_000, dtype=np.uint64):
            true = mpmath.mpf(2) ** (63 - mpmath.mpf(int(fraction)) / mpmath.mpf(2) ** 64)
            worst = max(worst, abs(float(int(wide.exp2_negative(fraction)) - true)))
    assert worst < wide.POWER_ERROR
    return f"largest error {worst:.2f} of the {wide.POWER_ERROR} that are allowed, at 200,000 points"


def audit_thresholds_of_a_hundred_random_rates() -> str:
    rng = np.random.default_rng(1)
    entries = 0
    for _ in range(100):
        rate = Fraction(
            int(rng.integers(1, 10**6)), int(rng.integers(1, 10**6)) * 10 ** int(rng.integers(0, 5))
        )
        rate = min(rate, Fraction(4))
        table = geometric_digits(rate)
        with mpmath.workprec(2500):
            for row, each in enumerate(table.rates):
                x = mpmath.mpf(each.numerator) / each.denominator
                whole = 1 if row == len(table.rates) - 1 else -mpmath.expm1(-x * BASE)
                for digit in range(1, BASE):
                    true = mpmath.floor(-mpmath.expm1(-x * digit) / whole * 2**WORD_BITS)
                    assert int(table.thresholds[row, digit - 1]) == int(true), (rate, row, digit)
                    entries += 1
    return f"all {entries:,} entries are the exact floors"
